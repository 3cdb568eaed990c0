//! How a call stands, in words: phase, conditions, times, and what is told and counted once it is stored.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use serde_json::json;

use super::job;
use crate::api::condition::{ConditionStatus, ConditionType, Lifecycle, Observation};
use crate::api::custody::Outcome;
use crate::api::kinds::ToolRun;
use crate::api::kinds::shared::JobRef;
use crate::api::kinds::tools::tool_run::ToolRunStatus;
use crate::api::object::cause::{self, Cause};
use crate::api::phase::Phase;
use crate::controller::agent_run::{failure, never_made};
use crate::controller::driver::fault::Fault;
use crate::controller::driver::plan::{Fact, Standing};
use crate::controller::policy::is_of_policy;
use crate::controller::runs::{Loss, condition, ended, ends, standing, supplied, told};
use crate::events;

pub(super) use crate::controller::runs::{
    holds, is_edited, missing_since, phase, ratified, troubled,
};

/// How a call stands.
pub(super) type RunStanding = Standing<ToolRunStatus>;

/// The Job that the status names.
pub(super) fn job_ref(run: &ToolRun) -> Option<&JobRef> {
    run.status.as_ref()?.job_ref.as_ref()
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
    supplied(run, next)
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
    next = supplied(run, next)
        .observe(ConditionType::Accepted, Lifecycle::Submitted)
        .observe(ConditionType::Running, Lifecycle::Running);
    // What the policy said when the call began still holds.
    let said = condition(run, ConditionType::Warning);
    let said = said.filter(|said| said.status == "True");
    let reason = said.and_then(|said| cause::Reason::parse(said.reason.as_deref()?));
    if let (Some(said), Some(reason)) = (said, reason.filter(|reason| is_of_policy(*reason))) {
        next = warning(next, reason, said.message.clone().unwrap_or_default());
    }
    match phase(run) == Phase::Running {
        true => next,
        false => next.tell(events::Reason::Submitted, format!("Job {name} was made")),
    }
}

/// Something is not there yet.
pub(super) fn waiting(run: &ToolRun, reason: Lifecycle, message: &str) -> RunStanding {
    let event = if reason == Lifecycle::JobNameConflict {
        events::Reason::JobNameConflict
    } else {
        events::Reason::ReferenceMissing
    };
    standing(run, phase(run), reason, message)
        .lacking(reason)
        .say(event)
}

/// Waiting is over.
pub(super) fn unfit(
    run: &ToolRun,
    reason: Lifecycle,
    message: &str,
    now: Timestamp,
) -> RunStanding {
    let message = format!("{message}, and the time to wait for it is over");
    ended(run, Phase::Failed, reason, message, now)
        .observe(ConditionType::InvalidSpec, reason)
        .say(events::Reason::InvalidSpec)
}

/// The policy does not let the call begin.
pub(super) fn forbidden(run: &ToolRun, causes: &[Cause], now: Timestamp) -> Option<RunStanding> {
    let (reason, message) = told(causes)?;
    let next = ended(run, Phase::Failed, reason, message, now);
    let next = next.observe(ConditionType::InvalidSpec, reason);
    Some(next.say(events::Reason::PolicyDenied))
}

/// The policy would rather not have let the call begin.
pub(super) fn warned(run: &ToolRun, mut next: RunStanding, causes: &[Cause]) -> RunStanding {
    let Some((reason, note)) = told(causes) else {
        return next;
    };
    if !is_warned(run, reason) {
        next = next.telling(events::Reason::PolicyDenied, note.clone());
    }
    warning(next, reason, note)
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
    let (reason, message) = told(causes)?;
    let next = ended(run, Phase::Failed, reason, message, now);
    let next = next.observe(ConditionType::InvalidSpec, reason);
    Some(next.say(events::Reason::InvalidSpec))
}

/// The API server refused the Job for good.
pub(super) fn not_submitted(run: &ToolRun, fault: &Fault, now: Timestamp) -> RunStanding {
    let reason = Lifecycle::SubmitFailed;
    let next = ended(run, Phase::Failed, reason, fault.sentence(), now);
    let loss = Loss::of(never_made(now));
    let class = loss.finding.class;
    lost(next.say(events::Reason::SubmitFailed), &loss, now).tell(class.into(), loss.why())
}

/// The call was stopped because someone asked for it.
pub(super) fn cancelled(run: &ToolRun, message: &str, now: Timestamp) -> RunStanding {
    let next = ended(run, Phase::Cancelled, Lifecycle::Cancelled, message, now);
    next.say(events::Reason::Cancelled)
}

/// How a Job ended.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) outcome: Outcome,
    pub(super) at: Timestamp,
    /// What its pod said about it.
    pub(super) detail: Option<String>,
    /// How its runner says that it ended.
    pub(super) report: Option<Outcome>,
}

/// The Job has ended.
pub(super) fn finished(run: &ToolRun, job: &Job, ending: Ending, now: Timestamp) -> RunStanding {
    let Ending {
        outcome,
        at,
        detail,
        report,
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
    next.observe(ConditionType::Accepted, Lifecycle::Submitted)
        .say(event)
        .contested(outcome, report)
}

/// The Job is being deleted or gone, and a pod of it still works: what it will say counts.
pub(super) fn orphaned(run: &ToolRun, loss: &Loss) -> RunStanding {
    let class = loss.finding.class;
    let message = format!("the Job is gone ({class}), but its pod still works");
    let mut next = standing(run, phase(run), Lifecycle::Running, message);
    loss.keep_deletion(next.status.job_ref.get_or_insert_default());
    let next = next.observe(ConditionType::JobMissing, class);
    match holds(run, ConditionType::JobMissing) {
        true => next,
        false => next.say(class.into()),
    }
}

/// The Job is gone, and its pod works on although its time is over: nobody else ends it any more.
pub(super) fn overdue(run: &ToolRun, loss: &Loss, now: Timestamp) -> RunStanding {
    let message = "the Job is missing, and its pod took longer than allowed";
    let (phase, event) = ends(Outcome::Failed);
    let next = ended(run, phase, Lifecycle::TimedOut, message, now).say(event);
    lost(next, loss, now).tell(loss.finding.class.into(), loss.why())
}

/// The Job is gone; what could still be found out about its outcome is kept.
pub(super) fn missing(run: &ToolRun, loss: &Loss, now: Timestamp) -> RunStanding {
    let class = loss.finding.class;
    let (reason, message) = loss.end();
    let at = loss.at(now);
    let next = match loss.finding.outcome {
        Some(outcome) => {
            let (phase, event) = ends(outcome);
            let next = ended(run, phase, reason, message, at).say(event);
            next.say(events::Reason::OutcomeRecovered)
                .contested(outcome, loss.report)
        }
        None => ended(run, Phase::Failed, reason, message, at),
    };
    lost(next, loss, now).tell(class.into(), loss.why())
}

/// Keeps, shows and counts what was found out about a missing Job.
pub(super) fn lost(mut next: RunStanding, loss: &Loss, now: Timestamp) -> RunStanding {
    let class = loss.finding.class;
    loss.keep(next.status.job_ref.get_or_insert_default(), now);
    let holds = ConditionStatus::True;
    let observed = Observation::new(ConditionType::JobMissing, holds, class, loss.why());
    next.observed.push(observed);
    next.facts.push(Fact::JobMissing {
        class,
        recovered: loss.finding.recovered,
    });
    next
}
