//! Kinds that stand until someone deletes them: their status says whether they can be used.

use agents::api::kind::Kind;
use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, PostParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use support::events;

use crate::controller::scene::{DEADLINE, Scene};

/// One object of each such kind, as it is when all is well.
pub(super) fn good() -> [(Kind, Value, &'static str); 11] {
    [
        (
            Kind::AgentProvider,
            json!({"binary": "/agent"}),
            "True ValidSpec -",
        ),
        (
            Kind::Agent,
            json!({"providerRef": {"name": "x"}}),
            "True ValidSpec -",
        ),
        (
            Kind::ImplementationSpec,
            json!({"text": "Do it."}),
            "True ValidSpec -",
        ),
        (
            Kind::VersionControlProvider,
            json!({"provider": "github"}),
            "True NoAuth -",
        ),
        (
            Kind::Memory,
            json!({"type": "redis", "connection": {"secretRef": {"name": "store"}}}),
            "True SecretResolved -",
        ),
        (
            Kind::SecretBinding,
            json!({"subjects": [{"kind": "Agent", "name": "x"}], "allowedSecrets": ["key"]}),
            "True ValidSpec Ready",
        ),
        (Kind::Signal, json!({}), "True Active Active"),
        (
            Kind::SignalDelivery,
            json!({"signalRef": {"name": "x"}}),
            "True Delivered Delivered",
        ),
        (
            Kind::ApprovalPolicy,
            json!({"mode": "manual"}),
            "True Active Active",
        ),
        (
            Kind::Budget,
            json!({"limits": {"tokens": "10"}}),
            "True Active Active",
        ),
        (Kind::Artifact, json!({}), "True ValidSpec Ready"),
    ]
}

pub(super) async fn secret(scene: &Scene, name: &str) -> Result<()> {
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    scene
        .here
        .api()
        .create(&PostParams::default(), &secret)
        .await?;
    Ok(())
}

/// What `kubectl wait` and kstatus read, with the phase behind it.
fn stands(object: &DynamicObject) -> Option<String> {
    let status = object.data.get("status")?;
    let conditions = status["conditions"].as_array()?;
    let of = |type_: &str| {
        let found = conditions.iter().find(|entry| entry["type"] == type_)?;
        Some((found["status"].as_str()?, found["reason"].as_str()?))
    };
    let ((ready, reason), phase) = (of("Ready")?, status["phase"].as_str().unwrap_or("-"));
    let busy = [of("Reconciling")?.0, of("Stalled")?.0];
    let right = match ready {
        "True" => busy == ["False", "False"],
        _ => busy.iter().filter(|status| **status == "True").count() == 1,
    };
    let is_current = status["observedGeneration"].as_i64() == object.metadata.generation;
    (right && is_current).then(|| format!("{ready} {reason} {phase}"))
}

async fn until(scene: &Scene, kind: Kind, expected: &str) -> Result<DynamicObject> {
    scene
        .until_any(kind, "x", |object| {
            stands(object).as_deref() == Some(expected)
        })
        .await
}

#[tokio::test]
async fn each_kind_says_that_it_can_be_used_and_goes_when_it_is_deleted() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    secret(&scene, "store").await?;
    for (kind, spec, _) in good() {
        scene.make(kind, "x", spec).await?;
    }
    for (kind, _, expected) in good() {
        until(&scene, kind, expected).await?;
    }
    let signal = scene.until_any(Kind::Signal, "x", |signal| {
        signal.data["status"]["lastDeliveryAt"].is_string()
    });
    signal.await?;
    for (kind, _, _) in good() {
        let objects = scene.any(kind);
        objects.delete("x", &DeleteParams::background()).await?;
        scene.until_gone(kind, "x").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_spec_that_breaks_rules_is_invalid_until_it_is_mended() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    for (kind, wrong, expected, right, mended) in [
        (
            Kind::SecretBinding,
            json!({}),
            "False MissingSubjects Invalid",
            json!({"subjects": [{"kind": "Agent", "name": "x"}], "allowedSecrets": ["key"]}),
            "True ValidSpec Ready",
        ),
        (
            Kind::Budget,
            json!({"limits": {"tokens": "many"}}),
            "False InvalidQuantity Invalid",
            json!({"limits": {"tokens": "1"}}),
            "True Active Active",
        ),
        (
            Kind::AgentProvider,
            json!({"binary": " "}),
            "False MissingBinary -",
            json!({"binary": "/agent"}),
            "True ValidSpec -",
        ),
        (
            Kind::Artifact,
            json!({"lifecycle": {"ttlDays": -1}}),
            "False OutOfRange Invalid",
            json!({"lifecycle": {"ttlDays": 1}}),
            "True ValidSpec Ready",
        ),
    ] {
        scene.make(kind, "x", wrong).await?;
        let invalid = until(&scene, kind, expected).await?;
        let is_it = |said: &events::Said| said.reason == "InvalidSpec";
        events::until(&scene.here.client, &invalid, DEADLINE, is_it).await?;
        scene.merge(kind, "x", json!({ "spec": right })).await?;
        until(&scene, kind, mended).await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_is_needed_may_come_late_and_go_again() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    scene
        .make(
            Kind::Agent,
            "x",
            json!({"providerRef": {"name": "x"}, "memoryRef": {"name": "x"}}),
        )
        .await?;
    let waiting = until(&scene, Kind::Agent, "False MissingProvider -").await?;
    let is_it = |said: &events::Said| said.reason == "ReferenceMissing";
    let told = events::until(&scene.here.client, &waiting, DEADLINE, is_it).await?;
    assert_eq!(told.note, "AgentProvider x, Memory x do not exist yet");
    scene
        .make(Kind::AgentProvider, "x", json!({"binary": "/agent"}))
        .await?;
    until(&scene, Kind::Agent, "False MissingMemory -").await?;
    let store = json!({"type": "redis", "connection": {"secretRef": {"name": "late"}}});
    scene.make(Kind::Memory, "x", store).await?;
    until(&scene, Kind::Agent, "True ValidSpec -").await?;
    until(&scene, Kind::Memory, "False SecretNotFound -").await?;
    secret(&scene, "late").await?;
    until(&scene, Kind::Memory, "True SecretResolved -").await?;
    let providers = scene.any(Kind::AgentProvider);
    providers.delete("x", &DeleteParams::background()).await?;
    until(&scene, Kind::Agent, "False MissingProvider -").await?;

    scene
        .make(
            Kind::SignalDelivery,
            "x",
            json!({"signalRef": {"name": "x"}}),
        )
        .await?;
    until(&scene, Kind::SignalDelivery, "False SignalMissing Pending").await?;
    scene.make(Kind::Signal, "x", json!({})).await?;
    until(&scene, Kind::SignalDelivery, "True Delivered Delivered").await?;
    let signals = scene.any(Kind::Signal);
    signals.delete("x", &DeleteParams::background()).await?;
    scene.until_gone(Kind::Signal, "x").await?;
    until(&scene, Kind::SignalDelivery, "True Delivered Delivered").await?;
    Ok(())
}

#[tokio::test]
async fn what_others_write_into_a_status_is_taken_up() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    scene
        .make(Kind::Budget, "x", json!({"limits": {"tokens": "10"}}))
        .await?;
    until(&scene, Kind::Budget, "True Active Active").await?;
    scene
        .merge_status(Kind::Budget, "x", json!({"used": {"tokens": "11"}}))
        .await?;
    until(&scene, Kind::Budget, "False Exceeded Exceeded").await?;
    scene
        .make(Kind::ApprovalPolicy, "x", json!({"mode": "manual"}))
        .await?;
    until(&scene, Kind::ApprovalPolicy, "True Active Active").await?;
    scene
        .merge_status(Kind::ApprovalPolicy, "x", json!({"phase": "Denied"}))
        .await?;
    let denied = scene.until_any(Kind::ApprovalPolicy, "x", |policy| {
        policy.data["status"]["lastDecisionAt"].is_string()
    });
    assert_eq!(
        stands(&denied.await?).as_deref(),
        Some("True Active Denied")
    );
    Ok(())
}

#[tokio::test]
async fn a_group_of_kinds_can_be_switched_off() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[("JANGAR_SUPPORTING_CONTROLLER_ENABLED", "false")]).await?;
    let _controller = scene.controller().await?;
    scene.make(Kind::Signal, "x", json!({})).await?;
    scene
        .make(Kind::AgentProvider, "x", json!({"binary": "/agent"}))
        .await?;
    until(&scene, Kind::AgentProvider, "True ValidSpec -").await?;
    let signal = scene.any(Kind::Signal).get("x").await?;
    assert_eq!(signal.data.get("status"), None);
    Ok(())
}

#[tokio::test]
async fn a_group_of_kinds_can_have_namespaces_of_its_own() -> Result<()> {
    support::kinds!();
    let other = support::namespace("controller").await?;
    let scene = Scene::new(&[("JANGAR_SUPPORTING_CONTROLLER_NAMESPACES", &other.name)]).await?;
    let _controller = scene.controller().await?;
    scene.make(Kind::Signal, "x", json!({})).await?;
    let there = scene.beside(other);
    there.make(Kind::Signal, "x", json!({})).await?;
    until(&there, Kind::Signal, "True Active Active").await?;
    let signal = scene.any(Kind::Signal).get("x").await?;
    assert_eq!(signal.data.get("status"), None);
    Ok(())
}
