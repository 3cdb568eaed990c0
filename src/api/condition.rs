//! Conditions: the type all kinds share, the words in it, and the one way to change a list of them.
//!
//! Conditions are observations, never a state machine: nothing here reads one condition to write another, except
//! what [`health`](Health::of) concludes from the facts of one pass.

mod health;
mod hindrance;
mod reason;
pub(crate) mod stamp;
#[cfg(test)]
mod tests;

pub use health::Health;
pub use hindrance::Hindrance;
pub use reason::{Lifecycle, Reason};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::text::names::closed_words;
use super::text::sanitise::{CONDITION_MESSAGE_LIMIT, Secrets, sanitise};
use stamp::Grain;

/// One observation about an object. The strict and the loose schema of the CRDs are two schemas of this one type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is observed, e.g. `Ready`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One CamelCase word that a program can match on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When `status` last flipped. The loose kinds store any text here; what is no time reads as absent.
    #[serde(
        default,
        deserialize_with = "readable_time",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_transition_time: Option<Timestamp>,
    /// The generation of the spec that the observation is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// One unreadable time must not make the whole object unreadable.
fn readable_time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

closed_words! {
    /// What we observe. `Ready`, `Progressing`, `Degraded`, `Reconciling` and `Stalled` follow from the others.
    pub enum ConditionType {
        /// The run was taken and handed to its runtime.
        Accepted,
        /// The run is being worked on.
        InProgress,
        /// Same, under the name that orchestrations and tools use.
        Running,
        /// The run ended well.
        Succeeded,
        /// The run ended badly.
        Failed,
        /// The run ended because someone asked for it.
        Cancelled,
        /// The spec cannot be carried out as it is.
        InvalidSpec,
        /// Something outside that the object needs cannot be reached.
        Unreachable,
        /// The run waits for a slot or for an object that is not there yet.
        Blocked,
        /// All that the run needs is there; how long it is waited for counts from when it was not.
        ReferencesResolved,
        /// Another run has the same idempotency key.
        Duplicate,
        /// Something that people should look at, without consequences so far.
        Warning,
        /// The run goes on without version control.
        VcsSkipped,
        /// Artifacts were left out or shortened.
        ArtifactsLimited,
        /// Artifacts broke the limits and the operator wants that to fail the run.
        ArtifactsLimitExceeded,
        /// The Job of the run is gone; the reason is its class, from `custody`.
        JobMissing,
        /// A call from outside could not be handled.
        Error,
        /// The object does what it is for.
        Ready,
        /// The object is on its way.
        Progressing,
        /// The object needs someone.
        Degraded,
        /// kstatus: the controller still works on the newest spec.
        Reconciling,
        /// kstatus: the controller cannot go on by itself.
        Stalled,
    }
}

closed_words! {
    /// Whether what is observed holds.
    pub enum ConditionStatus {
        /// It holds.
        True,
        /// It does not hold.
        False,
        /// Nobody knows yet.
        Unknown,
    }
}

/// The spec and the time that an observation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Generation of the spec that was looked at.
    pub generation: i64,
    /// The time of looking.
    pub now: Timestamp,
}

/// What a reconciler observed about one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What is observed.
    pub type_: ConditionType,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, for programs.
    pub reason: Reason,
    /// Why, for people.
    pub message: String,
}

impl Observation {
    /// An observation, with its message fit for a condition: everyone who may read the object reads it, so what looks like
    /// a secret is masked, and it is cut to what a condition may hold.
    pub fn new(
        type_: ConditionType,
        status: ConditionStatus,
        reason: impl Into<Reason>,
        message: impl Into<String>,
    ) -> Self {
        let message: String = message.into();
        Self {
            type_,
            status,
            reason: reason.into(),
            message: sanitise(&message, &Secrets::NONE, CONDITION_MESSAGE_LIMIT),
        }
    }
}

/// Puts one observation into a list: one condition per type, others untouched and in their order, and
/// `lastTransitionTime` moves only when the status flips.
pub fn merge(list: &mut Vec<Condition>, observed: &Observation, at: Moment) {
    let type_ = observed.type_.as_str();
    let Some(position) = list.iter().position(|condition| condition.type_ == type_) else {
        list.push(condition(
            observed,
            Grain::Second.moved(None, at.now),
            at.generation,
        ));
        return;
    };
    let stored = &list[position];
    let time = match stored.last_transition_time {
        Some(time) if stored.status == observed.status.as_str() => time,
        earlier => Grain::Second.moved(earlier, at.now),
    };
    let generation = at.generation.max(stored.observed_generation.unwrap_or(0));
    list[position] = condition(observed, time, generation);
    let mut seen = 0;
    list.retain(|condition| {
        seen += usize::from(condition.type_ == type_);
        condition.type_ != type_ || seen == 1
    });
}

fn condition(observed: &Observation, time: Timestamp, generation: i64) -> Condition {
    Condition {
        type_: observed.type_.as_str().to_owned(),
        status: observed.status.as_str().to_owned(),
        reason: Some(observed.reason.as_str().to_owned()),
        message: Some(observed.message.clone()),
        last_transition_time: Some(time),
        observed_generation: Some(generation),
    }
}
