//! A Job that is going or gone before its outcome was stored.

use jiff::Timestamp;

use super::end::{ended, ends, whole_seconds};
use super::{RunStanding, condition, phase, standing};
use crate::api::condition::{ConditionStatus, ConditionType, Lifecycle, Observation};
use crate::api::custody::{Deletion, Finding, Outcome, Recovered};
use crate::api::kinds::AgentRun;
use crate::api::kinds::shared::{JobDeletion, JobMissing};
use crate::api::phase::Phase;
use crate::controller::driver::plan::Fact;
use crate::events;

/// The Job is being deleted or gone, and a pod of it still works: what it will say counts.
pub(in crate::controller::agent_run) fn orphaned(
    run: &AgentRun,
    finding: &Finding,
    deletion: Option<&Deletion>,
) -> RunStanding {
    let message = format!(
        "the Job is gone ({}), but its pod still works",
        finding.class
    );
    let mut next = standing(run, phase(run), Lifecycle::Running, message);
    keep_deletion(&mut next, deletion);
    let is_new = condition(run, ConditionType::JobMissing).is_none();
    next = next.observe(ConditionType::JobMissing, finding.class);
    if is_new {
        let message = next.message.clone();
        next = next.tell(finding.class.into(), message);
    }
    next
}

/// The Job is gone; what could still be found out about its outcome is kept.
pub(in crate::controller::agent_run) fn missing(
    run: &AgentRun,
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
    let (mut next, told) = match outcome {
        Some(outcome) => {
            let (phase, event) = ends(*outcome);
            let word = match outcome {
                Outcome::Succeeded => "well",
                Outcome::Failed => "badly",
            };
            let message = format!(
                "the Job is missing, but {}: it ended {word}",
                witness(*recovered)
            );
            let reason = match outcome {
                Outcome::Succeeded => Lifecycle::Completed,
                Outcome::Failed => Lifecycle::JobFailed,
            };
            let next = ended(run, phase, reason, message.clone(), now);
            (
                next.tell(event, message),
                Some(events::Reason::OutcomeRecovered),
            )
        }
        None => (
            ended(
                run,
                Phase::Failed,
                *class,
                format!("the outcome is lost: {lost}"),
                now,
            ),
            None,
        ),
    };
    keep_deletion(&mut next, deletion);
    let reference = next.status.job_ref.get_or_insert_default();
    reference.missing = Some(JobMissing {
        class: Some(class.as_str().to_owned()),
        certainty: Some(certainty.as_str().to_owned()),
        recovered: Some(recovered.as_str().to_owned()),
        actor: actor.clone(),
        noticed_at: Some(whole_seconds(now)),
    });
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
    next = next.tell((*class).into(), lost);
    match told {
        Some(reason) => {
            let message = next.message.clone();
            next.tell(reason, message)
        }
        None => next,
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

fn keep_deletion(next: &mut RunStanding, deletion: Option<&Deletion>) {
    if let Some(Deletion { at, finalizers }) = deletion {
        let reference = next.status.job_ref.get_or_insert_default();
        reference.deletion.get_or_insert_with(|| JobDeletion {
            deleted_at: Some(*at),
            finalizers: Some(finalizers.clone()),
        });
    }
}
