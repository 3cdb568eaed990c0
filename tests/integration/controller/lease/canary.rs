//! The pod of a new version asks for the lease by itself, while it is on trial.

use std::fs;

use agents::api::contract::{annotation, env};
use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use nix::sys::signal::Signal;
use support::wait;
use tempfile::TempDir;

use super::{LEASE, leading, until_ready};
use crate::controller::scene::{DEADLINE, Scene};

/// What the kubelet writes for a pod of a Rollout.
fn tell(folder: &TempDir, role: &str) -> Result<String> {
    let file = folder.path().join("labels");
    let labels =
        format!("agents.proompteng.ai/rollout=\"{role}\"\nrollouts-pod-template-hash=\"new\"\n");
    fs::write(&file, labels)?;
    Ok(file.display().to_string())
}

fn revision(lease: &Lease) -> Option<&str> {
    let revision = lease.annotations().get(annotation::HOLDER_REVISION);
    revision.map(String::as_str)
}

#[tokio::test]
async fn a_pod_asks_for_the_lease_when_it_becomes_the_canary_and_leaves_it_to_others_when_it_ends()
-> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let mut old = scene.controller().await?;
    old.line("leading", leading).await;
    let folder = TempDir::new()?;
    let labels = tell(&folder, "stable")?;
    let mut new = scene
        .controller_with((env::POD_LABELS_FILE, &labels))
        .await?;
    new.line("a standby", |line| line["message"] == "Seeking the lease")
        .await;
    let leases = scene.here.api::<Lease>();
    assert_eq!(revision(&leases.get(LEASE).await?), None);

    tell(&folder, "canary")?;
    new.line("leading", leading).await;
    assert_eq!(old.end().await.code, Some(0), "it was asked to yield");
    let is_new = |lease: &Lease| revision(lease) == Some("new");
    wait::until(&leases, LEASE, DEADLINE, is_new).await?;

    let mut old = scene.controller().await?;
    let mut other = scene
        .controller_with((env::POD_LABELS_FILE, &labels))
        .await?;
    for standby in [&mut old, &mut other] {
        until_ready(standby).await?;
    }
    let lease = leases.get(LEASE).await?;
    assert!(is_new(&lease), "a canary does not ask another one");
    assert_eq!(lease.annotations().get(annotation::YIELD_TO), None);
    // The other canary may be about to end as well, so it comes second.
    new.signal(Signal::SIGTERM);
    old.line("leading", leading).await;
    assert_eq!(new.end().await.code, Some(0));
    Ok(())
}
