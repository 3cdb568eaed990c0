//! One works, the other waits and takes over.

mod alone;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::scene::Scene;

fn leading(line: &Value) -> bool {
    line["message"] == "Leading"
}

/// A lease that is over soon, but not so soon that a busy machine takes it from a holder that is well.
const BRIEF: [(&str, &str); 3] = [
    ("JANGAR_LEADER_ELECTION_LEASE_DURATION_SECONDS", "12"),
    ("JANGAR_LEADER_ELECTION_RENEW_DEADLINE_SECONDS", "10"),
    ("JANGAR_LEADER_ELECTION_RETRY_PERIOD_SECONDS", "1"),
];

#[tokio::test]
async fn a_killed_holder_is_followed_within_the_lease_time() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&BRIEF).await?;
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
    let scene = Scene::with_agent(&BRIEF).await?;
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
