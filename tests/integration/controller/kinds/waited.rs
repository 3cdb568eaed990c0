//! What people and tools wait for: `kubectl wait` and kstatus, for every kind, in good and in bad.

use std::collections::BTreeSet;

use agents::api::kind::Kind;
use anyhow::{Context, Result};
use serde_json::json;
use support::kstatus::{self, Stand};

use super::{every, tools, workspaces};
use crate::controller::scene::Scene;

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

#[tokio::test]
async fn whoever_waits_for_an_object_of_any_kind_hears_when_it_is_there() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    every::secrets(&scene).await?;
    scene.run("good", json!({})).await?;
    let kinds = every::standing(json!({"name": "mark", "kind": "Checkpoint"}));
    for (kind, spec, _) in kinds.clone() {
        scene.make(kind, "x", spec).await?;
    }
    workspaces::bind(&scene, "x").await?;
    let call = json!({"toolRef": {"name": "x"}});
    scene.make(Kind::ToolRun, "good", call).await?;
    let run = json!({"orchestrationRef": {"name": "x"}});
    scene.make(Kind::OrchestrationRun, "good", run).await?;
    let mut waited = BTreeSet::new();
    for (kind, ..) in kinds {
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
    for kind in every::RUNS {
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

#[tokio::test]
async fn whoever_waits_for_an_object_of_any_kind_hears_when_it_cannot_be() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    for (kind, spec) in every::wrong() {
        scene.make(kind, "x", spec).await?;
    }
    let mut waited = BTreeSet::new();
    for (kind, _) in every::wrong() {
        wait_for(&scene, kind, "x", "--for=condition=Stalled").await?;
        wait_for(&scene, kind, "x", "--for=condition=Ready=false").await?;
        assert_eq!(stand(&scene, kind, "x").await?, Stand::Failed, "{kind}");
        if every::RUNS.contains(&kind) {
            wait_for(&scene, kind, "x", "--for=condition=Failed").await?;
        }
        waited.insert(kind.as_str());
    }
    assert_eq!(waited.len(), Kind::ALL.len());
    Ok(())
}
