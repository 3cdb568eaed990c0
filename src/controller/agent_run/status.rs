//! How a run stands, in words: phase, conditions, times, and what is told and counted once it is stored.
//!
//! A message says nothing that changes by itself, or it would be written again and again.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use serde_json::json;

use super::job;
use super::work::Lack;
use crate::api::cause::Cause;
use crate::api::condition::{
    Condition, ConditionStatus, ConditionType, Lifecycle, Observation, Reason,
};
use crate::api::custody::{Class, Deletion, Finding, Outcome, Recovered};
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::{AgentRunStatus, RuntimeType};
use crate::api::kinds::shared::{JobDeletion, JobMissing, JobRef};
use crate::api::phase::Phase;
use crate::controller::driver::fault::Fault;
use crate::controller::driver::plan::{Fact, Notice, Standing};
use crate::events;

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

/// The Job that the status names.
pub(super) fn job_ref(run: &AgentRun) -> Option<&JobRef> {
    run.status.as_ref()?.job_ref.as_ref()
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
        let job = self.status.job_ref.as_ref();
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
pub(super) fn reserved(run: &AgentRun) -> RunStanding {
    let mut next = standing(
        run,
        Phase::Pending,
        Lifecycle::Pending,
        "the Job is about to be made",
    );
    next.status.job_ref = Some(JobRef {
        name: Some(job::name(run)),
        namespace: run.namespace(),
        ..JobRef::default()
    });
    next
}

/// The Job is there and does the work.
pub(super) fn running(run: &AgentRun, job: &Job) -> RunStanding {
    let name = job.name_any();
    let message = format!("Job {name} does the work");
    let is_new = phase(run) != Phase::Running;
    let mut next = standing(run, Phase::Running, Lifecycle::Running, message);
    next.status.started_at = job.creation_timestamp().map(|created| created.0);
    next.status.runtime_ref = json!({
        "type": "job", "name": name, "namespace": job.namespace(), "uid": job.uid(),
    })
    .as_object()
    .cloned();
    let reference = next.status.job_ref.get_or_insert_default();
    reference.name = Some(name.clone());
    reference.namespace = job.namespace();
    reference.uid = job.uid();
    let ttl = job
        .spec
        .as_ref()
        .and_then(|spec| spec.ttl_seconds_after_finished);
    next = next.observe(ConditionType::Accepted, Lifecycle::Submitted);
    if is_new {
        next = next.tell(events::Reason::Submitted, format!("Job {name} was made"));
    }
    warn_of_ttl(run, next, ttl)
}

/// Someone else put a time to live on the Job: it is held all the same, but people should know.
fn warn_of_ttl(run: &AgentRun, mut next: RunStanding, ttl: Option<i32>) -> RunStanding {
    let Some(ttl) = ttl else {
        return without_warning(run, next);
    };
    let note = format!(
        "someone put a time to live of {ttl} s on the Job; it is held until its outcome is stored"
    );
    if !has_warning(run, Lifecycle::JobTtlInjected) {
        next = next.tell(events::Reason::JobTtlInjected, note.clone());
    }
    let warning = Observation::new(
        ConditionType::Warning,
        ConditionStatus::True,
        Lifecycle::JobTtlInjected,
        note,
    );
    next.observed.push(warning);
    next
}

/// Takes back a warning of an earlier pass.
fn without_warning(run: &AgentRun, mut next: RunStanding) -> RunStanding {
    if condition(run, ConditionType::Warning).is_some_and(|warning| warning.status == "True") {
        next.observed.push(Observation::new(
            ConditionType::Warning,
            ConditionStatus::False,
            Lifecycle::None,
            "",
        ));
    }
    next
}

fn condition(run: &AgentRun, type_: ConditionType) -> Option<&Condition> {
    let conditions = run.status.as_ref()?.conditions.as_ref()?;
    conditions
        .iter()
        .find(|condition| condition.type_ == type_.as_str())
}

fn has_warning(run: &AgentRun, reason: Lifecycle) -> bool {
    condition(run, ConditionType::Warning).is_some_and(|warning| {
        warning.status == "True" && warning.reason.as_deref() == Some(reason.as_str())
    })
}

/// Since when the run is held back, if it is.
pub(super) fn blocked_since(run: &AgentRun) -> Option<Timestamp> {
    let blocked = condition(run, ConditionType::Blocked)?;
    (blocked.status == "True").then_some(blocked.last_transition_time)?
}

/// Something is not there yet.
pub(super) fn waiting(run: &AgentRun, reason: Lifecycle, message: &str) -> RunStanding {
    let event = if reason == Lifecycle::SecretNotFound {
        events::Reason::MissingSecret
    } else if reason == Lifecycle::JobNameConflict {
        events::Reason::JobNameConflict
    } else {
        events::Reason::ReferenceMissing
    };
    let next = standing(run, phase(run), reason, message).observe(ConditionType::Blocked, reason);
    without_warning(run, next.tell(event, message))
}

/// Waiting is over, or never made sense.
pub(super) fn unfit(run: &AgentRun, lack: &Lack, now: Timestamp) -> RunStanding {
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

/// The spec breaks rules.
pub(super) fn refused(run: &AgentRun, causes: &[Cause], now: Timestamp) -> Option<RunStanding> {
    let first = causes.first()?;
    let told: Vec<_> = causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    let next = ended(run, Phase::Failed, first.reason, told.join("; "), now);
    let message = next.message.clone();
    Some(
        next.observe(ConditionType::InvalidSpec, first.reason)
            .tell(events::Reason::InvalidSpec, message),
    )
}

/// The API server refused the Job for good.
pub(super) fn not_submitted(run: &AgentRun, fault: &Fault, now: Timestamp) -> RunStanding {
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

/// The run was stopped because someone asked for it.
pub(super) fn cancelled(run: &AgentRun, message: &str, now: Timestamp) -> RunStanding {
    ended(run, Phase::Cancelled, Lifecycle::Cancelled, message, now)
        .tell(events::Reason::Cancelled, message)
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
pub(super) fn finished(run: &AgentRun, job: &Job, ending: Ending, now: Timestamp) -> RunStanding {
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
    let reference = next.status.job_ref.get_or_insert_default();
    reference.uid = job.uid();
    next.facts.push(Fact::OutcomeStored {
        seconds: now.duration_since(at).as_secs_f64().max(0.0),
    });
    let message = next.message.clone();
    without_warning(run, next.tell(event, message))
}

fn ends(outcome: Outcome) -> (Phase, events::Reason) {
    match outcome {
        Outcome::Succeeded => (Phase::Succeeded, events::Reason::Succeeded),
        Outcome::Failed => (Phase::Failed, events::Reason::Failed),
    }
}

/// Why a Job failed, from its condition and what its pod said.
fn failure(job: &Job, detail: Option<String>) -> (Lifecycle, String) {
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

/// The Job is being deleted or gone, and a pod of it still works: what it will say counts.
pub(super) fn orphaned(
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
pub(super) fn missing(
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

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// A run that has ended, at this time.
fn ended(
    run: &AgentRun,
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
pub(super) fn ratified(run: &AgentRun) -> Option<RunStanding> {
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

fn read_reason(word: &str) -> Option<Reason> {
    let lifecycle = Lifecycle::parse(word).map(Reason::from);
    lifecycle
        .or_else(|| crate::api::cause::Reason::parse(word).map(Reason::from))
        .or_else(|| Class::parse(word).map(Reason::from))
}
