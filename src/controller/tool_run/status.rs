//! How a call stands, in words: phase, conditions, times, and what is told and counted once it is stored.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use serde_json::json;

use super::job;
use crate::api::cause::{self, Cause};
use crate::api::condition::{
    Condition, ConditionStatus, ConditionType, Lifecycle, Observation, Reason,
};
use crate::api::custody::{Deletion, Finding, Outcome};
use crate::api::kinds::ToolRun;
use crate::api::kinds::shared::{JobDeletion, JobMissing, JobRef};
use crate::api::kinds::tools::tool_run::ToolRunStatus;
use crate::api::phase::Phase;
use crate::controller::agent_run::{failure, read_reason, whole_seconds};
use crate::controller::driver::fault::Fault;
use crate::controller::driver::plan::{Fact, Standing};
use crate::controller::policy::{is_of_policy, told};
use crate::events;

/// How a call stands.
pub(super) type RunStanding = Standing<ToolRunStatus>;

/// The word for calls among the runtimes that are counted.
const RUNTIME: &str = "tool";

/// The phase of a call; one that nobody knows counts as pending.
pub(super) fn phase(run: &ToolRun) -> Phase {
    let phase = run
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    phase.and_then(Phase::parse).unwrap_or(Phase::Pending)
}

/// The Job that the status names.
pub(super) fn job_ref(run: &ToolRun) -> Option<&JobRef> {
    run.status.as_ref()?.job_ref.as_ref()
}

/// The generation that the status is about.
pub(super) fn observed(run: &ToolRun) -> i64 {
    let status = run.status.as_ref();
    let about = status.and_then(|status| status.observed_generation);
    about.unwrap_or_default()
}

fn condition(run: &ToolRun, type_: ConditionType) -> Option<&Condition> {
    let conditions = run.status.as_ref()?.conditions.as_ref()?;
    let mut conditions = conditions.iter();
    conditions.find(|condition| condition.type_ == type_.as_str())
}

/// Since when the call is held back, if it is.
pub(super) fn blocked_since(run: &ToolRun) -> Option<Timestamp> {
    let blocked = condition(run, ConditionType::Blocked)?;
    (blocked.status == "True").then_some(blocked.last_transition_time)?
}

fn standing(
    run: &ToolRun,
    phase: Phase,
    reason: impl Into<Reason>,
    message: impl Into<String>,
) -> RunStanding {
    let mut status = run.status.clone().unwrap_or_default();
    status.phase = Some(phase.as_str().to_owned());
    let mut next = Standing::new(status, reason, message);
    let warned = condition(run, ConditionType::Warning);
    if warned.is_some_and(|warning| warning.status == "True") {
        let quiet = ConditionStatus::False;
        let quiet = Observation::new(ConditionType::Warning, quiet, Lifecycle::None, "");
        next.observed.push(quiet);
    }
    next
}

fn observing(
    mut next: RunStanding,
    type_: ConditionType,
    reason: impl Into<Reason>,
) -> RunStanding {
    next.observed.retain(|entry| entry.type_ != type_);
    let message = next.message.clone();
    let observed = Observation::new(type_, ConditionStatus::True, reason, message);
    next.observed.push(observed);
    next
}

fn saying(next: RunStanding, reason: events::Reason) -> RunStanding {
    let message = next.message.clone();
    next.telling(reason, message)
}

/// The name of the Job is kept before the Job is made, so that it can be found again after a crash.
pub(super) fn reserved(run: &ToolRun) -> RunStanding {
    let message = "the Job is about to be made";
    let mut next = standing(run, Phase::Pending, Lifecycle::Pending, message);
    next.status.job_ref = Some(JobRef {
        name: Some(job::name(run)),
        namespace: run.namespace(),
        ..JobRef::default()
    });
    next
}

/// The Job is there and does the work.
pub(super) fn running(run: &ToolRun, job: &Job) -> RunStanding {
    let name = job.name_any();
    let message = format!("Job {name} does the work");
    let mut next = standing(run, Phase::Running, Lifecycle::Running, message);
    next.status.started_at = job.creation_timestamp().map(|created| created.0);
    next.status.run_id = Some(run.name_any());
    let reference = json!({
        "type": "job", "name": name, "namespace": job.namespace(), "uid": job.uid(),
    });
    next.status.runtime_ref = reference.as_object().cloned();
    let reference = next.status.job_ref.get_or_insert_default();
    reference.name = Some(name.clone());
    reference.namespace = job.namespace();
    reference.uid = job.uid();
    next = observing(next, ConditionType::Accepted, Lifecycle::Submitted);
    next = observing(next, ConditionType::Running, Lifecycle::Running);
    // What the policy said when the call began still holds.
    let said = condition(run, ConditionType::Warning);
    let said = said.filter(|said| said.status == "True");
    let reason = said.and_then(|said| cause::Reason::parse(said.reason.as_deref()?));
    if let (Some(said), Some(reason)) = (said, reason.filter(|reason| is_of_policy(*reason))) {
        next = warning(next, reason, said.message.clone().unwrap_or_default());
    }
    match phase(run) == Phase::Running {
        true => next,
        false => next.telling(events::Reason::Submitted, format!("Job {name} was made")),
    }
}

/// Something is not there yet.
pub(super) fn waiting(run: &ToolRun, reason: Lifecycle, message: &str) -> RunStanding {
    let event = if reason == Lifecycle::JobNameConflict {
        events::Reason::JobNameConflict
    } else {
        events::Reason::ReferenceMissing
    };
    let next = standing(run, phase(run), reason, message);
    saying(observing(next, ConditionType::Blocked, reason), event)
}

/// Something failed that is tried again.
pub(super) fn troubled(run: &ToolRun, fault: &Fault) -> Option<RunStanding> {
    let (reason, event) = (fault.class.condition()?, fault.class.event()?);
    let next = standing(run, phase(run), reason, fault.sentence());
    Some(saying(
        observing(next, ConditionType::Warning, reason),
        event,
    ))
}

/// A call that has ended, at this time.
fn ended(
    run: &ToolRun,
    phase: Phase,
    reason: impl Into<Reason>,
    message: impl Into<String>,
    at: Timestamp,
) -> RunStanding {
    let mut next = standing(run, phase, reason, message);
    next.status.finished_at = Some(whole_seconds(at));
    let started = next.status.started_at;
    next.facts.push(Fact::RunEnded {
        phase,
        runtime: RUNTIME,
        seconds: started.map(|started| at.duration_since(started).as_secs_f64().max(0.0)),
    });
    next
}

/// Waiting is over.
pub(super) fn unfit(
    run: &ToolRun,
    reason: Lifecycle,
    message: &str,
    now: Timestamp,
) -> RunStanding {
    let message = format!("{message}, and the time to wait for it is over");
    let next = ended(run, Phase::Failed, reason, message, now);
    let next = observing(next, ConditionType::InvalidSpec, reason);
    saying(next, events::Reason::InvalidSpec)
}

/// The policy does not let the call begin.
pub(super) fn forbidden(run: &ToolRun, causes: &[Cause], now: Timestamp) -> Option<RunStanding> {
    let first = causes.first()?;
    let next = ended(run, Phase::Failed, first.reason, told(causes), now);
    let next = observing(next, ConditionType::InvalidSpec, first.reason);
    Some(saying(next, events::Reason::PolicyDenied))
}

/// The policy would rather not have let the call begin.
pub(super) fn warned(run: &ToolRun, mut next: RunStanding, causes: &[Cause]) -> RunStanding {
    let Some(first) = causes.first() else {
        return next;
    };
    let note = told(causes);
    if !is_warned(run, first.reason) {
        next = next.telling(events::Reason::PolicyDenied, note.clone());
    }
    warning(next, first.reason, note)
}

fn warning(mut next: RunStanding, reason: cause::Reason, note: String) -> RunStanding {
    let type_ = ConditionType::Warning;
    next.observed.retain(|entry| entry.type_ != type_);
    let holds = ConditionStatus::True;
    next.observed
        .push(Observation::new(type_, holds, reason, note));
    next
}

fn is_warned(run: &ToolRun, reason: cause::Reason) -> bool {
    let warned = condition(run, ConditionType::Warning);
    warned.is_some_and(|warned| {
        warned.status == "True" && warned.reason.as_deref() == Some(reason.as_str())
    })
}

/// The spec breaks rules.
pub(super) fn refused(run: &ToolRun, causes: &[Cause], now: Timestamp) -> Option<RunStanding> {
    let first = causes.first()?;
    let next = ended(run, Phase::Failed, first.reason, told(causes), now);
    let next = observing(next, ConditionType::InvalidSpec, first.reason);
    Some(saying(next, events::Reason::InvalidSpec))
}

/// The API server refused the Job for good.
pub(super) fn not_submitted(run: &ToolRun, fault: &Fault, now: Timestamp) -> RunStanding {
    let reason = Lifecycle::SubmitFailed;
    let next = ended(run, Phase::Failed, reason, fault.sentence(), now);
    saying(next, events::Reason::SubmitFailed)
}

/// The call was stopped because someone asked for it.
pub(super) fn cancelled(run: &ToolRun, message: &str, now: Timestamp) -> RunStanding {
    let next = ended(run, Phase::Cancelled, Lifecycle::Cancelled, message, now);
    saying(next, events::Reason::Cancelled)
}

fn ends(outcome: Outcome) -> (Phase, events::Reason) {
    match outcome {
        Outcome::Succeeded => (Phase::Succeeded, events::Reason::Succeeded),
        Outcome::Failed => (Phase::Failed, events::Reason::Failed),
    }
}

/// How a Job ended.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) outcome: Outcome,
    pub(super) at: Timestamp,
    /// What its pod said about it.
    pub(super) detail: Option<String>,
}

/// The Job has ended.
pub(super) fn finished(run: &ToolRun, job: &Job, ending: Ending, now: Timestamp) -> RunStanding {
    let Ending {
        outcome,
        at,
        detail,
    } = ending;
    let (phase, event) = ends(outcome);
    let (reason, message) = match outcome {
        Outcome::Succeeded => (Lifecycle::Completed, "the Job completed".to_owned()),
        Outcome::Failed => failure(job, detail),
    };
    let mut next = ended(run, phase, reason, message, at);
    next.facts.push(Fact::OutcomeStored {
        seconds: now.duration_since(at).as_secs_f64().max(0.0),
    });
    let next = observing(next, ConditionType::Accepted, Lifecycle::Submitted);
    saying(next, event)
}

/// The Job is being deleted or gone, and a pod of it still works: what it will say counts.
pub(super) fn orphaned(
    run: &ToolRun,
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
    next = observing(next, ConditionType::JobMissing, finding.class);
    match is_new {
        true => saying(next, finding.class.into()),
        false => next,
    }
}

/// The Job is gone; what could still be found out about its outcome is kept.
pub(super) fn missing(
    run: &ToolRun,
    finding: &Finding,
    deletion: Option<&Deletion>,
    now: Timestamp,
) -> RunStanding {
    let class = finding.class;
    let lost = format!("{} ({class})", class.meaning().trim_end_matches('.'));
    let mut next = match finding.outcome {
        Some(outcome) => {
            let (phase, event) = ends(outcome);
            let (reason, word) = match outcome {
                Outcome::Succeeded => (Lifecycle::Completed, "well"),
                Outcome::Failed => (Lifecycle::JobFailed, "badly"),
            };
            let message = format!("the Job is missing, but it is known that it ended {word}");
            let next = ended(run, phase, reason, message, now);
            saying(saying(next, event), events::Reason::OutcomeRecovered)
        }
        None => {
            let message = format!("the outcome is lost: {lost}");
            ended(run, Phase::Failed, class, message, now)
        }
    };
    keep_deletion(&mut next, deletion);
    let reference = next.status.job_ref.get_or_insert_default();
    reference.missing = Some(JobMissing {
        class: Some(class.as_str().to_owned()),
        certainty: Some(finding.certainty.as_str().to_owned()),
        recovered: Some(finding.recovered.as_str().to_owned()),
        actor: finding.actor.clone(),
        noticed_at: Some(whole_seconds(now)),
    });
    let holds = ConditionStatus::True;
    let observed = Observation::new(ConditionType::JobMissing, holds, class, lost.clone());
    next.observed.push(observed);
    next.facts.push(Fact::JobMissing {
        class,
        recovered: finding.recovered,
    });
    next.telling(class.into(), lost)
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

/// A call that stands as it stood, about its newest spec.
pub(super) fn ratified(run: &ToolRun) -> Option<RunStanding> {
    let outcome = condition(run, ConditionType::Succeeded)?;
    let reason = outcome.reason.as_deref().and_then(read_reason)?;
    let message = outcome.message.clone().unwrap_or_default();
    let mut next = standing(run, phase(run), reason, message);
    for type_ in [
        ConditionType::InvalidSpec,
        ConditionType::Accepted,
        ConditionType::JobMissing,
    ] {
        let Some(kept) = condition(run, type_).filter(|kept| kept.status == "True") else {
            continue;
        };
        let Some(reason) = kept.reason.as_deref().and_then(read_reason) else {
            continue;
        };
        let message = kept.message.clone().unwrap_or_default();
        let holds = ConditionStatus::True;
        next.observed
            .push(Observation::new(type_, holds, reason, message));
    }
    Some(next)
}
