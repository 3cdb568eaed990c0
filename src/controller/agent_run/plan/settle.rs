//! What may go: Jobs and pods whose outcome is stored or for which nobody waits any more, and at last the run itself.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};

use super::{Action, Observed, RunPlan, Sight, Why, is_held, pods};
use crate::api::contract::{annotation, finalizer, label};
use crate::api::custody::{LastStatus, last_status_of};
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::AgentRunStatus;
use crate::controller::agent_run::artifacts;
use crate::controller::agent_run::retention::{job_ttl, run_due};
use crate::controller::agent_run::settings::Settings;
use crate::controller::agent_run::status;
use crate::controller::agent_run::turn::{self, Stage};
use crate::controller::driver::plan::{Next, Plan, Step};
use crate::controller::runs::is_going;

type RunStep = Step<Action, AgentRunStatus>;

/// A run that has ended: its outcome is stored, so everything that was held may go, and later the run itself.
pub(super) fn settle(seen: &Observed, run: &Arc<AgentRun>, settings: &Settings) -> RunPlan {
    let mut steps = Vec::new();
    let current = match &seen.job {
        Sight::Ours(job) => Some(job),
        Sight::Absent | Sight::Taken(_) | Sight::Claimed(_) | Sight::Gone { .. } => None,
    };
    let jobs: Vec<&Arc<Job>> = current.into_iter().chain(&seen.other_jobs).collect();
    for job in &jobs {
        steps.extend(release(run, job, settings).map(Step::Do));
        let is_over = last_status_of(job) != LastStatus::Active;
        if !is_over && job.meta().deletion_timestamp.is_none() {
            steps.push(Step::Do(Action::Stop(Arc::clone(job))));
        }
    }
    for pod in seen.pods.iter().chain(&seen.other_pods) {
        steps.extend(release_pod(pod));
        let is_going = pod.meta().deletion_timestamp.is_some();
        let has_job = jobs.iter().any(|job| is_of(pod, &job.name_any()));
        if !has_job && !is_going && pods::works(pod) {
            steps.push(Step::Do(Action::StopPod(Arc::clone(pod))));
        }
    }
    let deleting = is_going(&**run);
    if deleting && is_held(&**run, finalizer::RUNTIME_CLEANUP) {
        steps.push(Step::Do(Action::LetGo));
    }
    if deleting || !steps.is_empty() {
        return Plan::steps(steps);
    }
    match run_due(run, settings.retention, settings.keep.logs) {
        Some(due) if due <= seen.now => Plan::steps(vec![Step::Do(Action::Expire)]),
        due => {
            let is_due = status::is_edited(&**run) || artifacts::is_over(run, settings.artifacts);
            let ratified = status::ratified(&**run).filter(|_| is_due);
            Plan {
                steps: ratified.map(Step::status).into_iter().collect(),
                next: due.map_or(Next::Wait, Next::At),
            }
        }
    }
}

/// The namespace is being deleted, and the run with it: nothing is stored any more.
pub(super) fn abandon(seen: &Observed, run: &AgentRun) -> RunPlan {
    let current = match &seen.job {
        Sight::Ours(job) => Some(job),
        Sight::Absent | Sight::Taken(_) | Sight::Claimed(_) | Sight::Gone { .. } => None,
    };
    let jobs = current.into_iter().chain(&seen.other_jobs);
    let jobs = jobs.filter(|job| is_held(&***job, finalizer::OUTCOME));
    let jobs = jobs.map(|job| {
        Step::Do(Action::Release {
            job: Arc::clone(job),
            why: Why::NamespaceTerminating,
        })
    });
    let pods = seen.pods.iter().chain(&seen.other_pods);
    let mut steps: Vec<_> = jobs.chain(pods.filter_map(release_pod)).collect();
    if is_held(run, finalizer::RUNTIME_CLEANUP) {
        steps.push(Step::Do(Action::LetGo));
    }
    Plan::steps(steps)
}

/// What earlier tries left behind: their end is stored.
pub(super) fn release_earlier(
    seen: &Observed,
    run: &AgentRun,
    stage: Stage,
    settings: &Settings,
) -> Vec<RunStep> {
    let jobs = seen.other_jobs.iter();
    let jobs = jobs.filter(|job| turn::is_earlier(&***job, stage));
    let pods = seen.other_pods.iter();
    let pods = pods.filter(|pod| turn::is_earlier(&***pod, stage));
    jobs.filter_map(|job| release(run, job, settings).map(Step::Do))
        .chain(pods.filter_map(release_pod))
        .collect()
}

/// Pods that were deleted before they had a node. They have nothing to tell, and the Job waits for them to go before it
/// says how it ended.
pub(super) fn release_never_ran(seen: &Observed) -> impl Iterator<Item = RunStep> {
    let never_ran = seen.pods.iter().filter(|pod| pods::never_ran(pod));
    never_ran.filter_map(release_pod)
}

fn release_pod(pod: &Arc<Pod>) -> Option<RunStep> {
    let is_held = is_held(&**pod, finalizer::EVIDENCE);
    is_held.then(|| Step::Do(Action::ReleasePod(Arc::clone(pod))))
}

/// Whether a pod belongs to the Job of this name. The label comes from the cluster itself and stays when the Job goes.
pub(in crate::controller::agent_run) fn is_of(pod: &Pod, job: &str) -> bool {
    let label = pod.labels().get(label::JOB_NAME);
    label.is_none_or(|name| name == job)
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
pub(super) fn release_strays(seen: &Observed) -> Vec<RunStep> {
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
