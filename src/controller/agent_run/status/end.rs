//! The end of a run.

use jiff::Timestamp;

use super::missing::lost;
use super::warning::CHANGED;
use super::{RunStanding, steps};
use crate::api::condition::{ConditionType, Lifecycle, Reason};
use crate::api::kinds::AgentRun;
use crate::api::object::cause::{self, Cause};
use crate::api::phase::Phase;
use crate::controller::agent_run::plan::evidence::never_made;
use crate::controller::agent_run::turn::{self, Stage};
use crate::controller::agent_run::work::Lack;
use crate::controller::driver::fault::Fault;
use crate::controller::runs::{self, Loss};
use crate::events;

/// Waiting is over, or never made sense.
pub(in crate::controller::agent_run) fn unfit(
    run: &AgentRun,
    lack: &Lack,
    now: Timestamp,
) -> RunStanding {
    let (reason, message, contract) = match lack {
        Lack::Waits { reason, message } => (
            Reason::from(*reason),
            format!("{message}, and the time to wait for it is over"),
            None,
        ),
        Lack::Wrong {
            reason,
            message,
            contract,
        } => (*reason, message.clone(), contract.clone()),
    };
    let mut next = ended(run, Phase::Failed, reason, message, now);
    next.status.contract = contract.or(next.status.contract);
    next.observe(ConditionType::InvalidSpec, reason)
        .say(events::Reason::InvalidSpec)
}

/// The policy does not let the run begin.
pub(in crate::controller::agent_run) fn forbidden(
    run: &AgentRun,
    causes: &[Cause],
    now: Timestamp,
) -> Option<RunStanding> {
    let (reason, message) = runs::told(causes)?;
    let next = ended(run, Phase::Failed, reason, message, now);
    let next = next.observe(ConditionType::InvalidSpec, reason);
    Some(next.say(events::Reason::PolicyDenied))
}

/// The spec breaks rules.
pub(in crate::controller::agent_run) fn refused(
    run: &AgentRun,
    causes: &[Cause],
    now: Timestamp,
) -> Option<RunStanding> {
    let (reason, message) = runs::told(causes)?;
    let next = ended(run, Phase::Failed, reason, message, now);
    let next = next.observe(ConditionType::InvalidSpec, reason);
    Some(next.say(events::Reason::InvalidSpec))
}

/// The spec was changed after the run had begun.
pub(in crate::controller::agent_run) fn changed(run: &AgentRun, now: Timestamp) -> RunStanding {
    let reason = cause::Reason::SpecImmutableViolation;
    ended(run, Phase::Failed, reason, CHANGED, now)
        .tell(events::Reason::SpecImmutableViolation, CHANGED)
}

/// What the run left behind breaks the limits, and the operator wants that to fail it.
pub(in crate::controller::agent_run) fn exceeded(
    run: &AgentRun,
    why: &str,
    now: Timestamp,
) -> RunStanding {
    let reason = Lifecycle::LimitExceeded;
    let message = format!("what the run left behind breaks the limits: {why}");
    ended(run, Phase::Failed, reason, message, now)
        .observe(ConditionType::ArtifactsLimitExceeded, reason)
        .say(events::Reason::Failed)
}

/// Another run has the idempotency key.
pub(in crate::controller::agent_run) fn duplicate(
    run: &AgentRun,
    reason: Lifecycle,
    of: &str,
    now: Timestamp,
) -> RunStanding {
    let stands = if reason == Lifecycle::IdempotencyKeyCompleted {
        "has ended"
    } else {
        "is under way"
    };
    let message = format!("run {of} with this key {stands}");
    ended(run, Phase::Failed, reason, message.clone(), now)
        .observe(ConditionType::Duplicate, reason)
        .tell(events::Reason::Duplicate, message)
}

/// The API server refused the Job for good.
pub(in crate::controller::agent_run) fn not_submitted(
    run: &AgentRun,
    fault: &Fault,
    now: Timestamp,
) -> RunStanding {
    let reason = Lifecycle::SubmitFailed;
    let next = ended(run, Phase::Failed, reason, fault.sentence(), now);
    let loss = Loss::of(never_made(now));
    let next = next.say(events::Reason::SubmitFailed);
    match turn::stage(run) {
        Stage::Under(turn) => lost(next, turn, &loss, now),
        Stage::Before { .. } | Stage::Over => next,
    }
}

/// The run was stopped because someone asked for it.
pub(in crate::controller::agent_run) fn cancelled(
    run: &AgentRun,
    message: &str,
    now: Timestamp,
) -> RunStanding {
    ended(run, Phase::Cancelled, Lifecycle::Cancelled, message, now)
        .tell(events::Reason::Cancelled, message)
}

/// A run that has ended, at this time, and what was under way with it.
pub(super) fn ended(
    run: &AgentRun,
    phase: Phase,
    reason: impl Into<Reason>,
    message: impl Into<String>,
    at: Timestamp,
) -> RunStanding {
    let mut next = runs::ended(run, phase, reason, message, at);
    steps::close(&mut next.status, phase, at);
    next
}
