//! What an object needs may come after it, whatever its kind.

use agents::api::kind::Kind;
use anyhow::Result;
use serde_json::json;

use super::{every, tools, workspaces};
use crate::controller::scene::Scene;

#[tokio::test]
async fn an_object_of_any_kind_waits_for_what_it_needs_and_goes_on_when_it_comes() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let _controller = scene.controller().await?;
    every::keep_waiting(&scene).await?;
    let (late, mark) = (
        json!({"name": "late"}),
        json!({"name": "mark", "kind": "Checkpoint"}),
    );
    let mut stopped = every::run("late");
    stopped["cancel"] = json!(true);
    for (kind, spec) in [
        (Kind::AgentRun, stopped),
        (Kind::Agent, json!({ "providerRef": late })),
        (Kind::AgentProvider, json!({"binary": "/agent"})),
        (Kind::VersionControlProvider, json!({"provider": "github"})),
        (Kind::Tool, tools::tool()),
        (Kind::Orchestration, json!({ "steps": [mark] })),
        (Kind::Signal, json!({})),
    ] {
        scene.make(kind, "late", spec).await?;
    }
    every::token(&scene, "late").await?;
    workspaces::bind(&scene, "waits").await?;
    for (kind, _, _, comes) in every::waiting() {
        every::until(&scene, kind, "waits", comes).await?;
    }
    Ok(())
}
