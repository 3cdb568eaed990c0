//! Runs that an HTTP endpoint carries out.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use kube::{Resource, ResourceExt};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::gateway::Gateway;
use support::lab;

use crate::controller::scene::endpoint::{Endpoint, LOOPBACK, said};
use crate::controller::scene::{ALONE, DEADLINE, Scene, condition, holds, phase_of};
use agents::api::kind::Kind;
use agents::api::kinds::{Agent, AgentRun};

fn at(url: &str) -> Value {
    json!({"runtime": {"type": "custom", "config": {"endpoint": url}}})
}

fn runtime_ref(run: &AgentRun) -> Value {
    let status = run.status.as_ref();
    let reference = status.and_then(|status| status.runtime_ref.clone());
    reference.map(Value::Object).unwrap_or_default()
}

async fn until_ended(scene: &Scene, name: &str) -> Result<AgentRun> {
    let ends = ["Succeeded", "Failed", "Cancelled"];
    scene.until(name, |run| ends.contains(&phase_of(run))).await
}

#[tokio::test]
async fn a_run_is_handed_over_and_ends_as_its_endpoint_says() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[LOOPBACK]).await?;
    let _controller = scene.controller().await?;
    let server = Endpoint::start(|asked| match (asked.method.as_str(), asked.before) {
        ("POST", _) => {
            let body = json!({"id": "run-1", "password": "hunter2", "statusUrl": "/runs/1"});
            said(202, &[("retry-after", "1")], &body)
        }
        (_, 1) => said(200, &[], &json!({"status": "running"})),
        (_, 2) => said(503, &[], &json!({})),
        _ => said(
            200,
            &[],
            &json!({"status": "succeeded", "message": "all is well"}),
        ),
    })
    .await?;
    let run = scene
        .run("far", at(&server.url("/runs?key=hunter2")))
        .await?;
    let done = until_ended(&scene, "far").await?;
    assert_eq!(condition(&done, "Succeeded"), holds("True", "Completed"));
    let status = done.status.as_ref().expect("a status");
    ensure!(status.started_at.is_some() && status.finished_at >= status.started_at);
    let reference = runtime_ref(&done);
    assert_eq!(reference["name"], server.url("/runs"));
    assert_eq!(reference["namespace"], "external");
    assert_eq!(reference["response"]["id"], "run-1");
    let stored = serde_json::to_string(&done.status)?;
    ensure!(!stored.contains("hunter2"), "{stored}");
    let asked = server.asked();
    let posts: Vec<_> = asked
        .iter()
        .filter(|asked| asked.method == "POST")
        .collect();
    assert_eq!(posts.len(), 1);
    assert_eq!(posts[0].path, "/runs?key=hunter2");
    assert_eq!(
        posts[0].header("idempotency-key"),
        run.uid().unwrap_or_default()
    );
    let body: Value = serde_json::from_str(&posts[0].body)?;
    assert_eq!(body["agentRun"]["metadata"]["name"], "far");
    assert_eq!(body["implementation"]["text"], "Do it.");
    let told = scene.told(&run, "Succeeded").await?;
    let reasons: Vec<_> = told.iter().map(|said| said.reason.as_str()).collect();
    assert_eq!(reasons, ["Submitted", "Succeeded"]);
    Ok(())
}

#[tokio::test]
async fn an_endpoint_that_is_busy_is_tried_again_with_the_same_key() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[LOOPBACK]).await?;
    let _controller = scene.controller().await?;
    let server = Endpoint::start(|asked| match asked.before {
        0 => said(503, &[], &json!({})),
        _ => said(200, &[], &json!({"phase": "Failed", "message": "no luck"})),
    })
    .await?;
    let run = scene.run("busy", at(&server.url("/"))).await?;
    let failed = until_ended(&scene, "busy").await?;
    assert_eq!(
        condition(&failed, "Failed"),
        holds("True", "EndpointFailed")
    );
    assert_eq!(condition(&failed, "Warning"), holds("False", "None"));
    let asked = server.asked();
    let keys: Vec<_> = asked
        .iter()
        .map(|asked| asked.header("idempotency-key"))
        .collect();
    let uid = run.uid().unwrap_or_default();
    assert_eq!(keys, [&*uid, &*uid]);
    scene.told(&run, "Unreachable").await?;
    Ok(())
}

#[tokio::test]
async fn what_may_not_be_called_is_not_called() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    let server = Endpoint::start(|_| said(200, &[], &json!({"status": "succeeded"}))).await?;
    for (name, url) in [
        ("own", server.url("/")),
        (
            "mapped",
            server.url("/").replace("127.0.0.1", "[::ffff:127.0.0.1]"),
        ),
        (
            "cloud",
            "http://169.254.169.254/latest/meta-data".to_owned(),
        ),
        ("cluster", "https://kubernetes.default.svc/api".to_owned()),
        ("private", "http://10.1.2.3/".to_owned()),
    ] {
        let run = scene.run(name, at(&url)).await?;
        let failed = until_ended(&scene, name).await?;
        assert_eq!(
            condition(&failed, "Failed"),
            holds("True", "EgressDenied"),
            "{name}"
        );
        scene.told(&run, "EgressDenied").await?;
    }
    assert_eq!(server.asked().len(), 0);
    Ok(())
}

#[tokio::test]
async fn an_endpoint_that_answers_wrongly_fails_the_run() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[LOOPBACK]).await?;
    let _controller = scene.controller().await?;
    let other = Endpoint::start(|_| said(200, &[], &json!({"status": "succeeded"}))).await?;
    let elsewhere = other.url("/");
    let server = Endpoint::start(move |asked| match asked.path.as_str() {
        "/elsewhere" => said(307, &[("location", &elsewhere)], &json!({})),
        "/refused" => said(400, &[], &json!({})),
        _ => said(
            200,
            &[],
            &json!({"status": "succeeded", "x": "y".repeat(300_000)}),
        ),
    })
    .await?;
    let lab = std::fs::read_to_string(lab::shared().await?.kubeconfig())?;
    let lab: Value = serde_saphyr::from_str(&lab)?;
    let api = lab["clusters"][0]["cluster"]["server"]
        .as_str()
        .unwrap_or_default();
    for (name, url, reason) in [
        ("elsewhere", server.url("/elsewhere"), "EgressDenied"),
        ("refused", server.url("/refused"), "SubmitFailed"),
        ("large", server.url("/large"), "SubmitFailed"),
        ("api-server", api.to_owned(), "EgressDenied"),
    ] {
        scene.run(name, at(&url)).await?;
        let failed = until_ended(&scene, name).await?;
        assert_eq!(
            condition(&failed, "Failed"),
            holds("True", reason),
            "{name}"
        );
    }
    assert_eq!(other.asked().len(), 0);
    Ok(())
}

#[tokio::test]
async fn without_a_place_to_ask_a_run_goes_on_until_someone_ends_it() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[LOOPBACK]).await?;
    let _controller = scene.controller().await?;
    let server = Endpoint::start(|_| said(202, &[], &json!({}))).await?;
    scene.run("stopped", at(&server.url("/"))).await?;
    scene.until_phase("stopped", "Running").await?;
    scene
        .merge(Kind::AgentRun, "stopped", json!({"spec": {"cancel": true}}))
        .await?;
    scene.until_phase("stopped", "Cancelled").await?;
    let defaults = json!({"spec": {"defaults": {"timeoutSeconds": 2}}});
    let agents = scene.here.api::<Agent>();
    agents
        .patch("coder", &PatchParams::default(), &Patch::Merge(defaults))
        .await?;
    scene
        .until_any(Kind::Agent, "coder", |agent| {
            agent.data["status"]["observedGeneration"].as_i64() == agent.meta().generation
        })
        .await?;
    scene.run("late", at(&server.url("/"))).await?;
    let failed = until_ended(&scene, "late").await?;
    assert_eq!(condition(&failed, "Failed"), holds("True", "TimedOut"));
    Ok(())
}

#[tokio::test]
async fn whatever_write_a_controller_dies_after_the_endpoint_hears_one_key_only() -> Result<()> {
    support::kinds!();
    // hold, reserve, and the end; between the last two the endpoint is called.
    const WRITES: usize = 3;
    let scene = Scene::with_agent(&[ALONE, LOOPBACK]).await?;
    let first = scene.controller().await?;
    for (kind, name) in [(Kind::Agent, "coder"), (Kind::AgentProvider, "shell")] {
        scene.until_ready(kind, name, "True ValidSpec").await?;
    }
    first.signal(Signal::SIGKILL);
    first.end().await;
    let server = Endpoint::start(|_| said(200, &[], &json!({"status": "succeeded"}))).await?;
    for last in 1..=WRITES {
        let name = format!("crash-{last}");
        let way = Gateway::open(lab::shared().await?.kubeconfig(), Some(last)).await?;
        let controller = scene.controller_by(way.kubeconfig())?;
        let run = scene
            .run(&name, at(&server.url(&format!("/{name}"))))
            .await?;
        way.closed(DEADLINE).await?;
        controller.signal(Signal::SIGKILL);
        controller.end().await;
        let next = scene.controller().await?;
        let done = until_ended(&scene, &name).await?;
        assert_eq!(
            condition(&done, "Succeeded"),
            holds("True", "Completed"),
            "after {last}"
        );
        next.signal(Signal::SIGKILL);
        next.end().await;
        let asked = server.asked();
        let about = format!("/{name}");
        let mut about = asked.iter().filter(|asked| asked.path == about);
        let uid = run.uid().unwrap_or_default();
        ensure!(about.clone().count() >= 1, "after {last}");
        ensure!(
            about.all(|asked| asked.header("idempotency-key") == uid),
            "after {last}"
        );
    }
    Ok(())
}
