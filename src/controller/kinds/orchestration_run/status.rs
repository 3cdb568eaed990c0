//! How a run stands, in words: phase, steps, conditions, times, and what is told and counted once it is stored.

use jiff::Timestamp;
use kube::ResourceExt;

use super::plan::WAITS;
use super::step;
use crate::api::condition::{ConditionType, Lifecycle, Reason};
use crate::api::kinds::OrchestrationRun;
use crate::api::kinds::orchestrations::orchestration::Step;
use crate::api::kinds::orchestrations::orchestration_run::{OrchestrationRunStatus, StepStatus};
use crate::api::object::cause::Cause;
use crate::api::phase::{Phase, StepPhase};
use crate::controller::driver::plan::Standing;
use crate::controller::runs::{self, ended, standing, supplied, whole_seconds};
use crate::events;

pub(super) use crate::controller::runs::{is_edited, missing_since, phase, ratified, troubled};

/// How a run stands.
pub(super) type RunStanding = Standing<OrchestrationRunStatus>;

/// Where each step of an orchestration stands in a run; one that the run does not know yet has not begun.
pub(super) fn steps(run: &OrchestrationRun, definitions: &[Step]) -> Vec<StepStatus> {
    let known = run
        .status
        .as_ref()
        .and_then(|status| status.step_statuses.as_ref());
    let status = |step: &Step| {
        let mut known = known.into_iter().flatten();
        // One that was taken out and is back begins anew.
        let known = known.find(|status| status.name == step.name && !step::is_dropped(status));
        known.cloned().unwrap_or_else(|| StepStatus {
            name: step.name.clone(),
            kind: step.kind.clone(),
            phase: Some(StepPhase::Pending.as_str().to_owned()),
            ..StepStatus::default()
        })
    };
    definitions.iter().map(status).collect()
}

/// Steps that the run knows and that its orchestration does not have any more.
pub(super) fn dropped(run: &OrchestrationRun, definitions: &[Step]) -> Vec<StepStatus> {
    let known = run
        .status
        .as_ref()
        .and_then(|status| status.step_statuses.as_ref());
    let known = known.into_iter().flatten();
    let is_there = |status: &StepStatus| definitions.iter().any(|step| step.name == status.name);
    known.filter(|status| !is_there(status)).cloned().collect()
}

/// The orchestration is not there yet.
pub(super) fn waiting(run: &OrchestrationRun) -> RunStanding {
    standing(run, phase(run), WAITS, absence(run))
        .lacking(WAITS)
        .say(events::Reason::ReferenceMissing)
}

fn absence(run: &OrchestrationRun) -> String {
    let name = run.spec.orchestration_ref.name.trim();
    format!("Orchestration {name} does not exist yet")
}

/// The orchestration never came.
pub(super) fn unfit(run: &OrchestrationRun, now: Timestamp) -> RunStanding {
    let message = format!("{}, and the time to wait for it is over", absence(run));
    given_up(run, Phase::Failed, WAITS, message, now)
        .observe(ConditionType::InvalidSpec, WAITS)
        .say(events::Reason::InvalidSpec)
}

/// Run or orchestration break rules.
pub(super) fn refused(
    run: &OrchestrationRun,
    causes: &[Cause],
    now: Timestamp,
) -> Option<RunStanding> {
    let (reason, message) = runs::told(causes)?;
    let next = given_up(run, Phase::Failed, reason, message, now);
    let next = next.observe(ConditionType::InvalidSpec, reason);
    Some(next.say(events::Reason::InvalidSpec))
}

/// The run was stopped because someone asked for it.
pub(super) fn cancelled(run: &OrchestrationRun, now: Timestamp) -> RunStanding {
    let message = "stopped because spec.cancel is set";
    given_up(run, Phase::Cancelled, Lifecycle::Cancelled, message, now)
        .say(events::Reason::Cancelled)
}

/// A run that ends before its steps have: none of them begins, and those that work are stopped once this is stored.
fn given_up(
    run: &OrchestrationRun,
    phase: Phase,
    reason: impl Into<Reason>,
    message: impl Into<String>,
    now: Timestamp,
) -> RunStanding {
    let mut next = ended(run, phase, reason, message, now);
    for status in next.status.step_statuses.iter_mut().flatten() {
        let phase = match step::phase(status) {
            StepPhase::Pending => StepPhase::Skipped,
            StepPhase::Running | StepPhase::Retrying => StepPhase::Cancelled,
            StepPhase::Succeeded
            | StepPhase::Failed
            | StepPhase::Cancelled
            | StepPhase::Skipped => continue,
        };
        step::put(status, phase, "the run was stopped", whole_seconds(now));
    }
    next
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
            ended(run, Phase::Failed, step::reason(first), message, now).say(events::Reason::Failed)
        }
        None if is_over => {
            let done = in_phase(StepPhase::Succeeded).len();
            let message = format!("all {done} steps succeeded");
            ended(run, Phase::Succeeded, Lifecycle::Completed, message, now)
                .say(events::Reason::Succeeded)
        }
        Some(_) | None => {
            let done = in_phase(StepPhase::Succeeded).len();
            let message = format!("{done} of {} steps succeeded", after.len());
            let next = standing(run, Phase::Running, Lifecycle::Running, message);
            let next = next.observe(ConditionType::Running, Lifecycle::Running);
            match phase(run) == Phase::Running {
                true => next,
                false => next.telling(events::Reason::Started, "the run has begun"),
            }
        }
    };
    next.status.run_id = Some(run.name_any());
    next = supplied(run, next).observe(ConditionType::Accepted, Lifecycle::Submitted);
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
