//! How the watches are doing, and what readiness makes of it.
//!
//! Nobody sends requests to a controller, so a gate that closes takes nothing away from anyone; it shows operators that
//! decisions are made from old copies.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::kit::readiness::Gate;

/// A watch that is broken for longer than this closes the gate.
const TOLERATED: Duration = Duration::from_secs(30);

/// How all watches are doing.
#[derive(Debug)]
pub(crate) struct Health {
    gate: Gate,
    watches: Mutex<BTreeMap<String, State>>,
    listed: tokio::sync::watch::Sender<bool>,
}

#[derive(Clone, Debug, Default)]
struct State {
    listed: bool,
    /// Since when nothing has been heard, and why.
    broken: Option<(Instant, String)>,
}

impl Health {
    pub(crate) fn new(gate: Gate) -> Self {
        Self {
            gate,
            watches: Mutex::default(),
            listed: tokio::sync::watch::Sender::new(false),
        }
    }

    /// Names a watch that must have listed before anything is decided.
    pub(super) fn expect(&self, watch: &str) {
        self.lock().insert(watch.to_owned(), State::default());
    }

    pub(super) fn listed(&self, watch: &str) {
        self.change(watch, |state| {
            state.listed = true;
            state.broken = None;
        });
        self.show(Instant::now());
    }

    pub(super) fn broke(&self, watch: &str, why: &str) {
        let now = Instant::now();
        self.change(watch, |state| {
            let since = state.broken.as_ref().map_or(now, |(since, _)| *since);
            state.broken = Some((since, why.to_owned()));
        });
        self.show(now);
    }

    /// Waits until every watch has listed once.
    pub(crate) async fn all_listed(&self) {
        let mut listed = self.listed.subscribe();
        // The sender lives as long as this value.
        drop(listed.wait_for(|listed| *listed).await);
    }

    /// Brings the gate up to date.
    pub(crate) fn show(&self, now: Instant) {
        let watches = self.lock();
        let waiting: Vec<&str> = watches
            .iter()
            .filter(|(_, state)| !state.listed)
            .map(|(watch, _)| watch.as_str())
            .collect();
        let broken: Vec<String> = watches
            .iter()
            .filter_map(|(watch, state)| {
                let (since, why) = state.broken.as_ref()?;
                let is_long = now.saturating_duration_since(*since) > TOLERATED;
                (is_long || !state.listed).then(|| format!("{watch} ({why})"))
            })
            .collect();
        let breaking = watches.values().filter(|state| state.broken.is_some());
        let breaking = breaking.count();
        if !broken.is_empty() {
            self.gate
                .close(format!("not followed: {}", broken.join(", ")));
        } else if !waiting.is_empty() {
            let waiting = waiting.join(", ");
            self.gate
                .close(format!("waiting for the first list of {waiting}"));
        } else if breaking > 0 {
            let all = watches.len();
            self.gate
                .open_but(format!("{breaking} of {all} watches are broken"));
        } else {
            self.gate.open();
        }
        self.listed.send_if_modified(|listed| {
            let first = waiting.is_empty() && !*listed;
            *listed |= first;
            first
        });
    }

    fn change(&self, watch: &str, change: impl FnOnce(&mut State)) {
        change(self.lock().entry(watch.to_owned()).or_default());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, State>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::readiness::Readiness;

    #[test]
    fn the_gate_opens_with_the_last_list_and_closes_when_a_watch_stays_broken() {
        let readiness = Readiness::default();
        let health = Health::new(readiness.gate("caches"));
        let closed = || readiness.gates()[0].closed.clone();
        health.expect("runs");
        health.expect("Jobs");
        health.listed("runs");
        assert_eq!(
            closed().as_deref(),
            Some("waiting for the first list of Jobs")
        );
        health.broke("Jobs", "refused");
        assert_eq!(closed().as_deref(), Some("not followed: Jobs (refused)"));
        health.listed("Jobs");
        assert_eq!(closed(), None);
        health.broke("runs", "refused");
        assert_eq!(closed(), None, "it may pass");
        let note = readiness.gates()[0].note.clone();
        assert_eq!(note.as_deref(), Some("1 of 2 watches are broken"));
        health.show(Instant::now() + 2 * TOLERATED);
        assert_eq!(closed().as_deref(), Some("not followed: runs (refused)"));
        health.listed("runs");
        assert_eq!(closed(), None);
    }
}
