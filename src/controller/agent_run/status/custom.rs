//! A run that an endpoint carries out.

use jiff::Timestamp;

use super::end::ended as run_ended;
use super::{RunStanding, phase, standing};
use crate::api::condition::{ConditionType, Lifecycle};
use crate::api::custody::Outcome;
use crate::api::kinds::AgentRun;
use crate::api::phase::Phase;
use crate::api::text::hash::spec_hash;
use crate::controller::agent_run::custom::reference::Reference;
use crate::controller::agent_run::custom::reply::{Answer, End};
use crate::controller::runs::{ends, whole_seconds};
use crate::events;

/// That the run is about to be handed over is kept before anyone is called.
pub(in crate::controller::agent_run) fn reserved(
    run: &AgentRun,
    reference: &Reference,
) -> RunStanding {
    let message = "the run is about to be handed to its endpoint";
    let mut next = standing(run, phase(run), Lifecycle::Pending, message);
    next.status.runtime_ref = Some(reference.stored());
    next.status.spec_hash = Some(spec_hash(&run.spec));
    next
}

/// The endpoint could not take it; it is tried again.
pub(in crate::controller::agent_run) fn tried(
    run: &AgentRun,
    reference: &Reference,
    why: &str,
) -> RunStanding {
    let mut next = standing(run, phase(run), Lifecycle::Pending, why);
    next.status.runtime_ref = Some(reference.stored());
    next.observe(ConditionType::Warning, Lifecycle::SubmitFailed)
        .tell(events::Reason::Unreachable, why)
}

/// The endpoint has taken it and works on it.
pub(in crate::controller::agent_run) fn running(
    run: &AgentRun,
    reference: &Reference,
    answer: &Answer,
    at: Timestamp,
) -> RunStanding {
    let message = match answer.not_asked {
        Some(why) => format!("the endpoint works on the run; {why}, so it is not asked"),
        None => "the endpoint works on the run".to_owned(),
    };
    let mut next = standing(run, Phase::Running, Lifecycle::Running, message);
    next.status.runtime_ref = Some(reference.stored());
    next.status.started_at = next.status.started_at.or(Some(whole_seconds(at)));
    let note = "the run was handed to its endpoint";
    next.observe(ConditionType::Accepted, Lifecycle::Submitted)
        .tell(events::Reason::Submitted, note)
}

/// The endpoint has taken it and carried it out within one answer.
pub(in crate::controller::agent_run) fn ended_at_once(
    run: &AgentRun,
    reference: &Reference,
    end: &End,
    at: Timestamp,
) -> RunStanding {
    let mut next = ended(run, end, at);
    next.status.runtime_ref = Some(reference.stored());
    next.status.started_at = next.status.started_at.or(Some(whole_seconds(at)));
    next
}

/// The endpoint says how it ended.
pub(in crate::controller::agent_run) fn ended(
    run: &AgentRun,
    end: &End,
    at: Timestamp,
) -> RunStanding {
    let (phase, event) = ends(end.outcome);
    let (reason, message) = match end.outcome {
        Outcome::Succeeded => (Lifecycle::Completed, "the endpoint has done the work"),
        Outcome::Failed => (Lifecycle::EndpointFailed, "the endpoint could not do it"),
    };
    let message = match &end.message {
        Some(said) => format!("{message}: {said}"),
        None => message.to_owned(),
    };
    finish(run, (phase, reason, event), message, at)
}

/// The endpoint did not take it.
pub(in crate::controller::agent_run) fn not_taken(
    run: &AgentRun,
    why: &str,
    at: Timestamp,
) -> RunStanding {
    let event = events::Reason::SubmitFailed;
    let words = (Phase::Failed, Lifecycle::SubmitFailed, event);
    finish(run, words, why.to_owned(), at)
}

/// The endpoint took it and does not know it any more.
pub(in crate::controller::agent_run) fn lost(
    run: &AgentRun,
    why: &str,
    at: Timestamp,
) -> RunStanding {
    let words = (
        Phase::Failed,
        Lifecycle::EndpointFailed,
        events::Reason::Failed,
    );
    let message = format!("nobody can say how the run ended: {why}");
    finish(run, words, message, at)
}

/// The endpoint may not be called.
pub(in crate::controller::agent_run) fn denied(
    run: &AgentRun,
    why: &str,
    at: Timestamp,
) -> RunStanding {
    let event = events::Reason::EgressDenied;
    let words = (Phase::Failed, Lifecycle::EgressDenied, event);
    finish(run, words, why.to_owned(), at)
}

/// The endpoint took longer than the agent allows.
pub(in crate::controller::agent_run) fn timed_out(run: &AgentRun, at: Timestamp) -> RunStanding {
    let words = (Phase::Failed, Lifecycle::TimedOut, events::Reason::TimedOut);
    let message = "the run took longer than its agent allows; the endpoint may still work on it";
    finish(run, words, message.to_owned(), at)
}

fn finish(
    run: &AgentRun,
    (phase, reason, event): (Phase, Lifecycle, events::Reason),
    message: String,
    at: Timestamp,
) -> RunStanding {
    run_ended(run, phase, reason, message.clone(), at).tell(event, message)
}
