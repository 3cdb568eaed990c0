//! One works, the other waits and takes over.

mod alone;
mod canary;

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::{gateway::Gateway, lab, wait};

use super::scene::{DEADLINE, Scene};
use crate::kit::client;
use crate::kit::process::Process;

pub(super) const LEASE: &str = "jangar-controller-leader";

pub(super) fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}

pub(super) fn leading(line: &Value) -> bool {
    line["message"] == "Leading"
}

pub(super) async fn until_ready(process: &mut Process) -> Result<()> {
    let admin = process.address("admin").await;
    wait::retry("a standby that is ready", DEADLINE, || async {
        let answer = client::get(admin, "/readyz").await;
        anyhow::ensure!(answer.status == 200, "{}", answer.body);
        Ok(())
    })
    .await
}

/// A lease that is over soon.
pub(super) const BRIEF: [(&str, &str); 3] = [
    ("JANGAR_LEADER_ELECTION_LEASE_DURATION_SECONDS", "4"),
    ("JANGAR_LEADER_ELECTION_RENEW_DEADLINE_SECONDS", "3"),
    ("JANGAR_LEADER_ELECTION_RETRY_PERIOD_SECONDS", "1"),
];

/// One that is over soon, but not so soon that a busy machine takes it from a holder that is well.
const ROOMY: [(&str, &str); 3] = [
    ("JANGAR_LEADER_ELECTION_LEASE_DURATION_SECONDS", "12"),
    ("JANGAR_LEADER_ELECTION_RENEW_DEADLINE_SECONDS", "10"),
    ("JANGAR_LEADER_ELECTION_RETRY_PERIOD_SECONDS", "1"),
];

#[tokio::test]
async fn a_killed_holder_is_followed_within_the_lease_time() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&ROOMY).await?;
    let mut first = scene.controller().await?;
    first.line("leading", leading).await;
    let mut second = scene.controller().await?;
    second.address("admin").await;
    scene.run("before", json!({})).await?;
    scene.until_phase("before", "Running").await?;
    first.signal(Signal::SIGKILL);
    first.end().await;
    scene.end_pod("before", 0).await?;
    second.line("leading", leading).await;
    scene.until_phase("before", "Succeeded").await?;
    Ok(())
}

#[tokio::test]
async fn a_holder_that_was_away_too_long_ends_and_writes_nothing() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&ROOMY).await?;
    let mut first = scene.controller().await?;
    first.line("leading", leading).await;
    first.signal(Signal::SIGSTOP);
    let mut second = scene.controller().await?;
    second.line("leading", leading).await;
    first.signal(Signal::SIGCONT);
    let ended = first.end().await;
    assert_eq!(ended.code, Some(1));
    let last = ended.log.last().context("a last word")?;
    assert!(last.contains("lease"), "{last}");
    Ok(())
}

/// Without the fence, what the first one began to write would be stored when the way is free again.
#[tokio::test]
async fn a_holder_that_cannot_renew_writes_nothing_when_another_begins() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&ROOMY).await?;
    let way = Gateway::open(lab::shared().await?.kubeconfig(), None).await?;
    let mut first = scene.controller_by(way.kubeconfig())?;
    first.line("leading", leading).await;
    scene.run("held", json!({})).await?;
    scene.until_phase("held", "Running").await?;
    scene.pod("held").await?;
    way.hold(|method, path| method != "GET" || path.contains("/leases"));
    let before = (way.writes(), way.asides());
    scene.end_pod("held", 0).await?;
    let mut second = scene.controller().await?;
    second.line("leading", leading).await;
    way.release();
    let ended = first.end().await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended
            .log
            .join("\n")
            .contains("lease could not be renewed within 10s")
    );
    scene.until_phase("held", "Succeeded").await?;
    scene.until_free("held").await?;
    assert_eq!(
        (way.writes(), way.asides()),
        before,
        "it wrote nothing more"
    );
    Ok(())
}
