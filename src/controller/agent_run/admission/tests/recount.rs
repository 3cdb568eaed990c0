//! Admission as it would be counted anew for every look: slow, plain, and what the index must agree with.

use std::collections::HashMap;

use jiff::Timestamp;

use super::super::limits::Limits;
use super::super::scope::Scope;
use super::super::ticket::Place;
use super::super::{Decision, Refusal, Ticket};
use crate::api::condition::{Hindrance, Lifecycle};
use crate::controller::cache::Key;

/// Decides about one run. The time matters for what counts as "within a short time" only.
pub(super) fn decide(all: &[Ticket], uid: &str, limits: &Limits, now: Timestamp) -> Decision {
    let Some(me) = all.iter().find(|ticket| ticket.uid == uid) else {
        return Decision::Admit;
    };
    if matches!(me.place, Place::Running { .. }) {
        return Decision::Admit;
    }
    if let Some(duplicate) = duplicate(all, me, limits, now) {
        return duplicate;
    }
    let mut room = Room::new(all, limits, now);
    for ticket in line(all, Some(me)) {
        let refusal = room.enter(ticket);
        if ticket.uid == uid {
            return refusal.map_or(Decision::Admit, Decision::Wait);
        }
    }
    Decision::Admit
}

/// Those in line who may begin now.
pub(super) fn next(all: &[Ticket], limits: &Limits, now: Timestamp) -> Vec<Key> {
    let mut room = Room::new(all, limits, now);
    line(all, None)
        .into_iter()
        .filter(|ticket| room.enter(ticket).is_none())
        .map(|ticket| ticket.key.clone())
        .collect()
}

/// The runs that wait for a slot, in the order of their creation; one that asks now is among them whatever held it back
/// before.
fn line<'a>(all: &'a [Ticket], me: Option<&'a Ticket>) -> Vec<&'a Ticket> {
    let waits = |ticket: &&Ticket| {
        ticket.place == Place::Waiting || me.is_some_and(|me| me.uid == ticket.uid)
    };
    let mut line: Vec<&Ticket> = all.iter().filter(waits).collect();
    line.sort_by(|one, other| one.order().cmp(&other.order()));
    line
}

/// The key belongs to who began with it, else to who came first. A run that ended without having begun did nothing, so
/// it keeps no key.
fn duplicate(all: &[Ticket], me: &Ticket, limits: &Limits, now: Timestamp) -> Option<Decision> {
    let keep = limits.keys?;
    let key = me.idempotency.as_ref()?;
    let has_key = |other: &&Ticket| {
        other.uid != me.uid
            && other.idempotency.as_ref() == Some(key)
            && other.key.namespace == me.key.namespace
            && other.agent == me.agent
    };
    let found = all.iter().filter(has_key).find_map(|other| {
        let reason = match other.place {
            Place::Running { .. } => Lifecycle::IdempotencyKeyInUse,
            Place::Waiting | Place::Aside if other.order() < me.order() => {
                Lifecycle::IdempotencyKeyInUse
            }
            Place::Ended { began: Some(_), at }
                if at.checked_add(keep).is_ok_and(|at| at > now) =>
            {
                Lifecycle::IdempotencyKeyCompleted
            }
            Place::Waiting | Place::Aside | Place::Ended { .. } => return None,
        };
        Some((reason, other))
    });
    let (reason, other) = found?;
    Some(Decision::Duplicate {
        reason,
        of: other.key.name.clone(),
    })
}

/// Who runs, who began a short time ago, and who waits, by scope.
struct Room<'a> {
    limits: &'a Limits,
    now: Timestamp,
    running: HashMap<Scope, usize>,
    /// The oldest first.
    begun: HashMap<Scope, Vec<Timestamp>>,
    waiting: HashMap<Scope, usize>,
}

impl<'a> Room<'a> {
    fn new(all: &'a [Ticket], limits: &'a Limits, now: Timestamp) -> Self {
        let mut room = Self {
            limits,
            now,
            running: HashMap::new(),
            begun: HashMap::new(),
            waiting: HashMap::new(),
        };
        for ticket in all {
            match ticket.place {
                Place::Running { since } => {
                    room.count_running(ticket);
                    room.count_begun(ticket, since);
                }
                Place::Ended {
                    began: Some(began), ..
                } => room.count_begun(ticket, began),
                Place::Ended { began: None, .. } | Place::Waiting | Place::Aside => {}
            }
        }
        for times in room.begun.values_mut() {
            times.sort_unstable();
        }
        room
    }

    /// Lets the next in line in, or says why not and counts it among those who wait.
    fn enter(&mut self, ticket: &'a Ticket) -> Option<Refusal> {
        let refusal = self.too_many(ticket).or_else(|| self.too_fast(ticket));
        let Some(refusal) = refusal else {
            self.count_running(ticket);
            self.count_begun(ticket, self.now);
            return None;
        };
        let refusal = self.too_long(ticket, refusal);
        for scope in scopes(ticket) {
            *self.waiting.entry(scope).or_default() += 1;
        }
        Some(refusal)
    }

    fn count_running(&mut self, ticket: &'a Ticket) {
        for scope in scopes(ticket) {
            *self.running.entry(scope).or_default() += 1;
        }
    }

    fn count_begun(&mut self, ticket: &'a Ticket, at: Timestamp) {
        let over = at.checked_add(self.limits.window);
        if over.is_ok_and(|over| over > self.now) {
            for scope in scopes(ticket) {
                self.begun.entry(scope).or_default().push(at);
            }
        }
    }

    /// Too many at a time.
    fn too_many(&self, ticket: &'a Ticket) -> Option<Refusal> {
        let mut scopes = scopes(ticket);
        let full = scopes.find_map(|scope| {
            let limit = scope.at_a_time(self.limits)?;
            (count(&self.running, &scope) >= limit).then_some((scope, limit))
        });
        let (scope, limit) = full?;
        Some(Refusal {
            reason: Hindrance::ConcurrencyLimit,
            scope: scope.sort(),
            message: format!(
                "{} under way, which is the limit",
                scope.runs(limit, ("is", "are"))
            ),
            until: None,
        })
    }

    /// Too many within the window. It is over for the one that began when the oldest is no longer within it.
    fn too_fast(&self, ticket: &'a Ticket) -> Option<Refusal> {
        let mut scopes = scopes(ticket);
        let (scope, limit, oldest) = scopes.find_map(|scope| {
            let limit = scope.in_window(self.limits)?;
            let times = self.begun.get(&scope)?;
            let oldest = times.len().checked_sub(limit)?;
            Some((scope, limit, *times.get(oldest)?))
        })?;
        let seconds = self.limits.window.as_secs();
        Some(Refusal {
            reason: Hindrance::RateLimit,
            scope: scope.sort(),
            message: format!(
                "{} within {seconds} s, which is the limit",
                scope.runs(limit, ("began", "began"))
            ),
            until: oldest.checked_add(self.limits.window).ok(),
        })
    }

    /// Too many wait already: the run has no place in line, but it comes up when the line gets shorter.
    fn too_long(&self, ticket: &'a Ticket, refusal: Refusal) -> Refusal {
        let mut scopes = scopes(ticket);
        let full = scopes.find_map(|scope| {
            let limit = scope.in_line(self.limits)?;
            (count(&self.waiting, &scope) >= limit).then_some((scope, limit))
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
}

fn scopes(ticket: &Ticket) -> impl Iterator<Item = Scope> {
    Scope::all_of(ticket).to_vec().into_iter()
}

fn count(counts: &HashMap<Scope, usize>, scope: &Scope) -> usize {
    counts.get(scope).copied().unwrap_or_default()
}
