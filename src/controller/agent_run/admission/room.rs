//! How much room there is, while one goes along the line.

use std::collections::HashMap;

use jiff::Timestamp;

use super::Refusal;
use super::index::{Index, Seat};
use super::scope::Scope;
use crate::api::condition::Hindrance;

/// What the index counts, and who was let in since.
pub(super) struct Room<'a> {
    index: &'a Index,
    now: Timestamp,
    entered: HashMap<Scope, usize>,
}

impl<'a> Room<'a> {
    pub(super) fn new(index: &'a Index, now: Timestamp) -> Self {
        Self {
            index,
            now,
            entered: HashMap::new(),
        }
    }

    /// Why this one cannot come in, if it cannot.
    pub(super) fn refusal(&self, seat: &Seat) -> Option<Refusal> {
        let mut scopes = seat.scopes.iter();
        scopes
            .find_map(|scope| self.too_many(scope))
            .or_else(|| seat.scopes.iter().find_map(|scope| self.too_fast(scope)))
    }

    /// The same as far as it is told: one whose line is too long has no place in it.
    pub(super) fn told(&self, seat: &Seat, refusal: Refusal) -> Refusal {
        let full = seat.scopes.iter().find_map(|scope| {
            let limit = scope.in_line(self.index.limits())?;
            // Those before it who would be let in now do not wait.
            let most = limit.saturating_add(self.entered(scope));
            let before = self.index.waiting_before(scope, seat, most);
            (before >= most).then_some((scope, limit))
        });
        match full {
            Some((scope, limit)) => Refusal {
                reason: Hindrance::QueueLimit,
                scope: scope.sort(),
                message: format!(
                    "{} already, which is the limit",
                    scope.runs(limit, ("waits", "wait"))
                ),
                until: refusal.until,
            },
            None => refusal,
        }
    }

    /// Lets one in.
    pub(super) fn enter(&mut self, seat: &Seat) {
        for scope in seat.scopes.iter() {
            *self.entered.entry(scope.clone()).or_default() += 1;
        }
    }

    /// Whether nobody at all can come in any more.
    pub(super) fn is_closed(&self) -> bool {
        let all = Scope::Cluster;
        self.too_many(&all)
            .or_else(|| self.too_fast(&all))
            .is_some()
    }

    fn entered(&self, scope: &Scope) -> usize {
        self.entered.get(scope).copied().unwrap_or_default()
    }

    /// Too many at a time.
    fn too_many(&self, scope: &Scope) -> Option<Refusal> {
        let limit = scope.at_a_time(self.index.limits())?;
        if self.index.running(scope) + self.entered(scope) < limit {
            return None;
        }
        let message = scope.runs(limit, ("is", "are"));
        Some(Refusal {
            reason: Hindrance::ConcurrencyLimit,
            scope: scope.sort(),
            message: format!("{message} under way, which is the limit"),
            until: None,
        })
    }

    /// Too many within the window. It is over for the one that began when the oldest is no longer within it.
    fn too_fast(&self, scope: &Scope) -> Option<Refusal> {
        let limits = self.index.limits();
        let limit = scope.in_window(limits)?;
        let begun = self.index.begun(scope, self.now);
        let last = (begun.len() + self.entered(scope)).checked_sub(limit)?;
        let oldest = begun.get(last).copied().unwrap_or(self.now);
        let seconds = limits.window.as_secs();
        let message = scope.runs(limit, ("began", "began"));
        Some(Refusal {
            reason: Hindrance::RateLimit,
            scope: scope.sort(),
            message: format!("{message} within {seconds} s, which is the limit"),
            until: oldest.checked_add(limits.window).ok(),
        })
    }
}
