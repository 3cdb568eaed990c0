//! Carries out what was planned about a run. Every write is idempotent, or refused if the object has changed.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::plan::{Action, Observed, Why};
use super::{AgentRuns, pruned_job, pruned_pod, pruned_run, rules};
use crate::api::contract::{annotation, finalizer};
use crate::api::kinds::AgentRun;
use crate::controller::cache::Key;
use crate::controller::driver::fault::{Class, Fault};
use crate::controller::driver::plan::Notice;
use crate::controller::runs::told;
use crate::events::Reason;

/// What is tried when the Job of a run is made; a refusal of it is final.
pub(super) const MAKE_JOB: &str = "make the Job";
/// The same for what the Job reads.
pub(super) const MAKE_CONFIG_MAP: &str = "make the ConfigMap of the Job";

impl AgentRuns {
    pub(super) async fn carry_out(&self, seen: &Observed, action: &Action) -> Result<bool, Fault> {
        let context = &self.context;
        let shelves = &self.shelves;
        match action {
            Action::Call(errand) => match &seen.run {
                Some(run) => self.run_errand(run, errand).await,
                None => Ok(false),
            },
            Action::MakeConfigMap(document) => match &seen.run {
                Some(run) => {
                    let made = self
                        .conflicts
                        .make(context, MAKE_CONFIG_MAP, &**run, document);
                    made.await
                }
                None => Ok(false),
            },
            Action::MakeJob(job) => self.make_job(seen, job).await,
            Action::Release { job, why } => {
                let changes = release(job, *why, context.clock.now());
                let released = context.change("let the Job go", &**job, changes).await;
                match gone(released)? {
                    Some(released) => shelves.jobs.learn(pruned_job(released)),
                    None => shelves.jobs.unlearn(&Key::of(&**job)),
                }
                Ok(true)
            }
            Action::Stop(job) => {
                context.delete("stop the Job", &**job).await?;
                shelves.jobs.unlearn(&Key::of(&**job));
                Ok(true)
            }
            Action::ReleasePod(pod) => {
                let changes = without(&**pod, finalizer::EVIDENCE);
                let released = context.change("let the pod go", &**pod, changes).await;
                match gone(released)? {
                    Some(released) => shelves.pods.learn(pruned_pod(released)),
                    None => shelves.pods.unlearn(&Key::of(&**pod)),
                }
                Ok(true)
            }
            Action::StopPod(pod) => {
                context.delete("stop the pod", &**pod).await?;
                shelves.pods.unlearn(&Key::of(&**pod));
                Ok(true)
            }
            Action::Hold | Action::LetGo | Action::Expire | Action::Admit => match &seen.run {
                Some(run) => {
                    if *action == Action::Admit {
                        audit(run, seen);
                    }
                    self.change_run(run, action).await
                }
                None => Ok(false),
            },
        }
    }

    async fn change_run(&self, run: &Arc<AgentRun>, action: &Action) -> Result<bool, Fault> {
        let context = &self.context;
        let runs = &self.shelves.runs;
        match action {
            Action::Admit => return self.admit(run),
            Action::Hold => {
                let changes = with(&**run, finalizer::RUNTIME_CLEANUP);
                let held = context.change("hold the run", &**run, changes).await?;
                runs.learn(pruned_run(held));
            }
            Action::LetGo => {
                let changes = without(&**run, finalizer::RUNTIME_CLEANUP);
                let free = context.change("let the run go", &**run, changes).await;
                match gone(free)? {
                    Some(free) => runs.learn(pruned_run(free)),
                    None => runs.unlearn(&Key::of(&**run)),
                }
            }
            Action::Expire => {
                context.delete("remove the run", &**run).await?;
                let note = "the run was removed because its time to be kept was over".to_owned();
                let expired = Notice {
                    reason: Reason::Expired,
                    note,
                    job: None,
                };
                context.tell(&**run, &[expired]);
                runs.unlearn(&Key::of(&**run));
            }
            Action::Call(_)
            | Action::MakeConfigMap(_)
            | Action::MakeJob(_)
            | Action::Release { .. }
            | Action::Stop(_)
            | Action::ReleasePod(_)
            | Action::StopPod(_) => return Ok(false),
        }
        Ok(true)
    }

    /// One that is there already is taken over by the next pass if it is ours, and is a conflict of names if not.
    async fn make_job(&self, seen: &Observed, job: &Job) -> Result<bool, Fault> {
        if let Some(run) = &seen.run {
            // From here on nobody can be sure that there was none.
            self.untried.forget(&**run);
        }
        let made = match self.context.create(MAKE_JOB, job).await {
            Ok(made) => made,
            Err(fault) if fault.class == Class::Conflict => {
                let namespace = job.namespace().unwrap_or_default();
                let name = job.name_any();
                let there = self.context.look_up("look up the Job", &namespace, &name);
                there.await?.ok_or(fault)?
            }
            Err(fault) => return Err(fault),
        };
        if let Some(run) = &seen.run {
            tracing::info!(
                namespace = run.namespace(),
                run = run.name_any(),
                job = made.name_any(),
                "Job made"
            );
        }
        self.shelves.jobs.learn(pruned_job(made));
        Ok(true)
    }
}

/// Notes in the log what the policy only watches.
fn audit(run: &AgentRun, seen: &Observed) {
    let Some(found) = &seen.found else { return };
    let audited = rules::verdict(run, found).audited;
    if let Some((reason, causes)) = told(&audited) {
        tracing::info!(
            namespace = run.namespace(),
            run = run.name_any(),
            reason = reason.as_str(),
            causes,
            "The policy would not have let the run begin"
        );
    }
}

/// An object that is gone needs no change any more.
pub(in crate::controller) fn gone<K>(changed: Result<K, Fault>) -> Result<Option<K>, Fault> {
    match changed {
        Ok(object) => Ok(Some(object)),
        Err(fault) if fault.is_not_found() => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Mark, time to live and finalizer in one write: there is no moment in which the Job could go without its mark.
pub(in crate::controller) fn release(job: &Job, why: Why, now: Timestamp) -> Vec<Value> {
    let mut changes = without(job, finalizer::OUTCOME);
    let Why::Stored { ttl } = why else {
        return changes;
    };
    let mark = now.to_string();
    changes.push(match &job.meta().annotations {
        Some(_) => {
            let key = annotation::OUTCOME_RECORDED
                .replace('~', "~0")
                .replace('/', "~1");
            json!({"op": "add", "path": format!("/metadata/annotations/{key}"), "value": mark})
        }
        None => {
            let marks = json!({ annotation::OUTCOME_RECORDED: mark });
            json!({"op": "add", "path": "/metadata/annotations", "value": marks})
        }
    });
    if let Some(ttl) = ttl {
        changes.push(json!({"op": "add", "path": "/spec/ttlSecondsAfterFinished", "value": ttl}));
    }
    changes
}

/// The finalizers of an object with one more.
pub(in crate::controller) fn with<K: Resource>(object: &K, finalizer: &str) -> Vec<Value> {
    let mut list = object.meta().finalizers.clone().unwrap_or_default();
    list.push(finalizer.to_owned());
    vec![json!({"op": "add", "path": "/metadata/finalizers", "value": list})]
}

/// The finalizers of an object without one; nothing if it is not there.
pub(in crate::controller) fn without<K: Resource>(object: &K, finalizer: &str) -> Vec<Value> {
    let mut list = object.meta().finalizers.clone().unwrap_or_default();
    let before = list.len();
    list.retain(|name| name != finalizer);
    if list.len() == before {
        return Vec::new();
    }
    vec![json!({"op": "add", "path": "/metadata/finalizers", "value": list})]
}
