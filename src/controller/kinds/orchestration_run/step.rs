//! What becomes of one step in one pass, from what was seen of it. Pure.

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::child::{self, Child};
use crate::api::condition::Lifecycle;
use crate::api::kinds::OrchestrationRun;
use crate::api::kinds::orchestrations::orchestration::Step;
use crate::api::kinds::orchestrations::orchestration_run::{ResourceRef, StepStatus};
use crate::api::phase::{Phase, StepPhase};
use crate::api::validate::StepKind;

/// Where the reason of a step that failed is kept in its status.
const REASON: &str = "reason";

/// Marks a step in its status that was taken out of the orchestration while it was under way.
const DROPPED: &str = "dropped";

/// What was seen of a step.
#[derive(Clone, Debug)]
pub(in crate::controller) enum Sight {
    /// It needs no look: it has not begun, or it has ended.
    Nothing,
    /// Its object is not there, and may never have been.
    Absent,
    /// Its object is there; before another try that of the last one, while it is at work.
    Ours(Child),
    /// Something of someone else has the name of its object.
    Taken,
    /// Its object was there and is gone.
    Gone,
    /// The API server does not take its object, and says why.
    Refused(String),
    /// What it waits for has not come, and what that is.
    Waits(String),
    /// What it waits for has come.
    Open,
    /// What it waits for was refused.
    Denied,
}

/// The run, its step and the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a> {
    pub(super) run: &'a OrchestrationRun,
    pub(super) step: &'a Step,
    pub(super) index: usize,
    pub(super) now: Timestamp,
}

/// Why a try of a step failed.
struct Failure {
    reason: Lifecycle,
    message: String,
    /// Whether another try may do better.
    is_retried: bool,
}

/// The phase of a step; one that nobody knows counts as pending.
pub(super) fn phase(status: &StepStatus) -> StepPhase {
    let phase = status.phase.as_deref().and_then(StepPhase::parse);
    phase.unwrap_or(StepPhase::Pending)
}

/// Why a step failed.
pub(super) fn reason(status: &StepStatus) -> Lifecycle {
    let reason = status.extra.get(REASON).and_then(|reason| reason.as_str());
    reason
        .and_then(Lifecycle::parse)
        .unwrap_or(Lifecycle::StepFailed)
}

/// When the step is to be looked at again, if nothing happens before.
pub(super) fn due(step: &Step, status: &StepStatus) -> Option<Timestamp> {
    match phase(status) {
        StepPhase::Retrying => status.next_retry_at,
        StepPhase::Running => deadline(step, status),
        StepPhase::Pending
        | StepPhase::Succeeded
        | StepPhase::Failed
        | StepPhase::Cancelled
        | StepPhase::Skipped => None,
    }
}

/// When the current try has taken too long.
fn deadline(step: &Step, status: &StepStatus) -> Option<Timestamp> {
    let seconds = u64::try_from(step.timeout_seconds?)
        .ok()
        .filter(|seconds| *seconds > 0)?;
    let started = status.last_transition_time?;
    started.checked_add(Duration::from_secs(seconds)).ok()
}

/// Begins a step that waits for no other.
pub(super) fn begin(at: At<'_>, status: &StepStatus) -> StepStatus {
    let mut next = moved(at, status, StepPhase::Running, "begun");
    next.started_at = status.started_at.or(Some(at.now));
    attempt(at, &mut next, 1);
    next
}

/// Reserves the name of the object for a try.
fn attempt(at: At<'_>, next: &mut StepStatus, attempt: i64) {
    next.attempt = Some(attempt);
    next.next_retry_at = None;
    let kind = StepKind::parse(at.step.kind.trim()).and_then(child::kind);
    next.resource_ref = kind.map(|kind| ResourceRef {
        api_version: Some(kind.api_version()),
        kind: Some(kind.as_str().to_owned()),
        name: Some(child::name(at.run, at.index, &at.step.name, attempt)),
        namespace: at.run.metadata.namespace.clone(),
        uid: None,
    });
}

/// A step in another phase, for a reason that people read.
pub(super) fn moved(
    at: At<'_>,
    status: &StepStatus,
    phase: StepPhase,
    message: impl Into<String>,
) -> StepStatus {
    let mut next = status.clone();
    if self::phase(status) != phase {
        next.last_transition_time = Some(at.now);
    }
    if phase.is_terminal() {
        next.finished_at.get_or_insert(at.now);
        next.next_retry_at = None;
    }
    next.phase = Some(phase.as_str().to_owned());
    next.message = Some(message.into());
    next
}

/// Puts a step into a phase that it does not leave.
pub(super) fn put(status: &mut StepStatus, phase: StepPhase, message: &str, at: Timestamp) {
    status.phase = Some(phase.as_str().to_owned());
    status.message = Some(message.to_owned());
    status.last_transition_time = Some(at);
    status.finished_at = Some(at);
    status.next_retry_at = None;
}

/// What becomes of a step that is taken out of the orchestration while it is under way: nobody waits for it any more, so
/// what carries it out is stopped.
pub(super) fn dropped(mut status: StepStatus, at: Timestamp) -> StepStatus {
    let phase = match phase(&status) {
        StepPhase::Pending => StepPhase::Skipped,
        StepPhase::Running | StepPhase::Retrying => StepPhase::Cancelled,
        StepPhase::Succeeded | StepPhase::Failed | StepPhase::Cancelled | StepPhase::Skipped => {
            return status;
        }
    };
    let message = "the step is no longer part of the orchestration";
    put(&mut status, phase, message, at);
    status.extra.insert(DROPPED.to_owned(), json!(true));
    status
}

/// Whether a step was taken out of the orchestration while it was under way.
pub(super) fn is_dropped(status: &StepStatus) -> bool {
    status.extra.contains_key(DROPPED)
}

/// Follows a step that has begun.
pub(super) fn follow(at: At<'_>, status: &StepStatus, seen: &Sight) -> StepStatus {
    match phase(status) {
        StepPhase::Running => running(at, status, seen),
        StepPhase::Retrying if is_due(status, at.now) => again(at, status, seen),
        StepPhase::Retrying
        | StepPhase::Pending
        | StepPhase::Succeeded
        | StepPhase::Failed
        | StepPhase::Cancelled
        | StepPhase::Skipped => status.clone(),
    }
}

/// Whether the pause before the next try is over.
pub(super) fn is_due(status: &StepStatus, now: Timestamp) -> bool {
    status.next_retry_at.is_none_or(|due| due <= now)
}

/// The next try. It does not begin beside the last one, which may have been told to stop only now, or not yet.
fn again(at: At<'_>, status: &StepStatus, seen: &Sight) -> StepStatus {
    if let Sight::Ours(last) = seen
        && last.end().is_none()
    {
        let message = format!("waits for the end of {}", last.name());
        let mut next = moved(at, status, StepPhase::Retrying, message);
        // What is waited for is no time any more: its end is told.
        next.next_retry_at = None;
        return next;
    }
    let number = status.attempt.unwrap_or(1).saturating_add(1);
    let mut next = moved(at, status, StepPhase::Running, format!("try {number}"));
    attempt(at, &mut next, number);
    next
}

fn running(at: At<'_>, status: &StepStatus, seen: &Sight) -> StepStatus {
    let error = |message: String| Failure {
        reason: Lifecycle::StepError,
        message,
        is_retried: false,
    };
    let failure = match seen {
        Sight::Ours(child) => match child.end() {
            None => return on_time(at, bound(at, status, child)),
            Some(Phase::Succeeded) => {
                let message = format!("{} succeeded", child.name());
                return moved(at, status, StepPhase::Succeeded, message);
            }
            Some(end) => unsuccessful(at, child, end),
        },
        Sight::Gone => Failure {
            reason: missing(at.step),
            message: "its object is gone".to_owned(),
            is_retried: is_idempotent(at.step),
        },
        Sight::Taken => error("another object has the name that it needs".to_owned()),
        Sight::Refused(why) => error(why.clone()),
        Sight::Denied => Failure {
            reason: Lifecycle::ApprovalDenied,
            message: "the approval was refused".to_owned(),
            is_retried: false,
        },
        Sight::Open => {
            let message = "what it waited for has come";
            return moved(at, status, StepPhase::Succeeded, message);
        }
        Sight::Waits(what) => {
            return on_time(at, moved(at, status, StepPhase::Running, what.clone()));
        }
        Sight::Absent | Sight::Nothing => return on_time(at, status.clone()),
    };
    ended(at, status, failure)
}

/// The object ended, and not well. One that failed did its work, and may be tried again. Nobody knows what one did whose
/// outcome is lost, and one that was cancelled was stopped on purpose: these are tried again only if that does no harm.
fn unsuccessful(at: At<'_>, child: &Child, end: Phase) -> Failure {
    let name = child.name();
    if child.is_lost() {
        return Failure {
            reason: missing(at.step),
            message: format!("the outcome of {name} is lost"),
            is_retried: is_idempotent(at.step),
        };
    }
    Failure {
        reason: failed(at.step),
        message: format!("{name} ended {end}"),
        is_retried: end == Phase::Failed || is_idempotent(at.step),
    }
}

/// Whether doing the step twice does no harm.
fn is_idempotent(step: &Step) -> bool {
    step.idempotent == Some(true)
}

/// The uid of the object is kept, so that it is told from a later one of the same name.
fn bound(at: At<'_>, status: &StepStatus, child: &Child) -> StepStatus {
    let message = format!("{} does the work", child.name());
    let mut next = moved(at, status, StepPhase::Running, message);
    if let Some(reference) = &mut next.resource_ref {
        reference.uid = child.uid();
    }
    next
}

/// A step that takes too long has failed.
fn on_time(at: At<'_>, next: StepStatus) -> StepStatus {
    match deadline(at.step, &next) {
        Some(deadline) if deadline <= at.now => {
            let failure = Failure {
                reason: Lifecycle::StepTimedOut,
                message: "it took longer than allowed".to_owned(),
                is_retried: next.resource_ref.is_some(),
            };
            ended(at, &next, failure)
        }
        Some(_) | None => next,
    }
}

/// A try has failed: another one follows, or the step has failed.
fn ended(at: At<'_>, status: &StepStatus, failure: Failure) -> StepStatus {
    let Failure {
        reason,
        message,
        is_retried,
    } = failure;
    let retries = at.step.retries.unwrap_or(0);
    let done = status.attempt.unwrap_or(1);
    let mut next = if is_retried && done <= retries {
        let mut next = moved(at, status, StepPhase::Retrying, message);
        let pause = at.step.retry_backoff_seconds.unwrap_or(0);
        let pause = Duration::from_secs(u64::try_from(pause).unwrap_or(0));
        next.next_retry_at = at.now.checked_add(pause).ok();
        next
    } else {
        moved(at, status, StepPhase::Failed, message)
    };
    let is_spent = is_retried && retries > 0 && phase(&next) == StepPhase::Failed;
    let reason = if is_spent {
        Lifecycle::RetriesExhausted
    } else {
        reason
    };
    next.extra.insert(REASON.to_owned(), json!(reason.as_str()));
    next
}

/// The word for an object that failed.
fn failed(step: &Step) -> Lifecycle {
    match StepKind::parse(step.kind.trim()) {
        Some(StepKind::AgentRun) => Lifecycle::AgentRunFailed,
        Some(StepKind::ToolRun) => Lifecycle::ToolRunFailed,
        Some(StepKind::SubOrchestration) => Lifecycle::SubOrchestrationFailed,
        Some(
            StepKind::ApprovalGate
            | StepKind::SignalWait
            | StepKind::Checkpoint
            | StepKind::MemoryOp,
        )
        | None => Lifecycle::StepFailed,
    }
}

/// The word for an object that is gone.
fn missing(step: &Step) -> Lifecycle {
    match StepKind::parse(step.kind.trim()) {
        Some(StepKind::AgentRun) => Lifecycle::AgentRunMissing,
        Some(StepKind::ToolRun) => Lifecycle::ToolRunMissing,
        Some(StepKind::SubOrchestration) => Lifecycle::SubOrchestrationMissing,
        Some(
            StepKind::ApprovalGate
            | StepKind::SignalWait
            | StepKind::Checkpoint
            | StepKind::MemoryOp,
        )
        | None => Lifecycle::StepError,
    }
}
