//! Carries out what was planned about a call. Every write is idempotent, or refused if the object has changed.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;

use super::ToolRuns;
use super::plan::{Action, Observed, verdict};
use crate::api::contract::finalizer;
use crate::api::kinds::ToolRun;
use crate::controller::agent_run::{gone, pruned_job, pruned_pod, release, with, without};
use crate::controller::cache::Key;
use crate::controller::cache::shelves;
use crate::controller::driver::fault::{Class, Fault};
use crate::controller::runs::told;

const MAKE_JOB: &str = "make the Job of the call";
const MAKE_CONFIG_MAP: &str = "make the ConfigMap of the call";
/// What is tried when a call is handed on; a refusal of it is final.
pub(super) const MAKES: [&str; 2] = [MAKE_JOB, MAKE_CONFIG_MAP];

impl ToolRuns {
    pub(super) async fn carry_out(&self, seen: &Observed, action: &Action) -> Result<bool, Fault> {
        let (context, shelves) = (&self.context, &self.shelves);
        match action {
            Action::MakeConfigMap(document) => {
                let Some(run) = &seen.run else {
                    return Ok(false);
                };
                let made = self
                    .conflicts
                    .make(context, MAKE_CONFIG_MAP, &**run, document);
                return made.await;
            }
            Action::MakeJob(job) => self.make_job(seen, job).await?,
            Action::Release { job, why } => {
                let changes = release(job, *why, context.clock.now());
                let released = context.change("let the Job go", &**job, changes).await;
                match gone(released)? {
                    Some(released) => shelves.tool_jobs.learn(pruned_job(released)),
                    None => shelves.tool_jobs.unlearn(&Key::of(&**job)),
                }
            }
            Action::Stop(job) => {
                context.delete("stop the Job", &**job).await?;
                shelves.tool_jobs.unlearn(&Key::of(&**job));
            }
            Action::ReleasePod(pod) => {
                let changes = without(&**pod, finalizer::EVIDENCE);
                let released = context.change("let the pod go", &**pod, changes).await;
                match gone(released)? {
                    Some(released) => shelves.tool_pods.learn(pruned_pod(released)),
                    None => shelves.tool_pods.unlearn(&Key::of(&**pod)),
                }
            }
            Action::StopPod(pod) => {
                context.delete("stop the pod", &**pod).await?;
                shelves.tool_pods.unlearn(&Key::of(&**pod));
            }
            Action::Hold | Action::LetGo => {
                if let Some(run) = &seen.run {
                    if action == &Action::Hold {
                        audit(run, seen);
                    }
                    self.change_run(run, action == &Action::Hold).await?;
                }
            }
        }
        Ok(true)
    }

    async fn make_job(&self, seen: &Observed, job: &Job) -> Result<(), Fault> {
        if let Some(run) = &seen.run {
            // From here on nobody can be sure that there was none.
            self.untried.forget(&**run);
        }
        match self.context.create(MAKE_JOB, job).await {
            Ok(made) => {
                let (namespace, job) = (job.namespace(), job.name_any());
                tracing::info!(namespace, job, "Job made");
                self.shelves.tool_jobs.learn(pruned_job(made));
                Ok(())
            }
            // The next pass sees whose it is.
            Err(fault) if fault.class == Class::Conflict => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Puts our finalizer on the call, or takes it away.
    async fn change_run(&self, run: &Arc<ToolRun>, hold: bool) -> Result<(), Fault> {
        let changes = match hold {
            true => with(&**run, finalizer::RUNTIME_CLEANUP),
            false => without(&**run, finalizer::RUNTIME_CLEANUP),
        };
        let what = if hold {
            "hold the call"
        } else {
            "let the call go"
        };
        match gone(self.context.change(what, &**run, changes).await)? {
            Some(mut changed) => {
                shelves::prune(&mut changed);
                self.shelves.tool_runs.learn(changed);
            }
            None => self.shelves.tool_runs.unlearn(&Key::of(&**run)),
        }
        Ok(())
    }
}

/// Notes in the log what the policy only watches.
fn audit(run: &ToolRun, seen: &Observed) {
    let verdict = seen.tool.as_ref().map(|tool| verdict(seen, run, tool));
    let audited = verdict.unwrap_or_default().audited;
    if let Some((_, causes)) = told(&audited) {
        tracing::info!(
            namespace = run.namespace(),
            call = run.name_any(),
            causes,
            "The policy would not have let the call begin"
        );
    }
}
