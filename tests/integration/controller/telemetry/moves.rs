//! What is counted only when something goes wrong, or when someone takes over: each is seen to move.

use std::collections::BTreeMap;

use agents::api::contract::{annotation, env, metric, queue};
use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::otlp::{Labels, Receiver};
use support::sse::Reader;
use tokio::sync::watch;

use super::{captured, value};
use crate::controller::lease::{LEASE, holder, leading};
use crate::controller::scene::{ALONE, Scene};
use crate::way::Way;

type Series = BTreeMap<Labels, f64>;

/// Waits until one series of a metric has a value.
async fn until(receiver: &mut Receiver, name: &str, labels: &[&str], least: f64) -> Result<()> {
    let is_there = |series: &Series| value(series, labels) >= Some(least);
    receiver.until(name, is_there).await.map(drop)
}

#[tokio::test]
async fn a_watch_that_breaks_is_counted_by_its_kind() -> Result<()> {
    support::kinds!();
    let (scene, mut receiver) = captured(&[ALONE]).await?;
    let way = Way::new().await?;
    let (open, opened) = watch::channel(true);
    let story = async {
        let _controller = scene.controller_by(way.kubeconfig())?;
        scene.run("seen", json!({})).await?;
        scene.until_phase("seen", "Running").await?;
        open.send_replace(false);
        for kind in ["kind=AgentRun", "kind=Job", "kind=Pod"] {
            until(&mut receiver, metric::WATCH_RESTARTS, &[kind], 1.0).await?;
        }
        open.send_replace(true);
        scene.run("after", json!({})).await?;
        scene.until_phase("after", "Running").await.map(drop)
    };
    tokio::select! {
        done = story => done,
        served = way.serve(opened) => served,
    }
}

#[tokio::test]
async fn work_calls_and_what_may_not_be_called_are_measured() -> Result<()> {
    support::kinds!();
    let (scene, mut receiver) = captured(&[ALONE]).await?;
    let _controller = scene.controller().await?;
    let endpoint = json!({"type": "custom", "config": {"endpoint": "http://10.1.2.3/"}});
    scene.run("denied", json!({ "runtime": endpoint })).await?;
    scene.until_phase("denied", "Failed").await?;
    let some = |series: &Series| series.values().sum::<f64>() >= 1.0;
    receiver.until(metric::EGRESS_REFUSED, some).await?;
    let reconcile = metric::RECONCILE_DURATION;
    until(&mut receiver, reconcile, &["kind=AgentRun"], 1.0).await?;
    let call = metric::API_CALL_DURATION;
    for verb in ["verb=patch", "verb=watch", "verb=list"] {
        until(&mut receiver, call, &[verb], 1.0).await?;
    }
    // Nothing panicked, and that is a number as well.
    let none = |series: &Series| value(series, &["kind=AgentRun"]) == Some(0.0);
    receiver.until(metric::RECONCILE_PANICS, none).await?;
    Ok(())
}

async fn ask(scene: &Scene, who: &str) -> Result<()> {
    let annotations = json!({ annotation::YIELD_TO: who, annotation::YIELD_REFUSED: null });
    let asked = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    let leases = scene.here.api::<Lease>();
    leases.patch(LEASE, &PatchParams::default(), &asked).await?;
    Ok(())
}

#[tokio::test]
async fn who_leads_and_who_was_asked_to_yield_is_measured() -> Result<()> {
    support::kinds!();
    let (scene, mut receiver) = captured(&[]).await?;
    let mut first = scene.controller().await?;
    first.line("leading", leading).await;
    until(&mut receiver, metric::LEADING, &[], 1.0).await?;
    let lease = scene.here.api::<Lease>().get(LEASE).await?;
    ask(&scene, holder(&lease)).await?;
    until(
        &mut receiver,
        metric::LEASE_YIELDS,
        &["result=refused"],
        1.0,
    )
    .await?;
    let mut second = scene.controller().await?;
    let seeking = |line: &Value| line["message"] == "Seeking the lease";
    let line = second.line("its identity", seeking).await;
    let candidate = line["identity"].as_str().unwrap_or_default().to_owned();
    // The first one never stops leading before it ends, so this is the second.
    let stands_by = |series: &Series| value(series, &[]) == Some(0.0);
    receiver.until(metric::LEADING, stands_by).await?;
    ask(&scene, &candidate).await?;
    until(
        &mut receiver,
        metric::LEASE_YIELDS,
        &["result=yielded"],
        1.0,
    )
    .await?;
    second.line("leading", leading).await;
    until(&mut receiver, metric::LEADING, &[], 1.0).await?;
    assert_eq!(first.end().await.code, Some(0));
    Ok(())
}

#[tokio::test]
async fn readers_of_the_queue_are_measured() -> Result<()> {
    support::kinds!();
    let often = [ALONE, (env::QUEUE_STREAM_INTERVAL, "10ms")];
    let (scene, mut receiver) = captured(&often).await?;
    let mut controller = scene.controller().await?;
    let address = controller.address("queue").await;
    let reader = Reader::open(address, queue::STREAM, None).await?;
    until(&mut receiver, metric::STREAM_READERS, &[], 1.0).await?;
    until(&mut receiver, metric::STREAM_OPENED, &[], 1.0).await?;
    let mut more = Vec::new();
    loop {
        let next = Reader::open(address, queue::STREAM, None).await?;
        if next.head.starts_with("http/1.1 503") {
            break;
        }
        more.push(next);
        anyhow::ensure!(more.len() < 1000, "there is no end to it");
    }
    until(&mut receiver, metric::STREAM_REFUSED, &[], 1.0).await?;
    drop((reader, more));
    until(&mut receiver, metric::STREAM_CLOSED, &[], 2.0).await?;
    let none = |series: &Series| value(series, &[]) == Some(0.0);
    receiver.until(metric::STREAM_READERS, none).await?;
    receiver.until(metric::STREAM_BACKLOG, none).await?;
    receiver.until(metric::STREAM_DROPPED, none).await?;
    controller.signal(Signal::SIGTERM);
    assert_eq!(controller.end().await.code, Some(0));
    Ok(())
}
