//! `agents explain`: a run that waits, one whose Job was deleted, and one that nobody looks at.

use agents::api::contract::env;
use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use support::lab;

use super::{agents, ended};
use crate::controller::scene::{ALONE, Scene, condition};

/// A webhook as the chart installs it, as far as its policy goes: one that asks for a label.
async fn webhook(scene: &Scene) -> Result<()> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "hook", "labels": {"app.kubernetes.io/component": "webhook"}},
        "spec": {"containers": [{"name": "webhook", "image": "agents-webhook", "env": [
            {"name": env::LABELS_REQUIRED, "value": "team"},
        ]}]},
    }))?;
    scene
        .here
        .api()
        .create(&PostParams::default(), &pod)
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_run_is_explained_from_its_first_moment_to_the_loss_of_its_job() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[ALONE]).await?;
    let file = lab::shared().await?.kubeconfig();
    let words = ["explain", "-n", scene.here.name.as_str(), "fix"];
    let explain = async || agents(file, &words).await;
    scene.run("fix", json!({})).await?;
    let alone = explain().await?;
    ended(&alone, 0);
    assert!(
        alone
            .stdout
            .starts_with("fix has no status: no controller has looked at it."),
        "{}",
        alone.stdout
    );

    let _controller = scene.controller().await?;
    scene
        .until("fix", |run| condition(run, "Blocked").is_some())
        .await?;
    let told = agents(file, &[&words[..], &["-o", "json"]].concat()).await?;
    ended(&told, 0);
    let told: Value = serde_json::from_str(&told.stdout)?;
    assert_eq!(
        (&told["phase"], &told["reason"]),
        (&json!("Pending"), &json!("MissingAgent"))
    );
    let waits = explain().await?;
    ended(&waits, 0);
    assert!(
        waits.stdout.starts_with("fix is Pending; it was made at "),
        "{}",
        waits.stdout
    );
    assert!(
        waits
            .stdout
            .contains("It is held back: the Agent does not exist (MissingAgent)"),
        "{}",
        waits.stdout
    );
    assert!(
        waits
            .stdout
            .contains("Make what is missing, or correct the name"),
        "{}",
        waits.stdout
    );

    webhook(&scene).await?;
    let against = explain().await?;
    ended(&against, 0);
    let refused = "By the policy in force it would be refused: metadata.labels";
    assert!(against.stdout.contains(refused), "{}", against.stdout);
    let elsewhere = agents(file, &[&words[..], &["--policy-of", "default"]].concat()).await?;
    ended(&elsewhere, 0);
    let unread = "The policy in force could not be read.";
    assert!(elsewhere.stdout.contains(unread), "{}", elsewhere.stdout);

    scene.make_agent().await?;
    scene.until_phase("fix", "Running").await?;
    scene.pod("fix").await?;
    let jobs = scene.here.api::<Job>();
    let strip = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    jobs.patch("fix-job", &PatchParams::default(), &strip)
        .await?;
    jobs.delete("fix-job", &DeleteParams::background()).await?;
    scene.until_phase("fix", "Failed").await?;
    let lost = explain().await?;
    ended(&lost, 0);
    let expected = "Its Job fix-job is missing: it was deleted before it had ended (JobDeletedWhileRunning, certain).";
    assert!(lost.stdout.contains(expected), "{}", lost.stdout);
    assert!(
        lost.stdout.contains("Nobody knows how it ended."),
        "{}",
        lost.stdout
    );
    assert!(
        lost.stdout.contains("use `agents run cancel`"),
        "{}",
        lost.stdout
    );
    assert_eq!(lost.stdout.lines().count(), 1, "{}", lost.stdout);

    let stranger = agents(file, &["explain", "-n", "default", "nobody"]).await?;
    ended(&stranger, 3);
    Ok(())
}
