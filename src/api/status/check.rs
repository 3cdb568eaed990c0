//! Names what in a status contradicts the contract, compared with the status before.
//!
//! Judges only what changed: an object that broke a rule before can still be updated elsewhere.

mod conditions;

use jiff::Timestamp;
use serde_json::Value;

use super::fields::{FINISHED_AT, Fields, OBSERVED_GENERATION, PHASE, STARTED_AT, UPDATED_AT};
use crate::api::condition::Moment;
use crate::api::condition::stamp::latest_plausible;
use crate::api::kind::Kind;
use crate::api::object::cause::{Cause, Causes, Path, Reason, quoted};
use crate::api::phase::{self, Phase};

const ROOT: Path<'static> = Path::root("status");

/// Every contradiction of the new status with itself, with the old one, with the generation and with the clock.
pub fn check(kind: Kind, old: Option<&Value>, new: Option<&Value>, at: Moment) -> Vec<Cause> {
    let change = Change {
        old: &Fields::from(old),
        new: &Fields::from(new),
        at,
    };
    let mut causes = Causes::default();
    change.check_generation(&mut causes);
    if phase::is_run(kind) {
        let stays = change.check_phase(&mut causes);
        change.check_start(&mut causes);
        change.check_end(&mut causes);
        // What a phase that cannot be asks for says nothing about this run.
        if stays {
            change.check_terminal_conditions(&mut causes);
        }
    }
    change.check_future(&mut causes);
    change.check_conditions(&mut causes);
    causes.told()
}

struct Change<'a> {
    old: &'a Fields,
    new: &'a Fields,
    at: Moment,
}

impl Change<'_> {
    /// S1.
    fn check_generation(&self, causes: &mut Causes) {
        let field = ROOT.field(OBSERVED_GENERATION);
        let (old, new) = (
            self.old.number(OBSERVED_GENERATION),
            self.new.number(OBSERVED_GENERATION),
        );
        if let Some(new) = new.filter(|_| new != old)
            && new > self.at.generation
        {
            causes.add(
                &field,
                Reason::ObservedGenerationAhead,
                generation_ahead(new, self.at),
            );
        }
        if let Some(old) = old
            && new.is_none_or(|new| new < old)
        {
            causes.add(
                &field,
                Reason::ObservedGenerationWentBack,
                generation_went_back(old, new),
            );
        }
    }

    /// S5. Whether it holds.
    fn check_phase(&self, causes: &mut Causes) -> bool {
        let Some(old) = self.old.phase().filter(|phase| phase.is_terminal()) else {
            return true;
        };
        let stays = self.new.phase().is_some_and(|new| old.may_become(new));
        if !stays {
            let new = self.new.text(PHASE).unwrap_or_default();
            causes.add(
                &ROOT.field(PHASE),
                Reason::TerminalPhaseLeft,
                format!(
                    "the run has ended as {old} and cannot become {}; create a new run instead",
                    quoted(new)
                ),
            );
        }
        stays
    }

    /// S3.
    fn check_start(&self, causes: &mut Causes) {
        let field = ROOT.field(STARTED_AT);
        if let Some(message) = self.rewritten(STARTED_AT) {
            causes.add(&field, Reason::StartedAtChanged, message);
        }
        let pending = self
            .new
            .text(PHASE)
            .is_none_or(|phase| phase == Phase::Pending.as_str());
        if self.newly_set(STARTED_AT) && pending {
            causes.add(
                &field,
                Reason::StartedAtTooEarly,
                "the run has not started; set startedAt together with the phase Running",
            );
        }
        let missing = |status: &Fields| {
            status.phase() == Some(Phase::Running) && status.get(STARTED_AT).is_none()
        };
        if missing(self.new) && !missing(self.old) && self.old.get(STARTED_AT).is_none() {
            causes.add(
                &field,
                Reason::StartedAtMissing,
                "the run is running; set startedAt to the time of its start",
            );
        }
    }

    /// S4.
    fn check_end(&self, causes: &mut Causes) {
        let field = ROOT.field(FINISHED_AT);
        if let Some(message) = self.rewritten(FINISHED_AT) {
            causes.add(&field, Reason::FinishedAtChanged, message);
        }
        let ended = |status: &Fields| status.phase().is_some_and(Phase::is_terminal);
        if self.newly_set(FINISHED_AT) && !ended(self.new) {
            causes.add(
                &field,
                Reason::FinishedAtTooEarly,
                "the run has not ended; set finishedAt together with the phase Succeeded, Failed or Cancelled",
            );
        }
        let missing = |status: &Fields| ended(status) && status.get(FINISHED_AT).is_none();
        if missing(self.new) && !missing(self.old) && self.old.get(FINISHED_AT).is_none() {
            causes.add(
                &field,
                Reason::FinishedAtMissing,
                "the run has ended; set finishedAt to the time of its end",
            );
        }
        let backwards = |status: &Fields| {
            let (start, end) = (status.time(STARTED_AT)?, status.time(FINISHED_AT)?);
            (end < start).then_some((start, end))
        };
        if let Some((start, end)) =
            backwards(self.new).filter(|_| backwards(self.old) != backwards(self.new))
        {
            causes.add(
                &field,
                Reason::FinishedBeforeStarted,
                format!(
                    "finishedAt {end} lies before startedAt {start}; a run ends after it starts"
                ),
            );
        }
    }

    /// What was done to a field that is written once.
    fn rewritten(&self, name: &str) -> Option<String> {
        let old = self.old.get(name)?;
        let changed = match (self.old.time(name), self.new.time(name)) {
            (Some(old), Some(new)) => old != new,
            (None, _) | (_, None) => self.new.get(name) != Some(old),
        };
        let new = self.new.text(name).map_or("taken away".to_owned(), quoted);
        let old = quoted(old.as_str().unwrap_or_default());
        changed.then(|| {
            format!("{name} was {old} and is {new}; it is written once: leave it as it is")
        })
    }

    fn newly_set(&self, name: &str) -> bool {
        self.old.get(name).is_none() && self.new.get(name).is_some()
    }

    fn check_future(&self, causes: &mut Causes) {
        for name in [STARTED_AT, FINISHED_AT, UPDATED_AT] {
            if self.new.get(name) != self.old.get(name) {
                check_not_ahead(causes, &ROOT.field(name), self.new.time(name), self.at);
            }
        }
    }
}

fn check_not_ahead(causes: &mut Causes, field: &Path<'_>, time: Option<Timestamp>, at: Moment) {
    if let Some(time) = time.filter(|time| *time > latest_plausible(at.now)) {
        causes.add(
            field,
            Reason::TimeInFuture,
            format!("{time} lies in the future; write the time at which it happened, in UTC"),
        );
    }
}

fn generation_ahead(given: i64, at: Moment) -> String {
    format!(
        "observedGeneration is {given}, but the object is at generation {}; write the generation that was looked at",
        at.generation
    )
}

fn generation_went_back(old: i64, new: Option<i64>) -> String {
    let now = new.map_or("taken away".to_owned(), |new| format!("set to {new}"));
    format!(
        "observedGeneration was {old} and is {now}; it only grows: read the object again before writing"
    )
}
