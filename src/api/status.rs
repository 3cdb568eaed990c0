//! The status contract, for every kind, in one place.
//!
//! - S1 `observedGeneration` is the generation of the spec that produced this status; never above
//!   `metadata.generation`; never goes back.
//! - S2 `updatedAt` moves on every status write; a write that changes nothing else is not made.
//! - S3 `startedAt` is set on the first transition to Running and never changes.
//! - S4 `finishedAt` is set on the first transition to a terminal phase, is not before `startedAt`, never changes, and
//!   is always there on a terminal phase.
//! - S5 a terminal phase is final.
//! - S6 conditions: one per type; `lastTransitionTime` moves only when `status` flips; on a terminal phase exactly the
//!   condition of that phase is True among the terminal ones.
//! - S7 omission does not erase: a writer that leaves out a set write-once field keeps it.
//!
//! S3 to S5 and the terminal part of S6 are about kinds with a run phase. Reconcilers compute with [`advance`], the
//! mutating webhook mends with [`repair`], the validating webhook judges with [`check`]. All three work on the JSON of
//! a status, so they serve all kinds and keep fields that they do not know. Nothing here writes anything.

mod check;
mod fields;
mod repair;
mod rule;
#[cfg(test)]
mod tests;

pub use check::check;
pub use repair::repair;
pub use rule::StatusRule;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::condition::stamp::{Grain, latest_plausible};
use super::condition::{
    Condition, ConditionStatus, ConditionType, Health, Lifecycle, Moment, Observation, Reason,
    merge,
};
use super::kind::Kind;
use super::phase::{self, Phase};
use fields::{CONDITIONS, FINISHED_AT, Fields, OBSERVED_GENERATION, STARTED_AT, UPDATED_AT};

/// Conditions about the present: what a pass does not observe no longer holds.
const PRESENT: [ConditionType; 5] = [
    ConditionType::InProgress,
    ConditionType::Running,
    ConditionType::InvalidSpec,
    ConditionType::Unreachable,
    ConditionType::Blocked,
];

/// What a reconciler wants the status to say.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a, S> {
    /// The status of the kind. Phase and everything of its own; what the contract governs is computed.
    pub status: &'a S,
    /// What this pass observed, apart from what follows from phase and observations.
    pub observed: &'a [Observation],
    /// Why the object stands as it does, for programs.
    pub reason: Reason,
    /// Why the object stands as it does, for people.
    pub message: &'a str,
}

/// What to do with the stored status.
#[derive(Clone, Debug, PartialEq)]
pub enum Advance {
    /// Write this status.
    Write(Value),
    /// Write nothing.
    Unchanged,
}

/// Computes the next status from the stored one and what a reconciler wants.
///
/// A plan that would leave a terminal phase was made from old news and changes nothing.
///
/// # Errors
///
/// When a status cannot be turned into JSON.
pub fn advance<S: Serialize>(
    kind: Kind,
    stored: Option<&S>,
    wanted: &Wanted<'_, S>,
    at: Moment,
) -> Result<Advance, serde_json::Error> {
    let stored = Fields::of(stored.map(serde_json::to_value).transpose()?);
    let mut next = Fields::of(Some(serde_json::to_value(wanted.status)?));
    let ended = stored.phase().filter(|phase| phase.is_terminal());
    if phase::is_run(kind) && ended.is_some() && next.phase() != ended {
        return Ok(Advance::Unchanged);
    }
    let generation = at
        .generation
        .max(stored.number(OBSERVED_GENERATION).unwrap_or(0));
    next.set(OBSERVED_GENERATION, generation);
    if phase::is_run(kind) {
        set_times(&stored, &mut next, at.now);
    }
    let mut conditions: Vec<Condition> = stored
        .conditions()
        .into_iter()
        .map(|(_, entry)| entry)
        .collect();
    for observed in observations(kind, &conditions, &next, wanted) {
        merge(&mut conditions, &observed, at);
    }
    next.set(CONDITIONS, serde_json::to_value(conditions)?);
    if stored.same_but_for_updated_at(&next) {
        return Ok(Advance::Unchanged);
    }
    stamp_updated_at(&stored, &mut next, at.now);
    Ok(Advance::Write(next.into_value()))
}

/// S3 and S4 for a writer that may know the times better than the clock, e.g. from a Job.
fn set_times(stored: &Fields, next: &mut Fields, now: Timestamp) {
    let phase = next.phase().unwrap_or(Phase::Pending);
    if phase == Phase::Pending {
        next.remove(STARTED_AT);
    }
    if !phase.is_terminal() {
        next.remove(FINISHED_AT);
    }
    let given = next.time(FINISHED_AT);
    next.restore(stored, STARTED_AT);
    fill_times(next, now);
    if let (Some(given), Some(started)) = (given, next.time(STARTED_AT)) {
        next.set_time(FINISHED_AT, given.max(started));
    }
    next.restore(stored, FINISHED_AT);
}

/// Sets the time of a start or an end that has none. One that cannot be read is for the judge to name.
fn fill_times(status: &mut Fields, now: Timestamp) {
    let now = Grain::Second.floor(now);
    let Some(phase) = status.phase() else {
        return;
    };
    if phase == Phase::Running && status.get(STARTED_AT).is_none() {
        status.set_time(STARTED_AT, now);
    }
    if phase.is_terminal() && status.get(FINISHED_AT).is_none() {
        let started = status.time(STARTED_AT).unwrap_or(now);
        status.set_time(FINISHED_AT, now.max(started));
    }
}

/// Everything that holds after this pass, one observation per type: what was observed, what no longer holds, what
/// follows from the phase, and how the object stands.
fn observations<S>(
    kind: Kind,
    stored: &[Condition],
    next: &Fields,
    wanted: &Wanted<'_, S>,
) -> Vec<Observation> {
    let mut all: Vec<Observation> = PRESENT
        .into_iter()
        .filter(|type_| {
            let holds =
                |entry: &Condition| entry.type_ == type_.as_str() && entry.status != "False";
            stored.iter().any(holds)
        })
        .map(|type_| Observation::new(type_, ConditionStatus::False, Lifecycle::Reconciled, ""))
        .collect();
    let mut put = |observed: Observation| {
        all.retain(|entry| entry.type_ != observed.type_);
        all.push(observed);
    };
    for observed in wanted.observed {
        put(observed.clone());
    }
    if phase::is_run(kind) {
        let phase = next.phase().unwrap_or(Phase::Pending);
        for observed in phase_conditions(phase, wanted.reason, wanted.message) {
            put(observed);
        }
    }
    let health = Health::of(next.text(fields::PHASE), wanted.observed);
    for observed in health.conditions(wanted.reason, wanted.message) {
        put(observed);
    }
    all
}

/// What the phase of a run says, as conditions. `Succeeded` is open while the run is, and carries the reason of a
/// failure too, since people and columns look there.
fn phase_conditions(phase: Phase, reason: Reason, message: &str) -> [Observation; 4] {
    use ConditionStatus::{False, True, Unknown};
    let holds = |yes: bool| if yes { True } else { False };
    let succeeded = if phase.is_terminal() {
        holds(phase == Phase::Succeeded)
    } else {
        Unknown
    };
    [
        (ConditionType::Succeeded, succeeded),
        (ConditionType::Failed, holds(phase == Phase::Failed)),
        (ConditionType::Cancelled, holds(phase == Phase::Cancelled)),
        (ConditionType::InProgress, holds(phase == Phase::Running)),
    ]
    .map(|(type_, status)| {
        let told = status == True || type_ == ConditionType::Succeeded;
        Observation::new(type_, status, reason, if told { message } else { "" })
    })
}

/// S2. Never before another time of the same status, unless that one is absurd.
fn stamp_updated_at(stored: &Fields, next: &mut Fields, now: Timestamp) {
    let conditions = next.conditions();
    let flips = conditions
        .iter()
        .filter_map(|(_, entry)| entry.last_transition_time);
    let latest = [next.time(STARTED_AT), next.time(FINISHED_AT)]
        .into_iter()
        .flatten()
        .chain(flips)
        .filter(|time| *time <= latest_plausible(now))
        .fold(now, Timestamp::max);
    let stamp = Grain::Millisecond.moved(stored.time(UPDATED_AT), latest);
    next.set_time(UPDATED_AT, stamp);
}
