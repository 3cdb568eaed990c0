//! Whether a run may begin now. Pure: from all runs, the limits and the time.
//!
//! One run for one idempotency key; not too many at a time; not too many within a time. Who came first goes first, but
//! one that is held back by a limit of its own does not hold back those behind it. Everything is counted from the runs
//! themselves, so nothing is forgotten when another process takes over. [`index`] keeps the counts, [`room`] is a walk along
//! the line, [`book`] makes one decision at a time and bridges the moment between a decision and the status that shows it.

mod book;
mod figures;
mod index;
mod limits;
pub(crate) mod load;
mod room;
mod scope;
#[cfg(test)]
mod tests;
mod ticket;

pub(crate) use book::Book;
pub(crate) use limits::Limits;
pub(crate) use scope::Sort;
pub(super) use ticket::{Ticket, makes_room};

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::api::condition::{Hindrance, Lifecycle};
use index::Seat;
use ticket::Place;

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
    pub(super) reason: Hindrance,
    /// What the limit is about.
    pub(super) scope: Sort,
    /// Says nothing that changes by itself.
    pub(super) message: String,
    /// When it can be otherwise without anything happening.
    pub(super) until: Option<Timestamp>,
}

/// The key belongs to who began with it, else to who came first. A run that ended without having begun did nothing, so
/// it keeps no key.
fn duplicate<'a>(
    same: impl Iterator<Item = &'a Arc<Seat>>,
    me: &Seat,
    keep: Duration,
    now: Timestamp,
) -> Option<Decision> {
    let mut others = same.filter(|other| other.ticket.uid != me.ticket.uid);
    let found = others.find_map(|other| {
        let reason = match other.place {
            Place::Running { .. } => Lifecycle::IdempotencyKeyInUse,
            Place::Waiting | Place::Aside if other.as_ref() < me => Lifecycle::IdempotencyKeyInUse,
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
        of: other.ticket.key.name.clone(),
    })
}
