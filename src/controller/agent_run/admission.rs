//! Whether a run may begin now. Pure: from all runs, the limits and the time.
//!
//! One run for one idempotency key; not too many at a time; not too many within a time. Who came first goes first, but
//! one that is held back by a limit of its own does not hold back those behind it. Everything is counted from the runs
//! themselves, so nothing is forgotten when another process takes over. [`ledger`] bridges the moment between the
//! decision and the status that shows it.

mod ledger;
mod limits;
mod room;
#[cfg(test)]
mod tests;
mod ticket;

pub(super) use ledger::{Admitted, Ledger};
pub(crate) use limits::Limits;
pub(super) use ticket::{Ticket, makes_room};

use jiff::Timestamp;

use crate::api::condition::Lifecycle;
use crate::controller::cache::Key;
use room::Room;
use ticket::Place;

/// Reasons for which a run is held back by limits.
const CAPACITY: [Lifecycle; 3] = [
    Lifecycle::ConcurrencyLimit,
    Lifecycle::QueueLimit,
    Lifecycle::RateLimit,
];

/// Whether the reason of a condition means that a run waits in line.
pub(super) fn is_capacity(reason: &str) -> bool {
    CAPACITY.iter().any(|word| word.as_str() == reason)
}

/// Whether a run may begin.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Decision {
    /// It may.
    Admit,
    /// Not yet.
    Wait(Refusal),
    /// Never: another run has its key.
    Duplicate { reason: Lifecycle, of: String },
}

/// Why a run may not begin yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) reason: Lifecycle,
    /// Says nothing that changes by itself.
    pub(super) message: String,
    /// When it can be otherwise without anything happening.
    pub(super) until: Option<Timestamp>,
}

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
