//! A settled object costs no write, however often it is looked at: requests are counted, so one that changes nothing counts
//! as well.

use std::collections::BTreeMap;

use agents::api::kind::Kind;
use agents::api::kinds::AgentRun;
use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use serde_json::json;

use super::every::{self, until_followed};
use super::tools;
use crate::controller::scene::Scene;

#[tokio::test]
async fn settled_runs_are_looked_at_a_hundred_times_without_a_write() -> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    scene.make_agent().await?;
    let _controller = looks.controller(&scene)?;
    for name in ["done", "busy", "waits"] {
        let agent = if name == "waits" { "nobody" } else { "coder" };
        scene
            .run(name, json!({"agentRef": {"name": agent}}))
            .await?;
    }
    scene.until_phase("busy", "Running").await?;
    scene.end_pod("done", 0).await?;
    scene.until_phase("done", "Succeeded").await?;
    scene.until_free("done").await?;
    scene.until("waits", |run| run.status.is_some()).await?;
    // The pod of the busy run comes by itself; once it is there, nothing changes any more.
    scene.pod("busy").await?;
    scene
        .until_job("busy", |job| {
            job.status
                .as_ref()
                .and_then(|status| status.ready)
                .is_some()
        })
        .await?;
    let objects = [
        (Kind::Agent, 1),
        (Kind::AgentProvider, 1),
        (Kind::AgentRun, 3),
    ];
    looks.hundred_looks(&objects).await
}

#[tokio::test]
async fn an_object_of_any_kind_is_looked_at_a_hundred_times_without_a_write_however_it_stands()
-> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    let _controller = looks.controller(&scene)?;
    every::settle(&scene).await?;
    every::keep_waiting(&scene).await?;
    every::go_wrong(&scene).await?;
    let child = Kind::AgentRun;
    let kinds = every::good().into_iter().map(|(kind, ..)| kind);
    let kinds = kinds.chain(every::waiting().into_iter().map(|(kind, ..)| kind));
    let kinds = kinds.chain(every::wrong().into_iter().map(|(kind, _)| kind));
    let mut objects = BTreeMap::new();
    for kind in kinds.chain([child]) {
        *objects.entry(kind).or_default() += 1;
    }
    assert_eq!(objects.len(), Kind::ALL.len());
    let objects: Vec<(Kind, u32)> = objects.into_iter().collect();
    looks.hundred_looks(&objects).await
}

#[tokio::test]
async fn settled_calls_are_looked_at_a_hundred_times_without_a_write() -> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    let _controller = looks.controller(&scene)?;
    scene.make(Kind::Tool, "lint", tools::tool()).await?;
    for name in ["done", "bad", "busy"] {
        scene.make(Kind::ToolRun, name, tools::call()).await?;
    }
    let nobody = json!({"toolRef": {"name": "nobody"}});
    scene.make(Kind::ToolRun, "waits", nobody).await?;
    for (name, phase) in [("done", "Succeeded"), ("bad", "Failed")] {
        tools::end_pod(&scene, name, phase).await?;
        tools::until_phase(&scene, name, phase).await?;
        tools::until_free(&scene, name).await?;
    }
    tools::until_phase(&scene, "busy", "Running").await?;
    until_followed(&scene, "busy-tool").await?;
    scene
        .until_ready(Kind::ToolRun, "waits", "False MissingTool")
        .await?;
    scene
        .until_ready(Kind::Tool, "lint", "True ValidSpec")
        .await?;
    looks
        .hundred_looks(&[(Kind::Tool, 1), (Kind::ToolRun, 4)])
        .await
}

#[tokio::test]
async fn settled_workflows_are_looked_at_a_hundred_times_without_a_write() -> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    scene.make_agent().await?;
    let _controller = looks.controller(&scene)?;
    let steps = json!([{"name": "plan"}, {"name": "build"}]);
    for name in ["done", "bad", "busy"] {
        let workflow = json!({"runtime": {"type": "workflow"}, "workflow": {"steps": steps}});
        scene.run(name, workflow).await?;
    }
    for (job, code) in [
        ("done-step-1-attempt-1", 0),
        ("done-step-2-attempt-1", 0),
        ("bad-step-1-attempt-1", 1),
        ("busy-step-1-attempt-1", 0),
    ] {
        scene.end_job(job, code).await?;
    }
    for (name, phase) in [("done", "Succeeded"), ("bad", "Failed")] {
        scene.until_phase(name, phase).await?;
        scene.until_free(name).await?;
    }
    until_followed(&scene, "busy-step-2-attempt-1").await?;
    let second = |run: &AgentRun| {
        let steps = run
            .status
            .as_ref()
            .and_then(|status| status.workflow.clone()?.steps);
        let second = steps.and_then(|steps| steps.get(1)?.job_ref.clone());
        second.is_some_and(|job| job.uid.is_some())
    };
    scene.until("busy", second).await?;
    let freed = |job: &Job| !crate::controller::scene::is_held(job);
    scene
        .until_job_named("busy-step-1-attempt-1", freed)
        .await?;
    for (kind, name) in [(Kind::Agent, "coder"), (Kind::AgentProvider, "shell")] {
        scene.until_ready(kind, name, "True ValidSpec").await?;
    }
    let objects = [
        (Kind::Agent, 1),
        (Kind::AgentProvider, 1),
        (Kind::AgentRun, 3),
    ];
    looks.hundred_looks(&objects).await
}

#[tokio::test]
async fn settled_orchestration_runs_are_looked_at_a_hundred_times_without_a_write() -> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    scene.make_agent().await?;
    let _controller = looks.controller(&scene)?;
    let agent = json!({
        "name": "build", "kind": "AgentRun", "agentRef": {"name": "coder"},
        "implementation": {"inline": {"text": "Do it."}}, "workload": {"image": "registry.example.com/runner:1"},
    });
    scene
        .make(Kind::Orchestration, "o", json!({"steps": [agent]}))
        .await?;
    for name in ["done", "bad", "busy"] {
        let spec = json!({"orchestrationRef": {"name": "o"}});
        scene.make(Kind::OrchestrationRun, name, spec).await?;
    }
    for (name, code, phase) in [("done", 0, "Succeeded"), ("bad", 1, "Failed")] {
        let child = format!("{name}-0-build-1");
        scene.end_pod(&child, code).await?;
        scene.until_phase(&child, phase).await?;
        scene.until_free(&child).await?;
        let ended = |run: &kube::core::DynamicObject| run.data["status"]["phase"] == phase;
        scene.until_any(Kind::OrchestrationRun, name, ended).await?;
    }
    scene.until_phase("busy-0-build-1", "Running").await?;
    until_followed(&scene, "busy-0-build-1-job").await?;
    let begun = |run: &kube::core::DynamicObject| run.data["status"]["phase"] == "Running";
    scene
        .until_any(Kind::OrchestrationRun, "busy", begun)
        .await?;
    for (kind, name) in [
        (Kind::Agent, "coder"),
        (Kind::AgentProvider, "shell"),
        (Kind::Orchestration, "o"),
    ] {
        scene.until_ready(kind, name, "True ValidSpec").await?;
    }
    let objects = [
        (Kind::Agent, 1),
        (Kind::AgentProvider, 1),
        (Kind::Orchestration, 1),
        (Kind::OrchestrationRun, 3),
        (Kind::AgentRun, 3),
    ];
    looks.hundred_looks(&objects).await
}
