//! What a run refers to may come later, but not for ever.

use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use serde_json::json;

use crate::controller::scene::{Scene, condition, holds};

#[tokio::test]
async fn a_run_that_comes_before_its_agent_waits_for_it() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    let run = scene
        .run("early", json!({"secrets": ["model-key"]}))
        .await?;
    let waiting = scene
        .until("early", |run| condition(run, "Blocked").is_some())
        .await?;
    assert_eq!(
        condition(&waiting, "Blocked"),
        holds("True", "MissingAgent")
    );
    scene.make_agent().await?;
    let missing_secret =
        |reason: Option<(String, String)>| reason == holds("True", "SecretNotFound");
    scene
        .until("early", |run| missing_secret(condition(run, "Blocked")))
        .await?;
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "model-key"}}))?;
    scene
        .here
        .api()
        .create(&PostParams::default(), &secret)
        .await?;
    let running = scene.until_phase("early", "Running").await?;
    assert_eq!(condition(&running, "Blocked"), holds("False", "Reconciled"));
    let told = scene.told(&run, "Submitted").await?;
    let reasons: Vec<_> = told.iter().map(|said| said.reason.as_str()).collect();
    assert_eq!(reasons, ["Submitted", "MissingSecret", "ReferenceMissing"]);
    Ok(())
}

#[tokio::test]
async fn a_run_whose_agent_never_comes_fails_when_the_grace_is_over() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[("AGENTS_REFERENCE_GRACE_SECONDS", "2s")]).await?;
    let _controller = scene.controller().await?;
    scene.run("alone", json!({})).await?;
    let failed = scene.until_phase("alone", "Failed").await?;
    assert_eq!(condition(&failed, "Failed"), holds("True", "MissingAgent"));
    assert_eq!(
        condition(&failed, "InvalidSpec"),
        holds("True", "MissingAgent")
    );
    let status = failed.status.unwrap_or_default();
    assert!(
        status.finished_at.is_some() && status.started_at.is_none() && status.job_ref.is_none()
    );
    Ok(())
}
