//! How a turn ended, and what follows: the end of the run, the next step, the next round, or another try.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;

use super::end::ended;
use super::{RunStanding, phase, standing, steps};
use crate::api::condition::{Lifecycle, Reason};
use crate::api::custody::Outcome;
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::WorkflowStep;
use crate::api::phase::Phase;
use crate::controller::agent_run::turn::{self, Try, Turn};
use crate::controller::driver::plan::Fact;
use crate::controller::runs::ends;
use crate::events;

/// How a turn ended.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    /// None if nobody knows.
    pub(super) outcome: Option<Outcome>,
    pub(super) at: Timestamp,
    pub(super) reason: Reason,
    pub(super) message: String,
}

/// How a Job ended.
#[derive(Clone, Debug)]
pub(in crate::controller::agent_run) struct Ending {
    pub(in crate::controller::agent_run) outcome: Outcome,
    pub(in crate::controller::agent_run) at: Timestamp,
    /// What its pod said about it.
    pub(in crate::controller::agent_run) detail: Option<String>,
    /// How its runner says that it ended.
    pub(in crate::controller::agent_run) report: Option<Outcome>,
}

/// The Job of a turn has ended.
pub(in crate::controller::agent_run) fn finished(
    run: &AgentRun,
    turn: Turn,
    job: &Job,
    ending: Ending,
    now: Timestamp,
) -> RunStanding {
    let Ending {
        outcome,
        at,
        detail,
        report,
    } = ending;
    let (reason, message) = match outcome {
        Outcome::Succeeded => (Lifecycle::Completed, "the Job completed".to_owned()),
        Outcome::Failed => failure(job, detail),
    };
    let verdict = Verdict {
        outcome: Some(outcome),
        at,
        reason: reason.into(),
        message,
    };
    let mut next = conclude(run, turn, verdict).contested(outcome, report);
    next.facts.push(Fact::OutcomeStored {
        seconds: now.duration_since(at).as_secs_f64().max(0.0),
    });
    next
}

/// Why a Job failed, from its condition and what its pod said.
pub(in crate::controller) fn failure(job: &Job, detail: Option<String>) -> (Lifecycle, String) {
    let conditions = job
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let failed = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == "Failed");
    let why = failed.and_then(|condition| condition.reason.as_deref());
    let (reason, message) = match why {
        Some("DeadlineExceeded") => (
            Lifecycle::TimedOut,
            "the Job took longer than allowed".to_owned(),
        ),
        Some(why) => (Lifecycle::JobFailed, format!("the Job failed: {why}")),
        None => (Lifecycle::JobFailed, "the Job failed".to_owned()),
    };
    match detail {
        Some(detail) => (reason, format!("{message}; {detail}")),
        None => (reason, message),
    }
}

/// How the run stands after a turn.
pub(super) fn conclude(run: &AgentRun, turn: Turn, verdict: Verdict) -> RunStanding {
    match turn {
        Turn::Whole => end_run(run, verdict),
        Turn::Step(this) => match turn::step(run, this.index) {
            Some(step) => end_try(run, step, this, verdict),
            // The step was taken out of the spec while it ran; nothing can follow it.
            None => end_run(run, verdict),
        },
    }
}

fn end_run(run: &AgentRun, verdict: Verdict) -> RunStanding {
    let Verdict {
        outcome,
        at,
        reason,
        message,
    } = verdict;
    let Some(outcome) = outcome else {
        return ended(run, Phase::Failed, reason, message, at);
    };
    let (phase, event) = ends(outcome);
    let next = ended(run, phase, reason, message.clone(), at);
    let next = match is_timeout(reason) {
        true => next.tell(events::Reason::TimedOut, message.clone()),
        false => next,
    };
    next.tell(event, message)
}

fn is_timeout(reason: Reason) -> bool {
    reason == Lifecycle::TimedOut.into()
}

/// What follows on a try of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sequel {
    /// The step is done and the next one begins.
    NextStep,
    /// The step is done once more.
    NextRound,
    /// The step is tried again at this time.
    Retry(Timestamp),
    /// The run is done.
    Success,
    /// The run has failed.
    Failure,
}

/// A step whose outcome is lost is tried again only if doing it twice does no harm.
fn sequel(run: &AgentRun, step: &WorkflowStep, this: Try, verdict: &Verdict) -> Sequel {
    let rounds = step.loop_.as_ref().and_then(|given| given.max_iterations);
    let rounds = rounds.unwrap_or(1);
    let may_repeat = match verdict.outcome {
        Some(Outcome::Succeeded) if this.iteration < rounds => return Sequel::NextRound,
        Some(Outcome::Succeeded) if this.index + 1 < turn::steps(run).len() => {
            return Sequel::NextStep;
        }
        Some(Outcome::Succeeded) => return Sequel::Success,
        Some(Outcome::Failed) => true,
        None => step.idempotent == Some(true),
    };
    let backoff = step.retry_backoff_seconds.unwrap_or_default();
    let backoff = Duration::from_secs(u64::try_from(backoff).unwrap_or_default());
    match verdict.at.checked_add(backoff) {
        Ok(due) if may_repeat && this.attempt <= step.retries.unwrap_or_default() => {
            Sequel::Retry(due)
        }
        Ok(_) | Err(_) => Sequel::Failure,
    }
}

fn end_try(run: &AgentRun, step: &WorkflowStep, this: Try, verdict: Verdict) -> RunStanding {
    let name = &step.name;
    let goes_on = |message: String| standing(run, phase(run), Lifecycle::Running, message);
    match sequel(run, step, this, &verdict) {
        Sequel::Success => all_done(run, verdict.at),
        Sequel::NextStep => {
            let mut next = goes_on(format!("step {name} is done, the next one follows"));
            steps::succeed(&mut next.status, this, verdict.at);
            next
        }
        Sequel::NextRound => {
            let round = this.iteration;
            let message = format!("round {round} of step {name} is done, the next one follows");
            let mut next = goes_on(message);
            steps::go_round(&mut next.status, this);
            next
        }
        Sequel::Retry(due) => {
            let (tried, all) = (this.attempt, step.retries.unwrap_or_default() + 1);
            let why = format!("try {tried} of {all} failed: {}", verdict.message);
            let mut next = goes_on(format!("step {name} is tried again; {why}"));
            steps::retry(&mut next.status, this, (verdict.at, due), &why);
            let message = next.message.clone();
            next.tell(events::Reason::StepRetrying, message)
        }
        Sequel::Failure => fail_step(run, name, this, verdict),
    }
}

/// No try is left, and with the step the run has failed.
fn fail_step(run: &AgentRun, name: &str, this: Try, verdict: Verdict) -> RunStanding {
    let Verdict {
        outcome,
        at,
        reason,
        message,
    } = verdict;
    let (reason, event) = match outcome {
        None => (Lifecycle::WorkflowJobMissing, events::Reason::StepFailed),
        Some(_) if is_timeout(reason) => {
            (Lifecycle::WorkflowStepTimedOut, events::Reason::TimedOut)
        }
        Some(_) => (Lifecycle::WorkflowStepFailed, events::Reason::StepFailed),
    };
    let told = format!("step {name} failed: {message}");
    let mut next = ended(run, Phase::Failed, reason, told.clone(), at);
    steps::explain(&mut next.status, this, &message);
    next.tell(event, told.clone())
        .tell(events::Reason::Failed, told)
}

/// Every step has succeeded.
pub(in crate::controller::agent_run) fn all_done(run: &AgentRun, at: Timestamp) -> RunStanding {
    let message = match turn::steps(run).len() {
        1 => "the step is done".to_owned(),
        count => format!("all {count} steps are done"),
    };
    ended(
        run,
        Phase::Succeeded,
        Lifecycle::Completed,
        message.clone(),
        at,
    )
    .tell(events::Reason::Succeeded, message)
}
