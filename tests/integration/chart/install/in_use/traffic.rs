//! People at work: requests that are right, one after the other, in some namespaces. None of them may fail.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agents::api::kind::Kind;
use agents::api::kinds::Signal;
use anyhow::{Result, ensure};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use support::{Namespace, builders::smallest, wait};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::chart::install::stage::DEADLINE;

/// Time between two requests of one person.
const PACE: Duration = Duration::from_millis(40);
/// One request in so many is stored; the others are dry runs, which go the same way but for the last step.
const STORED: usize = 10;
/// Failures that are kept in words.
const KEPT: usize = 10;

/// How the requests went so far.
#[derive(Default)]
struct Tally {
    sent: usize,
    failed: usize,
    words: Vec<String>,
}

/// Requests that go on until they are told to end.
pub(super) struct Traffic {
    tally: Arc<Mutex<Tally>>,
    people: JoinSet<()>,
}

impl Traffic {
    /// One person at work in each namespace.
    pub(super) async fn start(places: &[&Namespace]) -> Result<Self> {
        let tally = Arc::<Mutex<Tally>>::default();
        let mut people = JoinSet::new();
        for place in places {
            let api = place.api::<Signal>();
            api.create(&PostParams::default(), &signal("kept")?).await?;
            people.spawn(work(api, signal("tried")?, tally.clone()));
        }
        Ok(Self { tally, people })
    }

    fn sent(&self) -> usize {
        lock(&self.tally).sent
    }

    /// Waits until some more requests were made.
    pub(super) async fn goes_on(&self) -> Result<()> {
        let enough = self.sent() + 2 * STORED * self.people.len();
        wait::retry("more requests", DEADLINE, || async {
            ensure!(self.sent() >= enough, "{} requests", self.sent());
            Ok(())
        })
        .await
    }

    /// Ends the work. Fails if a single request failed.
    pub(super) async fn end(mut self, what: &str) -> Result<()> {
        self.people.shutdown().await;
        let Tally {
            sent,
            failed,
            words,
        } = &*lock(&self.tally);
        eprintln!("{what}: {failed} of {sent} requests failed");
        ensure!(
            *failed == 0,
            "{failed} of {sent} failed: {}",
            words.join("\n")
        );
        Ok(())
    }
}

fn lock(tally: &Mutex<Tally>) -> std::sync::MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

fn signal(name: &str) -> Result<Signal> {
    let signal = smallest(Kind::Signal, name);
    signal.spec(json!({"channel": "traffic"})).typed()
}

async fn work(api: Api<Signal>, tried: Signal, tally: Arc<Mutex<Tally>>) {
    let dry = PostParams {
        dry_run: true,
        field_manager: None,
    };
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for turn in 1usize.. {
        pace.tick().await;
        let done = match turn.is_multiple_of(STORED) {
            true => {
                let change = json!({"spec": {"channel": format!("traffic-{turn}")}});
                let params = PatchParams::default();
                api.patch("kept", &params, &Patch::Merge(change)).await
            }
            false => api.create(&dry, &tried).await,
        };
        let mut tally = lock(&tally);
        tally.sent += 1;
        if let Err(error) = done {
            tally.failed += 1;
            if tally.words.len() < KEPT {
                tally.words.push(error.to_string());
            }
        }
    }
}
