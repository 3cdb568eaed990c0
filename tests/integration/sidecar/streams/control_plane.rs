//! A control plane that only says what happens to its objects.

use std::fs;

use agents_sidecar::args::variable;
use anyhow::Result;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::server::{Does, Server, stream};
use super::{Sidecar, by, of, queue};
use crate::kit::pki::Authority;

fn about(name: &str, action: &str, status: Value) -> String {
    let message = json!({
        "type": "resource", "kind": "AgentRun", "namespace": "agents", "action": action, "name": name,
        "resource": {"metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}, "status": status},
    });
    format!("data: {message}\n\n")
}

/// What it says: two in line, one of them held back, one running, one over, one gone.
pub(super) fn story() -> String {
    let blocked = json!({"phase": "Pending",
        "conditions": [{"type": "Blocked", "status": "True", "reason": "ConcurrencyLimit"}]});
    let status = json!({"type": "status", "namespace": "agents", "status": {
        "agentrun_ingestion": {"untouched_run_count": 2, "oldest_untouched_age_seconds": 9}}});
    [
        "retry: 1000\n: connected\n\n".to_owned(),
        about("a", "ADDED", json!({})),
        about("b", "ADDED", blocked),
        about("c", "ADDED", json!({"phase": "Running"})),
        about("d", "ADDED", json!({"phase": "Running"})),
        about("d", "MODIFIED", json!({"phase": "Succeeded"})),
        about("e", "ADDED", json!({})),
        about("e", "DELETED", json!({})),
        about("over", "ADDED", json!({})),
        format!("data: {status}\n\n"),
        "data: {\"type\": \"error\", \"message\": \"x\"}\n\ndata: {\"type\": \"new\"}\n\n"
            .to_owned(),
    ]
    .concat()
}

#[tokio::test]
async fn the_runs_of_a_control_plane_are_counted_over_tls_and_go_with_it() -> Result<()> {
    let authority = Authority::new();
    let folder = TempDir::new()?;
    let (token, ca) = (folder.path().join("token"), folder.path().join("ca.crt"));
    fs::write(&token, "hunter2\n")?;
    fs::write(&ca, authority.pem())?;
    let server = Server::start_tls(&authority.issue(), |path, before| match (path, before) {
        ("/v1/control-plane/stream?namespace=agents", 0) => Does::Holds(stream(&story())),
        _ => Does::Answers("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_owned()),
    })
    .await?;
    let source = format!(
        "upstream=https://{}/v1/control-plane/stream?namespace=agents",
        server.address
    );
    let path = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    let (token, ca) = (path(&token), path(&ca));
    let settings = [
        (variable::CONTROL_PLANE_STREAMS, &*source),
        (variable::CONTROL_PLANE_TOKEN_FILE, &token),
        (variable::STREAM_CA_FILE, &ca),
        (variable::CONTROL_PLANE_RUNS, "3"),
        (variable::STREAM_SILENCE, "3s"),
        (variable::STREAM_GRACE, "1s"),
    ];
    let sidecar = Sidecar::start(&settings).await;
    let told =
        |page: &_| by(page, "upstream", "source_events_total", ("event", "other")) == Some(1.0);
    let page = sidecar.until("all events", told).await?;
    for (name, expected) in [
        ("source_up", 1.0),
        ("queue_depth", 2.0),
        ("queue_running", 1.0),
        ("queue_untouched", 2.0),
        ("queue_untouched_oldest_age_seconds", 9.0),
    ] {
        assert_eq!(of(&page, "upstream", name), Some(expected), "{name}");
    }
    let limit = ("reason", "ConcurrencyLimit");
    assert_eq!(by(&page, "upstream", "queue_blocked", limit), Some(1.0));
    assert!(of(&page, "upstream", "queue_oldest_age_seconds") > Some(1e6));
    // Only three are counted at a time, and three more came.
    assert_eq!(of(&page, "upstream", "queue_overflow_total"), Some(3.0));
    assert_eq!(
        of(&page, "upstream", "source_leader"),
        None,
        "nobody said so"
    );
    let asked = server.asked("/v1/control-plane/stream?namespace=agents");
    let authorized = "\r\nauthorization: bearer hunter2\r\n";
    assert!(asked[0].head.contains(authorized), "{}", asked[0].head);
    // It falls silent, is asked again, and wants nobody any more.
    let gone = |page: &_| {
        by(
            page,
            "upstream",
            "source_disconnects_total",
            ("cause", "refused"),
        ) >= Some(1.0)
            && queue(page, "upstream").is_empty()
    };
    let page = sidecar.until("its end", gone).await?;
    assert_eq!(of(&page, "upstream", "source_up"), Some(0.0));
    let silent = ("cause", "silent");
    assert_eq!(
        by(&page, "upstream", "source_disconnects_total", silent),
        Some(1.0)
    );
    Ok(())
}

#[tokio::test]
async fn a_token_in_the_clear_and_a_name_twice_stop_the_start() -> Result<()> {
    for (settings, expected) in [
        (
            [
                (
                    variable::CONTROL_PLANE_STREAMS,
                    "upstream=http://control.example/",
                ),
                (variable::CONTROL_PLANE_TOKEN_FILE, "/nowhere"),
            ],
            "AGENTS_SIDECAR_CONTROL_PLANE_TOKEN_FILE: the token would go to http://control.example/ in the clear; use https",
        ),
        (
            [
                (
                    variable::CONTROL_PLANE_STREAMS,
                    "controller=https://control.example/",
                ),
                (variable::STREAM_SILENCE, "45s"),
            ],
            "AGENTS_SIDECAR_CONTROL_PLANE_STREAMS: `controller` is already the name of a stream in AGENTS_SIDECAR_QUEUE_STREAMS",
        ),
    ] {
        let program = crate::kit::process::product("agents-sidecar");
        let ended = crate::kit::process::Process::start(&program, &[], &settings)
            .end()
            .await;
        assert_eq!(ended.code, Some(2));
        let log = ended.log.join("\n");
        assert!(log.contains(expected), "{log}");
    }
    Ok(())
}
