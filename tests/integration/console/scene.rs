//! What people do with the console, and what is there to be seen.

use std::net::SocketAddr;

use agents::api::kinds::AgentRun;
use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use support::browser::Browser;

use crate::controller::scene::Scene;

/// Whether what is shown is how it is now.
pub(super) const LIVE: &str = "document.querySelector('#link').dataset.state === 'live'";

/// Comes to the console and signs in with the mouse.
pub(crate) async fn sign_in(browser: &Browser, address: SocketAddr, token: &str) -> Result<()> {
    browser.open(&format!("http://{address}/")).await?;
    browser.write("#token", token).await?;
    browser.click("button[type=submit]").await?;
    browser.until(LIVE).await
}

/// Waits until a run is in the table.
pub(super) async fn until_listed(browser: &Browser, run: &str) -> Result<()> {
    browser.until_shows(".body .name", run).await
}

/// So many seconds ago, as the API writes it.
pub(super) fn ago(seconds: i64) -> String {
    let then = Timestamp::now() - SignedDuration::from_secs(seconds);
    then.round(jiff::Unit::Second).unwrap_or(then).to_string()
}

/// A condition that holds.
pub(super) fn holds(type_: &str, reason: &str, message: &str, seconds: i64) -> Value {
    json!({"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": ago(seconds)})
}

/// Writes the status of a run, as the controller would.
pub(super) async fn stand(scene: &Scene, run: &str, status: Value) -> Result<AgentRun> {
    let runs = scene.here.api::<AgentRun>();
    let patch = Patch::Merge(json!({"status": status}));
    Ok(runs
        .patch_status(run, &PatchParams::default(), &patch)
        .await?)
}

/// Makes an Event about a run, which need not be there.
pub(super) async fn event(
    scene: &Scene,
    about: (&str, Option<&AgentRun>),
    reason: &str,
    message: &str,
) -> Result<()> {
    let (name, run) = about;
    let event: Event = serde_json::from_value(json!({
        "metadata": {"generateName": "told-"}, "type": "Warning", "reason": reason, "message": message, "count": 2,
        "firstTimestamp": ago(0), "lastTimestamp": ago(-40),
        "involvedObject": {"apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "name": name,
            "namespace": scene.here.name, "uid": run.and_then(|run| run.uid())},
    }))?;
    scene
        .here
        .api::<Event>()
        .create(&PostParams::default(), &event)
        .await?;
    Ok(())
}
