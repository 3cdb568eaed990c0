//! A Job that is going or gone before its outcome was stored.

use jiff::Timestamp;

use super::verdict::{Verdict, conclude};
use super::{RunStanding, holds, phase, standing, steps};
use crate::api::condition::{ConditionStatus, ConditionType, Lifecycle, Observation};
use crate::api::custody::{Class, Outcome};
use crate::api::kinds::AgentRun;
use crate::controller::agent_run::turn::Turn;
use crate::controller::driver::plan::Fact;
use crate::controller::runs::Loss;
use crate::events;

/// The Job is being deleted or gone, and a pod of it still works: what it will say counts.
pub(in crate::controller::agent_run) fn orphaned(
    run: &AgentRun,
    turn: Turn,
    loss: &Loss,
) -> RunStanding {
    let class = loss.finding.class;
    let message = format!("the Job is gone ({class}), but its pod still works");
    let mut next = standing(run, phase(run), Lifecycle::Running, message);
    if let Some(reference) = steps::reference(&mut next.status, turn) {
        loss.keep_deletion(reference);
    }
    let next = next.observe(ConditionType::JobMissing, class);
    match holds(run, ConditionType::JobMissing) {
        true => next,
        false => next.say(event(turn, class)),
    }
}

/// The Job is gone; what could still be found out about its outcome is kept.
pub(in crate::controller::agent_run) fn missing(
    run: &AgentRun,
    turn: Turn,
    loss: &Loss,
    now: Timestamp,
) -> RunStanding {
    let (reason, message) = loss.end();
    let verdict = Verdict {
        outcome: loss.finding.outcome,
        at: loss.at(now),
        reason,
        message,
    };
    concluded(run, turn, verdict, loss, now)
}

/// The end of a turn whose Job is gone.
fn concluded(
    run: &AgentRun,
    turn: Turn,
    verdict: Verdict,
    loss: &Loss,
    now: Timestamp,
) -> RunStanding {
    let message = verdict.message.clone();
    let next = lost(conclude(run, turn, verdict), turn, loss, now);
    match loss.finding.outcome {
        Some(outcome) => next
            .tell(events::Reason::OutcomeRecovered, message)
            .contested(outcome, loss.report),
        None => next,
    }
}

/// The Job is gone, and its pod took longer than the Job would have let it.
pub(in crate::controller::agent_run) fn overdue(
    run: &AgentRun,
    turn: Turn,
    loss: &Loss,
    now: Timestamp,
) -> RunStanding {
    let message = "the Job is missing, and its pod took longer than allowed".to_owned();
    let verdict = Verdict {
        outcome: Some(Outcome::Failed),
        at: loss.at(now),
        reason: Lifecycle::TimedOut.into(),
        message: match &loss.detail {
            Some(detail) => format!("{message}; {detail}"),
            None => message,
        },
    };
    concluded(run, turn, verdict, loss, now)
}

/// Keeps, shows, tells and counts what was found out about a missing Job.
pub(in crate::controller::agent_run) fn lost(
    mut next: RunStanding,
    turn: Turn,
    loss: &Loss,
    now: Timestamp,
) -> RunStanding {
    let class = loss.finding.class;
    if let Some(reference) = steps::reference(&mut next.status, turn) {
        loss.keep(reference, now);
    }
    next.observed.push(Observation::new(
        ConditionType::JobMissing,
        ConditionStatus::True,
        class,
        loss.why(),
    ));
    next.facts.push(Fact::JobMissing {
        class,
        recovered: loss.finding.recovered,
    });
    next.tell(event(turn, class), loss.why())
}

/// The Event that tells of it; that of a step is one word for all classes, and its note names the class.
fn event(turn: Turn, class: Class) -> events::Reason {
    match turn {
        Turn::Whole => class.into(),
        Turn::Step(_) => events::Reason::WorkflowJobMissing,
    }
}
