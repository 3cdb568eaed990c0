//! What people and tools wait for: `kubectl wait` and kstatus, for every kind, in good and in bad.

use std::collections::BTreeSet;

use agents::api::kind::Kind;
use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use serde_json::{Value, json};
use support::kstatus::{self, Stand};

use super::scene::Scene;
use super::{standing, tools, workspaces};

/// Waits as a person does, with the real program.
async fn wait_for(scene: &Scene, kind: Kind, name: &str, what: &str) -> Result<()> {
    let object = format!("{}.{}/{name}", kind.plural(), kind.group());
    let words = ["wait", what, &object, "--timeout=60s"];
    let said = scene.here.kubectl.run(&words).await?;
    said.ok()
        .with_context(|| format!("{kind} {name}, {what}"))?;
    Ok(())
}

async fn stand(scene: &Scene, kind: Kind, name: &str) -> Result<Stand> {
    Ok(kstatus::of(&scene.any(kind).get(name).await?))
}

fn once() -> Value {
    json!([{"name": "mark", "kind": "Checkpoint"}])
}

/// Kinds that stand by themselves, besides those of `standing`.
fn more() -> [(Kind, Value); 5] {
    let hook = json!({"secretRef": {"name": "hook"}});
    [
        (Kind::Tool, tools::tool()),
        (Kind::Orchestration, json!({ "steps": once() })),
        (
            Kind::Schedule,
            json!({"cron": "0 0 1 1 *", "targetRef": {"kind": "AgentRun", "name": "good"}}),
        ),
        (
            Kind::Workspace,
            json!({"size": "1Gi", "storageClassName": "none"}),
        ),
        (
            Kind::ImplementationSource,
            json!({"provider": "linear", "auth": hook, "webhook": {"enabled": true}}),
        ),
    ]
}

#[tokio::test]
async fn whoever_waits_for_an_object_of_any_kind_hears_when_it_is_there() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    standing::secret(&scene, "store").await?;
    let hook: Secret = serde_json::from_value(
        json!({"metadata": {"name": "hook"}, "stringData": {"token": "x"}}),
    )?;
    let secrets = scene.here.api();
    secrets.create(&PostParams::default(), &hook).await?;
    let kinds: Vec<_> = standing::good()
        .into_iter()
        .map(|(kind, spec, _)| (kind, spec))
        .chain(more())
        .collect();
    scene.run("good", json!({})).await?;
    for (kind, spec) in kinds.clone() {
        scene.make(kind, "x", spec).await?;
    }
    workspaces::bind(&scene, "x").await?;
    let call = json!({"toolRef": {"name": "x"}});
    scene.make(Kind::ToolRun, "good", call).await?;
    let run = json!({"orchestrationRef": {"name": "x"}});
    scene.make(Kind::OrchestrationRun, "good", run).await?;
    let mut waited = BTreeSet::new();
    for (kind, _) in kinds {
        wait_for(&scene, kind, "x", "--for=condition=Ready").await?;
        assert_eq!(stand(&scene, kind, "x").await?, Stand::Current, "{kind}");
        waited.insert(kind.as_str());
    }
    let running = "--for=condition=Reconciling";
    wait_for(&scene, Kind::AgentRun, "good", running).await?;
    assert_eq!(
        stand(&scene, Kind::AgentRun, "good").await?,
        Stand::InProgress
    );
    scene.end_pod("good", 0).await?;
    tools::end_pod(&scene, "good", "Succeeded").await?;
    for kind in [Kind::AgentRun, Kind::ToolRun, Kind::OrchestrationRun] {
        for what in [
            "condition=Succeeded",
            "condition=Ready",
            "jsonpath={.status.phase}=Succeeded",
        ] {
            wait_for(&scene, kind, "good", &format!("--for={what}")).await?;
        }
        assert_eq!(stand(&scene, kind, "good").await?, Stand::Current, "{kind}");
        waited.insert(kind.as_str());
    }
    assert_eq!(waited.len(), Kind::ALL.len());
    Ok(())
}

/// An object of each kind that its schema takes and that cannot work.
fn bad() -> Vec<(Kind, Value)> {
    let circle = json!([{"name": "a", "kind": "Checkpoint", "dependsOn": ["a"]}]);
    let nameless = json!({"name": ""});
    vec![
        (Kind::AgentProvider, json!({"binary": " "})),
        (Kind::Agent, json!({"providerRef": {"name": " "}})),
        (Kind::ImplementationSpec, json!({"text": " "})),
        (
            Kind::VersionControlProvider,
            json!({"provider": "github", "auth": {"method": "token"}}),
        ),
        (
            Kind::Memory,
            json!({"type": "postgres", "connection": {"secretRef": {"name": "database", "key": ""}}}),
        ),
        (Kind::SecretBinding, json!({})),
        (Kind::Signal, json!({"channel": " "})),
        (Kind::SignalDelivery, json!({ "signalRef": nameless })),
        (
            Kind::ApprovalPolicy,
            json!({"subjects": [{"kind": "Agent", "name": " "}]}),
        ),
        (Kind::Budget, json!({"limits": {"tokens": "many"}})),
        (Kind::Artifact, json!({"lifecycle": {"ttlDays": -1}})),
        (Kind::Tool, json!({"image": "lint 2", "command": ["lint"]})),
        (Kind::Orchestration, json!({ "steps": circle })),
        (
            Kind::Schedule,
            json!({"cron": "every morning", "targetRef": {"kind": "AgentRun", "name": "x"}}),
        ),
        (Kind::Workspace, json!({})),
        (
            Kind::ImplementationSource,
            json!({"provider": "github", "auth": {"secretRef": {"name": "hook"}}}),
        ),
        (Kind::ToolRun, json!({ "toolRef": nameless })),
        (
            Kind::OrchestrationRun,
            json!({ "orchestrationRef": nameless }),
        ),
    ]
}

#[tokio::test]
async fn whoever_waits_for_an_object_of_any_kind_hears_when_it_cannot_be() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    let temporal = json!({"runtime": {"type": "temporal"}});
    scene.run("x", temporal).await?;
    for (kind, spec) in bad() {
        scene.make(kind, "x", spec).await?;
    }
    let runs = [Kind::AgentRun, Kind::ToolRun, Kind::OrchestrationRun];
    let mut waited = BTreeSet::new();
    for kind in bad().iter().map(|(kind, _)| *kind).chain([Kind::AgentRun]) {
        wait_for(&scene, kind, "x", "--for=condition=Stalled").await?;
        wait_for(&scene, kind, "x", "--for=condition=Ready=false").await?;
        assert_eq!(stand(&scene, kind, "x").await?, Stand::Failed, "{kind}");
        if runs.contains(&kind) {
            wait_for(&scene, kind, "x", "--for=condition=Failed").await?;
        }
        waited.insert(kind.as_str());
    }
    assert_eq!(waited.len(), Kind::ALL.len());
    Ok(())
}
