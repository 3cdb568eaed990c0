//! What is to be done about a run, from what was observed. The whole life of a run is here.
//!
//! For each turn, in order: reserve the Job's name, make it, keep its uid, follow it, store its outcome, mark it, let it
//! go. Each step can be repeated, and each is planned from what is observed alone, so it does not matter where the last one
//! stopped. [`begin`] is about the start of a turn, [`settle`] about what may go.

mod begin;
pub(in crate::controller) mod evidence;
pub(in crate::controller) mod pods;
mod settle;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Resource, ResourceExt};

pub(super) use settle::is_of;

use super::admission::Decision;
use super::custom::reply::Reply;
use super::custom::{self, Errand};
use super::settings::Settings;
use super::status;
use super::turn::{self, Stage, Turn};
use super::work::{Found, Lack};
use super::{artifacts, job};
use crate::api::contract::finalizer;
use crate::api::custody::{
    Evidence, Finding, LastStatus, Outcome, Recovered, Release, classify, last_status_of,
};
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::AgentRunStatus;
use crate::controller::driver::plan::{Next, Plan, Step};
use crate::controller::runs::look::is_held;
use crate::controller::runs::{Loss, Sight, is_going, may_go};

/// How much longer than a pod may take to end it is waited for, when it was stopped.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was found in the cluster about one run.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(super) now: Timestamp,
    /// The run; none if it is gone.
    pub(super) run: Option<Arc<AgentRun>>,
    pub(super) job: Sight,
    /// Pods of that Job.
    pub(super) pods: Vec<Arc<Pod>>,
    /// Other Jobs of this very run: those of earlier tries.
    pub(super) other_jobs: Vec<Arc<Job>>,
    /// Their pods.
    pub(super) other_pods: Vec<Arc<Pod>>,
    /// What the endpoint of the run said last, if it has one.
    pub(super) reply: Option<Arc<Reply>>,
    /// Whether it may begin, if it has not.
    pub(super) admission: Decision,
    /// Name of a ConfigMap of someone else that stands where one of ours must be.
    pub(super) in_the_way: Option<String>,
    /// What it refers to; looked up only when a Job is to be made. When one is missing, only its Agent.
    pub(super) found: Option<Found>,
    /// Whether the namespace is being deleted; looked up only when its Job is missing.
    pub(super) namespace_terminating: bool,
    /// Jobs and pods of runs of the same name that are gone for certain.
    pub(super) stray_jobs: Vec<Arc<Job>>,
    pub(super) stray_pods: Vec<Arc<Pod>>,
}

/// What can be done about a run besides writing its status.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Give the run its slot.
    Admit,
    /// Put our finalizer on the run, so that what it runs is stopped before it goes.
    Hold,
    /// Take it away: nothing is left to be stopped.
    LetGo,
    /// Call the endpoint of the run.
    Call(Box<Errand>),
    /// Make a ConfigMap that the Job reads.
    MakeConfigMap(Box<ConfigMap>),
    /// Make the Job.
    MakeJob(Box<Job>),
    /// Let the Job go: with the mark that its outcome is stored and a time to live, or because nobody waits for it.
    Release { job: Arc<Job>, why: Why },
    /// Stop the Job.
    Stop(Arc<Job>),
    /// Let a pod go.
    ReleasePod(Arc<Pod>),
    /// Stop a pod that no Job looks after any more.
    StopPod(Arc<Pod>),
    /// Remove the run: its time is over.
    Expire,
}

/// Why a Job may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Its outcome is stored; so many seconds after its end it goes, if any are given.
    Stored { ttl: Option<i32> },
    /// Its run is gone.
    OwnerGone,
    /// Its run goes with the whole namespace.
    NamespaceTerminating,
}

type RunPlan = Plan<Action, AgentRunStatus>;

/// Decides, and keeps what others have written into the status within bounds.
pub(super) fn plan(seen: &Observed, settings: &Settings) -> RunPlan {
    let mut plan = decide(seen, settings);
    for step in &mut plan.steps {
        if let (Step::Status(next), Some(run)) = (step, &seen.run) {
            artifacts::limit(run, next, settings.artifacts);
        }
    }
    plan
}

fn decide(seen: &Observed, settings: &Settings) -> RunPlan {
    let strays = settle::release_strays(seen);
    let may_go = may_go(seen.run.as_deref(), seen.namespace_terminating);
    let Some(run) = seen.run.as_ref().filter(|_| strays.is_empty()) else {
        return Plan::steps(strays);
    };
    match may_go {
        Some(Release::Recorded) => return settle::settle(seen, run, settings),
        // It goes with the namespace; what is still there of it must not hold that up.
        Some(Release::NamespaceTerminating) if is_going(&**run) => {
            return settle::abandon(seen, run);
        }
        Some(Release::NamespaceTerminating | Release::OwnerGone) | None => {}
    }
    if let Some(why) = artifacts::breach(run, settings.artifacts) {
        return store(status::exceeded(run, &why, seen.now));
    }
    let stage = turn::stage(run);
    if let Some(ended) = end_of_job(seen, run, stage) {
        return ended;
    }
    if is_going(&**run) {
        if !is_held(&**run, finalizer::RUNTIME_CLEANUP) {
            return Plan::idle(Next::Wait);
        }
        return stop(seen, run, stage, "the run was deleted before it had ended");
    }
    if run.spec.cancel == Some(true) {
        return stop(seen, run, stage, "stopped because spec.cancel is set");
    }
    if settings.immutable && turn::has_begun(run) && status::is_changed(run) {
        return store(status::changed(run, seen.now));
    }
    let earlier = settle::release_earlier(seen, run, stage, settings);
    if !earlier.is_empty() {
        return Plan::steps(earlier);
    }
    match stage {
        Stage::Under(turn)
        | Stage::Before {
            turn: turn @ Turn::Whole,
            ..
        } => follow(seen, run, turn, settings),
        Stage::Before { turn, due } => begin::next(seen, run, turn, due, settings),
        Stage::Over if turn::steps(run).is_empty() => begin::refuse(seen, run),
        Stage::Over => store(status::all_done(run, seen.now)),
    }
}

/// The Job has ended: that counts more than anything that is asked of the run.
fn end_of_job(seen: &Observed, run: &AgentRun, stage: Stage) -> Option<RunPlan> {
    let (Stage::Under(turn) | Stage::Before { turn, .. }) = stage else {
        return None;
    };
    let Sight::Ours(job) = &seen.job else {
        return None;
    };
    let LastStatus::Finished { at, outcome } = last_status_of(job) else {
        return None;
    };
    if !is_bound(run) {
        // Made before a crash: its start is stored before its end.
        return Some(store(status::running(run, turn, job)));
    }
    let ending = status::Ending {
        outcome,
        at,
        detail: pods::detail(&seen.pods, job::CONTAINER),
        report: pods::report(&seen.pods, job::CONTAINER),
    };
    Some(store(status::finished(run, turn, job, ending, seen.now)))
}

/// Nobody wants the run to go on. If its Job is gone, why is kept as well, and how it ended counts more, if anyone knows.
fn stop(seen: &Observed, run: &AgentRun, stage: Stage, message: &str) -> RunPlan {
    let cancelled = status::cancelled(run, message, seen.now);
    let (Sight::Gone { .. }, Stage::Under(turn)) = (&seen.job, stage) else {
        return store(cancelled);
    };
    let loss = loss(seen, evidence::of(seen, run));
    store(match loss.finding.outcome {
        Some(_) => status::missing(run, turn, &loss, seen.now),
        None => status::lost(cancelled, turn, &loss, seen.now),
    })
}

fn store(next: status::RunStanding) -> RunPlan {
    Plan::steps(vec![Step::status(next)])
}

/// Whether the uid of the Job is stored.
fn is_bound(run: &AgentRun) -> bool {
    turn::job_ref(run).is_some_and(|job| job.uid.is_some())
}

/// A turn that has not ended, in a run that nobody wants to stop.
fn follow(seen: &Observed, run: &Arc<AgentRun>, turn: Turn, settings: &Settings) -> RunPlan {
    if let Some(plan) = custom::follow(seen, run) {
        return plan;
    }
    match &seen.job {
        Sight::Ours(job) if job.meta().deletion_timestamp.is_none() => {
            let mut steps = vec![Step::status(status::running(run, turn, job))];
            steps.extend(settle::release_never_ran(seen));
            Plan::steps(steps)
        }
        Sight::Ours(_) | Sight::Gone { .. } => mourn(seen, run, turn),
        Sight::Absent if is_bound(run) => mourn(seen, run, turn),
        Sight::Absent => begin::begin(seen, run, turn, settings),
        Sight::Taken(job) => {
            let message = format!(
                "another object owns Job {}, whose name the run needs",
                job.name_any()
            );
            begin::wait(seen, run, settings, &Lack::conflict(message))
        }
        Sight::Claimed(pod) => {
            let message = claimed_by(pod, &turn.job(run));
            begin::wait(seen, run, settings, &Lack::conflict(message))
        }
    }
}

/// Why nothing is started while there is a pod that may be work of a Job of ours.
pub(in crate::controller) fn claimed_by(pod: &Pod, job: &str) -> String {
    let pod = pod.name_any();
    format!("pod {pod} says that it is of Job {job}, which is not there: it may be its work")
}

/// The Job is going or gone without having ended: its pods may still tell, or will.
fn mourn(seen: &Observed, run: &AgentRun, turn: Turn) -> RunPlan {
    let evidence = evidence::of(seen, run);
    let is_at_work = pods::is_at_work(&evidence);
    let loss = loss(seen, evidence);
    if loss.finding.outcome.is_none() && is_at_work && !seen.namespace_terminating {
        return outlive(seen, run, turn, &loss);
    }
    // What failed after its time was over, and most likely because we stopped it then, took too long.
    let Finding {
        outcome, recovered, ..
    } = loss.finding;
    let has_failed = outcome == Some(Outcome::Failed) && recovered == Recovered::FromPod;
    let ended = loss.finding.ended_at.filter(|_| has_failed);
    let deadline = deadline(seen, run, turn);
    let is_late = deadline.is_some_and(|deadline| ended.is_some_and(|ended| deadline <= ended));
    store(match is_late {
        true => status::overdue(run, turn, &loss, seen.now),
        false => status::missing(run, turn, &loss, seen.now),
    })
}

fn loss(seen: &Observed, evidence: Evidence) -> Loss {
    Loss {
        finding: classify(&evidence),
        detail: pods::detail(&seen.pods, job::CONTAINER),
        deletion: evidence.deletion,
        report: evidence.runner_report,
    }
}

/// A pod works on without its Job. Nobody else ends it when its time is over, so it is stopped then. Its end is stored
/// before anything follows, unless its node says nothing any more.
fn outlive(seen: &Observed, run: &AgentRun, turn: Turn, loss: &Loss) -> RunPlan {
    let wait = |until: Option<Timestamp>| Plan {
        steps: vec![Step::status(status::orphaned(run, turn, loss))],
        next: until.map_or(Next::Wait, Next::At),
    };
    let deadline = deadline(seen, run, turn);
    if deadline.is_none_or(|deadline| deadline > seen.now) {
        return wait(deadline);
    }
    let (ending, left): (Vec<&Arc<Pod>>, Vec<&Arc<Pod>>) = seen
        .pods
        .iter()
        .filter(|pod| pods::works(pod))
        .partition(|pod| pod.meta().deletion_timestamp.is_some());
    if !left.is_empty() {
        let stops = left.into_iter().map(Arc::clone).map(Action::StopPod);
        return Plan::steps(stops.map(Step::Do).collect());
    }
    let ends = ending.iter().filter_map(|pod| {
        let deleted = pod.meta().deletion_timestamp.as_ref()?;
        deleted.0.checked_add(PATIENCE).ok()
    });
    match ends.max().filter(|end| *end > seen.now) {
        Some(end) => wait(Some(end)),
        None => store(status::overdue(run, turn, loss, seen.now)),
    }
}

/// When the time of a turn is over whose Job is going or gone.
fn deadline(seen: &Observed, run: &AgentRun, turn: Turn) -> Option<Timestamp> {
    let step = match turn {
        Turn::Whole => None,
        Turn::Step(this) => turn::step(run, this.index),
    };
    let agent = seen.found.as_ref().and_then(|found| found.agent.as_deref());
    let (_, last) = seen.job.absence();
    evidence::deadline(last, &seen.pods, job::timeout(step, agent))
}
