//! The API server goes away and comes back.

use anyhow::Result;
use nix::sys::signal::Signal;
use serde_json::json;
use support::wait;
use tokio::sync::watch;

use super::lease::leading;
use super::scene::{ALONE, DEADLINE, Scene, condition, holds};
use crate::kit::client;
use crate::kit::process::Process;
use crate::way::Way;

/// Time enough to renew, also where everything else is busy.
const PATIENT: [(&str, &str); 2] = [
    ("JANGAR_LEADER_ELECTION_LEASE_DURATION_SECONDS", "120"),
    ("JANGAR_LEADER_ELECTION_RENEW_DEADLINE_SECONDS", "90"),
];

/// Waits until `/readyz` answers so.
async fn until_readyz(process: &mut Process, status: u16, part: &str) -> Result<()> {
    let admin = process.address("admin").await;
    wait::retry("an answer of /readyz", DEADLINE, || async {
        let answer = client::get(admin, "/readyz?verbose").await;
        let fits = answer.status == status && answer.body.contains(part);
        anyhow::ensure!(fits, "{} {}", answer.status, answer.body);
        Ok(())
    })
    .await
}

/// A run ends while nobody can be told of it.
async fn ends_while_away(settings: &[(&str, &str)]) -> Result<()> {
    let scene = Scene::with_agent(settings).await?;
    let way = Way::new().await?;
    let (open, opened) = watch::channel(true);
    let story = async {
        let mut controller = scene.controller_by(way.kubeconfig())?;
        scene.run("long", json!({})).await?;
        scene.until_phase("long", "Running").await?;
        scene.pod("long").await?;
        until_readyz(&mut controller, 200, "").await?;
        open.send_replace(false);
        until_readyz(&mut controller, 200, "watches are broken").await?;
        scene.end_pod("long", 0).await?;
        let ended = |job: &k8s_openapi::api::batch::v1::Job| {
            let status = job.status.as_ref();
            status.is_some_and(|status| status.succeeded == Some(1))
        };
        scene.until_job("long", ended).await?;
        scene.run("new", json!({})).await?;
        open.send_replace(true);
        let done = scene.until_phase("long", "Succeeded").await?;
        assert_eq!(condition(&done, "Succeeded"), holds("True", "Completed"));
        assert_eq!(condition(&done, "JobMissing"), None);
        scene.until_free("long").await?;
        scene.told(&done, "Succeeded").await?;
        scene.until_phase("new", "Running").await?;
        until_readyz(&mut controller, 200, "").await?;
        controller.signal(Signal::SIGTERM);
        let ended = controller.end().await;
        assert_eq!(ended.code, Some(0), "it never ended by itself");
        anyhow::Ok(())
    };
    tokio::select! {
        done = story => done,
        served = way.serve(opened) => served,
    }
}

#[tokio::test]
async fn a_run_that_ends_while_the_api_server_is_away_is_told_when_it_is_back() -> Result<()> {
    support::kinds!();
    ends_while_away(&[ALONE]).await
}

#[tokio::test]
async fn the_holder_goes_on_if_it_can_renew_in_time() -> Result<()> {
    support::kinds!();
    ends_while_away(&PATIENT).await
}

#[tokio::test]
async fn a_controller_whose_watches_stay_broken_is_not_ready_until_the_api_server_is_back()
-> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let way = Way::new().await?;
    let (open, opened) = watch::channel(true);
    let story = async {
        let mut controller = scene.controller_by(way.kubeconfig())?;
        until_readyz(&mut controller, 200, "").await?;
        open.send_replace(false);
        until_readyz(&mut controller, 200, "watches are broken").await?;
        until_readyz(&mut controller, 503, "not followed").await?;
        let admin = controller.address("admin").await;
        assert_eq!(
            client::get(admin, "/livez").await.status,
            200,
            "it is alive"
        );
        scene.run("waits", json!({})).await?;
        open.send_replace(true);
        until_readyz(&mut controller, 200, "").await?;
        scene.until_phase("waits", "Running").await?;
        anyhow::Ok(())
    };
    tokio::select! {
        done = story => done,
        served = way.serve(opened) => served,
    }
}

#[tokio::test]
async fn a_controller_that_starts_while_the_api_server_is_away_waits_for_it() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let way = Way::new().await?;
    let (open, opened) = watch::channel(false);
    let story = async {
        let mut controller = scene.controller_by(way.kubeconfig())?;
        until_readyz(&mut controller, 503, "cluster").await?;
        scene.run("waits", json!({})).await?;
        open.send_replace(true);
        controller.line("leading", leading).await;
        until_readyz(&mut controller, 200, "").await?;
        scene.until_phase("waits", "Running").await?;
        anyhow::Ok(())
    };
    tokio::select! {
        done = story => done,
        served = way.serve(opened) => served,
    }
}
