//! The start of a turn: what it needs, what is made for it, and how long what is missing is waited for.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};
use serde_json::json;

use super::{Action, Observed, RunPlan, is_held, pods, store};
use crate::api::condition::{Hindrance, Lifecycle};
use crate::api::contract::finalizer;
use crate::api::kind::Kind;
use crate::api::kinds::AgentRun;
use crate::api::object::cause::Cause;
use crate::api::validate::validate;
use crate::controller::agent_run::admission::Decision;
use crate::controller::agent_run::custom::{self, Handover};
use crate::controller::agent_run::job::{self, Made};
use crate::controller::agent_run::rules;
use crate::controller::agent_run::settings::Settings;
use crate::controller::agent_run::status;
use crate::controller::agent_run::turn::{self, Try, Turn};
use crate::controller::agent_run::work::{Found, Lack, resolve};
use crate::controller::driver::plan::{Fact, Next, Plan, Step};
use crate::controller::runs::next_look;

/// Time after which a pod that should be gone is looked for.
const OVERDUE: Duration = Duration::from_secs(5);

/// Reasons to wait of whose end nobody tells us.
const UNWATCHED: [Hindrance; 6] = [
    Hindrance::SecretNotFound,
    Hindrance::SecretKeyMissing,
    Hindrance::ConfigMapNotFound,
    Hindrance::ConfigMapKeyMissing,
    Hindrance::ClaimNotFound,
    Hindrance::JobNameConflict,
];

/// The next try of a step: not before its time, and not beside one that is still ending.
pub(super) fn next(
    seen: &Observed,
    run: &Arc<AgentRun>,
    turn: Turn,
    due: Option<Timestamp>,
    settings: &Settings,
) -> RunPlan {
    if let Some(due) = due.filter(|due| *due > seen.now) {
        return Plan::idle(Next::At(due));
    }
    match seen.other_pods.iter().find(|pod| pods::works(pod)) {
        Some(pod) => outlast(seen, run, pod, settings),
        None => begin(seen, run, turn, settings),
    }
}

/// A pod of an earlier try has not ended. Its node may be lost: then it never says so, and only people can tell whether it
/// still works, so it is waited for like something that is missing.
fn outlast(seen: &Observed, run: &AgentRun, pod: &Pod, settings: &Settings) -> RunPlan {
    let deleted = pod.meta().deletion_timestamp.as_ref();
    // Set to when it should be gone.
    let overdue = deleted.and_then(|time| time.0.checked_add(OVERDUE).ok());
    match overdue {
        None => Plan::idle(Next::Wait),
        Some(overdue) if overdue > seen.now => Plan::idle(Next::At(overdue)),
        Some(_) => {
            let name = pod.name_any();
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            let node = node.unwrap_or("its node");
            let message =
                format!("pod {name} of an earlier try should have ended, and {node} says nothing");
            let lack = Lack::Waits {
                reason: Hindrance::PodNotEnding,
                message,
            };
            wait(seen, run, settings, &lack)
        }
    }
}

/// A turn without a Job: everything must be there before its name is reserved, and before the Job is made.
pub(super) fn begin(
    seen: &Observed,
    run: &Arc<AgentRun>,
    turn: Turn,
    settings: &Settings,
) -> RunPlan {
    if let Some(refused) = status::refused(run, &faults(run), seen.now) {
        return store(refused);
    }
    if let Some(name) = &seen.in_the_way {
        let message = format!("another object owns ConfigMap {name}, whose name the run needs");
        return wait(seen, run, settings, &Lack::conflict(message));
    }
    // Judged in every pass, by as much as is there by then: an Agent may come after its run, but not after its start.
    let nothing = Found::default();
    let found = seen.found.as_ref().unwrap_or(&nothing);
    let verdict = rules::verdict(run, found);
    if let Some(forbidden) = status::forbidden(run, &verdict.refused, seen.now) {
        return store(forbidden);
    }
    let prepared = match prepare(seen, run, turn, settings) {
        Ok(prepared) => prepared,
        Err(lack) => return wait(seen, run, settings, &lack),
    };
    if !turn::has_begun(run)
        && let Some(message) = rules::over_budget(found)
    {
        return store(status::waiting(run, Hindrance::Exceeded, &message));
    }
    if let Some(instead) = queue(seen, run) {
        return instead;
    }
    if !is_held(&**run, finalizer::RUNTIME_CLEANUP) {
        return Plan::steps(vec![Step::Do(Action::Hold)]);
    }
    let made = match prepared {
        Prepared::Call(handover) => return custom::begin(seen, run, handover),
        Prepared::Job(made) => *made,
    };
    if turn::job_ref(run).is_some() {
        return make(made);
    }
    let mut steps = Vec::new();
    if !turn::has_begun(run) {
        steps.push(Step::Do(Action::Admit));
    }
    let reserved = status::reserved(run, turn, made.prompt.as_deref(), seen.now);
    let reserved = status::with_vcs(run, reserved, &made.vcs);
    steps.push(Step::status(status::warned(run, reserved, &verdict.warned)));
    Plan::steps(steps)
}

/// What a run does that is not admitted yet.
fn queue(seen: &Observed, run: &AgentRun) -> Option<RunPlan> {
    match &seen.admission {
        Decision::Admit => None,
        Decision::Duplicate { reason, of } => {
            Some(store(status::duplicate(run, *reason, of, seen.now)))
        }
        Decision::Wait(refusal) => {
            let mut waiting = status::waiting(run, refusal.reason, &refusal.message);
            if refusal.reason == Hindrance::RateLimit {
                let scope = refusal.scope;
                waiting.facts.push(Fact::RateLimited { scope });
            }
            Some(Plan {
                steps: vec![Step::status(waiting)],
                next: refusal.until.map_or(Next::Wait, Next::At),
            })
        }
    }
}

/// The Job last, so that it finds what it mounts.
fn make(made: Made) -> RunPlan {
    let mut steps = Vec::new();
    for config_map in made.config_maps {
        steps.push(Step::Do(Action::MakeConfigMap(Box::new(config_map))));
    }
    steps.push(Step::Do(Action::MakeJob(Box::new(made.job))));
    Plan::steps(steps)
}

/// What a turn begins with.
enum Prepared {
    /// What is made in the cluster.
    Job(Box<Made>),
    /// What its endpoint is told.
    Call(Handover),
}

/// What a turn begins with. Before the first step of a workflow all steps are looked at, since a step that cannot begin
/// is better known before the others have cost something.
fn prepare(
    seen: &Observed,
    run: &AgentRun,
    turn: Turn,
    settings: &Settings,
) -> Result<Prepared, Lack> {
    let nothing = Found::default();
    let found = seen.found.as_ref().unwrap_or(&nothing);
    let runner = &settings.runner;
    if turn == Turn::Step(Try::first(0)) {
        for index in 1..turn::steps(run).len() {
            resolve(run, Turn::Step(Try::first(index)), found, runner)?;
        }
    }
    let work = resolve(run, turn, found, runner)?;
    if custom::is_custom(run) {
        return Ok(Prepared::Call(custom::prepare(&work)));
    }
    let made = job::make(&work, runner).map_err(|message| Lack::Wrong {
        reason: Lifecycle::SubmitFailed.into(),
        message,
        contract: None,
    })?;
    Ok(Prepared::Job(Box::new(made)))
}

/// A run of which nothing can be carried out.
pub(super) fn refuse(seen: &Observed, run: &AgentRun) -> RunPlan {
    match status::refused(run, &faults(run), seen.now) {
        Some(refused) => store(refused),
        None => Plan::idle(Next::Wait),
    }
}

/// What the spec breaks. The webhook asks the same, but it may have been away.
fn faults(run: &AgentRun) -> Vec<Cause> {
    match serde_json::to_value(&run.spec) {
        Ok(spec) => {
            let mut object = json!({"metadata": {"name": run.name_any()}});
            object["spec"] = spec;
            validate(Kind::AgentRun, &object, None)
        }
        Err(_) => Vec::new(),
    }
}

/// Waits within the grace, or gives up.
pub(super) fn wait(seen: &Observed, run: &AgentRun, settings: &Settings, lack: &Lack) -> RunPlan {
    let Lack::Waits { reason, message } = lack else {
        return store(status::unfit(run, lack, seen.now));
    };
    let since = status::missing_since(run).unwrap_or(seen.now);
    let over = match settings.grace.is_zero() {
        true => None,
        false => since.checked_add(settings.grace).ok(),
    };
    if over.is_some_and(|over| over <= seen.now) {
        return store(status::unfit(run, lack, seen.now));
    }
    // Nobody tells us when these change: we may not watch Secrets, nor Jobs of others.
    let is_unwatched = UNWATCHED.contains(reason);
    let uid = run.uid().unwrap_or_default();
    let poll = next_look(&uid, since, seen.now).filter(|_| is_unwatched);
    Plan {
        steps: vec![Step::status(status::waiting(run, *reason, message))],
        next: over
            .map_or(Next::Wait, Next::At)
            .or(poll.map_or(Next::Wait, Next::At)),
    }
}
