//! What is to be done about a call, from what was observed. Each step can be repeated, and each is planned from what is
//! observed alone, so it does not matter where the last one stopped.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Resource, ResourceExt};
use serde_json::Value;

use super::{Settings, job, status};
use crate::api::condition::Lifecycle;
use crate::api::contract::{annotation, finalizer};
use crate::api::custody::{Evidence, LastStatus, Release, last_status_of};
use crate::api::kind::Kind;
use crate::api::kinds::{Tool, ToolRun, ToolRunStatus};
use crate::api::object::examine::examine;
use crate::api::policy::{Policy, Surroundings, ToolFacts};
use crate::controller::agent_run::{
    Trace, Why, claimed_by, deadline, detail, is_at_work, keep_for, never_ran, report, works,
};
use crate::controller::driver::plan::{Next, Plan, Step};
use crate::controller::policy::{Verdict, judge};
use crate::controller::runs::look::is_held;
use crate::controller::runs::{Loss, Sight, is_going, may_go, next_look};

/// What was found about one call.
#[derive(Clone, Debug)]
pub(in crate::controller) struct Observed {
    pub(super) now: Timestamp,
    /// What it is judged by.
    pub(super) policy: Arc<Policy>,
    /// The call; none if it is gone.
    pub(super) run: Option<Arc<ToolRun>>,
    /// What is called, if it is there.
    pub(super) tool: Option<Arc<Tool>>,
    pub(super) job: Sight,
    /// Name of a ConfigMap of someone else that stands where ours must be.
    pub(super) in_the_way: Option<String>,
    /// Pods of this very call.
    pub(super) pods: Vec<Arc<Pod>>,
    /// Whether the namespace is being deleted; looked up only when its Job is missing.
    pub(super) namespace_terminating: bool,
    /// Jobs and pods of calls of the same name that are gone for certain.
    pub(super) stray_jobs: Vec<Arc<Job>>,
    pub(super) stray_pods: Vec<Arc<Pod>>,
}

/// What can be done about a call besides writing its status.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller) enum Action {
    /// Put our finalizer on the call, so that what it runs is stopped before it goes.
    Hold,
    /// Take it away: nothing is left to be stopped.
    LetGo,
    /// Make the ConfigMap that the Job reads.
    MakeConfigMap(Box<ConfigMap>),
    /// Make the Job.
    MakeJob(Box<Job>),
    /// Let the Job go.
    Release { job: Arc<Job>, why: Why },
    /// Stop the Job.
    Stop(Arc<Job>),
    /// Let a pod go.
    ReleasePod(Arc<Pod>),
    /// Stop a pod that no Job looks after any more.
    StopPod(Arc<Pod>),
}

type RunPlan = Plan<Action, ToolRunStatus>;

/// Decides.
pub(super) fn plan(seen: &Observed, settings: &Settings) -> RunPlan {
    let strays = release_strays(seen);
    let may_go = may_go(seen.run.as_deref(), seen.namespace_terminating);
    let Some(run) = seen.run.as_ref().filter(|_| strays.is_empty()) else {
        return Plan::steps(strays);
    };
    match may_go {
        Some(Release::Recorded) => return settle(seen, run, settings),
        // It goes with the namespace; what is still there of it must not hold that up.
        Some(Release::NamespaceTerminating) if is_going(&**run) => return abandon(seen, run),
        Some(Release::NamespaceTerminating | Release::OwnerGone) | None => {}
    }
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
            detail: detail(&seen.pods, job::CONTAINER),
            report: report(&seen.pods, job::CONTAINER),
        };
        return store(status::finished(run, job, ending, seen.now));
    }
    if is_going(&**run) {
        if !is_held(&**run, finalizer::RUNTIME_CLEANUP) {
            return Plan::idle(Next::Wait);
        }
        return stop(seen, run, "the call was deleted before it had ended");
    }
    if run.spec.cancel == Some(true) {
        return stop(seen, run, "stopped because spec.cancel is set");
    }
    match &seen.job {
        Sight::Ours(job) if job.meta().deletion_timestamp.is_none() => {
            let mut steps = vec![Step::status(status::running(run, job))];
            // They have nothing to tell, and the Job waits for them before it says how it ended.
            let never_ran = seen.pods.iter().filter(|pod| never_ran(pod));
            steps.extend(never_ran.filter_map(release_pod));
            Plan::steps(steps)
        }
        Sight::Ours(_) | Sight::Gone { .. } => mourn(seen, run),
        Sight::Absent if is_bound(run) => mourn(seen, run),
        Sight::Absent => begin(seen, run, settings),
        Sight::Taken(_) => {
            let message = format!("another object owns Job {}", job::name(run));
            wait(seen, run, settings, Lifecycle::JobNameConflict, &message)
        }
        Sight::Claimed(pod) => {
            let message = claimed_by(pod, &job::name(run));
            wait(seen, run, settings, Lifecycle::JobNameConflict, &message)
        }
    }
}

/// Nobody wants the call to go on. If its Job is gone, why is kept as well, and how it ended counts more, if anyone knows.
fn stop(seen: &Observed, run: &ToolRun, message: &str) -> RunPlan {
    let cancelled = status::cancelled(run, message, seen.now);
    let Sight::Gone { .. } = &seen.job else {
        return store(cancelled);
    };
    let loss = loss(seen, evidence(seen, run));
    store(match loss.finding.outcome {
        Some(_) => status::missing(run, &loss, seen.now),
        None => {
            let class = loss.finding.class;
            status::lost(cancelled, &loss, seen.now).tell(class.into(), loss.why())
        }
    })
}

fn store(next: status::RunStanding) -> RunPlan {
    Plan::steps(vec![Step::status(next)])
}

/// Whether the uid of the Job is stored.
fn is_bound(run: &ToolRun) -> bool {
    status::job_ref(run).is_some_and(|job| job.uid.is_some())
}

/// The Job is going or gone without having ended: its pods may still tell, or will.
fn mourn(seen: &Observed, run: &ToolRun) -> RunPlan {
    let evidence = evidence(seen, run);
    let is_at_work = is_at_work(&evidence);
    let loss = loss(seen, evidence);
    if loss.finding.outcome.is_none() && is_at_work && !seen.namespace_terminating {
        let tool = seen.tool.as_ref();
        let timeout = tool.and_then(|tool| tool.spec.timeout_seconds.filter(|time| *time > 0));
        let (_, last) = seen.job.absence();
        let over = deadline(last, &seen.pods, timeout);
        if over.is_some_and(|over| over <= seen.now) {
            // The pod is stopped once this is stored.
            return store(status::overdue(run, &loss, seen.now));
        }
        return Plan {
            steps: vec![Step::status(status::orphaned(run, &loss))],
            next: over.map_or(Next::Wait, Next::At),
        };
    }
    store(status::missing(run, &loss, seen.now))
}

fn loss(seen: &Observed, evidence: Evidence) -> Loss {
    Loss::shown_by(evidence, detail(&seen.pods, job::CONTAINER))
}

fn evidence(seen: &Observed, run: &ToolRun) -> Evidence {
    let trace = Trace {
        run: run.meta(),
        reference: status::job_ref(run),
        job: &seen.job,
        pods: &seen.pods,
        runner: job::CONTAINER,
        now: seen.now,
        namespace_terminating: seen.namespace_terminating,
    };
    trace.evidence()
}

/// A call without a Job: everything must be there before its name is reserved, and before the Job is made.
fn begin(seen: &Observed, run: &Arc<ToolRun>, settings: &Settings) -> RunPlan {
    let faults = |kind, json: serde_json::Result<_>| json.map(|json| examine(kind, &json, None));
    let own = faults(Kind::ToolRun, serde_json::to_value(&**run)).unwrap_or_default();
    if let Some(refused) = status::refused(run, &own, seen.now) {
        return store(refused);
    }
    if let Some(name) = &seen.in_the_way {
        let message = format!("another object owns ConfigMap {name}, whose name the call needs");
        return wait(seen, run, settings, Lifecycle::JobNameConflict, &message);
    }
    let Some(tool) = &seen.tool else {
        let message = format!("Tool {} does not exist yet", run.spec.tool_ref.name.trim());
        return wait(seen, run, settings, Lifecycle::MissingTool, &message);
    };
    let of_tool = faults(Kind::Tool, serde_json::to_value(&**tool)).unwrap_or_default();
    if let Some(first) = of_tool.first() {
        let name = tool.name_any();
        let message = format!(
            "Tool {name} cannot be called: {}: {}",
            first.field, first.message
        );
        return wait(seen, run, settings, Lifecycle::MissingTool, &message);
    }
    let verdict = verdict(seen, run, tool);
    if let Some(forbidden) = status::forbidden(run, &verdict.refused, seen.now) {
        return store(forbidden);
    }
    if !is_held(&**run, finalizer::RUNTIME_CLEANUP) {
        return Plan::steps(vec![Step::Do(Action::Hold)]);
    }
    if status::job_ref(run).is_none() {
        let reserved = status::reserved(run);
        return store(status::warned(run, reserved, &verdict.warned));
    }
    let (document, job) = job::make(run, tool, settings.container.clone());
    Plan::steps(vec![
        Step::Do(Action::MakeConfigMap(Box::new(document))),
        Step::Do(Action::MakeJob(Box::new(job))),
    ])
}

/// What the policy says about the call: its Tool may be older than the policy.
pub(super) fn verdict(seen: &Observed, run: &ToolRun, tool: &Tool) -> Verdict {
    let json = |object: serde_json::Result<Value>| object.unwrap_or_default();
    let around = Surroundings {
        tool: Some(Arc::new(ToolFacts::of(&json(serde_json::to_value(tool))))),
        ..Surroundings::default()
    };
    let run = json(serde_json::to_value(run));
    judge(&seen.policy, Kind::ToolRun, &run, &around)
}

/// Waits within the grace, or gives up.
fn wait(
    seen: &Observed,
    run: &ToolRun,
    settings: &Settings,
    reason: Lifecycle,
    message: &str,
) -> RunPlan {
    let since = status::missing_since(run).unwrap_or(seen.now);
    let over = match settings.grace.is_zero() {
        true => None,
        false => since.checked_add(settings.grace).ok(),
    };
    if over.is_some_and(|over| over <= seen.now) {
        return store(status::unfit(run, reason, message, seen.now));
    }
    // Nobody tells us of the end of a Job of someone else.
    let is_unwatched = reason == Lifecycle::JobNameConflict;
    let uid = run.uid().unwrap_or_default();
    let poll = next_look(&uid, since, seen.now).filter(|_| is_unwatched);
    Plan {
        steps: vec![Step::status(status::waiting(run, reason, message))],
        next: over
            .map_or(Next::Wait, Next::At)
            .or(poll.map_or(Next::Wait, Next::At)),
    }
}

/// A call that has ended: its outcome is stored, so everything that was held may go.
fn settle(seen: &Observed, run: &Arc<ToolRun>, settings: &Settings) -> RunPlan {
    let mut steps = Vec::new();
    if let Sight::Ours(job) = &seen.job {
        steps.extend(release(seen, job, settings).map(Step::Do));
        let is_over = last_status_of(job) != LastStatus::Active;
        if !is_over && job.meta().deletion_timestamp.is_none() {
            steps.push(Step::Do(Action::Stop(Arc::clone(job))));
        }
    }
    let has_job = matches!(seen.job, Sight::Ours(_));
    for pod in &seen.pods {
        steps.extend(release_pod(pod));
        let is_going = pod.meta().deletion_timestamp.is_some();
        if !has_job && !is_going && works(pod) {
            steps.push(Step::Do(Action::StopPod(Arc::clone(pod))));
        }
    }
    let deleting = is_going(&**run);
    if deleting && is_held(&**run, finalizer::RUNTIME_CLEANUP) {
        steps.push(Step::Do(Action::LetGo));
    }
    if !deleting && steps.is_empty() && status::is_edited(&**run) {
        steps.extend(status::ratified(&**run).map(Step::status));
    }
    Plan::steps(steps)
}

/// The namespace is being deleted, and the call with it: nothing is stored any more.
fn abandon(seen: &Observed, run: &Arc<ToolRun>) -> RunPlan {
    let mut steps = Vec::new();
    if let Sight::Ours(job) = &seen.job
        && is_held(&**job, finalizer::OUTCOME)
    {
        steps.push(Step::Do(Action::Release {
            job: Arc::clone(job),
            why: Why::NamespaceTerminating,
        }));
    }
    steps.extend(seen.pods.iter().filter_map(release_pod));
    if is_held(&**run, finalizer::RUNTIME_CLEANUP) {
        steps.push(Step::Do(Action::LetGo));
    }
    Plan::steps(steps)
}

fn release_pod(pod: &Arc<Pod>) -> Option<Step<Action, ToolRunStatus>> {
    let is_held = is_held(&**pod, finalizer::EVIDENCE);
    is_held.then(|| Step::Do(Action::ReleasePod(Arc::clone(pod))))
}

/// Lets the Job of a call go, unless that was done.
fn release(seen: &Observed, job: &Arc<Job>, settings: &Settings) -> Option<Action> {
    let is_marked = job.annotations().contains_key(annotation::OUTCOME_RECORDED);
    if is_marked && !is_held(&**job, finalizer::OUTCOME) {
        return None;
    }
    let own = seen
        .tool
        .as_ref()
        .and_then(|tool| tool.spec.ttl_seconds_after_finished);
    let own = own.and_then(|seconds| u64::try_from(seconds).ok());
    let ttl = match last_status_of(job) {
        LastStatus::Finished { outcome, .. } => {
            keep_for(own.map(Duration::from_secs), outcome, settings.keep)
        }
        LastStatus::Active | LastStatus::Unknown => None,
    };
    Some(Action::Release {
        job: Arc::clone(job),
        why: Why::Stored { ttl },
    })
}

/// Nobody waits for the outcome of these any more.
fn release_strays(seen: &Observed) -> Vec<Step<Action, ToolRunStatus>> {
    let jobs = seen.stray_jobs.iter().map(|job| Action::Release {
        job: Arc::clone(job),
        why: Why::OwnerGone,
    });
    let pods = seen.stray_pods.iter().map(Arc::clone);
    jobs.chain(pods.map(Action::ReleasePod))
        .map(Step::Do)
        .collect()
}
