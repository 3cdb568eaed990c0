//! What the three kinds of runs have in common: AgentRun, ToolRun and OrchestrationRun are described in the same words.
//!
//! Pure, but for [`look`], which reads what more than one of them needs, and [`documents`], which makes it. [`loss`] is about a Job that is gone, [`sight`] about whether it is, [`untried`] about whether there ever was one, [`graves`] about how it was last seen, [`poll`] about what has to be looked for, [`alike`] about which changes matter.

mod alike;
pub(super) mod documents;
mod graves;
pub(super) mod look;
mod loss;
mod poll;
mod sight;
#[cfg(test)]
pub(super) mod testing;
mod untried;

pub(super) use alike::{is_job_new, is_pod_new};
pub(super) use graves::{Grave, Graves};
pub(super) use loss::Loss;
pub(super) use poll::next_look;
pub(super) use sight::{Sight, any_of_ours, strays};
pub(super) use untried::Untried;

use jiff::Timestamp;
use kube::Resource;

use super::driver::fault::Fault;
use super::driver::plan::{Fact, Notice, Standing};
use crate::api::condition::{
    Condition, ConditionStatus, ConditionType, Lifecycle, Observation, Reason,
};
use crate::api::custody::{Class, Hold, Outcome, OwnerState, Release, release};
use crate::api::kinds::agents::agent_run::{AgentRunStatus, RuntimeType};
use crate::api::kinds::shared::JobRef;
use crate::api::kinds::{
    AgentRun, OrchestrationRun, OrchestrationRunStatus, ToolRun, ToolRunStatus,
};
use crate::api::object::cause::{self, Cause};
use crate::api::phase::Phase;
use crate::events;

/// An object that ends.
pub(super) trait Run: Resource<DynamicType = ()> {
    /// The type of its status.
    type Status: RunStatus;

    /// Its status as it is stored.
    fn stored(&self) -> Option<&Self::Status>;

    /// The word for it among the runtimes that are counted.
    fn runtime(&self) -> &'static str;
}

/// The status of an object that ends.
pub(super) trait RunStatus: Clone + Default {
    fn phase(&self) -> Option<&str>;
    fn set_phase(&mut self, phase: Phase);
    fn conditions(&self) -> &[Condition];
    fn observed_generation(&self) -> Option<i64>;
    fn started_at(&self) -> Option<Timestamp>;
    fn set_finished_at(&mut self, at: Timestamp);
    /// The Job that it named last, where it names any.
    fn job(&self) -> Option<&JobRef>;
}

macro_rules! run_status {
    ($($kind:ident: $status:ident, $runtime:expr, $job:expr;)+) => {$(
        impl Run for $kind {
            type Status = $status;

            fn stored(&self) -> Option<&$status> {
                self.status.as_ref()
            }

            fn runtime(&self) -> &'static str {
                $runtime(self)
            }
        }

        impl RunStatus for $status {
            fn phase(&self) -> Option<&str> {
                self.phase.as_deref()
            }

            fn set_phase(&mut self, phase: Phase) {
                self.phase = Some(phase.as_str().to_owned());
            }

            fn conditions(&self) -> &[Condition] {
                self.conditions.as_deref().unwrap_or_default()
            }

            fn observed_generation(&self) -> Option<i64> {
                self.observed_generation
            }

            fn started_at(&self) -> Option<Timestamp> {
                self.started_at
            }

            fn set_finished_at(&mut self, at: Timestamp) {
                self.finished_at = Some(at);
            }

            fn job(&self) -> Option<&JobRef> {
                $job(self)
            }
        }
    )+};
}

run_status! {
    AgentRun: AgentRunStatus, runtime_of, latest_job;
    ToolRun: ToolRunStatus, |_| "tool", only_job;
    OrchestrationRun: OrchestrationRunStatus, |_| "orchestration", |_| None;
}

fn only_job(status: &ToolRunStatus) -> Option<&JobRef> {
    status.job_ref.as_ref()
}

/// The word for the runtime of an AgentRun.
fn runtime_of(run: &AgentRun) -> &'static str {
    match run.spec.runtime.type_ {
        RuntimeType::Workflow => "workflow",
        RuntimeType::Job => "job",
        RuntimeType::Temporal => "temporal",
        RuntimeType::Custom => "custom",
    }
}

/// The Job that the status of an AgentRun named last.
fn latest_job(status: &AgentRunStatus) -> Option<&JobRef> {
    let steps = status.workflow.as_ref();
    let steps = steps.and_then(|workflow| workflow.steps.as_ref());
    let last = steps.and_then(|steps| steps.iter().rev().find_map(|step| step.job_ref.as_ref()));
    status.job_ref.as_ref().or(last)
}

/// The phase of a run; one that nobody knows counts as pending.
pub(super) fn phase<R: Run>(run: &R) -> Phase {
    let phase = run.stored().and_then(RunStatus::phase);
    phase.and_then(Phase::parse).unwrap_or(Phase::Pending)
}

/// Why what is held for a run may go now, if it may; none stands for a run that is gone for certain.
pub(super) fn may_go<R: Run>(run: Option<&R>, namespace_terminating: bool) -> Option<Release> {
    release(Hold {
        recorded: run.is_some_and(|run| phase(run).is_terminal()),
        owner: match run {
            None => OwnerState::Gone,
            Some(run) if is_going(run) => OwnerState::Terminating,
            Some(_) => OwnerState::Alive,
        },
        namespace_terminating,
    })
}

pub(super) fn is_going<R: Run>(run: &R) -> bool {
    run.meta().deletion_timestamp.is_some()
}

/// Whether the newest spec of a run is not the one that its status is about.
pub(super) fn is_edited<R: Run>(run: &R) -> bool {
    let about = run.stored().and_then(RunStatus::observed_generation);
    about.unwrap_or_default() < run.meta().generation.unwrap_or_default()
}

pub(super) fn condition<R: Run>(run: &R, type_: ConditionType) -> Option<&Condition> {
    let mut conditions = run.stored()?.conditions().iter();
    conditions.find(|condition| condition.type_ == type_.as_str())
}

pub(super) fn holds<R: Run>(run: &R, type_: ConditionType) -> bool {
    condition(run, type_).is_some_and(|condition| condition.status == "True")
}

/// Since when a run lacks something that it needs, if it does. A condition of its own says so: a fault in between does
/// not touch it, nor does another thing that is lacking, so the time moves only when everything was there meanwhile.
pub(super) fn missing_since<R: Run>(run: &R) -> Option<Timestamp> {
    let resolved = condition(run, ConditionType::ReferencesResolved)?;
    (resolved.status == "False").then_some(resolved.last_transition_time)?
}

/// A run in a phase. A warning of an earlier pass does not hold any more, unless this one warns as well.
pub(super) fn standing<R: Run>(
    run: &R,
    phase: Phase,
    reason: impl Into<Reason>,
    message: impl Into<String>,
) -> Standing<R::Status> {
    let mut status = run.stored().cloned().unwrap_or_default();
    status.set_phase(phase);
    let next = Standing::new(status, reason, message);
    match holds(run, ConditionType::Warning) {
        true => next.seeing(
            ConditionType::Warning,
            ConditionStatus::False,
            Lifecycle::None,
        ),
        false => next,
    }
}

impl<S> Standing<S> {
    /// The same, with a condition that holds, for the reason of the whole.
    pub(super) fn observe(self, type_: ConditionType, reason: impl Into<Reason>) -> Self {
        self.seeing(type_, ConditionStatus::True, reason)
    }

    fn seeing(
        mut self,
        type_: ConditionType,
        status: ConditionStatus,
        reason: impl Into<Reason>,
    ) -> Self {
        let message = match status {
            ConditionStatus::True => self.message.clone(),
            ConditionStatus::False | ConditionStatus::Unknown => String::new(),
        };
        self.observed.retain(|entry| entry.type_ != type_);
        let observed = Observation::new(type_, status, reason, message);
        self.observed.push(observed);
        self
    }

    /// The same, held back because something that it needs is not there.
    pub(super) fn lacking(self, reason: impl Into<Reason>) -> Self {
        let reason = reason.into();
        let next = self.observe(ConditionType::Blocked, reason);
        next.seeing(
            ConditionType::ReferencesResolved,
            ConditionStatus::False,
            reason,
        )
    }
}

impl<S: RunStatus> Standing<S> {
    /// The same, with something to tell about the Job that it named last.
    pub(super) fn tell(mut self, reason: events::Reason, note: impl Into<String>) -> Self {
        let job = self.status.job();
        let job = job.and_then(|job| Some((job.name.clone()?, job.uid.clone())));
        self.notices.push(Notice {
            reason,
            note: note.into(),
            job,
        });
        self
    }

    /// The same, and its message is told.
    pub(super) fn say(self, reason: events::Reason) -> Self {
        let message = self.message.clone();
        self.tell(reason, message)
    }

    /// The same, with a warning if the runner says something else about the end. What the cluster saw counts: that is what
    /// everyone else sees, and nobody guesses who is right.
    pub(super) fn contested(mut self, seen: Outcome, report: Option<Outcome>) -> Self {
        let Some(report) = report.filter(|report| *report != seen) else {
            return self;
        };
        let word = |outcome| match outcome {
            Outcome::Succeeded => "well",
            Outcome::Failed => "badly",
        };
        let note = format!(
            "the runner reported that it ended {}, but the cluster saw it end {}, and that counts",
            word(report),
            word(seen)
        );
        let type_ = ConditionType::Warning;
        self.observed.retain(|entry| entry.type_ != type_);
        let (holds, reason) = (ConditionStatus::True, Lifecycle::OutcomeConflict);
        self.observed
            .push(Observation::new(type_, holds, reason, note.clone()));
        self.tell(events::Reason::OutcomeConflict, note)
    }
}

/// Everything that a run needs is there.
pub(super) fn supplied<R: Run>(run: &R, next: Standing<R::Status>) -> Standing<R::Status> {
    match missing_since(run) {
        Some(_) => next.observe(ConditionType::ReferencesResolved, Lifecycle::Reconciled),
        None => next,
    }
}

/// Something failed that is tried again.
pub(super) fn troubled<R: Run>(run: &R, fault: &Fault) -> Option<Standing<R::Status>> {
    let (reason, event) = (fault.class.condition()?, fault.class.event()?);
    let next = standing(run, phase(run), reason, fault.sentence());
    Some(next.observe(ConditionType::Warning, reason).say(event))
}

/// A run that has ended, at this time.
pub(super) fn ended<R: Run>(
    run: &R,
    phase: Phase,
    reason: impl Into<Reason>,
    message: impl Into<String>,
    at: Timestamp,
) -> Standing<R::Status> {
    let mut next = standing(run, phase, reason, message);
    next.status.set_finished_at(whole_seconds(at));
    let started = next.status.started_at();
    next.facts.push(Fact::RunEnded {
        phase,
        runtime: run.runtime(),
        seconds: started.map(|started| at.duration_since(started).as_secs_f64().max(0.0)),
    });
    next
}

/// A run as it stood, about its newest spec.
pub(super) fn ratified<R: Run>(run: &R) -> Option<Standing<R::Status>> {
    const KEPT: [ConditionType; 3] = [
        ConditionType::InvalidSpec,
        ConditionType::Accepted,
        ConditionType::JobMissing,
    ];
    let outcome = condition(run, ConditionType::Succeeded)?;
    let reason = outcome.reason.as_deref().and_then(read_reason)?;
    let message = outcome.message.clone().unwrap_or_default();
    let mut next = standing(run, phase(run), reason, message);
    for type_ in KEPT.into_iter().filter(|type_| holds(run, *type_)) {
        let kept = condition(run, type_);
        let Some(reason) = kept.and_then(|kept| read_reason(kept.reason.as_deref()?)) else {
            continue;
        };
        let message = kept.and_then(|kept| kept.message.clone());
        let holds = ConditionStatus::True;
        let observed = Observation::new(type_, holds, reason, message.unwrap_or_default());
        next.observed.push(observed);
    }
    Some(next)
}

/// All rules that are broken, in one sentence, with the first as the reason.
pub(super) fn told(causes: &[Cause]) -> Option<(cause::Reason, String)> {
    let first = causes.first()?;
    let told = causes.iter();
    let told = told.map(|cause| format!("{}: {}", cause.field, cause.message));
    Some((first.reason, told.collect::<Vec<_>>().join("; ")))
}

pub(super) fn ends(outcome: Outcome) -> (Phase, events::Reason) {
    match outcome {
        Outcome::Succeeded => (Phase::Succeeded, events::Reason::Succeeded),
        Outcome::Failed => (Phase::Failed, events::Reason::Failed),
    }
}

pub(super) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

pub(super) fn read_reason(word: &str) -> Option<Reason> {
    let lifecycle = Lifecycle::parse(word).map(Reason::from);
    lifecycle
        .or_else(|| cause::Reason::parse(word).map(Reason::from))
        .or_else(|| Class::parse(word).map(Reason::from))
}
