//! What a run was asked for stays what it is.

use agents::api::contract::env;
use agents::api::kinds::AgentRun;
use agents::api::text::hash::text_hash;
use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use support::wait;

use crate::controller::scene::{DEADLINE, Scene, condition, holds};

async fn change(scene: &Scene, name: &str) -> Result<()> {
    let runs = scene.here.api::<AgentRun>();
    let prompt = Patch::Merge(json!({"spec": {"systemPrompt": "Do something else."}}));
    runs.patch(name, &PatchParams::default(), &prompt).await?;
    Ok(())
}

#[tokio::test]
async fn a_run_that_is_changed_after_it_has_begun_fails_and_its_job_is_stopped() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    let run = scene.run("changed", json!({})).await?;
    let running = scene.until_phase("changed", "Running").await?;
    let hash = running.status.and_then(|status| status.spec_hash);
    hash.context("a hash")?;
    change(&scene, "changed").await?;
    let failed = scene.until_phase("changed", "Failed").await?;
    assert_eq!(
        condition(&failed, "Failed"),
        holds("True", "SpecImmutableViolation")
    );
    scene.told(&run, "SpecImmutableViolation").await?;
    wait::until_gone(&scene.here.api::<Job>(), "changed-job", DEADLINE).await
}

#[tokio::test]
async fn where_that_is_wished_such_a_run_only_warns() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[(env::IMMUTABILITY_ENFORCED, "false")]).await?;
    let _controller = scene.controller().await?;
    scene.run("warned", json!({})).await?;
    scene.until_phase("warned", "Running").await?;
    change(&scene, "warned").await?;
    let violation = holds("True", "SpecImmutableViolation");
    scene
        .until("warned", |run| condition(run, "Warning") == violation)
        .await?;
    scene.end_pod("warned", 0).await?;
    scene.until_phase("warned", "Succeeded").await?;
    Ok(())
}

#[tokio::test]
async fn a_prompt_that_is_stored_is_waited_for_and_its_hash_is_kept() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let empty: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "prompts"}}))?;
    let maps = scene.here.api::<ConfigMap>();
    maps.create(&PostParams::default(), &empty).await?;
    let _controller = scene.controller().await?;
    let reference = json!({"kind": "ConfigMap", "name": "prompts", "key": "kind"});
    scene
        .run("asked", json!({"systemPromptRef": reference}))
        .await?;
    let lacking = holds("True", "ConfigMapKeyMissing");
    scene
        .until("asked", |run| condition(run, "Blocked") == lacking)
        .await?;
    let text = Patch::Merge(json!({"data": {"kind": "Be kind."}}));
    maps.patch("prompts", &PatchParams::default(), &text)
        .await?;
    let running = scene.until_phase("asked", "Running").await?;
    let hash = running.status.and_then(|status| status.system_prompt_hash);
    assert_eq!(hash, Some(text_hash("Be kind.")));
    Ok(())
}
