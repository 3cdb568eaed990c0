//! Orchestrations: steps in their order, by objects of their own, tried again and stopped as asked.

use agents::api::kind::Kind;
use anyhow::Result;
use kube::ResourceExt;
use kube::api::DeleteParams;
use kube::core::DynamicObject;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::events;

use crate::controller::scene::{ALONE, DEADLINE, Scene};

fn agent(name: &str, more: Value) -> Value {
    let mut step = json!({
        "name": name, "kind": "AgentRun", "agentRef": {"name": "coder"},
        "implementation": {"inline": {"text": "Do it."}}, "workload": {"image": "registry.example.com/runner:1"},
    });
    json_patch::merge(&mut step, &more);
    step
}

async fn orchestrate(scene: &Scene, steps: Value) -> Result<()> {
    scene
        .make(Kind::Orchestration, "o", json!({ "steps": steps }))
        .await?;
    scene.make(Kind::OrchestrationRun, "x", run("o")).await?;
    Ok(())
}

fn run(orchestration: &str) -> Value {
    json!({"orchestrationRef": {"name": orchestration}})
}

/// The phases of the steps, in their order.
fn steps(run: &DynamicObject) -> String {
    let steps = run.data["status"]["stepStatuses"].as_array();
    let phases = steps.into_iter().flatten();
    let phases: Vec<_> = phases
        .map(|step| step["phase"].as_str().unwrap_or("?"))
        .collect();
    phases.join(" ")
}

async fn until_steps(scene: &Scene, phase: &str, expected: &str) -> Result<DynamicObject> {
    let is_it =
        |run: &DynamicObject| run.data["status"]["phase"] == phase && steps(run) == expected;
    scene.until_any(Kind::OrchestrationRun, "x", is_it).await
}

#[tokio::test]
async fn steps_run_in_their_order_and_each_kind_does_what_it_is_for() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    scene.make(Kind::OrchestrationRun, "x", run("o")).await?;
    let early = scene.until_ready(Kind::OrchestrationRun, "x", "False MissingOrchestration");
    early.await?;
    scene
        .make(
            Kind::Orchestration,
            "inner",
            json!({"steps": [{"name": "mark", "kind": "Checkpoint"}]}),
        )
        .await?;
    scene
        .until_ready(Kind::Orchestration, "inner", "True ValidSpec")
        .await?;
    let all = json!([
        agent("build", json!({})),
        {"name": "gate", "kind": "ApprovalGate", "policyRef": "release", "dependsOn": ["build"]},
        {"name": "signal", "kind": "SignalWait", "signalRef": "go", "dependsOn": ["gate"]},
        {"name": "inner", "kind": "SubOrchestration", "orchestrationRef": {"name": "inner"}, "dependsOn": ["signal"]},
    ]);
    scene
        .make(Kind::Orchestration, "o", json!({ "steps": all }))
        .await?;
    until_steps(&scene, "Running", "Running Pending Pending Pending").await?;
    scene.until_phase("x-0-build-1", "Running").await?;
    scene.end_pod("x-0-build-1", 0).await?;
    until_steps(&scene, "Running", "Succeeded Running Pending Pending").await?;
    scene
        .make(Kind::ApprovalPolicy, "release", json!({"mode": "manual"}))
        .await?;
    scene
        .until_ready(Kind::ApprovalPolicy, "release", "True Active")
        .await?;
    scene
        .merge_status(
            Kind::ApprovalPolicy,
            "release",
            json!({"phase": "Approved"}),
        )
        .await?;
    until_steps(&scene, "Running", "Succeeded Succeeded Running Pending").await?;
    scene.make(Kind::Signal, "go", json!({})).await?;
    scene
        .make(
            Kind::SignalDelivery,
            "now",
            json!({"signalRef": {"name": "go"}}),
        )
        .await?;
    let done = until_steps(
        &scene,
        "Succeeded",
        "Succeeded Succeeded Succeeded Succeeded",
    )
    .await?;
    let status = &done.data["status"];
    assert!(status["startedAt"].is_string() && status["finishedAt"].is_string());
    let is_it = |said: &events::Said| said.reason == "Succeeded";
    events::until(&scene.here.client, &done, DEADLINE, is_it).await?;
    Ok(())
}

#[tokio::test]
async fn a_step_that_fails_is_tried_again_and_then_fails_the_run() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    let all = json!([
        agent("build", json!({"retries": 1, "retryBackoffSeconds": 1})),
        {"name": "end", "kind": "Checkpoint", "dependsOn": ["build"]},
    ]);
    orchestrate(&scene, all).await?;
    for name in ["x-0-build-1", "x-0-build-2"] {
        scene.until_phase(name, "Running").await?;
        scene.end_pod(name, 1).await?;
    }
    let failed = until_steps(&scene, "Failed", "Failed Skipped").await?;
    let conditions = failed.data["status"]["conditions"].as_array();
    let reason = conditions
        .into_iter()
        .flatten()
        .find(|entry| entry["type"] == "Failed");
    assert_eq!(
        reason.map(|entry| &entry["reason"]),
        Some(&json!("RetriesExhausted"))
    );
    for reason in ["StepRetrying", "StepFailed"] {
        let is_it = |said: &events::Said| said.reason == reason;
        events::until(&scene.here.client, &failed, DEADLINE, is_it).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_step_that_takes_too_long_is_stopped() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    orchestrate(
        &scene,
        json!([agent("build", json!({"timeoutSeconds": 2}))]),
    )
    .await?;
    until_steps(&scene, "Failed", "Failed").await?;
    scene.until_phase("x-0-build-1", "Cancelled").await?;
    Ok(())
}

#[tokio::test]
async fn a_run_that_is_stopped_stops_its_steps_and_one_that_is_deleted_takes_them_along()
-> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    let all = json!([
        agent("build", json!({})),
        {"name": "end", "kind": "Checkpoint", "dependsOn": ["build"]},
    ]);
    orchestrate(&scene, all).await?;
    scene.until_phase("x-0-build-1", "Running").await?;
    scene
        .merge(
            Kind::OrchestrationRun,
            "x",
            json!({"spec": {"cancel": true}}),
        )
        .await?;
    until_steps(&scene, "Cancelled", "Cancelled Skipped").await?;
    scene.until_phase("x-0-build-1", "Cancelled").await?;
    scene.make(Kind::OrchestrationRun, "y", run("o")).await?;
    scene.until_phase("y-0-build-1", "Running").await?;
    let runs = scene.any(Kind::OrchestrationRun);
    runs.delete("y", &DeleteParams::background()).await?;
    scene.until_gone(Kind::OrchestrationRun, "y").await?;
    scene.until_gone(Kind::AgentRun, "y-0-build-1").await?;
    Ok(())
}

#[tokio::test]
async fn a_controller_that_is_killed_starts_no_step_twice() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let first = scene.controller().await?;
    orchestrate(&scene, json!([agent("build", json!({}))])).await?;
    let made = scene.until_phase("x-0-build-1", "Running").await?;
    first.signal(Signal::SIGKILL);
    first.end().await;
    scene.end_pod("x-0-build-1", 0).await?;
    let _second = scene.controller().await?;
    until_steps(&scene, "Succeeded", "Succeeded").await?;
    let runs = scene.any(Kind::AgentRun).list(&Default::default()).await?;
    let uids: Vec<_> = runs.iter().map(ResourceExt::uid).collect();
    assert_eq!(uids, [made.uid()]);
    Ok(())
}

#[tokio::test]
async fn settled_orchestrations_cost_no_write_and_wrong_ones_say_why() -> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    let _controller = looks.controller(&scene)?;
    let gate = json!([{"name": "gate", "kind": "ApprovalGate", "policyRef": "nobody"}]);
    orchestrate(&scene, gate).await?;
    until_steps(&scene, "Running", "Running").await?;
    let circle = json!({"steps": [
        {"name": "a", "kind": "Checkpoint", "dependsOn": ["b"]},
        {"name": "b", "kind": "Checkpoint", "dependsOn": ["a"]},
    ]});
    scene.make(Kind::Orchestration, "circle", circle).await?;
    scene
        .until_ready(Kind::Orchestration, "circle", "False DependencyCycle")
        .await?;
    scene
        .make(Kind::OrchestrationRun, "wrong", run("circle"))
        .await?;
    scene
        .until_ready(Kind::OrchestrationRun, "wrong", "False DependencyCycle")
        .await?;
    looks
        .hundred_looks(&[(Kind::Orchestration, 2), (Kind::OrchestrationRun, 2)])
        .await
}
