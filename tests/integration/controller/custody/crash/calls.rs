//! The same for the call of a tool.

use super::*;
use crate::controller::kinds::tools::{call, end_pod, tool, until_free, until_phase};

/// The writes of a call, in their order.
const PROTOCOL: [&str; 8] = [
    "PATCH toolruns",        // hold
    "PATCH toolruns/status", // reserve
    "POST configmaps",
    "POST jobs",             // create
    "PATCH toolruns/status", // bind
    "PATCH toolruns/status", // store
    "PATCH jobs",            // mark and release
    "PATCH pods",
];
/// Of these, the ones before the pod has ended.
const BEFORE_THE_END: usize = 5;

/// A scene with a Tool about which there is nothing more to write.
async fn with_tool() -> Result<Scene> {
    let scene = Scene::new(&[ALONE]).await?;
    scene.make(Kind::Tool, "lint", tool()).await?;
    settle(scene, &[(Kind::Tool, "lint")]).await
}

#[tokio::test]
async fn whatever_write_of_a_call_a_controller_dies_after_the_next_one_goes_on() -> Result<()> {
    support::kinds!();
    let scene = with_tool().await?;
    for last in 1..=PROTOCOL.len() {
        dies_after(&scene, last).await?;
    }
    Ok(())
}

async fn dies_after(scene: &Scene, last: usize) -> Result<()> {
    let name = format!("crash-{last}");
    let crash = Crash::after(scene, last).await?;
    let made = scene.make(Kind::ToolRun, &name, call()).await?;
    if last > BEFORE_THE_END {
        end_pod(scene, &name, "Succeeded").await?;
    }
    let next = crash.follow_in(&PROTOCOL).await?;
    if last <= BEFORE_THE_END {
        end_pod(scene, &name, "Succeeded").await?;
    }
    let done = until_phase(scene, &name, "Succeeded").await?;
    until_free(scene, &name).await?;
    let labels = format!("{}={name}", label::TOOL_RUN);
    let jobs = scene.here.api::<Job>();
    let jobs = jobs.list(&ListParams::default().labels(&labels)).await?;
    let uids: Vec<_> = jobs.iter().map(|job| job.metadata.uid.clone()).collect();
    let known = done["jobRef"]["uid"].as_str().map(str::to_owned);
    assert_eq!(uids, [known], "after {last}");
    assert!(done["jobRef"]["missing"].is_null(), "after {last}: {done}");
    is_told_once(scene, &made, last).await?;
    next.kill().await;
    Ok(())
}
