//! What is to be done about a run, from what was observed. The whole life of a run with one Job is here.
//!
//! In order: reserve the Job's name, make it, keep its uid, follow it, store its outcome, mark it, let it go. Each step
//! can be repeated, and each is planned from what is observed alone, so it does not matter where the last one stopped.

pub(in crate::controller) mod evidence;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Resource, ResourceExt};

use super::job;
use super::retention::{job_ttl, run_due};
use super::settings::Settings;
use super::status;
use super::work::{Found, Lack, resolve};
use crate::api::cause::{Cause, Path, Reason};
use crate::api::condition::Lifecycle;
use crate::api::contract::{annotation, finalizer};
use crate::api::custody::{Absence, LastStatus, classify, last_status_of};
use crate::api::kind::Kind;
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::{AgentRunStatus, RuntimeType};
use crate::api::phase::Phase;
use crate::api::validate::validate;
use crate::controller::driver::plan::{Next, Plan, Step};

/// Time between two looks for something that cannot be watched.
const POLL: Duration = Duration::from_secs(5);

/// What was found in the cluster about one run.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(super) now: Timestamp,
    /// The run; none if it is gone.
    pub(super) run: Option<Arc<AgentRun>>,
    pub(super) job: Sight,
    /// Pods of this very run.
    pub(super) pods: Vec<Arc<Pod>>,
    /// What it refers to; looked up only for a run that has not begun.
    pub(super) found: Option<Found>,
    /// Whether the namespace is being deleted; looked up only when its Job is missing.
    pub(super) namespace_terminating: bool,
    /// Jobs and pods of runs of the same name that are gone for certain.
    pub(super) stray_jobs: Vec<Arc<Job>>,
    pub(super) stray_pods: Vec<Arc<Pod>>,
}

/// What there is under the name of the run's Job.
#[derive(Clone, Debug)]
pub(super) enum Sight {
    /// Nothing, as far as we know.
    Absent,
    /// The Job of this run.
    Ours(Arc<Job>),
    /// Something that belongs to someone else.
    Taken(Arc<Job>),
    /// The Job of this run is not there any more: a live read has confirmed it.
    Gone {
        absence: Absence,
        /// As it was last seen, if anyone saw it go.
        last: Option<Arc<Job>>,
    },
}

/// What can be done about a run besides writing its status.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Put our finalizer on the run, so that what it runs is stopped before it goes.
    Hold,
    /// Take it away: nothing is left to be stopped.
    LetGo,
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
}

type RunPlan = Plan<Action, AgentRunStatus>;

/// Decides.
pub(super) fn plan(seen: &Observed, settings: &Settings) -> RunPlan {
    let strays = release_strays(seen);
    let Some(run) = &seen.run else {
        return Plan::steps(strays);
    };
    if !strays.is_empty() {
        return Plan::steps(strays);
    }
    if status::phase(run).is_terminal() {
        return settle(seen, run, settings);
    }
    let deleting = run.meta().deletion_timestamp.is_some();
    if let Sight::Ours(job) = &seen.job
        && let LastStatus::Finished { at, outcome } = last_status_of(job)
    {
        if !is_bound(run) {
            // Made before a crash: its start is stored before its end.
            return store(status::running(run, job));
        }
        let ending = status::Ending {
            outcome,
            at,
            detail: evidence::detail(&seen.pods),
        };
        return store(status::finished(run, job, ending, seen.now));
    }
    if deleting && !is_held(&**run, finalizer::RUNTIME_CLEANUP) {
        return Plan::idle(Next::Wait);
    }
    if deleting {
        let message = "the run was deleted before it had ended";
        return store(status::cancelled(run, message, seen.now));
    }
    if run.spec.cancel == Some(true) {
        let message = "stopped because spec.cancel is set";
        return store(status::cancelled(run, message, seen.now));
    }
    follow(seen, run, settings)
}

fn store(next: status::RunStanding) -> RunPlan {
    Plan::steps(vec![Step::status(next)])
}

/// Whether the uid of the run's Job is stored.
fn is_bound(run: &AgentRun) -> bool {
    status::job_ref(run).is_some_and(|job| job.uid.is_some())
}

/// A run that has not ended, and that nobody wants to stop.
fn follow(seen: &Observed, run: &Arc<AgentRun>, settings: &Settings) -> RunPlan {
    match &seen.job {
        Sight::Ours(job) if job.meta().deletion_timestamp.is_none() => {
            store(status::running(run, job))
        }
        Sight::Ours(_) | Sight::Gone { .. } => mourn(seen, run),
        Sight::Absent if is_bound(run) || !seen.pods.is_empty() => mourn(seen, run),
        Sight::Absent => begin(seen, run, settings),
        Sight::Taken(job) => {
            let message = format!(
                "another object owns Job {}, whose name the run needs",
                job.name_any()
            );
            let lack = Lack::Waits {
                reason: Lifecycle::JobNameConflict,
                message,
            };
            wait(seen, run, settings, &lack)
        }
    }
}

/// The Job is going or gone without having ended: its pods may still tell, or will.
fn mourn(seen: &Observed, run: &AgentRun) -> RunPlan {
    let evidence = evidence::of(seen, run);
    let finding = classify(&evidence);
    let deletion = evidence.deletion.as_ref();
    if finding.outcome.is_none() && evidence::is_at_work(&evidence) {
        return store(status::orphaned(run, &finding, deletion));
    }
    store(status::missing(run, &finding, deletion, seen.now))
}

/// A run without a Job: everything must be there before its name is reserved, and before the Job is made.
fn begin(seen: &Observed, run: &Arc<AgentRun>, settings: &Settings) -> RunPlan {
    if let Some(refused) = status::refused(run, &faults(run), seen.now) {
        return store(refused);
    }
    let nothing = Found::default();
    let found = seen.found.as_ref().unwrap_or(&nothing);
    let made = resolve(run, found, &settings.runner).and_then(|work| {
        job::make(&work, &settings.runner).map_err(|message| Lack::Wrong {
            reason: Lifecycle::SubmitFailed,
            message,
            contract: None,
        })
    });
    let made = match made {
        Ok(made) => made,
        Err(lack) => return wait(seen, run, settings, &lack),
    };
    if !is_held(&**run, finalizer::RUNTIME_CLEANUP) {
        return Plan::steps(vec![Step::Do(Action::Hold)]);
    }
    if status::job_ref(run).is_none() {
        return store(status::reserved(run));
    }
    let mut steps = Vec::new();
    for config_map in made.config_maps {
        steps.push(Step::Do(Action::MakeConfigMap(Box::new(config_map))));
    }
    steps.push(Step::Do(Action::MakeJob(Box::new(made.job))));
    Plan::steps(steps)
}

/// What the spec breaks. The webhook asks the same, but it may have been away.
fn faults(run: &AgentRun) -> Vec<Cause> {
    if run.spec.runtime.type_ != RuntimeType::Job {
        let message = "only runs of type \"job\" can be carried out by this version";
        let at = Path::root("spec");
        let at = at.field("runtime");
        let cause = Cause::new(&at.field("type"), Reason::UnsupportedRuntime, message);
        return vec![cause];
    }
    match serde_json::to_value(run) {
        Ok(object) => validate(Kind::AgentRun, &object, None),
        Err(_) => Vec::new(),
    }
}

/// Waits within the grace, or gives up.
fn wait(seen: &Observed, run: &AgentRun, settings: &Settings, lack: &Lack) -> RunPlan {
    let Lack::Waits { reason, message } = lack else {
        return store(status::unfit(run, lack, seen.now));
    };
    let since = status::blocked_since(run).unwrap_or(seen.now);
    let over = match settings.grace.is_zero() {
        true => None,
        false => since.checked_add(settings.grace).ok(),
    };
    if over.is_some_and(|over| over <= seen.now) {
        return store(status::unfit(run, lack, seen.now));
    }
    // Nobody tells us when these change: we may not watch Secrets, nor Jobs of others.
    let is_unwatched = matches!(
        reason,
        Lifecycle::SecretNotFound | Lifecycle::ConfigMapNotFound | Lifecycle::JobNameConflict
    );
    let poll = seen.now.checked_add(POLL).ok().filter(|_| is_unwatched);
    Plan {
        steps: vec![Step::status(status::waiting(run, *reason, message))],
        next: over
            .map_or(Next::Wait, Next::At)
            .or(poll.map_or(Next::Wait, Next::At)),
    }
}

/// A run that has ended: its outcome is stored, so everything that was held may go, and later the run itself.
fn settle(seen: &Observed, run: &Arc<AgentRun>, settings: &Settings) -> RunPlan {
    let mut steps = Vec::new();
    let is_cancelled = status::phase(run) == Phase::Cancelled;
    if let Sight::Ours(job) = &seen.job {
        steps.extend(release(run, job, settings).map(Step::Do));
        let is_over = last_status_of(job) != LastStatus::Active;
        if !is_over && job.meta().deletion_timestamp.is_none() {
            steps.push(Step::Do(Action::Stop(Arc::clone(job))));
        }
    }
    let has_job = matches!(seen.job, Sight::Ours(_));
    for pod in &seen.pods {
        if is_held(&**pod, finalizer::EVIDENCE) {
            steps.push(Step::Do(Action::ReleasePod(Arc::clone(pod))));
        }
        let is_going = pod.meta().deletion_timestamp.is_some();
        if is_cancelled && !has_job && !is_going && evidence::works(pod) {
            steps.push(Step::Do(Action::StopPod(Arc::clone(pod))));
        }
    }
    let deleting = run.meta().deletion_timestamp.is_some();
    if deleting && is_held(&**run, finalizer::RUNTIME_CLEANUP) {
        steps.push(Step::Do(Action::LetGo));
    }
    if deleting || !steps.is_empty() {
        return Plan::steps(steps);
    }
    match run_due(run, settings.retention) {
        Some(due) if due <= seen.now => Plan::steps(vec![Step::Do(Action::Expire)]),
        due => {
            let about = run
                .status
                .as_ref()
                .and_then(|status| status.observed_generation);
            let is_new = about.unwrap_or_default() < run.meta().generation.unwrap_or_default();
            let ratified = status::ratified(run).filter(|_| is_new);
            Plan {
                steps: ratified.map(Step::status).into_iter().collect(),
                next: due.map_or(Next::Wait, Next::At),
            }
        }
    }
}

/// Lets the Job of a run go, unless that was done.
fn release(run: &AgentRun, job: &Arc<Job>, settings: &Settings) -> Option<Action> {
    let is_marked = job.annotations().contains_key(annotation::OUTCOME_RECORDED);
    if is_marked && !is_held(&**job, finalizer::OUTCOME) {
        return None;
    }
    let ttl = match last_status_of(job) {
        LastStatus::Finished { outcome, .. } => job_ttl(run, outcome, settings.keep),
        LastStatus::Active | LastStatus::Unknown => None,
    };
    Some(Action::Release {
        job: Arc::clone(job),
        why: Why::Stored { ttl },
    })
}

/// Nobody waits for the outcome of these any more.
fn release_strays(seen: &Observed) -> Vec<Step<Action, AgentRunStatus>> {
    let jobs = seen.stray_jobs.iter().map(|job| Action::Release {
        job: Arc::clone(job),
        why: Why::OwnerGone,
    });
    let pods = seen
        .stray_pods
        .iter()
        .map(Arc::clone)
        .map(Action::ReleasePod);
    jobs.chain(pods).map(Step::Do).collect()
}

/// Whether a finalizer of ours is on an object.
pub(in crate::controller) fn is_held<K: Resource>(object: &K, finalizer: &str) -> bool {
    let finalizers = object.meta().finalizers.as_deref().unwrap_or_default();
    finalizers.iter().any(|name| name == finalizer)
}
