//! The same for an orchestration whose first step is an orchestration: all that is written is written for them.

use agents::api::kinds::OrchestrationRun;
use kube::ResourceExt;

use super::*;

/// A scene with two Orchestrations about which there is nothing more to write.
async fn with_orchestrations() -> Result<Scene> {
    let scene = Scene::new(&[ALONE]).await?;
    let mark = json!({"name": "mark", "kind": "Checkpoint"});
    let inner =
        json!({"name": "inner", "kind": "SubOrchestration", "orchestrationRef": {"name": "inner"}});
    let end = json!({"name": "end", "kind": "Checkpoint", "dependsOn": ["inner"]});
    for (name, steps) in [("inner", json!([mark])), ("outer", json!([inner, end]))] {
        scene
            .make(Kind::Orchestration, name, json!({ "steps": steps }))
            .await?;
    }
    settle(
        scene,
        &["inner", "outer"].map(|name| (Kind::Orchestration, name)),
    )
    .await
}

async fn start(scene: &Scene, name: &str) -> Result<OrchestrationRun> {
    let spec = json!({"orchestrationRef": {"name": "outer"}});
    let made = scene.make(Kind::OrchestrationRun, name, spec).await?;
    Ok(made.try_parse()?)
}

async fn until_done(scene: &Scene, name: &str) -> Result<()> {
    let is_done = |run: &kube::core::DynamicObject| run.data["status"]["phase"] == "Succeeded";
    scene
        .until_any(Kind::OrchestrationRun, name, is_done)
        .await
        .map(drop)
}

#[tokio::test]
async fn whatever_write_of_an_orchestration_a_controller_dies_after_the_next_one_goes_on()
-> Result<()> {
    support::kinds!();
    let scene = with_orchestrations().await?;
    let way = gateway(None).await?;
    let controller = scene.controller_by(way.kubeconfig())?;
    start(&scene, "whole").await?;
    until_done(&scene, "whole").await?;
    controller.kill().await;
    let writes = way.writes();
    ensure!(
        writes.contains(&"POST orchestrationruns".to_owned()),
        "{writes:?}"
    );
    for last in 1..=writes.len() {
        dies_after(&scene, last).await?;
    }
    Ok(())
}

async fn dies_after(scene: &Scene, last: usize) -> Result<()> {
    let name = format!("crash-{last}");
    let crash = Crash::after(scene, last).await?;
    let made = start(scene, &name).await?;
    // Two statuses may have become one, so that all was done before.
    tokio::select! {
        happened = crash.happens() => happened?,
        done = until_done(scene, &name) => done?,
    }
    let next = crash.follow().await?;
    until_done(scene, &name).await?;
    let runs = scene.here.api::<OrchestrationRun>();
    let runs = runs.list(&ListParams::default()).await?;
    let children = runs.iter().filter(|run| {
        let owners = run.owner_references().iter();
        owners
            .clone()
            .any(|owner| Some(&owner.uid) == made.metadata.uid.as_ref())
    });
    let children: Vec<_> = children.collect();
    ensure!(
        children.len() == 1,
        "{} children after {last}",
        children.len()
    );
    let phase = children[0]
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    assert_eq!(phase, Some("Succeeded"), "after {last}");
    is_told_once(scene, &made, last).await?;
    next.kill().await;
    Ok(())
}
