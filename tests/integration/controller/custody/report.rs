//! What the runner of a run says itself, in the last words of its container.

use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::controller::scene::{ALONE, Scene, condition, holds};

/// The runner of a run ends with a report, in a pod that is then in this phase.
async fn report(scene: &Scene, run: &str, phase: &str, outcome: &str) -> Result<()> {
    let pod = scene.pod(run).await?.name_any();
    let message = json!({ "outcome": outcome, "attempt": 1 }).to_string();
    let status = json!({"status": {"phase": phase, "containerStatuses": [{
        "name": "agent-runner", "image": "x", "imageID": "x", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 0, "reason": "Completed", "message": message}},
    }]}});
    let pods = scene.here.api::<Pod>();
    pods.patch_status(&pod, &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

#[tokio::test]
async fn the_runner_tells_how_a_run_ended_whose_job_is_gone_and_whose_pod_does_not_end()
-> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let _controller = scene.controller().await?;
    let run = scene.run("alone", json!({})).await?;
    scene.until_phase("alone", "Running").await?;
    scene.pod("alone").await?;
    let jobs = scene.here.api::<Job>();
    jobs.delete("alone-job", &DeleteParams::background())
        .await?;
    scene
        .until("alone", |run| condition(run, "JobMissing").is_some())
        .await?;
    // Something that others put beside the runner works on.
    report(&scene, "alone", "Running", "succeeded").await?;
    let done = scene.until_phase("alone", "Succeeded").await?;
    let missing = done.status.and_then(|status| status.job_ref?.missing);
    let recovered = missing.and_then(|missing| missing.recovered);
    assert_eq!(recovered.as_deref(), Some("fromRunnerReport"));
    scene.until_free("alone").await?;
    scene.told(&run, "OutcomeRecovered").await?;
    Ok(())
}

#[tokio::test]
async fn a_runner_that_disagrees_with_its_job_is_told_and_the_job_counts() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let _controller = scene.controller().await?;
    let run = scene.run("contested", json!({})).await?;
    report(&scene, "contested", "Succeeded", "failed").await?;
    let done = scene.until_phase("contested", "Succeeded").await?;
    assert_eq!(
        condition(&done, "Warning"),
        holds("True", "OutcomeConflict")
    );
    assert_eq!(condition(&done, "Ready"), holds("True", "Completed"));
    let told = scene.told(&run, "OutcomeConflict").await?;
    let told = told.iter().find(|said| said.reason == "OutcomeConflict");
    let told = told.map(|said| (said.kind.as_str(), said.note.as_str()));
    let note =
        "the runner reported that it ended badly, but the cluster saw it end well, and that counts";
    assert_eq!(told, Some(("Warning", note)));
    scene.until_free("contested").await
}
