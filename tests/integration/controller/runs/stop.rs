//! Cancellation and deletion: recorded first, then everything is stopped.

use agents::api::kinds::AgentRun;
use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use support::wait;

use crate::controller::scene::{DEADLINE, Scene, condition, holds};

#[tokio::test]
async fn a_cancelled_run_keeps_its_record_and_stops_its_job_and_pod() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    let run = scene.run("stop", json!({})).await?;
    scene.pod("stop").await?;
    scene.until_phase("stop", "Running").await?;
    let cancel = Patch::Merge(json!({"spec": {"cancel": true}}));
    let runs = scene.here.api::<AgentRun>();
    runs.patch("stop", &PatchParams::default(), &cancel).await?;
    let cancelled = scene.until_phase("stop", "Cancelled").await?;
    assert_eq!(
        condition(&cancelled, "Cancelled"),
        holds("True", "Cancelled")
    );
    assert_eq!(
        condition(&cancelled, "JobMissing"),
        None,
        "a stop is not a loss"
    );
    wait::until_gone(&scene.here.api::<Job>(), "stop-job", DEADLINE).await?;
    let pods = scene.here.api::<Pod>();
    wait::until_listed(&pods, "", DEADLINE, |pods: &[Pod]| pods.is_empty()).await?;
    let told = scene.told(&run, "Cancelled").await?;
    let reasons: Vec<_> = told.iter().map(|said| said.reason.as_str()).collect();
    assert_eq!(reasons, ["Cancelled", "Submitted"]);
    assert!(
        runs.get("stop")
            .await?
            .status
            .context("a status")?
            .finished_at
            .is_some()
    );
    Ok(())
}

#[tokio::test]
async fn a_deleted_run_takes_its_job_and_pod_with_it() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    scene.run("gone", json!({})).await?;
    scene.pod("gone").await?;
    let runs = scene.here.api::<AgentRun>();
    runs.delete("gone", &DeleteParams::background()).await?;
    wait::until_gone(&runs, "gone", DEADLINE).await?;
    wait::until_gone(&scene.here.api::<Job>(), "gone-job", DEADLINE).await?;
    let pods = scene.here.api::<Pod>();
    wait::until_listed(&pods, "", DEADLINE, |pods: &[Pod]| pods.is_empty()).await?;
    Ok(())
}

#[tokio::test]
async fn a_run_that_was_cancelled_before_it_began_makes_nothing() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    scene.run("never", json!({"cancel": true})).await?;
    let _controller = scene.controller().await?;
    let cancelled = scene.until_phase("never", "Cancelled").await?;
    let status = cancelled.status.context("a status")?;
    assert!(status.job_ref.is_none() && status.started_at.is_none());
    assert!(
        scene
            .here
            .api::<Job>()
            .get_opt("never-job")
            .await?
            .is_none()
    );
    Ok(())
}
