//! A settled object costs no write, however often it is looked at.

use agents::api::kind::Kind;
use agents::api::kinds::AgentRun;
use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

use super::every::{self, until_followed};
use super::tools;
use crate::controller::scene::Scene;

#[tokio::test]
async fn settled_runs_are_looked_at_a_hundred_times_without_a_write() -> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    scene.make_agent().await?;
    let _controller = scene.controller().await?;
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
    let versions = || async {
        let mut versions = Vec::new();
        for name in ["done", "busy", "waits"] {
            versions.push(
                scene
                    .here
                    .api::<AgentRun>()
                    .get(name)
                    .await?
                    .metadata
                    .resource_version,
            );
        }
        for name in ["done-job", "busy-job"] {
            versions.push(
                scene
                    .here
                    .api::<Job>()
                    .get(name)
                    .await?
                    .metadata
                    .resource_version,
            );
        }
        anyhow::Ok(versions)
    };
    scene
        .until_job("busy", |job| {
            job.status
                .as_ref()
                .and_then(|status| status.ready)
                .is_some()
        })
        .await?;
    let first = versions().await?;
    // The agent and its provider are looked at as well.
    looks.hundred_looks(5).await;
    assert_eq!(versions().await?, first);
    Ok(())
}

/// Versions of all objects of these kinds, and of all Jobs and pods.
async fn versions(scene: &Scene, kinds: &[Kind]) -> Result<Vec<(String, Option<String>)>> {
    let params = ListParams::default();
    let mut all = Vec::new();
    for kind in kinds {
        let list = scene.any(*kind).list(&params).await?;
        all.extend(
            list.iter()
                .map(|one| (one.name_any(), one.resource_version())),
        );
    }
    let jobs = scene.here.api::<Job>().list(&params).await?;
    all.extend(
        jobs.iter()
            .map(|job| (job.name_any(), job.resource_version())),
    );
    let pods = scene.here.api::<Pod>().list(&params).await?;
    all.extend(
        pods.iter()
            .map(|pod| (pod.name_any(), pod.resource_version())),
    );
    Ok(all)
}

#[tokio::test]
async fn an_object_of_any_kind_is_looked_at_a_hundred_times_without_a_write_however_it_stands()
-> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    let _controller = scene.controller().await?;
    every::settle(&scene).await?;
    every::keep_waiting(&scene).await?;
    every::go_wrong(&scene).await?;
    let first = versions(&scene, &Kind::ALL).await?;
    let children = 1;
    let objects = every::good().len() + every::waiting().len() + every::wrong().len() + children;
    looks.hundred_looks(u32::try_from(objects)?).await;
    assert_eq!(versions(&scene, &Kind::ALL).await?, first);
    Ok(())
}

#[tokio::test]
async fn settled_calls_are_looked_at_a_hundred_times_without_a_write() -> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    let _controller = scene.controller().await?;
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
    let kinds = [Kind::Tool, Kind::ToolRun];
    let first = versions(&scene, &kinds).await?;
    looks.hundred_looks(5).await;
    assert_eq!(versions(&scene, &kinds).await?, first);
    Ok(())
}

#[tokio::test]
async fn settled_workflows_are_looked_at_a_hundred_times_without_a_write() -> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    scene.make_agent().await?;
    let _controller = scene.controller().await?;
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
        let second = steps.and_then(|steps| steps.get(1)?.phase.clone());
        second.as_deref() == Some("Running")
    };
    scene.until("busy", second).await?;
    let freed = |job: &Job| !crate::controller::scene::is_held(job);
    scene
        .until_job_named("busy-step-1-attempt-1", freed)
        .await?;
    let kinds = [Kind::Agent, Kind::AgentProvider, Kind::AgentRun];
    for (kind, name) in [(Kind::Agent, "coder"), (Kind::AgentProvider, "shell")] {
        scene.until_ready(kind, name, "True ValidSpec").await?;
    }
    let first = versions(&scene, &kinds).await?;
    looks.hundred_looks(5).await;
    assert_eq!(versions(&scene, &kinds).await?, first);
    Ok(())
}

#[tokio::test]
async fn settled_orchestration_runs_are_looked_at_a_hundred_times_without_a_write() -> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    scene.make_agent().await?;
    let _controller = scene.controller().await?;
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
    let kinds = [
        Kind::Agent,
        Kind::Orchestration,
        Kind::OrchestrationRun,
        Kind::AgentRun,
    ];
    let first = versions(&scene, &kinds).await?;
    looks.hundred_looks(9).await;
    assert_eq!(versions(&scene, &kinds).await?, first);
    Ok(())
}
