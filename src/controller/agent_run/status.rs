//! How a run stands, in words: phase, conditions, times, and what is told and counted once it is stored.
//!
//! A message says nothing that changes by itself, or it would be written again and again. Here is a run that has not
//! ended; [`verdict`] is about the end of a Job and what follows, [`missing`] about a Job that is gone, [`end`] about the
//! end of the run, [`steps`] about what a workflow shows of its steps, [`warning`] about what people should know meanwhile.

pub(in crate::controller) mod end;
mod missing;
mod steps;
pub(in crate::controller) mod verdict;
mod warning;

pub(super) use end::{
    cancelled, changed, duplicate, forbidden, not_submitted, ratified, refused, unfit,
};
pub(super) use missing::{missing, orphaned};
pub(super) use verdict::{Ending, all_done, finished};
pub(super) use warning::{is_changed, is_troubled, warned, with_vcs};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::admission::is_capacity;
use super::turn::{self, Turn, job_ref};
use crate::api::condition::{
    Condition, ConditionStatus, ConditionType, Lifecycle, Observation, Reason,
};
use crate::api::hash::{spec_hash, text_hash};
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::AgentRunStatus;
use crate::api::kinds::shared::JobRef;
use crate::api::phase::Phase;
use crate::controller::driver::fault::Fault;
use crate::controller::driver::plan::{Notice, Standing};
use crate::events;
use warning::{change_warning, kept_warning, ttl_warning, warn, without_warning};

/// How a run stands.
pub(super) type RunStanding = Standing<AgentRunStatus>;

/// The phase of a run; one that nobody knows counts as pending.
pub(super) fn phase(run: &AgentRun) -> Phase {
    let phase = run
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    phase.and_then(Phase::parse).unwrap_or(Phase::Pending)
}

fn stored(run: &AgentRun) -> AgentRunStatus {
    run.status.clone().unwrap_or_default()
}

fn standing(
    run: &AgentRun,
    phase: Phase,
    reason: impl Into<Reason>,
    message: impl Into<String>,
) -> RunStanding {
    let mut status = stored(run);
    status.phase = Some(phase.as_str().to_owned());
    Standing {
        status,
        observed: Vec::new(),
        reason: reason.into(),
        message: message.into(),
        notices: Vec::new(),
        facts: Vec::new(),
    }
}

impl RunStanding {
    fn observe(mut self, type_: ConditionType, reason: impl Into<Reason>) -> Self {
        let message = self.message.clone();
        let observed = Observation::new(type_, ConditionStatus::True, reason, message);
        self.observed.push(observed);
        self
    }

    fn tell(mut self, reason: events::Reason, note: impl Into<String>) -> Self {
        let job = steps::latest(&self.status);
        let job = job.and_then(|job| Some((job.name.clone()?, job.uid.clone())));
        self.notices.push(Notice {
            reason,
            note: note.into(),
            job,
        });
        self
    }
}

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
    next
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
    next = next.observe(ConditionType::Accepted, Lifecycle::Submitted);
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

fn condition(run: &AgentRun, type_: ConditionType) -> Option<&Condition> {
    let conditions = run.status.as_ref()?.conditions.as_ref()?;
    conditions
        .iter()
        .find(|condition| condition.type_ == type_.as_str())
}

fn holds(run: &AgentRun, type_: ConditionType) -> bool {
    condition(run, type_).is_some_and(|condition| condition.status == "True")
}

/// Why the run is held back, if it is.
pub(super) fn blocked_reason(run: &AgentRun) -> Option<&str> {
    let blocked = condition(run, ConditionType::Blocked)?;
    (blocked.status == "True").then_some(blocked.reason.as_deref())?
}

/// Since when the run waits for something that it refers to, if it does. The condition may have held for longer, because
/// of a limit, so the last word about it counts.
pub(super) fn missing_since(run: &AgentRun) -> Option<Timestamp> {
    // A budget is no reference that could be late: it may be used up for as long as it takes.
    let is_budget = |reason: &str| reason == Lifecycle::Exceeded.as_str();
    blocked_reason(run).filter(|reason| !is_capacity(reason) && !is_budget(reason))?;
    let updated = run.status.as_ref()?.updated_at;
    updated.or_else(|| condition(run, ConditionType::Blocked)?.last_transition_time)
}

/// Something is not there yet, or a limit is reached.
pub(super) fn waiting(run: &AgentRun, reason: impl Into<Reason>, message: &str) -> RunStanding {
    let reason = reason.into();
    let event = if is_capacity(reason.as_str()) || reason == Lifecycle::Exceeded.into() {
        events::Reason::Blocked
    } else if [Lifecycle::SecretNotFound, Lifecycle::SecretKeyMissing]
        .iter()
        .any(|word| reason == (*word).into())
    {
        events::Reason::MissingSecret
    } else if reason == Lifecycle::JobNameConflict.into() {
        events::Reason::JobNameConflict
    } else {
        events::Reason::ReferenceMissing
    };
    let next = standing(run, phase(run), reason, message).observe(ConditionType::Blocked, reason);
    without_warning(run, next.tell(event, message))
}

/// Something failed that is tried again.
pub(super) fn troubled(run: &AgentRun, fault: &Fault) -> Option<RunStanding> {
    let (reason, event) = (fault.class.condition()?, fault.class.event()?);
    let message = fault.sentence();
    let next = standing(run, phase(run), reason, message.clone());
    Some(
        next.observe(ConditionType::Warning, reason)
            .tell(event, message),
    )
}
