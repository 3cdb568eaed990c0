//! Tests that need the machine for themselves: they run after all others, one at a time.

mod yields;

use std::time::{Duration, Instant};

use anyhow::Result;
use nix::sys::signal::Signal;
use support::{
    lab::report::{measured, spoken},
    wait,
};

use super::lease::{BRIEF, leading};
use super::scene::{DEADLINE, Scene};
use crate::kit::client;

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
