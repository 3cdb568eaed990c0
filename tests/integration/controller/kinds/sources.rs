//! Sources of implementations: what they need, and what is taken over from a tracker on this machine.

use std::sync::{Arc, Mutex, PoisonError};

use agents::api::kind::Kind;
use agents::api::kinds::ImplementationSpec;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use support::wait;

use crate::controller::scene::endpoint::{Asked, Endpoint, LOOPBACK, said};
use crate::controller::scene::{DEADLINE, Scene};

const SOURCE: Kind = Kind::ImplementationSource;
const OFTEN: (&str, &str) = ("AGENTS_SOURCE_SYNC_SECONDS", "1");

async fn secret(scene: &Scene, name: &str, entries: Value) -> Result<()> {
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": name}, "stringData": entries}))?;
    let secrets = scene.here.api();
    secrets.create(&PostParams::default(), &secret).await?;
    Ok(())
}

fn spec(provider: &str, scope: Value, base: &str) -> Value {
    json!({"provider": provider, "auth": {"secretRef": {"name": "hook"}}, "scope": scope,
        "sync": {"enabled": true, "apiBaseUrl": base, "secretRef": {"name": "hook", "key": "api"}}})
}

fn github(base: &str) -> Value {
    spec(
        "github",
        json!({"repository": "o/r", "labels": ["agent"]}),
        base,
    )
}

async fn with_secret(settings: &[(&str, &str)]) -> Result<Scene> {
    let scene = Scene::new(settings).await?;
    secret(&scene, "hook", json!({"token": "signs", "api": "t0ken"})).await?;
    Ok(scene)
}

fn issue(number: u64, body: &str, version: &str) -> Value {
    json!({"number": number, "title": format!("Issue {number}"), "body": body, "updated_at": version,
        "html_url": format!("https://github.com/o/r/issues/{number}"), "labels": [{"name": "agent"}]})
}

async fn implementation(
    scene: &Scene,
    name: &str,
    wanted: impl Fn(&ImplementationSpec) -> bool,
) -> Result<ImplementationSpec> {
    wait::until(&scene.here.api(), name, DEADLINE, wanted).await
}

fn of(object: &DynamicObject, type_: &str) -> Option<(String, String)> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|entry| entry["type"] == type_)?;
    let word = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((word("status"), word("reason")))
}

#[tokio::test]
async fn a_source_says_what_it_lacks_and_whether_it_is_called() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    let auth = json!({"secretRef": {"name": "hook"}});
    let bare = json!({"provider": "linear", "auth": auth, "webhook": {"enabled": true}});
    scene.make(SOURCE, "x", bare).await?;
    scene
        .until_ready(SOURCE, "x", "False SecretNotFound")
        .await?;
    secret(&scene, "hook", json!({"other": "x"})).await?;
    scene
        .until_ready(SOURCE, "x", "False SecretKeyMissing")
        .await?;
    let named = json!({"spec": {"auth": {"secretRef": {"key": "other"}}}});
    scene.merge(SOURCE, "x", named).await?;
    scene.until_ready(SOURCE, "x", "True WebhookReady").await?;
    scene
        .merge(
            SOURCE,
            "x",
            json!({"spec": {"webhook": {"enabled": false}}}),
        )
        .await?;
    scene
        .until_ready(SOURCE, "x", "False WebhookDisabled")
        .await?;
    scene
        .merge(SOURCE, "x", json!({"spec": {"provider": "github"}}))
        .await?;
    let wrong = scene.until_ready(SOURCE, "x", "False MissingScope").await?;
    assert_eq!(
        of(&wrong, "InvalidSpec")
            .map(|(status, _)| status)
            .as_deref(),
        Some("True")
    );
    Ok(())
}

#[tokio::test]
async fn issues_of_github_become_implementations_and_follow_their_changes() -> Result<()> {
    support::kinds!();
    let scene = with_secret(&[LOOPBACK, OFTEN]).await?;
    let _controller = scene.controller().await?;
    let version = Arc::new(Mutex::new("v1".to_owned()));
    let shown = Arc::clone(&version);
    let server = Endpoint::start(move |asked| {
        let version = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mark = format!("\"{version}\"");
        if asked.header("if-none-match") == mark {
            return said(304, &[], &json!(null));
        }
        let mut request = issue(9, "", "v1");
        request["pull_request"] = json!({});
        let issues = json!([
            issue(1, &format!("Do {version}."), &version),
            issue(2, "", "v1"),
            request
        ]);
        said(200, &[("etag", &mark)], &issues)
    })
    .await?;
    scene.make(SOURCE, "x", github(&server.url("/api"))).await?;
    let synced = scene.until_ready(SOURCE, "x", "True Synced").await?;
    ensure!(synced.data["status"]["lastSyncedAt"].is_string());
    let first = implementation(&scene, "o-r-1-impl", |made| {
        made.status
            .as_ref()
            .is_some_and(|status| status.source_version.as_deref() == Some("v1"))
    })
    .await?;
    assert_eq!(
        (&*first.spec.text, first.spec.summary.as_deref()),
        ("Do v1.", Some("Issue 1"))
    );
    let labels = first.metadata.labels.clone().unwrap_or_default();
    assert_eq!(labels["agents.proompteng.ai/source-provider"], "github");
    let second = implementation(&scene, "o-r-2-impl", |_| true).await?;
    assert_eq!(second.spec.text, "Issue 2");
    let none = scene
        .here
        .api::<ImplementationSpec>()
        .get_opt("o-r-9-impl")
        .await?;
    ensure!(none.is_none(), "a pull request is no issue");
    // A tracker in which nothing changes costs no write.
    let settled = scene.any(SOURCE).get("x").await?.metadata.resource_version;
    let unchanged = || {
        server
            .asked()
            .iter()
            .filter(|asked| asked.header("if-none-match") == "\"v1\"")
            .count()
    };
    wait::retry("three looks that find nothing new", DEADLINE, || async {
        ensure!(unchanged() >= 3, "{} so far", unchanged());
        Ok(())
    })
    .await?;
    assert_eq!(
        scene.any(SOURCE).get("x").await?.metadata.resource_version,
        settled
    );
    for asked in server.asked() {
        assert_eq!(asked.header("authorization"), "Bearer t0ken");
        ensure!(
            asked.path.starts_with("/api/repos/o/r/issues?"),
            "{}",
            asked.path
        );
    }
    *version.lock().unwrap_or_else(PoisonError::into_inner) = "v2".to_owned();
    let changed = implementation(&scene, "o-r-1-impl", |made| made.spec.text == "Do v2.").await?;
    assert_eq!(changed.metadata.uid, first.metadata.uid);
    Ok(())
}

#[tokio::test]
async fn issues_of_linear_become_implementations_page_by_page() -> Result<()> {
    support::kinds!();
    let scene = with_secret(&[LOOPBACK]).await?;
    let _controller = scene.controller().await?;
    let server = Endpoint::start(|asked| {
        let body: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let (id, more) = match body["variables"]["after"].as_str() {
            None => ("ENG-1", true),
            Some(_) => ("ENG-2", false),
        };
        let node =
            json!({"identifier": id, "title": id, "updatedAt": "v", "labels": {"nodes": []}});
        let page = json!({"hasNextPage": more, "endCursor": "c"});
        said(
            200,
            &[],
            &json!({"data": {"issues": {"pageInfo": page, "nodes": [node]}}}),
        )
    })
    .await?;
    let source = spec("linear", json!({"team": "ENG"}), &server.url(""));
    scene.make(SOURCE, "x", source).await?;
    for name in ["linear-eng-1-impl", "linear-eng-2-impl"] {
        implementation(&scene, name, |_| true).await?;
    }
    scene.until_ready(SOURCE, "x", "True Synced").await?;
    Ok(())
}

#[tokio::test]
async fn a_tracker_that_fails_is_told_and_read_again() -> Result<()> {
    support::kinds!();
    let scene = with_secret(&[LOOPBACK, OFTEN]).await?;
    let _controller = scene.controller().await?;
    let other = Endpoint::start(|_| said(200, &[], &json!([]))).await?;
    let elsewhere = other.url("/");
    let is_well = Arc::new(Mutex::new(false));
    let well = Arc::clone(&is_well);
    let server = Endpoint::start(move |asked: &Asked| {
        if *well.lock().unwrap_or_else(PoisonError::into_inner) {
            return said(200, &[], &json!([]));
        }
        match asked.path.split('/').nth(1).unwrap_or_default() {
            "unauthorized" => said(401, &[], &json!({})),
            "limited" => said(429, &[("retry-after", "2")], &json!({})),
            "broken" => said(500, &[], &json!({})),
            "large" => said(200, &[], &json!([{"x": "y".repeat(9 << 20)}])),
            "elsewhere" => said(302, &[("location", &elsewhere)], &json!({})),
            _ => said(200, &[], &json!({"not": "a list"})),
        }
    })
    .await?;
    let rows = [
        ("unauthorized", "SyncFailed"),
        ("limited", "SyncFailed"),
        ("broken", "SyncFailed"),
        ("large", "SyncFailed"),
        ("elsewhere", "EgressDenied"),
        ("garbled", "SyncFailed"),
    ];
    for (name, _) in rows {
        scene
            .make(SOURCE, name, github(&server.url(&format!("/{name}"))))
            .await?;
    }
    for (name, reason) in rows {
        let failed = scene
            .until_ready(SOURCE, name, &format!("False {reason}"))
            .await;
        let failed = failed.with_context(|| name.to_owned())?;
        assert_eq!(
            of(&failed, "Unreachable"),
            Some(("True".to_owned(), reason.to_owned())),
            "{name}"
        );
        let stored = failed.data["status"].to_string();
        ensure!(!stored.contains("t0ken"), "{stored}");
    }
    assert_eq!(other.asked().len(), 0, "nobody else was told the token");
    *is_well.lock().unwrap_or_else(PoisonError::into_inner) = true;
    for (name, _) in rows {
        scene.until_ready(SOURCE, name, "True Synced").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_tracker_that_may_not_be_called_is_not_called() -> Result<()> {
    support::kinds!();
    let scene = with_secret(&[]).await?;
    let _controller = scene.controller().await?;
    let server = Endpoint::start(|_| said(200, &[], &json!([]))).await?;
    scene.make(SOURCE, "x", github(&server.url(""))).await?;
    scene.until_ready(SOURCE, "x", "False EgressDenied").await?;
    assert_eq!(server.asked().len(), 0);
    Ok(())
}
