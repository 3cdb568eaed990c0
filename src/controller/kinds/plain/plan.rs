//! How an object of such a kind stands. Pure.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::look::{Found, Look};
use super::{Action, Plain};
use crate::api::object::examine::examine;
use crate::controller::agent_run::Deprecated;
use crate::controller::driver::plan::{Next, Plan, Standing, Step};
use crate::controller::driver::stand::{Lack, invalid, standing, stored, unreachable, waiting};

/// Time between two looks for something that cannot be watched.
const POLL: Duration = Duration::from_secs(5);

/// What was found about one object.
#[derive(Debug)]
pub(in crate::controller) struct Observed<K> {
    /// The object; none if it is gone.
    pub(super) object: Option<Arc<K>>,
    /// What it needs and what is not there.
    pub(super) missing: Vec<Lack>,
    /// Whether what it names outside is to be looked at.
    pub(super) wants_look: bool,
    /// How the last look went.
    pub(super) look: Option<Arc<Look>>,
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
    /// Whether what it names outside was found to be there.
    pub(super) is_reached: bool,
}

/// Decides.
pub(super) fn plan<K: Plain>(seen: &Observed<K>) -> Plan<Action, K::Status> {
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
    let later = now.checked_add(POLL).map_or(Next::Wait, Next::At);
    let (standing, next) = if !causes.is_empty() {
        (invalid(object, &causes, now), Next::Wait)
    } else if !seen.missing.is_empty() {
        let is_watched = seen.missing.iter().all(|lack| lack.is_watched);
        let poll = if is_watched { Next::Wait } else { later };
        let waiting = waiting(object, stored(object), &seen.missing, now);
        (waiting, poll)
    } else if seen.wants_look {
        let about = object.meta().generation;
        let look = seen.look.as_deref();
        match look.filter(|look| look.generation == about && look.due > now) {
            Some(look) => looked_at(object, &seen.around, look),
            None => {
                return Plan {
                    steps: vec![Step::Do(Action::Look)],
                    next: later,
                };
            }
        }
    } else {
        of_its_own(object, &seen.around)
    };
    Plan {
        steps: vec![Step::status(standing)],
        next,
    }
}

/// How an object stands by what was found outside.
fn looked_at<K: Plain>(object: &K, around: &Around, look: &Look) -> (Standing<K::Status>, Next) {
    let due = Next::At(look.due);
    if let Found::Wrong(wrong, message) = &look.found {
        let (reason, event) = wrong.words();
        return (unreachable(object, reason, event, message, around.now), due);
    }
    let around = Around {
        is_reached: look.found == Found::Reached,
        ..around.clone()
    };
    let (standing, next) = of_its_own(object, &around);
    (standing, next.or(due))
}

/// How an object stands by what the kind says.
fn of_its_own<K: Plain>(object: &K, around: &Around) -> (Standing<K::Status>, Next) {
    let stand = object.stand(around);
    let due = stand.due.map_or(Next::Wait, Next::At);
    (standing(object, stand, around.now), due)
}
