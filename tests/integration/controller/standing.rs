//! Kinds that stand until someone deletes them: their status says whether they can be used.

use agents::api::kind::Kind;
use anyhow::Result;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use support::{events, wait};

use super::scene::{DEADLINE, Scene};

fn resource(kind: Kind) -> ApiResource {
    let group = GroupVersionKind::gvk(kind.group(), "v1alpha1", kind.as_str());
    ApiResource::from_gvk_with_plural(&group, kind.plural())
}

fn api(scene: &Scene, kind: Kind) -> Api<DynamicObject> {
    Api::namespaced_with(scene.here.client.clone(), &scene.here.name, &resource(kind))
}

async fn make(scene: &Scene, kind: Kind, spec: Value) -> Result<DynamicObject> {
    let mut object = DynamicObject::new("x", &resource(kind));
    object.data = json!({ "spec": spec });
    Ok(api(scene, kind).create(&PostParams::default(), &object).await?)
}

/// Status and reason of `Ready`, with the phase behind them.
fn stands(object: &DynamicObject) -> Option<String> {
    let status = object.data.get("status")?;
    let ready = status["conditions"].as_array()?.iter().find(|entry| entry["type"] == "Ready")?;
    let phase = status["phase"].as_str().unwrap_or("-");
    Some(format!("{} {} {phase}", ready["status"].as_str()?, ready["reason"].as_str()?))
}

async fn until(scene: &Scene, kind: Kind, expected: &str) -> Result<DynamicObject> {
    let objects = api(scene, kind);
    wait::retry(&format!("{kind} that stands {expected}"), DEADLINE, || async {
        let object = objects.get("x").await?;
        let stands = stands(&object);
        anyhow::ensure!(stands.as_deref() == Some(expected), "{stands:?}");
        Ok(object)
    })
    .await
}

#[tokio::test]
async fn each_kind_says_whether_it_can_be_used() -> Result<()> {
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    for (kind, spec, expected) in [
        (Kind::AgentProvider, json!({"binary": "/agent"}), "True ValidSpec -"),
        (Kind::ImplementationSpec, json!({"text": "Do it."}), "True ValidSpec -"),
        (Kind::Tool, json!({"image": "tool:1", "command": ["/tool"]}), "True ValidSpec Ready"),
        (Kind::SecretBinding, json!({}), "False MissingSubjects Invalid"),
        (Kind::Signal, json!({}), "True Active Active"),
        (Kind::ApprovalPolicy, json!({"mode": "manual"}), "True Active Active"),
        (Kind::Budget, json!({"limits": {"tokens": "10"}}), "True Active Active"),
    ] {
        make(&scene, kind, spec).await?;
        until(&scene, kind, expected).await?;
    }
    let used = json!({"status": {"used": {"tokens": "11"}}});
    api(&scene, Kind::Budget).patch_status("x", &PatchParams::default(), &Patch::Merge(used)).await?;
    until(&scene, Kind::Budget, "False Exceeded Exceeded").await?;
    let decision = json!({"status": {"phase": "Denied"}});
    let policies = api(&scene, Kind::ApprovalPolicy);
    policies.patch_status("x", &PatchParams::default(), &Patch::Merge(decision)).await?;
    until(&scene, Kind::ApprovalPolicy, "True Active Denied").await?;
    let mended = json!({"spec": {"subjects": [{"kind": "Agent", "name": "coder"}], "allowedSecrets": ["key"]}});
    api(&scene, Kind::SecretBinding).patch("x", &PatchParams::default(), &Patch::Merge(mended)).await?;
    until(&scene, Kind::SecretBinding, "True ValidSpec Ready").await?;
    Ok(())
}

#[tokio::test]
async fn an_agent_waits_for_its_provider_and_says_so_when_it_goes() -> Result<()> {
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    make(&scene, Kind::Agent, json!({"providerRef": {"name": "x"}})).await?;
    let waiting = until(&scene, Kind::Agent, "False MissingProvider -").await?;
    let told = events::until(&scene.here.client, &waiting, DEADLINE, |said| said.reason == "ReferenceMissing").await?;
    assert_eq!(told.note, "AgentProvider x does not exist yet");
    make(&scene, Kind::AgentProvider, json!({"binary": "/agent"})).await?;
    let ready = until(&scene, Kind::Agent, "True ValidSpec -").await?;
    assert_eq!(ready.data["status"]["observedGeneration"], json!(ready.meta().generation));
    api(&scene, Kind::AgentProvider).delete("x", &kube::api::DeleteParams::background()).await?;
    until(&scene, Kind::Agent, "False MissingProvider -").await?;
    Ok(())
}
