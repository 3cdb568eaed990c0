//! Reads what a plan about a call needs: copies where they will do, the API server where a verdict depends on it.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::plan::Observed;
use super::status::{job_ref, phase};
use super::{ToolRuns, job};
use crate::api::contract::finalizer;
use crate::api::custody::Absence;
use crate::api::kinds::ToolRun;
use crate::controller::agent_run::pruned_job;
use crate::controller::cache::Key;
use crate::controller::driver::fault::Fault;
use crate::controller::runs::look::{held, is_labelled, is_made_for, is_terminating, list_pods};
use crate::controller::runs::{Grave, Sight, any_of_ours, is_going};

impl ToolRuns {
    pub(super) async fn observe(&self, key: &Key, now: Timestamp) -> Result<Observed, Fault> {
        let shelves = &self.shelves;
        let jobs = shelves.tool_jobs.of_owner(key);
        let pods = shelves.tool_pods.of_owner(key);
        let mut run = shelves.tool_runs.get(key);
        if run.is_none() && !(jobs.is_empty() && pods.is_empty()) {
            // Only a live read can say that nobody waits for them.
            let (namespace, name) = (&key.namespace, &key.name);
            let live = self.context.look_up("look up the call", namespace, name);
            run = live.await?.map(Arc::new);
        }
        let uid = run.as_ref().and_then(|run| run.uid());
        let is_own = |job: &Arc<Job>| run.as_deref().is_some_and(|run| is_own(job, run));
        let (own_jobs, other_jobs): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_own);
        let (own_pods, other_pods): (Vec<_>, Vec<_>) = pods
            .into_iter()
            .partition(|pod| is_labelled(&**pod, uid.as_deref()));
        let mut seen = Observed {
            now,
            policy: self.context.rules.current(),
            tool: None,
            job: Sight::Absent,
            in_the_way: None,
            pods: own_pods,
            namespace_terminating: false,
            stray_jobs: held(other_jobs, finalizer::OUTCOME),
            stray_pods: held(other_pods, finalizer::EVIDENCE),
            run,
        };
        let Some(run) = seen.run.clone() else {
            return Ok(seen);
        };
        let tool = run.spec.tool_ref.name.trim();
        seen.tool = shelves.tools.get(&Key::new(&key.namespace, tool));
        seen.job = self.sight(&run, &own_jobs, &seen.pods, key).await?;
        if phase(&*run).is_terminal() {
            return Ok(seen);
        }
        if matches!(seen.job, Sight::Absent) {
            seen.in_the_way = self.conflicts.in_the_way(&self.context, &*run).await?;
        }
        let is_in_doubt = seen.job.is_in_doubt(job_ref(&run));
        if is_in_doubt {
            seen.pods = list_pods(&self.context, &*run).await?;
        }
        if is_in_doubt || is_going(&*run) {
            seen.namespace_terminating = is_terminating(&self.context, &key.namespace).await;
        }
        Ok(seen)
    }

    /// What there is under the name of the Job. That a Job is gone is said only after a live read.
    async fn sight(
        &self,
        run: &ToolRun,
        own: &[Arc<Job>],
        pods: &[Arc<Pod>],
        key: &Key,
    ) -> Result<Sight, Fault> {
        const LOOK: &str = "look up the Job";
        let reference = job_ref(run);
        let name = reference.and_then(|job| job.name.clone());
        let name = name.unwrap_or_else(|| job::name(run));
        let bound = reference.and_then(|job| job.uid.clone());
        let known = own.iter().find(|job| job.name_any() == name);
        let known = known.filter(|job| bound.is_none() || job.uid() == bound);
        if let Some(known) = known {
            return Ok(Sight::Ours(Arc::clone(known)));
        }
        let is_left = any_of_ours(pods);
        // Nobody else has asked for it, and neither have we.
        let is_untried = self.untried.holds(run, &name) && !is_left;
        if phase(run).is_terminal() || reference.is_none() || is_untried {
            return Ok(Sight::Absent);
        }
        let live: Option<Job> = self.context.look_up(LOOK, &key.namespace, &name).await?;
        Ok(match (live, bound) {
            (Some(job), None) if is_own(&job, run) => self.found(job),
            (Some(job), None) => Sight::Taken(Arc::new(job)),
            (None, None) => {
                let is_it = |job: &Job| job.name_any() == name && is_own(job, run);
                let grave = self
                    .graves
                    .recall(is_it)
                    .or(is_left.then_some(Grave::UNSEEN));
                Sight::of_remains(grave, &list_pods(&self.context, run).await?)
            }
            (Some(job), Some(uid)) if job.uid().as_ref() == Some(&uid) => self.found(job),
            (live, Some(uid)) => Sight::Gone {
                absence: match live {
                    Some(_) => Absence::NameTaken,
                    None => Absence::NotFound,
                },
                last: self.graves.find(&uid),
            },
        })
    }

    fn found(&self, job: Job) -> Sight {
        self.shelves.tool_jobs.learn(pruned_job(job.clone()));
        Sight::Ours(Arc::new(job))
    }
}

/// Whether a Job was made for this very call.
fn is_own(job: &Job, run: &ToolRun) -> bool {
    let bound = job_ref(run).and_then(|job| job.uid.as_deref());
    is_made_for(job, run, bound)
}
