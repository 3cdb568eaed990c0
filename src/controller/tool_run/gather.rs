//! Reads what a plan about a call needs: copies where they will do, the API server where a verdict depends on it.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};

use super::plan::{Observed, Sight};
use super::status::{job_ref, phase};
use super::{ToolRuns, job};
use crate::api::contract::{finalizer, label};
use crate::api::custody::{Absence, LastStatus, last_status_of};
use crate::api::kinds::ToolRun;
use crate::controller::agent_run::{is_held, pruned_job};
use crate::controller::cache::Key;
use crate::controller::driver::fault::Fault;

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
        let (own_jobs, other_jobs): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .partition(|job| belongs(&**job, uid.as_deref()));
        let (own_pods, other_pods): (Vec<_>, Vec<_>) = pods
            .into_iter()
            .partition(|pod| belongs(&**pod, uid.as_deref()));
        let mut seen = Observed {
            now,
            policy: self.context.rules.current(),
            tool: None,
            job: Sight::Absent,
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
        seen.job = self.sight(&run, &own_jobs, key).await?;
        if !phase(&run).is_terminal() && is_in_doubt(&run, &seen.job) {
            seen.pods = self.list_pods(&run, key).await?;
            seen.namespace_terminating = self.is_namespace_terminating(key).await;
        }
        Ok(seen)
    }

    /// What there is under the name of the Job. That a Job is gone is said only after a live read.
    async fn sight(&self, run: &ToolRun, own: &[Arc<Job>], key: &Key) -> Result<Sight, Fault> {
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
        if phase(run).is_terminal() || reference.is_none() {
            return Ok(Sight::Absent);
        }
        let live: Option<Job> = self.context.look_up(LOOK, &key.namespace, &name).await?;
        Ok(match (live, bound) {
            (Some(job), None) if belongs(&job, run.uid().as_deref()) => self.found(job),
            (Some(_), None) => Sight::Taken,
            (None, None) => Sight::Absent,
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

    /// The pods of the call as they are stored now.
    async fn list_pods(&self, run: &ToolRun, key: &Key) -> Result<Vec<Arc<Pod>>, Fault> {
        let api: Api<Pod> = self.context.api(&key.namespace);
        let uid = run.uid().unwrap_or_default();
        let params = ListParams::default().labels(&format!("{}={uid}", label::RUN_UID));
        let list = api.list(&params).await;
        let list = list.map_err(|error| Fault::of("list the pods of the call", &error))?;
        Ok(list.items.into_iter().map(Arc::new).collect())
    }

    /// Whether the namespace is being deleted. Where that may not be asked, it counts as staying.
    async fn is_namespace_terminating(&self, key: &Key) -> bool {
        let all: Api<Namespace> = Api::all(self.context.client.clone());
        match all.get_metadata_opt(&key.namespace).await {
            Ok(Some(namespace)) => namespace.metadata.deletion_timestamp.is_some(),
            Ok(None) => true,
            Err(error) => {
                tracing::debug!(%key, %error, "Whether the namespace is going cannot be asked");
                false
            }
        }
    }
}

/// Whether an object was made for the call with this uid.
fn belongs<K: Resource>(object: &K, uid: Option<&str>) -> bool {
    let label = object.labels().get(label::RUN_UID).map(String::as_str);
    uid.is_some() && label == uid
}

fn held<K: Resource>(objects: Vec<Arc<K>>, finalizer: &str) -> Vec<Arc<K>> {
    let held = objects.into_iter();
    held.filter(|object| is_held(&**object, finalizer))
        .collect()
}

/// Whether the Job can no longer tell how it ends, so that only its pods can.
fn is_in_doubt(run: &ToolRun, job: &Sight) -> bool {
    match job {
        Sight::Ours(job) => {
            job.meta().deletion_timestamp.is_some() && last_status_of(job) == LastStatus::Active
        }
        Sight::Gone { .. } => true,
        Sight::Absent => job_ref(run).is_some_and(|job| job.uid.is_some()),
        Sight::Taken => false,
    }
}
