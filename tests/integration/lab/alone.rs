//! Tests of the lab that need the machine for themselves: they measure, and run after all others, one at a time.

mod tour;

use super::{
    life::suspect,
    node::{import_probe, run_first_pod},
    traces::interfaces,
};
use anyhow::Result;
use std::time::{Duration, Instant};
use support::lab::{
    Lab, own_name,
    report::{in_time, measured},
    state::Tier,
};

#[tokio::test]
async fn a_control_plane_is_usable_in_under_8_seconds_and_leaves_nothing_behind() -> Result<()> {
    support::starts_labs!();
    in_time(Duration::from_secs(8), async || {
        let before = interfaces()?;
        let started = Instant::now();
        let lab = Lab::start(&own_name("speed")?, Tier::ControlPlane).await?;
        let usable = started.elapsed();
        let suspect = suspect(&lab, before)?;
        let stopping = Instant::now();
        drop(lab);
        let stopped = stopping.elapsed();
        measured(format!(
            "tier 1: usable after {usable:.1?}, stopped after {stopped:.1?}"
        ));
        assert_eq!(suspect.traces()?, Vec::<String>::new());
        Ok(usable)
    })
    .await
}

#[tokio::test]
async fn a_first_pod_runs_in_under_20_seconds_and_nothing_is_left_behind() -> Result<()> {
    // The shared one runs beside, which makes this also the proof of two nodes on one machine.
    import_probe(support::node_lab!()).await?;
    in_time(Duration::from_secs(20), first_pod).await
}

/// Runs one pod in a new lab; returns when it was running.
async fn first_pod() -> Result<Duration> {
    let before = interfaces()?;
    let started = Instant::now();
    let lab = Lab::start(&own_name("speed-node")?, Tier::Node).await?;
    let usable = started.elapsed();
    run_first_pod(&lab).await?;
    let running = started.elapsed();
    let suspect = suspect(&lab, before)?;
    assert_ne!(
        suspect.traces()?,
        Vec::<String>::new(),
        "the search finds a running lab"
    );
    let stopping = Instant::now();
    drop(lab);
    let stopped = stopping.elapsed();
    measured(format!(
        "tier 2: usable after {usable:.1?}, first pod Running after {running:.1?}, stopped after {stopped:.1?}"
    ));
    assert_eq!(suspect.traces()?, Vec::<String>::new());
    Ok(running)
}
