//! A Job that is going or gone before its outcome was stored.

use jiff::Timestamp;

use super::end::whole_seconds;
use super::verdict::{Verdict, conclude};
use super::{RunStanding, holds, phase, standing, steps};
use crate::api::condition::{ConditionStatus, ConditionType, Lifecycle, Observation, Reason};
use crate::api::custody::{Class, Deletion, Finding, Outcome, Recovered};
use crate::api::kinds::AgentRun;
use crate::api::kinds::shared::{JobDeletion, JobMissing};
use crate::controller::agent_run::turn::Turn;
use crate::controller::driver::plan::Fact;
use crate::events;

/// The Job is being deleted or gone, and a pod of it still works: what it will say counts.
pub(in crate::controller::agent_run) fn orphaned(
    run: &AgentRun,
    turn: Turn,
    finding: &Finding,
    deletion: Option<&Deletion>,
) -> RunStanding {
    let message = format!(
        "the Job is gone ({}), but its pod still works",
        finding.class
    );
    let mut next = standing(run, phase(run), Lifecycle::Running, message);
    keep_deletion(&mut next, turn, deletion);
    let is_new = !holds(run, ConditionType::JobMissing);
    next = next.observe(ConditionType::JobMissing, finding.class);
    if is_new {
        let message = next.message.clone();
        next = next.tell(event(turn, finding.class), message);
    }
    next
}

/// The Job is gone; what could still be found out about its outcome is kept.
pub(in crate::controller::agent_run) fn missing(
    run: &AgentRun,
    turn: Turn,
    finding: &Finding,
    deletion: Option<&Deletion>,
    now: Timestamp,
) -> RunStanding {
    let Finding {
        class,
        certainty,
        recovered,
        outcome,
        actor,
    } = finding;
    let by = actor
        .as_ref()
        .map_or_else(String::new, |actor| format!(" by {actor}"));
    let lost = format!("{} ({class}{by})", class.meaning().trim_end_matches('.'));
    let verdict = verdict(finding, &lost, now);
    let found = outcome.is_some().then(|| verdict.message.clone());
    let mut next = conclude(run, turn, verdict);
    keep_deletion(&mut next, turn, deletion);
    if let Some(reference) = steps::reference(&mut next.status, turn) {
        reference.missing = Some(JobMissing {
            class: Some(class.as_str().to_owned()),
            certainty: Some(certainty.as_str().to_owned()),
            recovered: Some(recovered.as_str().to_owned()),
            actor: actor.clone(),
            noticed_at: Some(whole_seconds(now)),
        });
    }
    next.observed.push(Observation::new(
        ConditionType::JobMissing,
        ConditionStatus::True,
        *class,
        lost.clone(),
    ));
    next.facts.push(Fact::JobMissing {
        class: *class,
        recovered: *recovered,
    });
    next = next.tell(event(turn, *class), lost);
    match found {
        Some(message) => next.tell(events::Reason::OutcomeRecovered, message),
        None => next,
    }
}

/// The Event that tells of it; that of a step is one word for all classes, and its note names the class.
fn event(turn: Turn, class: Class) -> events::Reason {
    match turn {
        Turn::Whole => class.into(),
        Turn::Step(_) => events::Reason::WorkflowJobMissing,
    }
}

/// What is known about the end of a Job that is gone.
fn verdict(finding: &Finding, lost: &str, now: Timestamp) -> Verdict {
    let told = |word: &str| {
        let witness = witness(finding.recovered);
        format!("the Job is missing, but {witness}: it ended {word}")
    };
    let (reason, message): (Reason, String) = match finding.outcome {
        Some(Outcome::Succeeded) => (Lifecycle::Completed.into(), told("well")),
        Some(Outcome::Failed) => (Lifecycle::JobFailed.into(), told("badly")),
        None => (finding.class.into(), format!("the outcome is lost: {lost}")),
    };
    Verdict {
        outcome: finding.outcome,
        at: now,
        reason,
        message,
    }
}

fn witness(recovered: Recovered) -> &'static str {
    match recovered {
        Recovered::None => "nobody knows",
        Recovered::FromDeletedObject => "its last state tells how it ended",
        Recovered::FromPod => "its pod tells how it ended",
        Recovered::FromRunnerReport => "its runner told how it ended",
    }
}

fn keep_deletion(next: &mut RunStanding, turn: Turn, deletion: Option<&Deletion>) {
    let reference = steps::reference(&mut next.status, turn);
    if let (Some(Deletion { at, finalizers }), Some(reference)) = (deletion, reference) {
        reference.deletion.get_or_insert_with(|| JobDeletion {
            deleted_at: Some(*at),
            finalizers: Some(finalizers.clone()),
        });
    }
}
