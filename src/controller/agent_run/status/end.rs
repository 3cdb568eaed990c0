//! The end of a run.

use jiff::Timestamp;

use super::warning::CHANGED;
use super::{RunStanding, condition, phase, standing, steps};
use crate::api::cause::{self, Cause};
use crate::api::condition::{
    Condition, ConditionStatus, ConditionType, Lifecycle, Observation, Reason,
};
use crate::api::custody::{Class, Outcome};
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::RuntimeType;
use crate::api::phase::Phase;
use crate::controller::agent_run::work::Lack;
use crate::controller::driver::fault::Fault;
use crate::controller::driver::plan::Fact;
use crate::controller::policy::told;
use crate::events;

/// Waiting is over, or never made sense.
pub(in crate::controller::agent_run) fn unfit(
    run: &AgentRun,
    lack: &Lack,
    now: Timestamp,
) -> RunStanding {
    let (reason, message, contract) = match lack {
        Lack::Waits { reason, message } => (
            *reason,
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
    let message = next.message.clone();
    next.observe(ConditionType::InvalidSpec, reason)
        .tell(events::Reason::InvalidSpec, message)
}

/// The policy does not let the run begin.
pub(in crate::controller::agent_run) fn forbidden(
    run: &AgentRun,
    causes: &[Cause],
    now: Timestamp,
) -> Option<RunStanding> {
    let first = causes.first()?;
    let next = ended(run, Phase::Failed, first.reason, told(causes), now);
    let message = next.message.clone();
    Some(
        next.observe(ConditionType::InvalidSpec, first.reason)
            .tell(events::Reason::PolicyDenied, message),
    )
}

/// The spec breaks rules.
pub(in crate::controller::agent_run) fn refused(
    run: &AgentRun,
    causes: &[Cause],
    now: Timestamp,
) -> Option<RunStanding> {
    let first = causes.first()?;
    let next = ended(run, Phase::Failed, first.reason, told(causes), now);
    let message = next.message.clone();
    Some(
        next.observe(ConditionType::InvalidSpec, first.reason)
            .tell(events::Reason::InvalidSpec, message),
    )
}

/// The spec was changed after the run had begun.
pub(in crate::controller::agent_run) fn changed(run: &AgentRun, now: Timestamp) -> RunStanding {
    let reason = cause::Reason::SpecImmutableViolation;
    ended(run, Phase::Failed, reason, CHANGED, now)
        .tell(events::Reason::SpecImmutableViolation, CHANGED)
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
    let message = fault.sentence();
    ended(
        run,
        Phase::Failed,
        Lifecycle::SubmitFailed,
        message.clone(),
        now,
    )
    .tell(events::Reason::SubmitFailed, message)
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

pub(super) fn ends(outcome: Outcome) -> (Phase, events::Reason) {
    match outcome {
        Outcome::Succeeded => (Phase::Succeeded, events::Reason::Succeeded),
        Outcome::Failed => (Phase::Failed, events::Reason::Failed),
    }
}

pub(in crate::controller) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// A run that has ended, at this time.
pub(super) fn ended(
    run: &AgentRun,
    phase: Phase,
    reason: impl Into<Reason>,
    message: impl Into<String>,
    at: Timestamp,
) -> RunStanding {
    let mut next = standing(run, phase, reason, message);
    next.status.finished_at = Some(whole_seconds(at));
    steps::close(&mut next.status, phase, at);
    let started = next.status.started_at;
    next.facts.push(Fact::RunEnded {
        phase,
        runtime: runtime(run),
        seconds: started.map(|started| at.duration_since(started).as_secs_f64().max(0.0)),
    });
    next
}

/// The word for the runtime of a run.
fn runtime(run: &AgentRun) -> &'static str {
    match run.spec.runtime.type_ {
        RuntimeType::Workflow => "workflow",
        RuntimeType::Job => "job",
        RuntimeType::Temporal => "temporal",
        RuntimeType::Custom => "custom",
    }
}

/// A run that stands as it stood, about its newest spec.
pub(in crate::controller::agent_run) fn ratified(run: &AgentRun) -> Option<RunStanding> {
    let outcome = condition(run, ConditionType::Succeeded)?;
    let reason = outcome.reason.as_deref().and_then(read_reason)?;
    let message = outcome.message.clone().unwrap_or_default();
    let mut next = standing(run, phase(run), reason, message);
    let holds = |condition: &&Condition| condition.status == "True";
    let conditions = run.status.as_ref()?.conditions.iter().flatten();
    next.observed = conditions
        .filter(holds)
        .filter_map(|condition| {
            let type_ = ConditionType::parse(&condition.type_)?;
            let reason = condition.reason.as_deref().and_then(read_reason)?;
            let message = condition.message.clone().unwrap_or_default();
            let kept = [
                ConditionType::InvalidSpec,
                ConditionType::Accepted,
                ConditionType::JobMissing,
            ];
            kept.contains(&type_)
                .then(|| Observation::new(type_, ConditionStatus::True, reason, message))
        })
        .collect();
    Some(next)
}

pub(in crate::controller) fn read_reason(word: &str) -> Option<Reason> {
    let lifecycle = Lifecycle::parse(word).map(Reason::from);
    lifecycle
        .or_else(|| cause::Reason::parse(word).map(Reason::from))
        .or_else(|| Class::parse(word).map(Reason::from))
}
