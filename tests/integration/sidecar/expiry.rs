//! A target that is silent: all that it sent goes at once, and what others send stays.

use agents_sidecar::args::variable;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use support::{metrics::Page, wait::retry};

use super::otlp::{JSON, Sidecar, post};
use crate::kit::client::DEADLINE;

/// Sends one gauge for each name, as one of two programs.
async fn send(sidecar: &Sidecar, instance: &str, names: &[&str]) -> Result<()> {
    let pair = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let gauge = |name: &&str| {
        let point = json!({"timeUnixNano": "1", "asInt": "1"});
        json!({"name": name, "gauge": {"dataPoints": [point]}})
    };
    let metrics: Vec<Value> = names.iter().map(gauge).collect();
    let body = json!({"resourceMetrics": [{
        "resource": {"attributes": [
            pair("service.name", "shop"), pair("service.instance.id", instance), pair("host.name", "here"),
        ]},
        "scopeMetrics": [{"metrics": metrics}],
    }]});
    let body = body.to_string();
    let answer = post(sidecar.http, "/v1/metrics", JSON, body.as_bytes()).await?;
    ensure!(answer.status == 200, "{answer:?}");
    Ok(())
}

fn of_instance(page: &Page, instance: &str) -> Vec<&'static str> {
    let labels = [("instance", instance), ("job", "shop")];
    let is_there = |name: &&str| {
        match *name {
            "target_info" => page.value(name, &[("host_name", "here"), labels[0], labels[1]]),
            _ => page.value(name, &labels),
        }
        .is_some()
    };
    let names = ["a", "b", "target_info"];
    names.into_iter().filter(is_there).collect()
}

#[tokio::test]
async fn a_target_that_is_silent_goes_with_all_it_has_and_no_other_does() -> Result<()> {
    let settings = [
        (variable::TARGETS, "federated"),
        (variable::TARGET_EXPIRY, "10s"),
        (variable::EXPIRY, "24h"),
    ];
    let sidecar = Sidecar::start(&settings).await;
    send(&sidecar, "1", &["a"]).await?;
    send(&sidecar, "1", &["b"]).await?;
    let all = ["a", "b", "target_info"];
    retry("one of two is gone", DEADLINE, || async {
        send(&sidecar, "2", &["a"]).await?;
        let page = sidecar.page().await?;
        assert_eq!(of_instance(&page, "2"), ["a", "target_info"]);
        let left = of_instance(&page, "1");
        assert!(left.is_empty() || left == all, "only {left:?} are left");
        ensure!(left.is_empty(), "{left:?} are there");
        Ok(())
    })
    .await?;
    let page = sidecar.page().await?;
    let expired = |cause| {
        page.value(
            "agents_sidecar_otlp_expired_series_total",
            &[("cause", cause)],
        )
    };
    let causes = ["target_silent", "unsent", "target_replaced"];
    assert_eq!(causes.map(expired), [Some(2.0), Some(0.0), Some(0.0)]);
    assert_eq!(page.value("agents_sidecar_otlp_targets", &[]), Some(1.0));
    send(&sidecar, "1", &["a", "b"]).await?;
    assert_eq!(of_instance(&sidecar.page().await?, "1"), all);
    Ok(())
}
