//! Calls of trackers: who may, what becomes of them, and that none is lost.

use std::time::{Duration, Instant};

use agents::api::contract::{api_path, env, label};
use agents::api::kind::Kind;
use agents::api::kinds::ImplementationSpec;
use agents::serve::variable;
use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota, Secret};
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use nix::sys::signal::Signal;
use ring::hmac;
use serde_json::{Value, json};
use support::metrics::Page;
use support::wait;

use super::scene::{ALL, DEADLINE, Plane};
use crate::controller::scene::{ALONE, Scene};
use crate::kit::client::Answer;

const SOURCE: Kind = Kind::ImplementationSource;
const ON: (&str, &str) = (variable::DELIVERIES, "true");
const SECRET: &str = "signs-9f2c";

fn issue(number: u64, body: &str) -> Value {
    let now = Timestamp::now().to_string();
    json!({"action": "opened", "repository": {"full_name": "O/r"}, "issue": {
        "number": number, "title": format!("Issue {number}"), "body": body, "updated_at": now,
        "html_url": format!("https://github.com/o/r/issues/{number}"), "labels": [{"name": "agent"}]}})
}

fn signed(secret: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, body.as_bytes());
    tag.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Headers as GitHub has them.
fn github(secret: &str, body: &Value, id: &str, event: &str) -> String {
    let signature = signed(secret, &body.to_string());
    format!(
        "X-Hub-Signature-256: sha256={signature}\r\nX-GitHub-Event: {event}\r\nX-GitHub-Delivery: {id}\r\n"
    )
}

async fn call(plane: &Plane, path: &str, body: &Value, headers: &str) -> Answer {
    plane
        .ask_with(("POST", path), None, Some(body), headers)
        .await
}

fn read(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_default()
}

/// A source of GitHub and one of Linear, with their secret.
async fn sources(scene: &Scene) -> Result<()> {
    let secret: Secret = serde_json::from_value(
        json!({"metadata": {"name": "hook"}, "stringData": {"token": format!("{SECRET}\n")}}),
    )?;
    let secrets = scene.here.api();
    secrets.create(&PostParams::default(), &secret).await?;
    let spec = |provider: &str, scope: Value| {
        json!({"provider": provider, "auth": {"secretRef": {"name": "hook"}}, "scope": scope,
            "webhook": {"enabled": true}})
    };
    let scope = json!({"repository": "o/r", "labels": ["agent"]});
    scene.make(SOURCE, "issues", spec("github", scope)).await?;
    let scope = json!({"team": "ENG"});
    scene.make(SOURCE, "linear", spec("linear", scope)).await?;
    Ok(())
}

async fn plane(more: &[(&str, &str)]) -> Result<Plane> {
    let scene = Scene::new(&[ALONE]).await?;
    sources(&scene).await?;
    let settings: Vec<_> = [ON].iter().chain(more).copied().collect();
    let plane = Plane::beside(scene, &settings).await?;
    // A call that changes nothing tells that the secret is known.
    wait::retry("a secret that is known", DEADLINE, || async {
        for path in [api_path::GITHUB, api_path::LINEAR] {
            let body = json!({"type": "Comment"});
            let signature = signed(SECRET, &body.to_string());
            let headers = format!("X-GitHub-Event: ping\r\nX-Hub-Signature-256: sha256={signature}\r\nLinear-Signature: {signature}\r\n");
            let answer = call(&plane, path, &body, &headers).await;
            ensure!(answer.status == 200, "{}", answer.body);
        }
        Ok(())
    })
    .await?;
    Ok(plane)
}

async fn waiting(scene: &Scene) -> Result<usize> {
    let params = ListParams::default().labels(label::DELIVERY);
    let found = scene.here.api::<ConfigMap>().list(&params).await?;
    Ok(found.items.len())
}

#[tokio::test]
async fn a_signed_delivery_outlives_the_programs_and_becomes_an_implementation() -> Result<()> {
    support::kinds!();
    let mut first = plane(&[]).await?;
    let body = issue(7, "Mend it.");
    let headers = github(SECRET, &body, "d-1", "issues");
    let answer = call(&first, api_path::GITHUB, &body, &headers).await;
    assert_eq!(
        (answer.status, &read(&answer)["status"]),
        (202, &json!("queued"))
    );
    let audit = |line: &Value| line["message"] == "Audit" && line["delivery"] == "d-1";
    let line = first.process.line("the delivery", audit).await;
    assert_eq!(
        (&line["user"], &line["name"]),
        (&json!("tracker:github"), &json!("issues"))
    );
    first.process.signal(Signal::SIGKILL);
    let Plane { scene, process, .. } = first;
    let log = process.end().await.log;
    assert!(
        !log.iter().any(|line| line.contains(SECRET)),
        "a secret is told"
    );
    assert_eq!(waiting(&scene).await?, 1);

    let second = Plane::beside(scene, &[ON]).await?;
    wait::retry("the same call known as such", DEADLINE, || async {
        let again = call(&second, api_path::GITHUB, &body, &headers).await;
        ensure!(again.status == 200, "{}", again.body);
        assert_eq!(read(&again)["duplicates"], 1);
        Ok(())
    })
    .await?;
    let scene = &second.scene;
    assert_eq!(waiting(scene).await?, 1);

    let mut early = scene.controller().await?;
    early.address("admin").await;
    early.signal(Signal::SIGKILL);
    let _controller = scene.controller().await?;
    let specs = scene.here.api::<ImplementationSpec>();
    let made = wait::until(&specs, "o-r-7-impl", DEADLINE, |_| true).await?;
    assert_eq!(made.spec.text, "Mend it.");
    let id = made.spec.source.and_then(|source| source.external_id);
    assert_eq!(id.as_deref(), Some("o/r#7"));
    let synced = |status: &Value| status["lastWebhook"]["status"] == "synced";
    let source = scene
        .until_any(SOURCE, "issues", |source| synced(&source.data["status"]))
        .await?;
    let last = &source.data["status"]["lastWebhook"];
    assert_eq!(
        (&last["deliveryId"], &last["externalId"]),
        (&json!("d-1"), &json!("o/r#7"))
    );
    assert!(source.data["status"]["lastSyncedAt"].is_string(), "{last}");
    wait::retry("nothing left to wait", DEADLINE, || async {
        ensure!(waiting(scene).await? == 0);
        Ok(())
    })
    .await?;

    // By the path of the source itself, and again by that of the tracker: older news change nothing.
    let newer = issue(7, "Mend it well.");
    let path = format!(
        "/v1/implementation-sources/{}/issues/deliveries",
        second.namespace()
    );
    let told = github(SECRET, &newer, "d-2", "issues");
    assert_eq!(call(&second, &path, &newer, &told).await.status, 202);
    let is_newer = |spec: &ImplementationSpec| spec.spec.text == "Mend it well.";
    wait::until(&specs, "o-r-7-impl", DEADLINE, is_newer).await?;
    let told = github(SECRET, &body, "d-3", "issues");
    assert_eq!(
        call(&second, api_path::GITHUB, &body, &told).await.status,
        202
    );
    let third = |status: &Value| status["lastWebhook"]["deliveryId"] == "d-3" && synced(status);
    scene
        .until_any(SOURCE, "issues", |source| third(&source.data["status"]))
        .await?;
    assert!(is_newer(&specs.get("o-r-7-impl").await?));
    Ok(())
}

#[tokio::test]
async fn who_does_not_sign_learns_nothing_and_leaves_nothing() -> Result<()> {
    support::kinds!();
    let mut plane = plane(&[]).await?;
    let boss = plane.person("boss", ALL).await?;
    let body = issue(7, "Mend it.");
    let named = |name: &str| {
        let namespace = plane.namespace();
        format!("/v1/implementation-sources/{namespace}/{name}/deliveries")
    };
    let good = github(SECRET, &body, "d", "issues");
    let bad = github("guess", &body, "d", "issues");
    let other = github(SECRET, &issue(8, "Another."), "d", "issues");
    let token = format!("Authorization: Bearer {boss}\r\n{bad}");
    let empty = github("", &body, "d", "issues");
    let linear = format!(
        "Linear-Signature: {}\r\n",
        signed(SECRET, &body.to_string())
    );
    let mut answers = Vec::new();
    for (row, path, headers) in [
        ("nothing signed", api_path::GITHUB.to_owned(), String::new()),
        ("another secret", api_path::GITHUB.to_owned(), bad.clone()),
        ("another body", api_path::GITHUB.to_owned(), other),
        ("no secret", api_path::GITHUB.to_owned(), empty),
        ("a token", api_path::GITHUB.to_owned(), token),
        (
            "the header of another tracker",
            api_path::GITHUB.to_owned(),
            linear,
        ),
        ("another tracker", api_path::LINEAR.to_owned(), good.clone()),
        ("another secret for one", named("issues"), bad),
        ("another source", named("linear"), good.clone()),
        ("no source", named("none"), good),
    ] {
        let answer = call(&plane, &path, &body, &headers).await;
        assert_eq!(answer.status, 401, "{row}: {}", answer.body);
        answers.push(answer.body);
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(waiting(&plane.scene).await?, 0);

    // A source that there is and one that there is not take as long.
    let large = json!({"x": "y".repeat(400_000)});
    let headers = github("guess", &large, "d", "issues");
    let mut times = Vec::new();
    for name in ["issues", "none"] {
        let path = named(name);
        let mut best = Duration::MAX;
        for _ in 0..20 {
            let begun = Instant::now();
            assert_eq!(call(&plane, &path, &large, &headers).await.status, 401);
            best = best.min(begun.elapsed());
        }
        times.push(best.as_secs_f64());
    }
    let ratio = times[0] / times[1];
    assert!((0.5..2.0).contains(&ratio), "{times:?}");

    let admin = plane.process.address("admin").await;
    let page = Page::scrape(&admin.to_string()).await?;
    let unsigned = page.value("agents_serve_deliveries_total", &[("outcome", "unsigned")]);
    assert!(unsigned.is_some_and(|count| count >= 50.0), "{unsigned:?}");
    let off = Plane::start(&[]).await?;
    let answer = call(&off, api_path::GITHUB, &body, "").await;
    assert_eq!(
        (answer.status, &read(&answer)["reason"]),
        (404, &json!("DeliveriesOff"))
    );
    Ok(())
}

#[tokio::test]
async fn what_does_not_fit_is_refused_and_no_more_wait_than_may() -> Result<()> {
    support::kinds!();
    let plane = plane(&[(env::DELIVERIES_MAX, "2")]).await?;
    let mut old = issue(7, "Mend it.");
    old["issue"]["updated_at"] = json!("2020-01-01T00:00:00Z");
    let mut foreign = issue(7, "Mend it.");
    foreign["repository"]["full_name"] = json!("o/other");
    let mut bare = issue(7, "Mend it.");
    bare["issue"]["labels"] = json!([]);
    for (row, body, event, expected) in [
        ("old", old, "issues", (400, "Stale")),
        ("another repository", foreign, "issues", (404, "OutOfScope")),
        ("without the label", bare, "issues", (404, "OutOfScope")),
        ("no issue", json!({}), "issues", (400, "BadRequest")),
        ("another event", json!({}), "push", (200, "")),
    ] {
        let headers = github(SECRET, &body, "d", event);
        let answer = call(&plane, api_path::GITHUB, &body, &headers).await;
        let reason = read(&answer)["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert_eq!((answer.status, &*reason), expected, "{row}");
    }
    let linear = |ago: i64| {
        let sent = Timestamp::now().as_millisecond() - ago * 1000;
        json!({"type": "Issue", "webhookTimestamp": sent, "data": {"identifier": format!("ENG-{ago}"), "title": "t",
            "updatedAt": "2026-01-01T00:00:00Z", "team": {"key": "ENG"}}})
    };
    for (ago, expected) in [(300, 400), (0, 202), (1, 202), (2, 503)] {
        let body = linear(ago);
        let signature = signed(SECRET, &body.to_string());
        let headers = format!("Linear-Event: Issue\r\nLinear-Signature: {signature}\r\n");
        let answer = call(&plane, api_path::LINEAR, &body, &headers).await;
        assert_eq!(answer.status, expected, "{ago}: {}", answer.body);
        if expected == 503 {
            assert!(
                answer.head.to_lowercase().contains("retry-after: 30"),
                "{}",
                answer.head
            );
        }
    }
    assert_eq!(waiting(&plane.scene).await?, 2);
    let huge = json!({"x": "y".repeat(600_000)});
    let answer = call(&plane, api_path::GITHUB, &huge, "").await;
    assert_eq!(answer.status, 413);
    Ok(())
}

#[tokio::test]
async fn a_delivery_that_fails_is_tried_again_and_given_up() -> Result<()> {
    support::kinds!();
    let settings = [
        ALONE,
        (env::DELIVERIES_RETRY_BASE, "100ms"),
        (env::DELIVERIES_RETRY_MAX, "200ms"),
        (env::DELIVERIES_ATTEMPTS, "3"),
    ];
    let scene = Scene::new(&settings).await?;
    sources(&scene).await?;
    // No ImplementationSpec can be made.
    let hard = json!({"count/implementationspecs.agents.proompteng.ai": "0"});
    let quota: ResourceQuota =
        serde_json::from_value(json!({"metadata": {"name": "none"}, "spec": {"hard": hard}}))?;
    let quotas = scene.here.api::<ResourceQuota>();
    quotas.create(&PostParams::default(), &quota).await?;
    let status = json!({"status": {"hard": hard, "used": hard}});
    quotas
        .patch_status("none", &PatchParams::default(), &Patch::Merge(status))
        .await?;
    let _controller = scene.controller().await?;
    let plane = Plane::beside(scene, &[ON]).await?;
    let body = issue(7, "Mend it.");
    let headers = github(SECRET, &body, "d-1", "issues");
    wait::retry("a delivery that waits", DEADLINE, || async {
        let answer = call(&plane, api_path::GITHUB, &body, &headers).await;
        ensure!(answer.status == 202, "{}", answer.body);
        Ok(())
    })
    .await?;
    let failed = |status: &Value| status["lastWebhook"]["status"] == "failed";
    let source = plane
        .scene
        .until_any(SOURCE, "issues", |source| failed(&source.data["status"]))
        .await?;
    let status = &source.data["status"];
    assert_eq!(status["lastWebhook"]["attempts"], 3);
    let conditions = status["conditions"].as_array().context("conditions")?;
    let warning = conditions.iter().find(|entry| entry["type"] == "Warning");
    assert_eq!(warning.context("a warning")?["reason"], "WebhookFailed");
    wait::retry("nothing left to wait", DEADLINE, || async {
        ensure!(waiting(&plane.scene).await? == 0);
        Ok(())
    })
    .await?;
    let specs = plane.scene.here.api::<ImplementationSpec>();
    let made = specs.list(&ListParams::default()).await?;
    let names: Vec<_> = made.iter().map(ResourceExt::name_any).collect();
    assert!(names.is_empty(), "{names:?}");
    Ok(())
}
