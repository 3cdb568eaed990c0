//! Nobody gets in who should not.

use agents::serve::{openapi, variable};
use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::Subject;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use support::{lab, wait};

use super::scene::{ALL, DEADLINE, Plane, bind, person, process, submission};
use super::token::good_until;
use crate::controller::scene::Scene;

type Row = (
    &'static str,
    String,
    (&'static str, &'static str, &'static str),
    u16,
);

/// Every operation with a right of its own: method, path, the least right for it, and the code that who has it gets.
fn operations(namespace: &str) -> Vec<Row> {
    let run = |rest: &str| format!("/v1/agent-runs/{namespace}/one{rest}");
    let there = |path: &str| format!("{path}?namespace={namespace}");
    let agents = "agents.proompteng.ai";
    let (approvals, signals) = ("approvals.proompteng.ai", "signals.proompteng.ai");
    vec![
        (
            "POST",
            there("/v1/agent-runs"),
            (agents, "agentruns", "create"),
            201,
        ),
        (
            "GET",
            there("/v1/agent-runs"),
            (agents, "agentruns", "list"),
            200,
        ),
        ("GET", run(""), (agents, "agentruns", "get"), 200),
        (
            "GET",
            run("/wait?timeout=1ms"),
            (agents, "agentruns", "get"),
            200,
        ),
        ("POST", run("/cancel"), (agents, "agentruns", "update"), 200),
        ("GET", run("/events"), ("", "events", "list"), 200),
        ("GET", there("/v1/events"), ("", "events", "list"), 200),
        // The run has not begun.
        ("GET", run("/logs"), ("", "pods/log", "get"), 409),
        (
            "GET",
            there("/v1/approval-policies"),
            (approvals, "approvalpolicies", "list"),
            200,
        ),
        (
            "POST",
            format!("/v1/approval-policies/{namespace}/none/decision"),
            (approvals, "approvalpolicies/status", "update"),
            404,
        ),
        (
            "POST",
            there("/v1/signals"),
            (signals, "signals", "create"),
            201,
        ),
        (
            "POST",
            format!("/v1/signals/{namespace}/none/deliveries"),
            (signals, "signaldeliveries", "create"),
            404,
        ),
        (
            "GET",
            "/v1/queue".to_owned(),
            (agents, "agentruns", "list"),
            503,
        ),
        (
            "GET",
            "/v1/sidecar".to_owned(),
            (agents, "agentruns", "list"),
            503,
        ),
        (
            "GET",
            there("/v1/control-plane/stream"),
            (agents, "agentruns", "watch"),
            200,
        ),
        (
            "GET",
            "/v1/queue/stream".to_owned(),
            (agents, "agentruns", "list"),
            200,
        ),
    ]
}

/// Operations without a right of their own: open to anyone, to those who are known, or to those who sign.
const WITHOUT_A_RIGHT: [&str; 7] = [
    "livez",
    "readyz",
    "openApi",
    "whoAmI",
    "githubDelivery",
    "linearDelivery",
    "sourceDelivery",
];

/// Whether a path of the document stands for this one.
fn stands_for(template: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let (template, path): (Vec<_>, Vec<_>) =
        (template.split('/').collect(), path.split('/').collect());
    let mut parts = template.iter().zip(&path);
    template.len() == path.len() && parts.all(|(part, own)| part.starts_with('{') || part == own)
}

/// The table is written by hand: an operation that nobody put there would be tried by nobody.
#[test]
fn every_operation_of_the_document_with_a_right_is_tried() {
    let tried = operations("here");
    let document = openapi::document();
    let mut left = Vec::from(WITHOUT_A_RIGHT);
    for (template, methods) in document["paths"].as_object().expect("paths") {
        for (method, told) in methods.as_object().expect("methods") {
            let id = told["operationId"].as_str().expect("an id");
            if let Some(place) = left.iter().position(|known| *known == id) {
                left.remove(place);
                continue;
            }
            let is_tried = tried.iter().any(|(other, path, ..)| {
                other.eq_ignore_ascii_case(method) && stands_for(template, path)
            });
            assert!(is_tried, "{method} {template} ({id}) is not tried");
        }
    }
    assert!(left.is_empty(), "there is no {left:?} any more");
}

/// A body that fits the operation.
fn body(method: &str, path: &str) -> Option<Value> {
    (method == "POST").then(|| match path {
        path if path.contains("/decision") => json!({"approved": true}),
        path if path.contains("/deliveries") => json!({"payload": {"a": 1}}),
        path if path.contains("/signals") => json!({"name": format!("s{}", fastrand::u32(..))}),
        _ => submission(json!({})),
    })
}

fn reason(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    value["reason"].as_str().unwrap_or(body).to_owned()
}

#[tokio::test]
async fn each_operation_needs_a_token_and_its_right_in_its_namespace() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[(variable::REVIEWS_KEPT, "0s")]).await?;
    plane.scene.run("one", json!({})).await?;
    let nobody = plane.person("nobody", &[]).await?;
    let elsewhere = support::namespace("serve").await?;
    let stranger = person(&elsewhere, "stranger", ALL).await?;
    let (former, now) = (
        plane.person("former", ALL).await?,
        Timestamp::now().as_second(),
    );
    let list = format!("/v1/agent-runs?namespace={}", plane.namespace());
    let good = good_until(&former, now + 3600).await?;
    plane.expect(("GET", &list), &good, None, 200).await?;
    let expired = good_until(&former, now - 3600).await?;
    let operations = operations(plane.namespace());
    for (number, (method, path, right, expected)) in operations.iter().enumerate() {
        let able = plane.person(&format!("able-{number}"), &[*right]).await?;
        let body = body(method, path);
        for (who, token, status, word) in [
            ("without a token", None, 401, "Unauthenticated"),
            ("with an unknown token", Some("abc"), 401, "Unauthenticated"),
            (
                "with an expired token",
                Some(&*expired),
                401,
                "Unauthenticated",
            ),
            ("without rights", Some(&*nobody), 403, "Forbidden"),
            ("with rights elsewhere", Some(&*stranger), 403, "Forbidden"),
        ] {
            let answer = plane.ask(method, path, token, body.as_ref()).await;
            assert_eq!(
                answer.status, status,
                "{method} {path} {who}: {}",
                answer.body
            );
            assert_eq!(reason(&answer.body), word, "{method} {path} {who}");
        }
        let answer = plane.ask(method, path, Some(&able), body.as_ref()).await;
        assert_eq!(answer.status, *expected, "{method} {path}: {}", answer.body);
    }
    Ok(())
}

#[tokio::test]
async fn only_health_is_open_and_what_there_is_not_is_told_to_those_who_are_known() -> Result<()> {
    support::kinds!();
    let mut plane = Plane::start(&[]).await?;
    let token = plane.person("someone", &[]).await?;
    for path in ["/livez", "/readyz"] {
        assert_eq!(
            plane.ask("GET", path, None, None).await.status,
            200,
            "{path}"
        );
    }
    for path in [
        "/openapi.json",
        "/v1/whoami",
        "/console/nothing",
        "/metrics",
        "/v1/nothing",
    ] {
        let answer = plane.ask("GET", path, None, None).await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(
            answer.head.contains("www-authenticate: bearer"),
            "{}",
            answer.head
        );
    }
    let who = plane
        .expect(("GET", "/v1/whoami"), &token, None, 200)
        .await?;
    let name = format!("system:serviceaccount:{}:someone", plane.namespace());
    assert_eq!(who["user"], json!(name));
    assert_eq!(who["namespaces"], json!([plane.namespace()]));
    plane
        .expect(("GET", "/v1/nothing"), &token, None, 404)
        .await?;
    let other = "/v1/agent-runs?namespace=kube-system";
    plane.expect(("GET", other), &token, None, 403).await?;
    // A write leaves a line, whether it was done or not, and the token is in none.
    let run = plane.run("none");
    plane
        .expect(("POST", &format!("{run}/cancel")), &token, None, 403)
        .await?;
    let line = plane
        .process
        .line("the audit", |line| line["message"] == "Audit")
        .await;
    assert_eq!(line["user"], json!(name));
    assert_eq!(
        (&line["operation"], &line["status"]),
        (&json!("cancelRun"), &json!(403))
    );
    assert!(!line.to_string().contains(&token));
    let boss = plane.person("boss", ALL).await?;
    let submit = format!("/v1/agent-runs?namespace={}", plane.namespace());
    let run = submission(json!({}));
    plane
        .expect(("POST", &submit), &boss, Some(&run), 201)
        .await?;
    let line = plane
        .process
        .line("the audit of what was done", |line| {
            line["message"] == "Audit" && line["operation"] == "submitRun"
        })
        .await;
    let name = format!("system:serviceaccount:{}:boss", plane.namespace());
    assert_eq!(
        (&line["user"], &line["namespace"]),
        (&json!(name), &json!(plane.namespace()))
    );
    assert_eq!(
        (&line["status"], &line["reason"]),
        (&json!(201), &json!(""))
    );
    assert!(!line.to_string().contains(&boss));
    Ok(())
}

#[tokio::test]
async fn a_token_that_is_no_longer_good_lets_nobody_in_after_seconds() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[(variable::REVIEWS_KEPT, "1s")]).await?;
    let token = plane.person("leaver", ALL).await?;
    let list = format!("/v1/agent-runs?namespace={}", plane.namespace());
    plane.expect(("GET", &list), &token, None, 200).await?;
    let accounts = plane.scene.here.api::<ServiceAccount>();
    accounts.delete("leaver", &DeleteParams::default()).await?;
    wait::retry("the door closed", DEADLINE, || async {
        let answer = plane.ask("GET", &list, Some(&token), None).await;
        anyhow::ensure!(answer.status == 401, "{}", answer.status);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn without_the_right_to_ask_the_api_stays_closed_and_says_why() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let token = person(&scene.here, "someone", ALL).await?;
    let user = format!("plane-{}", scene.here.name);
    let subject = Subject {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: "User".to_owned(),
        name: user.clone(),
        namespace: None,
    };
    bind(&scene.here, "plane", subject, &[("*", "*", "*")]).await?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = acting_as(&user, folder.path()).await?;
    let plane = Plane::by(scene, &kubeconfig, &[]).await?;
    let answer = plane.ask("GET", "/v1/whoami", Some(&token), None).await;
    assert_eq!(
        (answer.status, &*reason(&answer.body)),
        (503, "ReviewsNotPermitted")
    );
    for said in [
        "tokenreviews.authentication.k8s.io",
        "system:auth-delegator",
    ] {
        assert!(answer.body.contains(said), "{}", answer.body);
    }
    assert_eq!(plane.ask("GET", "/livez", None, None).await.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_control_plane_without_rights_ends_with_all_that_it_lacks() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = acting_as("someone-without-rights", folder.path()).await?;
    let ended = process(&scene.here, &kubeconfig, &[])?.end().await;
    assert_eq!(ended.code, Some(1));
    let log = ended.log.join("\n");
    for said in [
        "create, patch agentruns.agents.proompteng.ai",
        "get, list, watch agents.agents.proompteng.ai",
        "get pods/log",
        "get pods/proxy",
        "list events",
        "patch approvalpolicies/status.approvals.proompteng.ai",
        "get, list, watch leases.coordination.k8s.io",
    ] {
        assert!(log.contains(said), "nothing about {said}: {log}");
    }
    Ok(())
}

/// A kubeconfig by which the program is someone else.
async fn acting_as(user: &str, folder: &std::path::Path) -> Result<std::path::PathBuf> {
    let text = std::fs::read_to_string(lab::shared().await?.kubeconfig())?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&text)?;
    kubeconfig["users"][0]["user"]["as"] = json!(user);
    let file = folder.join("kubeconfig");
    std::fs::write(&file, kubeconfig.to_string())?;
    Ok(file)
}
