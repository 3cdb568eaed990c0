//! How a run stands, in words: phase, conditions, times, and what is told and counted once it is stored.
//!
//! A message says nothing that changes by itself, or it would be written again and again. Here is a run that has not
//! ended; [`verdict`] is about the end of a Job and what follows, [`missing`] about a Job that is gone, [`end`] about the
//! end of the run, [`custom`] about one that an endpoint carries out, [`steps`] about what a workflow shows of its steps, [`warning`] about what people should know meanwhile.

pub(super) mod custom;
mod end;
mod missing;
mod steps;
pub(in crate::controller) mod verdict;
mod warning;

pub(super) use end::{
    cancelled, changed, duplicate, exceeded, forbidden, not_submitted, refused, unfit,
};
pub(super) use missing::{lost, missing, orphaned, overdue};
pub(super) use verdict::{Ending, all_done, finished};
pub(super) use warning::{is_changed, is_troubled, warned, with_vcs};

pub(super) use crate::controller::runs::{is_edited, missing_since, phase, ratified, troubled};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::turn::{self, Turn, job_ref};
use crate::api::condition::{ConditionStatus, ConditionType, Hindrance, Lifecycle, Observation};
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::AgentRunStatus;
use crate::api::kinds::shared::JobRef;
use crate::api::phase::Phase;
use crate::api::text::hash::{spec_hash, text_hash};
use crate::controller::driver::plan::Standing;
use crate::controller::runs::{condition, holds, standing, supplied};
use crate::events;
use warning::{change_warning, kept_warning, ttl_warning, warn};

/// How a run stands.
pub(super) type RunStanding = Standing<AgentRunStatus>;

/// The name of the Job is kept before the Job is made, so that it can be found again after a crash.
pub(super) fn reserved(
    run: &AgentRun,
    turn: Turn,
    prompt: Option<&str>,
    now: Timestamp,
) -> RunStanding {
    let phase = phase(run);
    let reason = match phase {
        Phase::Running => Lifecycle::Running,
        Phase::Pending | Phase::Succeeded | Phase::Failed | Phase::Cancelled => Lifecycle::Pending,
    };
    let message = format!("the Job{} is about to be made", of_step(run, turn));
    let mut next = standing(run, phase, reason, message);
    let hash = prompt.map(text_hash);
    next.status.system_prompt_hash = next.status.system_prompt_hash.or(hash);
    let job = JobRef {
        name: Some(turn.job(run)),
        namespace: run.namespace(),
        ..JobRef::default()
    };
    match turn {
        Turn::Whole => next.status.job_ref = Some(job),
        Turn::Step(this) => steps::reserve(run, &mut next.status, this, job, now),
    }
    supplied(run, next)
}

fn of_step(run: &AgentRun, turn: Turn) -> String {
    match turn {
        Turn::Whole => String::new(),
        Turn::Step(this) => {
            let name = turn::step(run, this.index).map_or("", |step| &step.name);
            format!(" of step {name}")
        }
    }
}

/// The Job of a turn is there and does the work.
pub(super) fn running(run: &AgentRun, turn: Turn, job: &Job) -> RunStanding {
    let name = job.name_any();
    let message = format!("Job {name} does the work{}", of_step(run, turn));
    let is_new = job_ref(run).is_none_or(|job| job.uid.is_none());
    let mut next = standing(run, Phase::Running, Lifecycle::Running, message);
    let made = job.creation_timestamp().map(|created| created.0);
    next.status.started_at = next.status.started_at.or(made);
    next.status.runtime_ref = runtime_ref(run, turn, job).as_object().cloned();
    if let Some(reference) = steps::reference(&mut next.status, turn) {
        reference.name = Some(name.clone());
        reference.namespace = job.namespace();
        reference.uid = job.uid();
    }
    if let Turn::Step(this) = turn {
        steps::bind(&mut next.status, this, job);
    }
    let ttl = job
        .spec
        .as_ref()
        .and_then(|spec| spec.ttl_seconds_after_finished);
    next = supplied(run, next).observe(ConditionType::Accepted, Lifecycle::Submitted);
    if is_new {
        let note = format!("Job {name}{} was made", of_step(run, turn));
        next = next.tell(events::Reason::Submitted, note);
    }
    if holds(run, ConditionType::JobMissing) {
        next.observed.push(Observation::new(
            ConditionType::JobMissing,
            ConditionStatus::False,
            Lifecycle::Reconciled,
            "",
        ));
    }
    next.status
        .spec_hash
        .get_or_insert_with(|| spec_hash(&run.spec));
    let warning = ttl_warning(ttl).or_else(|| change_warning(run));
    warn(run, next, warning.or_else(|| kept_warning(run)))
}

/// What the runtime made, in the form that older tools read.
fn runtime_ref(run: &AgentRun, turn: Turn, job: &Job) -> Value {
    let mut made = json!({
        "type": "job", "name": job.name_any(), "namespace": job.namespace(), "uid": job.uid(),
    });
    if let Turn::Step(this) = turn {
        made["type"] = json!("workflow");
        made["runName"] = json!(run.name_any());
        made["stepName"] = json!(turn::step(run, this.index).map(|step| &step.name));
    }
    made
}

/// Why the run is held back, if it is.
pub(super) fn blocked_reason(run: &AgentRun) -> Option<&str> {
    let blocked = condition(run, ConditionType::Blocked)?;
    (blocked.status == "True").then_some(blocked.reason.as_deref())?
}

/// Something is not there yet, or a limit is reached.
pub(super) fn waiting(run: &AgentRun, reason: Hindrance, message: &str) -> RunStanding {
    let next = standing(run, phase(run), reason, message);
    let event = match reason {
        // A budget is no reference that could be late: it may be used up for as long as it takes.
        Hindrance::ConcurrencyLimit
        | Hindrance::QueueLimit
        | Hindrance::RateLimit
        | Hindrance::Exceeded => {
            let next = next.observe(ConditionType::Blocked, reason);
            return supplied(run, next).say(events::Reason::Blocked);
        }
        Hindrance::SecretNotFound | Hindrance::SecretKeyMissing => events::Reason::MissingSecret,
        Hindrance::JobNameConflict => events::Reason::JobNameConflict,
        Hindrance::PodNotEnding => events::Reason::Blocked,
        Hindrance::MissingAgent
        | Hindrance::MissingProvider
        | Hindrance::MissingImplementation
        | Hindrance::MissingMemory
        | Hindrance::MissingBudget
        | Hindrance::MissingVcsProvider
        | Hindrance::ConfigMapNotFound
        | Hindrance::ConfigMapKeyMissing
        | Hindrance::ClaimNotFound => events::Reason::ReferenceMissing,
    };
    next.lacking(reason).say(event)
}
