//! How soon another one leads. These need the machine for themselves: they run after all others, one at a time.

mod yields;

use std::time::{Duration, Instant};

use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use nix::sys::signal::Signal;
use serde_json::json;
use support::{
    lab::report::{measured, spoken},
    wait,
};

use super::{BRIEF, LEASE, holder, leading};
use crate::controller::scene::{DEADLINE, Scene};
use crate::kit::client;

#[tokio::test]
async fn a_standby_is_ready_and_takes_over_at_once_when_the_holder_ends_in_order() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let mut first = scene.controller().await?;
    first.line("leading", leading).await;
    let mut second = scene.controller().await?;
    let admin = second.address("admin").await;
    wait::retry("a standby that is ready", DEADLINE, || async {
        let answer = client::get(admin, "/readyz").await;
        anyhow::ensure!(answer.status == 200, "{}", answer.body);
        Ok(())
    })
    .await?;
    let before = wait::until(&scene.here.api::<Lease>(), LEASE, DEADLINE, |_| true).await?;
    let held = holder(&before).to_owned();
    let asked = Instant::now();
    first.signal(Signal::SIGTERM);
    let ended = first.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.log.join("\n"));
    second.line("leading", leading).await;
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    scene.run("after", json!({})).await?;
    scene.until_phase("after", "Running").await?;
    let after = scene.here.api::<Lease>().get(LEASE).await?;
    assert!(holder(&after) != held && !holder(&after).is_empty());
    Ok(())
}

#[tokio::test]
async fn after_a_kill_another_one_leads_when_the_lease_is_over() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&BRIEF).await?;
    let mut first = scene.controller().await?;
    first.line("leading", leading).await;
    let mut second = scene.controller().await?;
    let admin = second.address("admin").await;
    wait::retry("a standby that is ready", DEADLINE, || async {
        let answer = client::get(admin, "/readyz").await;
        anyhow::ensure!(answer.status == 200, "{}", answer.body);
        Ok(())
    })
    .await?;
    let killed = Instant::now();
    first.signal(Signal::SIGKILL);
    first.end().await;
    second.line("leading", leading).await;
    let took = killed.elapsed();
    let said = spoken(took);
    measured(format!(
        "take-over after a kill in {said}, with a lease of 4 s"
    ));
    // The last renewal was up to 1.2 s before the kill; what comes on top is one call.
    assert!(took > Duration::from_millis(2500), "too soon: {took:?}");
    assert!(took < Duration::from_millis(4500), "too late: {took:?}");
    Ok(())
}
