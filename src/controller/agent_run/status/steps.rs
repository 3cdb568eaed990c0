//! The steps of a workflow in the status of its run.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;

use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::{AgentRunStatus, WorkflowStatus, WorkflowStepStatus};
use crate::api::kinds::shared::JobRef;
use crate::api::phase::{Phase, StepPhase};
use crate::api::text::sanitise::{Secrets, sanitise};
use crate::controller::agent_run::turn::{self, Try, Turn};
use crate::controller::runs::whole_seconds;

/// Where the status names the Job of a turn.
pub(super) fn reference(status: &mut AgentRunStatus, turn: Turn) -> Option<&mut JobRef> {
    match turn {
        Turn::Whole => Some(status.job_ref.get_or_insert_default()),
        Turn::Step(this) => entry(status, this.index)?.job_ref.as_mut(),
    }
}

fn entry(status: &mut AgentRunStatus, index: usize) -> Option<&mut WorkflowStepStatus> {
    status.workflow.as_mut()?.steps.as_mut()?.get_mut(index)
}

/// The Job of a try is about to be made. With the first one every step is shown.
pub(super) fn reserve(
    run: &AgentRun,
    status: &mut AgentRunStatus,
    this: Try,
    job: JobRef,
    now: Timestamp,
) {
    let now = whole_seconds(now);
    let workflow = status.workflow.get_or_insert_with(|| WorkflowStatus {
        phase: Some(Phase::Pending.as_str().to_owned()),
        last_transition_time: Some(now),
        steps: None,
    });
    let shown = workflow.steps.get_or_insert_default();
    for step in turn::steps(run).iter().skip(shown.len()) {
        shown.push(WorkflowStepStatus {
            name: Some(step.name.clone()),
            phase: Some(StepPhase::Pending.as_str().to_owned()),
            attempt: Some(0),
            last_transition_time: Some(now),
            ..WorkflowStepStatus::default()
        });
    }
    let has_rounds = turn::step(run, this.index).is_some_and(|step| step.loop_.is_some());
    if let Some(step) = entry(status, this.index) {
        step.iteration = has_rounds.then_some(this.iteration);
        step.attempt = Some(this.attempt);
        step.next_retry_at = None;
        step.job_observed_at = None;
        step.job_ref = Some(job);
    }
}

/// The Job of a try does its work.
pub(super) fn bind(status: &mut AgentRunStatus, this: Try, job: &Job) {
    let made = job.metadata.creation_timestamp.as_ref().map(|time| time.0);
    if let Some(workflow) = &mut status.workflow {
        enter(workflow, Phase::Running, made);
    }
    if let Some(step) = entry(status, this.index) {
        go(step, StepPhase::Running, made);
        step.started_at = made;
        step.finished_at = None;
        step.job_observed_at = made;
        step.message = None;
    }
}

/// A step is done.
pub(super) fn succeed(status: &mut AgentRunStatus, this: Try, at: Timestamp) {
    if let Some(step) = entry(status, this.index) {
        go(step, StepPhase::Succeeded, Some(whole_seconds(at)));
        step.finished_at = Some(whole_seconds(at));
    }
}

/// A round of a step is done, and another one follows.
pub(super) fn go_round(status: &mut AgentRunStatus, this: Try) {
    if let Some(step) = entry(status, this.index) {
        step.iteration = Some(this.iteration.saturating_add(1));
        step.attempt = Some(0);
        step.job_ref = None;
    }
}

/// A try failed, and another one follows.
pub(super) fn retry(
    status: &mut AgentRunStatus,
    this: Try,
    (at, due): (Timestamp, Timestamp),
    why: &str,
) {
    if let Some(step) = entry(status, this.index) {
        go(step, StepPhase::Retrying, Some(whole_seconds(at)));
        step.next_retry_at = Some(whole_seconds(due));
    }
    explain(status, this, why);
}

/// Says why a step stands as it does.
pub(super) fn explain(status: &mut AgentRunStatus, this: Try, why: &str) {
    if let Some(step) = entry(status, this.index) {
        step.message = Some(sanitise(why, &Secrets::NONE, MESSAGE_LIMIT));
    }
}

/// Longest sentence about a step.
const MESSAGE_LIMIT: usize = 1024;

/// The run has ended: so has the step that was under way, and no other begins.
pub(super) fn close(status: &mut AgentRunStatus, phase: Phase, at: Timestamp) {
    let Some(workflow) = &mut status.workflow else {
        return;
    };
    let at = whole_seconds(at);
    enter(workflow, phase, Some(at));
    let end = match phase {
        Phase::Pending | Phase::Running => return,
        Phase::Succeeded => StepPhase::Succeeded,
        Phase::Failed => StepPhase::Failed,
        Phase::Cancelled => StepPhase::Cancelled,
    };
    for step in workflow.steps.iter_mut().flatten() {
        let known = step.phase.as_deref().and_then(StepPhase::parse);
        if known.is_some_and(StepPhase::is_terminal) {
            continue;
        }
        let has_begun = step.started_at.is_some() || step.job_ref.is_some();
        step.next_retry_at = None;
        if has_begun {
            go(step, end, Some(at));
            step.finished_at = Some(at);
        } else {
            go(step, StepPhase::Skipped, Some(at));
        }
    }
}

fn enter(workflow: &mut WorkflowStatus, phase: Phase, at: Option<Timestamp>) {
    if workflow.phase.as_deref() != Some(phase.as_str()) {
        workflow.phase = Some(phase.as_str().to_owned());
        workflow.last_transition_time = at;
    }
}

fn go(step: &mut WorkflowStepStatus, phase: StepPhase, at: Option<Timestamp>) {
    if step.phase.as_deref() != Some(phase.as_str()) {
        step.phase = Some(phase.as_str().to_owned());
        step.last_transition_time = at;
    }
}
