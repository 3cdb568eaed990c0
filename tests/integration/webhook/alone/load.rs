//! Writers that never pause: small objects, each write of which the API server asks the webhook about twice.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use agents::api::kind::Kind;
use anyhow::{Result, ensure};
use futures::future::join_all;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::json;
use support::{Namespace, builders::smallest, lab, wait};

use crate::webhook::{cases::resource, hook::DEADLINE};

/// One write in so many is stored; the others are dry runs, which go the same way but for the last step.
const STORED: usize = 20;
/// Failures that are kept in words.
const KEPT: usize = 10;

/// How the writes went so far.
#[derive(Clone, Default)]
pub(super) struct Tally {
    sent: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
    /// Microseconds of the slowest write.
    slowest: Arc<AtomicU64>,
    words: Arc<Mutex<Vec<String>>>,
    enough: Arc<AtomicBool>,
}

impl Tally {
    /// Writes so far.
    pub(super) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    /// Waits until so many writes were made.
    pub(super) async fn until(&self, wanted: usize) -> Result<()> {
        let enough = || async {
            let sent = self.sent();
            ensure!(sent >= wanted, "{sent} writes");
            Ok(())
        };
        wait::retry("enough writes", DEADLINE * 5, enough).await
    }

    /// Tells the writers to end.
    pub(super) fn stop(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }

    /// Time of the slowest write so far.
    pub(super) fn slowest(&self) -> Duration {
        Duration::from_micros(self.slowest.load(Ordering::Relaxed))
    }

    async fn count<T>(&self, write: impl Future<Output = kube::Result<T>>) {
        let start = Instant::now();
        let result = write.await;
        let took = start.elapsed().as_micros().try_into().unwrap_or(u64::MAX);
        self.slowest.fetch_max(took, Ordering::Relaxed);
        self.sent.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = result {
            self.failed.fetch_add(1, Ordering::Relaxed);
            let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
            if words.len() < KEPT {
                words.push(format!("{error}"));
            }
        }
    }

    /// Fails if a single write failed.
    pub(super) fn verdict(&self, what: &str, since: Instant) -> Result<()> {
        let (sent, failed) = (self.sent(), self.failed.load(Ordering::Relaxed));
        let (took, slowest) = (since.elapsed(), self.slowest());
        eprintln!(
            "{what}: {failed} of {sent} writes failed, in {took:.1?}; the slowest took {slowest:.1?}"
        );
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(
            failed == 0,
            "{failed} of {sent} failed: {}",
            words.join("\n")
        );
        Ok(())
    }
}

fn signal(name: &str) -> Result<DynamicObject> {
    let signal = smallest(Kind::Signal, name);
    signal.spec(json!({"channel": "load"})).typed()
}

/// Writes until told to end, from so many writers at once.
pub(super) async fn write(here: &Namespace, writers: usize, tally: &Tally) -> Result<()> {
    let mut work = Vec::new();
    for writer in 0..writers {
        let client = lab::shared().await?.client().await?;
        let name = format!("load-{writer}");
        let object = signal(&name)?;
        signals(&client, here)?
            .create(&PostParams::default(), &object)
            .await?;
        work.push(one_writer(signals(&client, here)?, name, tally.clone()));
    }
    join_all(work).await.into_iter().collect()
}

fn signals(client: &Client, here: &Namespace) -> Result<Api<DynamicObject>> {
    let resource = resource("Signal")?;
    Ok(Api::namespaced_with(client.clone(), &here.name, &resource))
}

async fn one_writer(api: Api<DynamicObject>, name: String, tally: Tally) -> Result<()> {
    let dry = PostParams {
        dry_run: true,
        field_manager: None,
    };
    let object = signal(&format!("{name}-dry"))?;
    let mut turn: usize = 0;
    while !tally.enough.load(Ordering::Relaxed) {
        turn += 1;
        if turn.is_multiple_of(STORED) {
            let change = json!({"spec": {"channel": format!("load-{turn}")}});
            let params = PatchParams::default();
            let change = Patch::Merge(change);
            tally.count(api.patch(&name, &params, &change)).await;
        } else {
            tally.count(api.create(&dry, &object)).await;
        }
    }
    Ok(())
}
