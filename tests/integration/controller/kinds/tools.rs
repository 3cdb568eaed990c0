//! Calls of tools: made when the tool is there, followed to their end, stopped when someone asks.

use agents::api::contract::label;
use agents::api::kind::Kind;
use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::wait;

use crate::controller::scene::{ALONE, DEADLINE, Scene, is_held};

pub(in crate::controller) fn tool() -> Value {
    json!({"image": "registry.example.com/lint:1", "command": ["/lint", "{{ parameters.path }}"]})
}

pub(in crate::controller) fn call() -> Value {
    json!({"toolRef": {"name": "lint"}, "parameters": {"path": "src"}})
}

/// Ends the pod of a call, as a node would.
pub(in crate::controller) async fn end_pod(scene: &Scene, call: &str, phase: &str) -> Result<()> {
    let labels = format!("{}={call}", label::TOOL_RUN);
    let pods = scene.here.api::<Pod>();
    let found = wait::until_listed(&pods, &labels, DEADLINE, |pods: &[Pod]| !pods.is_empty());
    let pod = found.await?.pop().context("a pod")?.name_any();
    let code = i32::from(phase != "Succeeded");
    let status = json!({"status": {"phase": phase, "containerStatuses": [{
        "name": "tool-runner", "image": "x", "imageID": "x", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": code, "reason": "Error"}},
    }]}});
    let patch = Patch::Merge(status);
    pods.patch_status(&pod, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

pub(in crate::controller) async fn until_phase(
    scene: &Scene,
    call: &str,
    phase: &str,
) -> Result<Value> {
    let found = scene.until_any(Kind::ToolRun, call, |call| {
        call.data["status"]["phase"] == phase
    });
    Ok(found.await?.data["status"].clone())
}

/// Waits until nothing that was made for a call is held any more.
pub(in crate::controller) async fn until_free(scene: &Scene, call: &str) -> Result<()> {
    let labels = format!("{}={call}", label::TOOL_RUN);
    let free = |jobs: &[Job]| !jobs.iter().any(is_held);
    wait::until_listed(&scene.here.api::<Job>(), &labels, DEADLINE, free).await?;
    let free = |pods: &[Pod]| !pods.iter().any(is_held);
    wait::until_listed(&scene.here.api::<Pod>(), &labels, DEADLINE, free).await?;
    Ok(())
}

#[tokio::test]
async fn a_call_waits_for_its_tool_and_keeps_how_its_job_ended() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    for name in ["good", "bad"] {
        scene.make(Kind::ToolRun, name, call()).await?;
    }
    scene
        .until_ready(Kind::ToolRun, "good", "False MissingTool")
        .await?;
    scene.make(Kind::Tool, "lint", tool()).await?;
    scene
        .until_ready(Kind::Tool, "lint", "True ValidSpec")
        .await?;
    for (name, phase) in [("good", "Succeeded"), ("bad", "Failed")] {
        let running = until_phase(&scene, name, "Running").await?;
        assert_eq!(running["jobRef"]["name"], format!("{name}-tool"));
        end_pod(&scene, name, phase).await?;
        let ended = until_phase(&scene, name, phase).await?;
        assert!(ended["startedAt"].is_string() && ended["finishedAt"].is_string());
        until_free(&scene, name).await?;
    }
    let job = scene.here.api::<Job>().get("good-tool").await?;
    let ttl = job.spec.and_then(|spec| spec.ttl_seconds_after_finished);
    assert_eq!(ttl, Some(600));
    Ok(())
}

#[tokio::test]
async fn a_call_that_is_stopped_or_deleted_leaves_nothing_at_work() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    scene.make(Kind::Tool, "lint", tool()).await?;
    for name in ["stopped", "deleted"] {
        scene.make(Kind::ToolRun, name, call()).await?;
        until_phase(&scene, name, "Running").await?;
    }
    scene
        .merge(Kind::ToolRun, "stopped", json!({"spec": {"cancel": true}}))
        .await?;
    until_phase(&scene, "stopped", "Cancelled").await?;
    let calls = scene.any(Kind::ToolRun);
    calls.delete("deleted", &DeleteParams::background()).await?;
    scene.until_gone(Kind::ToolRun, "deleted").await?;
    for name in ["stopped", "deleted"] {
        let labels = format!("{}={name}", label::TOOL_RUN);
        let none = |jobs: &[Job]| jobs.is_empty();
        wait::until_listed(&scene.here.api::<Job>(), &labels, DEADLINE, none).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_job_that_is_deleted_by_someone_is_told_and_its_pod_still_counts() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    scene.make(Kind::Tool, "lint", tool()).await?;
    scene.make(Kind::ToolRun, "x", call()).await?;
    until_phase(&scene, "x", "Running").await?;
    let labels = ListParams::default().labels(&format!("{}=x", label::TOOL_RUN));
    let jobs = scene.here.api::<Job>();
    for job in jobs.list(&labels).await? {
        jobs.delete(&job.name_any(), &DeleteParams::background())
            .await?;
    }
    end_pod(&scene, "x", "Succeeded").await?;
    let done = until_phase(&scene, "x", "Succeeded").await?;
    assert_eq!(done["jobRef"]["missing"]["recovered"], "fromPod");
    until_free(&scene, "x").await?;
    Ok(())
}

#[tokio::test]
async fn a_call_whose_pod_was_never_scheduled_ends_at_its_deadline() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    let mut brief = tool();
    brief["timeoutSeconds"] = json!(1);
    scene.make(Kind::Tool, "lint", brief).await?;
    scene.make(Kind::ToolRun, "late", call()).await?;
    let failed = until_phase(&scene, "late", "Failed").await?;
    let conditions = failed["conditions"].as_array().context("conditions")?;
    let reason = conditions.iter().find(|found| found["type"] == "Failed");
    assert_eq!(reason.context("Failed")?["reason"], "TimedOut");
    until_free(&scene, "late").await
}

#[tokio::test]
async fn a_controller_that_is_killed_loses_no_outcome_of_a_call() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[ALONE]).await?;
    let first = scene.controller().await?;
    scene.make(Kind::Tool, "lint", tool()).await?;
    scene.make(Kind::ToolRun, "x", call()).await?;
    until_phase(&scene, "x", "Running").await?;
    first.signal(Signal::SIGKILL);
    first.end().await;
    end_pod(&scene, "x", "Succeeded").await?;
    let _second = scene.controller().await?;
    until_phase(&scene, "x", "Succeeded").await?;
    until_free(&scene, "x").await?;
    Ok(())
}
