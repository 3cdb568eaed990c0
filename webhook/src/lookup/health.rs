//! How the watches are doing, and what readiness makes of it.
//!
//! The gate opens when every watch has its first list, and stays open from then on: a webhook that is not ready refuses
//! every write in a cluster where it must answer, while one that looks things up in a copy of some minutes ago is wrong
//! about little and says so, in the gate's note, in a metric and in the log.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agents::api::kind::Kind;
use agents::cluster::Scope;
use agents::kit::readiness::Gate;

/// A watch that is broken for longer than this is worth a word.
const WORTH_A_WORD: Duration = Duration::from_secs(60);

/// How all watches are doing.
#[derive(Debug)]
pub(super) struct Health {
    gate: Gate,
    watches: Mutex<BTreeMap<(Kind, Scope), State>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    listed: bool,
    /// Since when nothing has been heard, and why.
    broken: Option<(Instant, String)>,
}

impl Health {
    /// Watches of which nothing is known yet.
    pub(super) fn new(gate: Gate, watches: impl Iterator<Item = (Kind, Scope)>) -> Self {
        let watches = watches.map(|watch| (watch, State::default())).collect();
        let health = Self {
            gate,
            watches: Mutex::new(watches),
        };
        health.show(Instant::now());
        health
    }

    /// Why nothing has begun yet.
    pub(super) fn waits_for(&self, reason: &str) {
        self.gate.close(reason);
    }

    /// A watch has its full list.
    pub(super) fn listed(&self, kind: Kind, scope: &Scope, now: Instant) {
        self.change(kind, scope, |state| {
            state.listed = true;
            state.broken = None;
        });
        self.show(now);
    }

    /// A watch broke; it counts as broken until it has a full list again.
    pub(super) fn broke(&self, kind: Kind, scope: &Scope, why: &str, now: Instant) {
        self.change(kind, scope, |state| {
            let since = state.broken.as_ref().map_or(now, |(since, _)| *since);
            state.broken = Some((since, why.to_owned()));
        });
        self.show(now);
    }

    /// How long a kind has not been followed.
    pub(super) fn stale(&self, kind: Kind, now: Instant) -> Duration {
        let watches = self.lock();
        let of_kind = watches.iter().filter(|((watched, _), _)| *watched == kind);
        let broken = of_kind.filter_map(|(_, state)| state.broken.as_ref());
        broken
            .map(|(since, _)| now.saturating_duration_since(*since))
            .max()
            .unwrap_or_default()
    }

    /// Brings the gate up to date.
    pub(super) fn show(&self, now: Instant) {
        let watches = self.lock();
        let waiting: Vec<String> = watches
            .iter()
            .filter(|(_, state)| !state.listed)
            .map(|(watch, state)| said(watch, state.broken.as_ref().map(|(_, why)| why)))
            .collect();
        if !waiting.is_empty() {
            let reason = format!("waiting for the first list of {}", waiting.join(", "));
            return self.gate.close(reason);
        }
        let long_broken: Vec<String> = watches
            .iter()
            .filter_map(|(watch, state)| {
                let (since, why) = state.broken.as_ref()?;
                let is_long = now.saturating_duration_since(*since) > WORTH_A_WORD;
                is_long.then(|| said(watch, Some(why)))
            })
            .collect();
        match long_broken.is_empty() {
            true => self.gate.open(),
            false => self
                .gate
                .open_but(format!("not followed: {}", long_broken.join(", "))),
        }
    }

    fn change(&self, kind: Kind, scope: &Scope, change: impl FnOnce(&mut State)) {
        change(self.lock().entry((kind, scope.clone())).or_default());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Kind, Scope), State>> {
        // Nothing panics while the lock is held, so a poisoned one is as good as new.
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch in words.
fn said((kind, scope): &(Kind, Scope), why: Option<&String>) -> String {
    let watch = match scope {
        Scope::Cluster => kind.to_string(),
        Scope::Namespace(namespace) => format!("{kind} in {namespace}"),
    };
    match why {
        None => watch,
        Some(why) => format!("{watch} ({why})"),
    }
}

#[cfg(test)]
mod tests {
    use agents::kit::readiness::{GateState, Readiness};

    use super::*;

    fn scene() -> (Readiness, Health) {
        let readiness = Readiness::default();
        let team = Scope::Namespace("team".to_owned());
        let watches = [(Kind::Agent, Scope::Cluster), (Kind::Tool, team)];
        let health = Health::new(readiness.gate("caches"), watches.into_iter());
        (readiness, health)
    }

    fn gate(readiness: &Readiness) -> (Option<String>, Option<String>) {
        let GateState { closed, note, .. } = readiness.gates().remove(0);
        (closed, note)
    }

    #[test]
    fn the_gate_names_what_it_waits_for_and_opens_with_the_last_list() {
        let (readiness, health) = scene();
        let (team, now) = (Scope::Namespace("team".to_owned()), Instant::now());
        let closed = |reason: &str| (Some(reason.to_owned()), None);
        assert_eq!(
            gate(&readiness),
            closed("waiting for the first list of Agent, Tool in team")
        );
        health.broke(Kind::Tool, &team, "no answer", now);
        health.listed(Kind::Agent, &Scope::Cluster, now);
        assert_eq!(
            gate(&readiness),
            closed("waiting for the first list of Tool in team (no answer)")
        );
        health.listed(Kind::Tool, &team, now);
        assert_eq!(gate(&readiness), (None, None));
    }

    #[test]
    fn a_watch_that_breaks_later_leaves_the_gate_open_and_is_named_after_a_while() {
        let (readiness, health) = scene();
        let (team, start) = (Scope::Namespace("team".to_owned()), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        health.listed(Kind::Agent, &Scope::Cluster, start);
        health.listed(Kind::Tool, &team, start);
        health.broke(Kind::Tool, &team, "gone", after(10));
        health.broke(Kind::Tool, &team, "no answer", after(40));
        assert_eq!(gate(&readiness), (None, None));
        assert_eq!(health.stale(Kind::Tool, after(50)), Duration::from_secs(40));
        assert_eq!(health.stale(Kind::Agent, after(50)), Duration::ZERO);
        health.show(after(71));
        let note = "not followed: Tool in team (no answer)".to_owned();
        assert_eq!(gate(&readiness), (None, Some(note)));
        health.listed(Kind::Tool, &team, after(80));
        assert_eq!(gate(&readiness), (None, None));
        assert_eq!(health.stale(Kind::Tool, after(80)), Duration::ZERO);
    }
}
