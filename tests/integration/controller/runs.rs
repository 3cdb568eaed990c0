//! A run from apply to its end.

mod admission;
mod asked;
mod custom;
mod refuses;
mod stop;
mod waits;
mod workflow;

use agents::api::contract::annotation;
use agents::api::kinds::AgentRun;
use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use support::wait;

use super::scene::{DEADLINE, Scene, condition, holds};

#[tokio::test]
async fn a_run_succeeds_and_everything_that_it_held_is_let_go() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    scene
        .run("demo", json!({"parameters": {"repository": "o/r"}}))
        .await?;
    let running = scene.until_phase("demo", "Running").await?;
    let job = scene.until_job("demo", |_| true).await?;
    let status = running.status.clone().context("a status")?;
    assert_eq!(
        status.job_ref.as_ref().and_then(|job| job.uid.clone()),
        job.uid()
    );
    assert_eq!(
        status.started_at,
        job.creation_timestamp().map(|time| time.0)
    );
    assert_eq!(condition(&running, "Accepted"), holds("True", "Submitted"));
    assert_eq!(condition(&running, "Reconciling"), holds("True", "Running"));
    assert_eq!(
        condition(&running, "Succeeded"),
        holds("Unknown", "Running")
    );
    let document: ConfigMap = scene.here.api().get("demo-spec").await?;
    let document = document.data.context("data")?["run.json"].clone();
    let document: Value = serde_json::from_str(&document)?;
    assert_eq!(document["repository"], "o/r");

    scene.end_pod("demo", 0).await?;
    let done = scene.until_phase("demo", "Succeeded").await?;
    assert_eq!(condition(&done, "Succeeded"), holds("True", "Completed"));
    assert_eq!(condition(&done, "Ready"), holds("True", "Completed"));
    assert_eq!(condition(&done, "Stalled"), holds("False", "Completed"));
    let after = done.status.context("a status")?;
    assert_eq!(after.started_at, status.started_at);
    assert_eq!(after.observed_generation, Some(1));

    scene.until_free("demo").await?;
    let job = scene.until_job("demo", |_| true).await?;
    assert!(job.annotations().contains_key(annotation::OUTCOME_RECORDED));
    assert_eq!(
        job.spec.and_then(|spec| spec.ttl_seconds_after_finished),
        Some(600)
    );
    let conditions = job.status.and_then(|status| status.conditions);
    let mut conditions = conditions.into_iter().flatten();
    let complete = conditions.find(|condition| condition.type_ == "Complete");
    let ended = complete.and_then(|condition| condition.last_transition_time);
    assert_eq!(after.finished_at, ended.map(|time| time.0));
    let told = scene.told(&running, "Succeeded").await?;
    let told: Vec<_> = told
        .iter()
        .map(|said| (said.kind.as_str(), said.reason.as_str(), said.note.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("Normal", "Submitted", "Job demo-job was made"),
            ("Normal", "Succeeded", "the Job completed")
        ]
    );
    Ok(())
}

#[tokio::test]
async fn a_run_whose_pod_fails_says_how() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[("AGENTS_RUNNER_FAILED_JOB_TTL_SECONDS", "3600")]).await?;
    let _controller = scene.controller().await?;
    let run = scene.run("bad", json!({})).await?;
    scene.end_pod("bad", 3).await?;
    let failed = scene.until_phase("bad", "Failed").await?;
    assert_eq!(condition(&failed, "Failed"), holds("True", "JobFailed"));
    assert_eq!(condition(&failed, "Stalled"), holds("True", "JobFailed"));
    let told = scene.told(&run, "Failed").await?;
    let note = told
        .iter()
        .find(|said| said.reason == "Failed")
        .map(|said| said.note.as_str());
    assert_eq!(
        note,
        Some("the Job failed: BackoffLimitExceeded; the container ended with exit code 3")
    );
    scene.until_free("bad").await?;
    let job = scene.until_job("bad", |_| true).await?;
    assert_eq!(
        job.spec.and_then(|spec| spec.ttl_seconds_after_finished),
        Some(3600)
    );
    Ok(())
}

#[tokio::test]
async fn a_run_and_its_job_go_when_their_time_is_over() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    scene
        .run("brief", json!({"ttlSecondsAfterFinished": 2}))
        .await?;
    scene.end_pod("brief", 0).await?;
    let runs = scene.here.api::<AgentRun>();
    wait::until_gone(&runs, "brief", DEADLINE).await?;
    let jobs = scene.here.api::<Job>();
    wait::until_gone(&jobs, "brief-job", DEADLINE).await
}

#[tokio::test]
async fn what_a_run_leaves_behind_is_kept_within_bounds() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[("JANGAR_AGENTRUN_ARTIFACTS_MAX", "1")]).await?;
    let _controller = scene.controller().await?;
    scene.run("many", json!({})).await?;
    scene.until_phase("many", "Running").await?;
    let artifacts =
        json!({"status": {"artifacts": [{"name": "a"}, {"name": "b", "url": "data:,x"}]}});
    let runs = scene.here.api::<AgentRun>();
    runs.patch_status("many", &PatchParams::default(), &Patch::Merge(artifacts))
        .await?;
    let limited = scene
        .until("many", |run| condition(run, "ArtifactsLimited").is_some())
        .await?;
    assert_eq!(
        condition(&limited, "ArtifactsLimited"),
        holds("True", "Limited")
    );
    let kept = limited.status.and_then(|status| status.artifacts);
    assert_eq!(serde_json::to_value(kept)?, json!([{"name": "b"}]));
    Ok(())
}

#[tokio::test]
async fn a_run_whose_artifacts_break_the_limits_fails_where_that_is_wanted() -> Result<()> {
    support::kinds!();
    let strict = [
        ("JANGAR_AGENTRUN_ARTIFACTS_MAX", "1"),
        ("JANGAR_AGENTRUN_ARTIFACTS_STRICT", "true"),
    ];
    let scene = Scene::with_agent(&strict).await?;
    let _controller = scene.controller().await?;
    scene.run("many", json!({})).await?;
    scene.until_phase("many", "Running").await?;
    let artifacts = json!({"status": {"artifacts": [{"name": "a"}, {"name": "b"}]}});
    let runs = scene.here.api::<AgentRun>();
    runs.patch_status("many", &PatchParams::default(), &Patch::Merge(artifacts))
        .await?;
    let failed = scene.until_phase("many", "Failed").await?;
    let exceeded = condition(&failed, "ArtifactsLimitExceeded");
    assert_eq!(exceeded, holds("True", "LimitExceeded"));
    wait::until_gone(&scene.here.api::<Job>(), "many-job", DEADLINE).await
}
