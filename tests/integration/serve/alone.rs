//! Many readers at once; needs the machine for itself.

use anyhow::{Context, Result};
use futures::future::{join_all, try_join_all};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use support::sse::Reader;
use support::wait;
use tokio::sync::Semaphore;

use agents::api::contract::{api_path, control_plane_event};
use agents::api::kinds::Agent;

use super::scene::{ALL, DEADLINE, Plane};
use super::streams::counts;

const READERS: usize = 1000;
const STALLED: usize = 100;
/// More than are kept for who is slow.
const CHANGES: usize = 1500;

/// How far the changes may be ahead of those who read them: nobody who reads is slow.
const AHEAD: usize = 200;

/// Which change an event tells. Found as text: reading a million of them as JSON takes longer than all the rest.
fn number(data: &str) -> Option<usize> {
    let (_, rest) = data.split_once(r#""number":""#)?;
    rest.split('"').next()?.parse().ok()
}

/// KiB that a process holds.
fn memory(id: u32) -> Result<u64> {
    Ok(support::memory::resident(id)? / 1024)
}

#[tokio::test]
async fn a_thousand_readers_get_everything_in_order_and_who_stalls_is_let_go() -> Result<()> {
    support::kinds!();
    let mut plane = Plane::start(&[]).await?;
    let admin = plane.process.address("admin").await.to_string();
    let token = plane.person("boss", ALL).await?;
    let path = format!(
        "{}?namespace={}",
        api_path::CONTROL_PLANE_STREAM,
        plane.namespace()
    );
    let mut readers = Vec::new();
    // Some at a time: only so many requests may be in flight.
    while readers.len() < READERS - STALLED {
        let open = (0..100).map(|_| Reader::open_as(plane.address, &path, None, &token));
        readers.extend(try_join_all(open).await?);
    }
    let ready = readers
        .iter_mut()
        .map(|reader| reader.until(|event| event.name == control_plane_event::READY));
    try_join_all(ready).await?;
    let stalled = (0..STALLED).map(|_| Reader::open_narrow_as(plane.address, &path, &token));
    let stalled = try_join_all(stalled).await?;
    let before = memory(plane.process.id())?;
    let agents = plane.scene.here.api::<Agent>();
    let filling = "x".repeat(512);
    let pace = Semaphore::new(AHEAD * readers.len());
    let each = u32::try_from(readers.len())?;
    let change = async {
        for number in 0..CHANGES {
            pace.acquire_many(each).await?.forget();
            let patch = json!({"metadata": {"annotations": {"number": number.to_string(), "filling": filling}}});
            agents
                .patch("coder", &PatchParams::default(), &Patch::Merge(patch))
                .await?;
        }
        anyhow::Ok(())
    };
    let pace = &pace;
    let read = join_all(readers.iter_mut().map(|reader| async move {
        for expected in 0..CHANGES {
            let number = loop {
                let event = reader.next().await?.context("an event")?;
                if let Some(number) = number(&event.data) {
                    break number;
                }
            };
            anyhow::ensure!(number == expected, "{number} instead of {expected}");
            pace.add_permits(1);
        }
        Ok(())
    }));
    let (changed, read) = tokio::join!(change, read);
    changed?;
    read.into_iter().collect::<Result<Vec<()>>>()?;
    let after = memory(plane.process.id())?;
    assert!(
        after < before + 128 * 1024,
        "{before} KiB before, {after} KiB after"
    );
    eprintln!(
        "memory: {before} KiB before, {after} KiB after {CHANGES} changes to {READERS} readers"
    );
    // Nobody hangs up: the server itself lets those go that take nothing.
    let counted = |stay: usize| {
        let [stay, all, gone] = [stay, READERS, READERS - stay].map(|count| count as f64);
        [stay, all, gone, STALLED as f64]
    };
    let settled = async |stay: usize| {
        wait::retry("who stays", DEADLINE, || async {
            let counts = counts(&admin).await?;
            anyhow::ensure!(counts == counted(stay), "{counts:?}");
            Ok(())
        })
        .await
    };
    settled(readers.len()).await?;
    drop(stalled);
    drop(readers);
    settled(0).await
}
