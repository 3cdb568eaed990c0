//! A settled object costs no write, however often it is looked at.

use agents::api::kinds::AgentRun;
use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use serde_json::json;

use super::scene::Scene;

#[tokio::test]
async fn settled_runs_are_looked_at_a_hundred_times_without_a_write() -> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    scene.make_agent().await?;
    let _controller = scene.controller().await?;
    for name in ["done", "busy", "waits"] {
        let agent = if name == "waits" { "nobody" } else { "coder" };
        scene
            .run(name, json!({"agentRef": {"name": agent}}))
            .await?;
    }
    scene.until_phase("busy", "Running").await?;
    scene.end_pod("done", 0).await?;
    scene.until_phase("done", "Succeeded").await?;
    scene.until_free("done").await?;
    scene.until("waits", |run| run.status.is_some()).await?;
    // The pod of the busy run comes by itself; once it is there, nothing changes any more.
    scene.pod("busy").await?;
    let versions = || async {
        let mut versions = Vec::new();
        for name in ["done", "busy", "waits"] {
            versions.push(
                scene
                    .here
                    .api::<AgentRun>()
                    .get(name)
                    .await?
                    .metadata
                    .resource_version,
            );
        }
        for name in ["done-job", "busy-job"] {
            versions.push(
                scene
                    .here
                    .api::<Job>()
                    .get(name)
                    .await?
                    .metadata
                    .resource_version,
            );
        }
        anyhow::Ok(versions)
    };
    scene
        .until_job("busy", |job| {
            job.status
                .as_ref()
                .and_then(|status| status.ready)
                .is_some()
        })
        .await?;
    let first = versions().await?;
    // The agent and its provider are looked at as well.
    looks.hundred_looks(5).await;
    assert_eq!(versions().await?, first);
    Ok(())
}
