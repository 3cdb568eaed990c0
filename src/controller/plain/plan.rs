//! How an object of such a kind stands. Pure.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{Nothing, Plain};
use crate::api::examine::examine;
use crate::controller::agent_run::Deprecated;
use crate::controller::driver::plan::{Next, Plan, Step};
use crate::controller::stand::{Lack, invalid, standing, stored, waiting};

/// Time between two looks for something that cannot be watched.
const POLL: Duration = Duration::from_secs(5);

/// What was found about one object.
#[derive(Debug)]
pub(in crate::controller) struct Observed<K> {
    /// The object; none if it is gone.
    pub(super) object: Option<Arc<K>>,
    /// What it needs and what is not there.
    pub(super) missing: Vec<Lack>,
    pub(super) around: Around,
}

/// What some kinds want to know besides their object.
#[derive(Clone, Debug)]
pub(in crate::controller) struct Around {
    pub(super) now: Timestamp,
    /// When the Signal was last delivered.
    pub(super) last_delivery: Option<Timestamp>,
    /// Sorts of tokens to be given up.
    pub(super) deprecated: Deprecated,
}

/// Decides.
pub(super) fn plan<K: Plain>(seen: &Observed<K>) -> Plan<Nothing, K::Status> {
    let Some(object) = seen.object.as_deref() else {
        return Plan::idle(Next::Wait);
    };
    if object.meta().deletion_timestamp.is_some() {
        return Plan::idle(Next::Wait);
    }
    let now = seen.around.now;
    let causes = examine(
        K::KIND,
        &serde_json::to_value(object).unwrap_or_default(),
        None,
    );
    let (standing, next) = if !causes.is_empty() {
        (invalid(object, &causes, now), Next::Wait)
    } else if !seen.missing.is_empty() {
        let is_watched = seen.missing.iter().all(|lack| lack.is_watched);
        let poll = now.checked_add(POLL).ok().filter(|_| !is_watched);
        (
            waiting(object, stored(object), &seen.missing, now),
            poll.map_or(Next::Wait, Next::At),
        )
    } else {
        let stand = object.stand(&seen.around);
        let due = stand.due;
        (
            standing(object, stand, now),
            due.map_or(Next::Wait, Next::At),
        )
    };
    Plan {
        steps: vec![Step::status(standing)],
        next,
    }
}
