//! The controller dies after each of its writes, before it hears that the write was made; another one goes on.

mod calls;
mod orchestrations;

use agents::api::contract::label;
use agents::api::kind::Kind;
use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use kube::Resource;
use kube::api::ListParams;
use serde_json::json;
use support::events::{self, Said};
use support::{gateway::Gateway, lab};

use crate::controller::scene::{ALONE, DEADLINE, Scene, condition, holds};
use crate::kit::process::Process;

/// The writes of a run with one pod, in their order.
const PROTOCOL: [&str; 8] = [
    "PATCH agentruns",        // hold
    "PATCH agentruns/status", // reserve
    "POST configmaps",
    "POST jobs",              // create
    "PATCH agentruns/status", // bind
    "PATCH agentruns/status", // store
    "PATCH jobs",             // mark and release
    "PATCH pods",
];
/// Of these, the ones before the pod has ended.
const BEFORE_THE_END: usize = 5;

/// A scene with an Agent about which there is nothing more to write.
pub(in crate::controller) async fn settled() -> Result<Scene> {
    let scene = Scene::with_agent(&[ALONE]).await?;
    settle(
        scene,
        &[(Kind::Agent, "coder"), (Kind::AgentProvider, "shell")],
    )
    .await
}

/// The same scene, once there is nothing more to write about these objects.
async fn settle(scene: Scene, objects: &[(Kind, &str)]) -> Result<Scene> {
    let controller = scene.controller().await?;
    for (kind, name) in objects {
        scene.until_ready(*kind, name, "True ValidSpec").await?;
    }
    controller.kill().await;
    Ok(scene)
}

async fn gateway(close_after: Option<usize>) -> Result<Gateway> {
    Gateway::open(lab::shared().await?.kubeconfig(), close_after).await
}

/// A controller that hears nothing any more after one of its writes, the `last`.
pub(in crate::controller) struct Crash<'a> {
    scene: &'a Scene,
    last: usize,
    way: Gateway,
    controller: Process,
}

impl<'a> Crash<'a> {
    pub(in crate::controller) async fn after(scene: &'a Scene, last: usize) -> Result<Self> {
        let way = gateway(Some(last)).await?;
        Ok(Self {
            scene,
            last,
            controller: scene.controller_by(way.kubeconfig())?,
            way,
        })
    }

    /// Waits until it has got so far.
    async fn happens(&self) -> Result<()> {
        self.way.closed(DEADLINE).await
    }

    /// Starts the next one in its place.
    async fn follow(self) -> Result<Process> {
        self.controller.kill().await;
        self.scene.controller().await
    }

    /// The same, once the first one has made these writes as far as it was let.
    pub(in crate::controller) async fn follow_in(self, protocol: &[&str]) -> Result<Process> {
        self.happens().await?;
        let last = self.last;
        assert_eq!(self.way.writes(), protocol[..last], "after {last}");
        self.follow().await
    }
}

/// Nothing about an object was told twice, whoever told it.
async fn is_told_once<K: Resource>(scene: &Scene, object: &K, last: usize) -> Result<()> {
    for said in events::about(&scene.here.client, object).await? {
        let Said { reason, count, .. } = said;
        ensure!(count <= 1, "{reason} was told again after {last}");
    }
    Ok(())
}

#[tokio::test]
async fn a_run_with_one_pod_costs_eight_writes_and_two_events() -> Result<()> {
    support::kinds!();
    let scene = settled().await?;
    let way = gateway(None).await?;
    let _controller = scene.controller_by(way.kubeconfig())?;
    let run = scene.run("cheap", json!({})).await?;
    scene.end_pod("cheap", 0).await?;
    scene.until_phase("cheap", "Succeeded").await?;
    scene.until_free("cheap").await?;
    assert_eq!(way.writes(), PROTOCOL);
    let told = scene.told(&run, "Succeeded").await?;
    let reasons: Vec<_> = told.iter().map(|said| said.reason.as_str()).collect();
    assert_eq!(reasons, ["Submitted", "Succeeded"]);
    Ok(())
}

#[tokio::test]
async fn whatever_write_a_controller_dies_after_the_next_one_goes_on_from_there() -> Result<()> {
    support::kinds!();
    let scene = settled().await?;
    for last in 1..=PROTOCOL.len() {
        dies_after(&scene, last).await?;
    }
    Ok(())
}

async fn dies_after(scene: &Scene, last: usize) -> Result<()> {
    let name = format!("crash-{last}");
    let crash = Crash::after(scene, last).await?;
    let run = scene.run(&name, json!({})).await?;
    if last > BEFORE_THE_END {
        scene.end_pod(&name, 0).await?;
    }
    let next = crash.follow_in(&PROTOCOL).await?;
    if last <= BEFORE_THE_END {
        scene.end_pod(&name, 0).await?;
    }
    let done = scene.until_phase(&name, "Succeeded").await?;
    assert_eq!(condition(&done, "Succeeded"), holds("True", "Completed"));
    assert_eq!(condition(&done, "JobMissing"), None, "after {last}");
    scene.until_free(&name).await?;
    let labels = format!("{}={name}", label::AGENT_RUN);
    let made = scene.here.api::<Job>();
    let made = made
        .list(&ListParams::default().labels(&labels))
        .await?
        .items;
    let known = done.status.and_then(|status| status.job_ref?.uid);
    ensure!(made.len() == 1, "{} Jobs after {last}", made.len());
    assert_eq!(made[0].metadata.uid, known, "after {last}");
    is_told_once(scene, &run, last).await?;
    next.kill().await;
    Ok(())
}
