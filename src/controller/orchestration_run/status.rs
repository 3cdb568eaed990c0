//! How a run stands, in words: phase, steps, conditions, times, and what is told and counted once it is stored.

use jiff::Timestamp;
use kube::ResourceExt;

use super::plan::WAITS;
use super::step;
use crate::api::cause::Cause;
use crate::api::condition::{
    Condition, ConditionStatus, ConditionType, Lifecycle, Observation, Reason,
};
use crate::api::kinds::OrchestrationRun;
use crate::api::kinds::orchestrations::orchestration::Step;
use crate::api::kinds::orchestrations::orchestration_run::{OrchestrationRunStatus, StepStatus};
use crate::api::phase::{Phase, StepPhase};
use crate::controller::agent_run::{read_reason, whole_seconds};
use crate::controller::driver::fault::Fault;
use crate::controller::driver::plan::{Fact, Standing};
use crate::events;

/// How a run stands.
pub(super) type RunStanding = Standing<OrchestrationRunStatus>;

/// The word for these runs among the runtimes that are counted.
const RUNTIME: &str = "orchestration";

/// The phase of a run; one that nobody knows counts as pending.
pub(super) fn phase(run: &OrchestrationRun) -> Phase {
    let phase = run
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    phase.and_then(Phase::parse).unwrap_or(Phase::Pending)
}

/// The generation that the status is about.
pub(super) fn observed(run: &OrchestrationRun) -> i64 {
    let status = run.status.as_ref();
    let about = status.and_then(|status| status.observed_generation);
    about.unwrap_or_default()
}

/// Where each step of an orchestration stands in a run; one that the run does not know yet has not begun.
pub(super) fn steps(run: &OrchestrationRun, definitions: &[Step]) -> Vec<StepStatus> {
    let known = run
        .status
        .as_ref()
        .and_then(|status| status.step_statuses.as_ref());
    let status = |step: &Step| {
        let mut known = known.into_iter().flatten();
        let known = known.find(|status| status.name == step.name);
        known.cloned().unwrap_or_else(|| StepStatus {
            name: step.name.clone(),
            kind: step.kind.clone(),
            phase: Some(StepPhase::Pending.as_str().to_owned()),
            ..StepStatus::default()
        })
    };
    definitions.iter().map(status).collect()
}

fn condition(run: &OrchestrationRun, type_: ConditionType) -> Option<&Condition> {
    let conditions = run.status.as_ref()?.conditions.as_ref()?;
    let mut conditions = conditions.iter();
    conditions.find(|condition| condition.type_ == type_.as_str())
}

/// Since when the run is held back, if it is.
pub(super) fn blocked_since(run: &OrchestrationRun) -> Option<Timestamp> {
    let blocked = condition(run, ConditionType::Blocked)?;
    (blocked.status == "True").then_some(blocked.last_transition_time)?
}

fn standing(
    run: &OrchestrationRun,
    phase: Phase,
    reason: impl Into<Reason>,
    message: impl Into<String>,
) -> RunStanding {
    let mut status = run.status.clone().unwrap_or_default();
    status.phase = Some(phase.as_str().to_owned());
    let mut next = Standing::new(status, reason, message);
    let warned = condition(run, ConditionType::Warning);
    if warned.is_some_and(|warning| warning.status == "True") {
        let quiet = ConditionStatus::False;
        let quiet = Observation::new(ConditionType::Warning, quiet, Lifecycle::None, "");
        next.observed.push(quiet);
    }
    next
}

fn observing(
    mut next: RunStanding,
    type_: ConditionType,
    reason: impl Into<Reason>,
) -> RunStanding {
    next.observed.retain(|entry| entry.type_ != type_);
    let message = next.message.clone();
    let observed = Observation::new(type_, ConditionStatus::True, reason, message);
    next.observed.push(observed);
    next
}

fn saying(next: RunStanding, reason: events::Reason) -> RunStanding {
    let message = next.message.clone();
    next.telling(reason, message)
}

/// The orchestration is not there yet.
pub(super) fn waiting(run: &OrchestrationRun) -> RunStanding {
    let next = standing(run, phase(run), WAITS, absence(run));
    let next = observing(next, ConditionType::Blocked, WAITS);
    saying(next, events::Reason::ReferenceMissing)
}

fn absence(run: &OrchestrationRun) -> String {
    let name = run.spec.orchestration_ref.name.trim();
    format!("Orchestration {name} does not exist yet")
}

/// The orchestration never came.
pub(super) fn unfit(run: &OrchestrationRun, now: Timestamp) -> RunStanding {
    let message = format!("{}, and the time to wait for it is over", absence(run));
    let next = ended(run, Phase::Failed, WAITS, message, now);
    let next = observing(next, ConditionType::InvalidSpec, WAITS);
    saying(next, events::Reason::InvalidSpec)
}

/// Run or orchestration break rules.
pub(super) fn refused(
    run: &OrchestrationRun,
    causes: &[Cause],
    now: Timestamp,
) -> Option<RunStanding> {
    let first = causes.first()?;
    let told = causes.iter();
    let told = told.map(|cause| format!("{}: {}", cause.field, cause.message));
    let told: Vec<_> = told.collect();
    let next = ended(run, Phase::Failed, first.reason, told.join("; "), now);
    let next = observing(next, ConditionType::InvalidSpec, first.reason);
    Some(saying(next, events::Reason::InvalidSpec))
}

/// The run was stopped because someone asked for it.
pub(super) fn cancelled(run: &OrchestrationRun, now: Timestamp) -> RunStanding {
    let message = "stopped because spec.cancel is set";
    let mut next = ended(run, Phase::Cancelled, Lifecycle::Cancelled, message, now);
    for status in next.status.step_statuses.iter_mut().flatten() {
        let phase = match step::phase(status) {
            StepPhase::Pending => StepPhase::Skipped,
            StepPhase::Running | StepPhase::Retrying => StepPhase::Cancelled,
            StepPhase::Succeeded
            | StepPhase::Failed
            | StepPhase::Cancelled
            | StepPhase::Skipped => continue,
        };
        let at = whole_seconds(now);
        status.phase = Some(phase.as_str().to_owned());
        status.message = Some("the run was stopped".to_owned());
        status.last_transition_time = Some(at);
        status.finished_at = Some(at);
        status.next_retry_at = None;
    }
    saying(next, events::Reason::Cancelled)
}

/// Something failed that is tried again.
pub(super) fn troubled(run: &OrchestrationRun, fault: &Fault) -> Option<RunStanding> {
    let (reason, event) = (fault.class.condition()?, fault.class.event()?);
    let next = standing(run, phase(run), reason, fault.sentence());
    Some(saying(
        observing(next, ConditionType::Warning, reason),
        event,
    ))
}

/// A run whose steps have moved, or not.
pub(super) fn moved(
    run: &OrchestrationRun,
    before: &[StepStatus],
    after: Vec<StepStatus>,
    now: Timestamp,
) -> RunStanding {
    let in_phase = |wanted: StepPhase| {
        let in_phase = after.iter().filter(|status| step::phase(status) == wanted);
        in_phase.collect::<Vec<_>>()
    };
    let is_over = after.iter().all(|status| step::phase(status).is_terminal());
    let failed = in_phase(StepPhase::Failed);
    let mut next = match failed.first() {
        Some(first) if is_over => {
            let message = first.message.clone().unwrap_or_default();
            let message = format!("step {} failed: {message}", first.name);
            let next = ended(run, Phase::Failed, step::reason(first), message, now);
            saying(next, events::Reason::Failed)
        }
        None if is_over => {
            let message = format!("all {} steps succeeded", after.len());
            let next = ended(run, Phase::Succeeded, Lifecycle::Completed, message, now);
            saying(next, events::Reason::Succeeded)
        }
        Some(_) | None => {
            let done = in_phase(StepPhase::Succeeded).len();
            let message = format!("{done} of {} steps succeeded", after.len());
            let next = standing(run, Phase::Running, Lifecycle::Running, message);
            let next = observing(next, ConditionType::Running, Lifecycle::Running);
            match phase(run) == Phase::Running {
                true => next,
                false => next.telling(events::Reason::Started, "the run has begun"),
            }
        }
    };
    next.status.run_id = Some(run.name_any());
    next = observing(next, ConditionType::Accepted, Lifecycle::Submitted);
    for (before, after) in before.iter().zip(&after) {
        next = told(next, before, after);
    }
    next.status.step_statuses = Some(after);
    next
}

/// Tells of a step that failed or is tried again.
fn told(next: RunStanding, before: &StepStatus, after: &StepStatus) -> RunStanding {
    let phase = step::phase(after);
    if step::phase(before) == phase {
        return next;
    }
    let why = after.message.as_deref().unwrap_or_default();
    let note = format!("step {}: {why}", after.name);
    match phase {
        StepPhase::Failed => next.telling(events::Reason::StepFailed, note),
        StepPhase::Retrying => next.telling(events::Reason::StepRetrying, note),
        StepPhase::Pending
        | StepPhase::Running
        | StepPhase::Succeeded
        | StepPhase::Cancelled
        | StepPhase::Skipped => next,
    }
}

/// A run that has ended, at this time.
fn ended(
    run: &OrchestrationRun,
    phase: Phase,
    reason: impl Into<Reason>,
    message: impl Into<String>,
    at: Timestamp,
) -> RunStanding {
    let mut next = standing(run, phase, reason, message);
    next.status.finished_at = Some(whole_seconds(at));
    let started = next.status.started_at;
    next.facts.push(Fact::RunEnded {
        phase,
        runtime: RUNTIME,
        seconds: started.map(|started| at.duration_since(started).as_secs_f64().max(0.0)),
    });
    next
}

/// A run that stands as it stood, about its newest spec.
pub(super) fn ratified(run: &OrchestrationRun) -> Option<RunStanding> {
    let outcome = condition(run, ConditionType::Succeeded)?;
    let reason = outcome.reason.as_deref().and_then(read_reason)?;
    let message = outcome.message.clone().unwrap_or_default();
    let mut next = standing(run, phase(run), reason, message);
    for type_ in [ConditionType::InvalidSpec, ConditionType::Accepted] {
        let kept = condition(run, type_).filter(|kept| kept.status == "True");
        if let Some(reason) = kept.and_then(|kept| read_reason(kept.reason.as_deref()?)) {
            let message = kept
                .and_then(|kept| kept.message.clone())
                .unwrap_or_default();
            let holds = ConditionStatus::True;
            next.observed
                .push(Observation::new(type_, holds, reason, message));
        }
    }
    Some(next)
}
