//! Workspaces have a claim, for as long as they ask for it.

use agents::api::kind::Kind;
use anyhow::Result;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use support::{events, wait};

use crate::controller::scene::{DEADLINE, Scene};

/// Makes a volume for the claim of a workspace, as a provisioner would; the cluster binds the two.
pub(super) async fn bind(scene: &Scene, name: &str) -> Result<String> {
    let volume = format!("{}-{name}", scene.here.name);
    let made: PersistentVolume = serde_json::from_value(json!({
        "metadata": {"name": volume},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/tmp"},
            "claimRef": {"namespace": scene.here.name, "name": name},
        },
    }))?;
    let volumes: Api<PersistentVolume> = Api::all(scene.here.client.clone());
    volumes.create(&PostParams::default(), &made).await?;
    Ok(volume)
}

#[tokio::test]
async fn a_workspace_follows_its_claim_until_its_time_is_over() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    let spec = json!({"size": "1Gi", "storageClassName": "none"});
    scene.make(Kind::Workspace, "x", spec).await?;
    scene
        .until_ready(Kind::Workspace, "x", "False Pending")
        .await?;
    let volume = bind(&scene, "x").await?;
    let ready = scene
        .until_ready(Kind::Workspace, "x", "True Bound")
        .await?;
    assert_eq!(ready.data["status"]["volumeName"], volume);
    scene
        .merge(Kind::Workspace, "x", json!({"spec": {"ttlSeconds": 1}}))
        .await?;
    let over = scene
        .until_ready(Kind::Workspace, "x", "False Expired")
        .await?;
    let is_it = |said: &events::Said| said.reason == "Expired";
    events::until(&scene.here.client, &over, DEADLINE, is_it).await?;
    let claims = scene.here.api::<PersistentVolumeClaim>();
    wait::until_gone(&claims, "x", DEADLINE).await?;
    Ok(())
}

#[tokio::test]
async fn a_claim_of_someone_else_is_waited_for_and_a_removed_one_is_made_again() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    let claims = scene.here.api::<PersistentVolumeClaim>();
    let other = serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}},
    }}))?;
    claims.create(&PostParams::default(), &other).await?;
    let spec = json!({"size": "1Gi", "storageClassName": "none"});
    scene.make(Kind::Workspace, "x", spec).await?;
    scene
        .until_ready(Kind::Workspace, "x", "False ClaimNameConflict")
        .await?;
    claims.delete("x", &DeleteParams::background()).await?;
    scene
        .until_ready(Kind::Workspace, "x", "False Pending")
        .await?;
    let made = wait::until(&claims, "x", DEADLINE, |_| true).await?;
    claims.delete("x", &DeleteParams::background()).await?;
    let again = wait::until(&claims, "x", DEADLINE, |claim| claim.uid() != made.uid());
    let again = again.await?;
    assert_eq!(again.owner_references()[0].name, "x");
    Ok(())
}

#[tokio::test]
async fn a_settled_workspace_costs_no_write() -> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    let _controller = looks.controller(&scene)?;
    let spec = json!({"size": "1Gi", "storageClassName": "none"});
    scene.make(Kind::Workspace, "x", spec).await?;
    scene.make(Kind::Workspace, "wrong", json!({})).await?;
    bind(&scene, "x").await?;
    scene
        .until_ready(Kind::Workspace, "x", "True Bound")
        .await?;
    // Nobody provisions this class, so its claims cannot grow; the claim is of use all the same.
    scene
        .merge(Kind::Workspace, "x", json!({"spec": {"size": "2Gi"}}))
        .await?;
    let warned = scene.until_any(Kind::Workspace, "x", |found| {
        let conditions = found.data["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|entry| entry["type"] == "Warning" && entry["reason"] == "Forbidden")
    });
    warned.await?;
    scene
        .until_ready(Kind::Workspace, "x", "True Bound")
        .await?;
    scene
        .until_ready(Kind::Workspace, "wrong", "False MissingSize")
        .await?;
    looks.hundred_looks(&[(Kind::Workspace, 2)]).await
}
