//! What a reconciler wants done, as a value.

use jiff::Timestamp;

use crate::api::condition::{Observation, Reason};
use crate::api::custody::{Class, Recovered};
use crate::api::phase::Phase;
use crate::controller::agent_run::Sort;
use crate::events;

/// What is to be done now, in this order, and when to look again.
///
/// The first step that fails ends the pass. After a pass that changed something the object is observed and planned
/// anew, so a plan holds only what can be done without knowing how it went.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan<A, S> {
    pub(crate) steps: Vec<Step<A, S>>,
    pub(crate) next: Next,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step<A, S> {
    /// Change something in the cluster.
    Do(A),
    /// Bring the status to this; nothing is written if it is so already.
    Status(Box<Standing<S>>),
}

/// When to look again, if nothing happens before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Something will happen, or nothing needs to.
    Wait,
    /// At this time.
    At(Timestamp),
}

/// How an object stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Standing<S> {
    pub(crate) status: S,
    pub(crate) observed: Vec<Observation>,
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// What the cluster is told once this is stored.
    pub(crate) notices: Vec<Notice>,
    /// What is counted once this is stored.
    pub(crate) facts: Vec<Fact>,
}

/// Something to tell in an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) reason: events::Reason,
    pub(crate) note: String,
    /// Name and uid of the Job that it has to do with.
    pub(crate) job: Option<(String, Option<String>)>,
}

/// Something to count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fact {
    /// A run ended.
    RunEnded {
        phase: Phase,
        runtime: &'static str,
        /// From its start to its end, if it ever started.
        seconds: Option<f64>,
    },
    /// The outcome of a Job was stored, so long after the Job had ended.
    OutcomeStored { seconds: f64 },
    /// A Job is missing.
    JobMissing { class: Class, recovered: Recovered },
    /// A run has to wait because too many began lately.
    RateLimited { scope: Sort },
}

impl<A, S> Plan<A, S> {
    /// Nothing is to be done.
    pub(crate) fn idle(next: Next) -> Self {
        Self {
            steps: Vec::new(),
            next,
        }
    }

    /// These steps, then a look at what they gave.
    pub(crate) fn steps(steps: Vec<Step<A, S>>) -> Self {
        Self {
            steps,
            next: Next::Wait,
        }
    }
}

impl<A, S> Step<A, S> {
    pub(crate) fn status(standing: Standing<S>) -> Self {
        Self::Status(Box::new(standing))
    }
}

impl<S> Standing<S> {
    /// A standing of which nothing was observed yet.
    pub(crate) fn new(status: S, reason: impl Into<Reason>, message: impl Into<String>) -> Self {
        Self {
            status,
            observed: Vec::new(),
            reason: reason.into(),
            message: message.into(),
            notices: Vec::new(),
            facts: Vec::new(),
        }
    }

    /// The same, with something to tell that has nothing to do with a Job.
    pub(crate) fn telling(mut self, reason: events::Reason, note: impl Into<String>) -> Self {
        self.notices.push(Notice {
            reason,
            note: note.into(),
            job: None,
        });
        self
    }
}

impl Next {
    /// The earlier of two.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Wait, next) | (next, Self::Wait) => next,
            (Self::At(one), Self::At(two)) => Self::At(one.min(two)),
        }
    }
}
