//! Reads what a plan about a run needs: copies where they will do, the API server where a verdict depends on it.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::AgentRuns;
use super::admission::Decision;
use super::custom;
use super::plan::{Observed, is_of};
use super::status::phase;
use super::turn::{self, Stage, Turn, job_ref};
use super::work::Found;
use crate::api::contract::finalizer;
use crate::api::custody::Absence;
use crate::api::kinds::AgentRun;
use crate::controller::cache::Key;
use crate::controller::driver::fault::Fault;
use crate::controller::runs::look::{held, is_labelled, is_made_for, is_terminating, list_pods};
use crate::controller::runs::{Grave, Sight, any_of_ours, is_going};

impl AgentRuns {
    pub(super) async fn observe(&self, key: &Key, now: Timestamp) -> Result<Observed, Fault> {
        let shelves = &self.shelves;
        let jobs = shelves.jobs.of_owner(key);
        let pods = shelves.pods.of_owner(key);
        let mut run = shelves.runs.get(key);
        if run.is_none() && !(jobs.is_empty() && pods.is_empty()) {
            // Only a live read can say that nobody waits for them.
            run = self.look_up_run(key).await?;
        }
        let uid = run.as_ref().and_then(|run| run.uid());
        let is_own = |job: &Arc<Job>| run.as_deref().is_some_and(|run| is_own(job, run));
        let (own_jobs, other_jobs): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_own);
        let (mut own_pods, other_pods): (Vec<_>, Vec<_>) = pods
            .into_iter()
            .partition(|pod| is_labelled(&**pod, uid.as_deref()));
        let mut seen = Observed {
            now,
            run: run.clone(),
            job: Sight::Absent,
            pods: Vec::new(),
            other_jobs: Vec::new(),
            other_pods: Vec::new(),
            reply: None,
            admission: Decision::Admit,
            in_the_way: None,
            found: None,
            namespace_terminating: false,
            stray_jobs: held(other_jobs, finalizer::OUTCOME),
            stray_pods: held(other_pods, finalizer::EVIDENCE),
        };
        let Some(run) = run else {
            return Ok(seen);
        };
        let stage = turn::stage(&run);
        if custom::is_custom(&run) {
            seen.reply = self.replies.of(&run);
        } else {
            let current = own_pods.iter().filter(|pod| is_current(pod, &run, stage));
            let is_left = any_of_ours(current);
            seen.job = self.sight(&run, stage, &own_jobs, is_left).await?;
        }
        if !phase(&*run).is_terminal() {
            if seen.job.is_in_doubt(job_ref(&run)) {
                own_pods = list_pods(&self.context, &*run).await?;
            }
            self.look_ahead(&mut seen, &run, stage).await?;
        }
        (seen.pods, seen.other_pods) = own_pods
            .into_iter()
            .partition(|pod| is_current(pod, &run, stage));
        seen.other_jobs = own_jobs;
        if let Sight::Ours(current) = &seen.job {
            let uid = current.uid();
            seen.other_jobs.retain(|job| job.uid() != uid);
        }
        Ok(seen)
    }

    /// What only a run that has not ended needs: whether it may go on, and what for.
    async fn look_ahead(
        &self,
        seen: &mut Observed,
        run: &AgentRun,
        stage: Stage,
    ) -> Result<(), Fault> {
        if !turn::has_begun(run) {
            seen.admission = self.consider(run, seen.now);
        }
        if seen.job.is_in_doubt(job_ref(run)) || is_going(run) {
            let namespace = run.namespace().unwrap_or_default();
            seen.namespace_terminating = is_terminating(&self.context, &namespace).await;
        }
        let is_made = !matches!(seen.job, Sight::Absent) || custom::is_handed_over(run);
        if !is_made && is_due(stage, seen.now) {
            seen.found = Some(self.find(run, seen.now).await?);
            seen.in_the_way = self.conflicts.in_the_way(&self.context, run).await?;
        } else if seen.job.is_in_doubt(job_ref(run)) {
            // It says how long the Job could take, of which nobody may have a copy.
            let namespace = run.namespace().unwrap_or_default();
            let agent = Key::new(namespace, &run.spec.agent_ref.name);
            seen.found = Some(Found {
                agent: self.shelves.agents.get(&agent),
                ..Found::default()
            });
        }
        Ok(())
    }

    /// Takes over the run as it is stored now, if it is.
    async fn look_up_run(&self, key: &Key) -> Result<Option<Arc<AgentRun>>, Fault> {
        let run: Option<AgentRun> = self
            .context
            .look_up("look up the run", &key.namespace, &key.name)
            .await?;
        if let Some(run) = run {
            self.shelves.runs.learn(super::pruned_run(run));
        }
        Ok(self.shelves.runs.get(key))
    }

    /// What there is under the name of the Job of the turn. That a Job is gone is said only after a live read. `is_left` says
    /// that there is a pod of it.
    async fn sight(
        &self,
        run: &AgentRun,
        stage: Stage,
        own: &[Arc<Job>],
        is_left: bool,
    ) -> Result<Sight, Fault> {
        let (Stage::Under(turn)
        | Stage::Before {
            turn: turn @ Turn::Whole,
            ..
        }) = stage
        else {
            return Ok(Sight::Absent);
        };
        let namespace = run.namespace().unwrap_or_default();
        let reference = job_ref(run);
        let name = reference.and_then(|job| job.name.clone());
        let name = name.unwrap_or_else(|| turn.job(run));
        let bound = reference.and_then(|job| job.uid.clone());
        let known = self.shelves.jobs.get(&Key::new(&namespace, &name));
        let is_own = |job: &Job| own.iter().any(|own| own.uid() == job.uid());
        match (known, &bound) {
            (Some(job), None) if is_own(&job) => return Ok(Sight::Ours(job)),
            (Some(job), Some(uid)) if job.uid().as_ref() == Some(uid) => {
                return Ok(Sight::Ours(job));
            }
            (None, None) => return self.look_for_made(run, stage, &name, is_left).await,
            // Not ours, so nobody tells us when it goes.
            (Some(job), None) => return self.look_at_other(job).await,
            // A run that has ended needs no certainty about what is gone.
            (_, Some(_)) if phase(run).is_terminal() => return Ok(Sight::Absent),
            (_, Some(_)) => {}
        }
        let live: Option<Job> = self
            .context
            .look_up("look up the Job", &namespace, &name)
            .await?;
        let absence = match live {
            Some(job) if job.uid() == bound => {
                self.shelves.jobs.learn(super::pruned_job(job.clone()));
                return Ok(Sight::Ours(Arc::new(job)));
            }
            Some(_) => Absence::NameTaken,
            None => Absence::NotFound,
        };
        let last = bound.and_then(|uid| self.graves.find(&uid));
        Ok(Sight::Gone { absence, last })
    }

    /// A Job that nobody has told us of, and whose uid was never kept. If the call that makes it may have been carried out,
    /// only the API server knows: its answer may have been lost, or it died with an earlier process.
    async fn look_for_made(
        &self,
        run: &AgentRun,
        stage: Stage,
        name: &str,
        is_left: bool,
    ) -> Result<Sight, Fault> {
        let is_asked_for = job_ref(run).is_some() && !self.untried.holds(run, name);
        if phase(run).is_terminal() || !(is_left || is_asked_for) {
            return Ok(Sight::Absent);
        }
        let namespace = run.namespace().unwrap_or_default();
        let live: Option<Job> = self
            .context
            .look_up("look up the Job", &namespace, name)
            .await?;
        if let Some(job) = live {
            let is_own = is_own(&job, run);
            self.shelves.jobs.learn(super::pruned_job(job.clone()));
            let job = Arc::new(job);
            return Ok(match is_own {
                true => Sight::Ours(job),
                false => Sight::Taken(job),
            });
        }
        let is_it = |job: &Job| job.name_any() == name && is_own(job, run);
        let grave = self
            .graves
            .recall(is_it)
            .or(is_left.then_some(Grave::UNSEEN));
        let mut pods = list_pods(&self.context, run).await?;
        pods.retain(|pod| is_current(pod, run, stage));
        Ok(Sight::of_remains(grave, &pods))
    }

    /// A Job of someone else under the name that we need, if it is still there.
    async fn look_at_other(&self, job: Arc<Job>) -> Result<Sight, Fault> {
        let key = Key::of(&*job);
        let there: Option<Job> = self
            .context
            .look_up("look up the Job", &key.namespace, &key.name)
            .await?;
        if there.is_some_and(|there| there.uid() == job.uid()) {
            return Ok(Sight::Taken(job));
        }
        self.shelves.jobs.unlearn(&key);
        Ok(Sight::Absent)
    }
}

/// Whether a Job was made for this very run.
fn is_own(job: &Job, run: &AgentRun) -> bool {
    let bound = job_ref(run).and_then(|job| job.uid.as_deref());
    is_made_for(job, run, bound)
}

/// Whether a Job may be made now.
fn is_due(stage: Stage, now: Timestamp) -> bool {
    match stage {
        Stage::Under(_) => true,
        Stage::Before { due, .. } => due.is_none_or(|due| due <= now),
        Stage::Over => false,
    }
}

/// Whether a pod belongs to the Job that is made now or at work.
fn is_current(pod: &Pod, run: &AgentRun, stage: Stage) -> bool {
    match stage {
        Stage::Under(Turn::Whole)
        | Stage::Before {
            turn: Turn::Whole, ..
        } => true,
        Stage::Under(Turn::Step(_)) => {
            let name = job_ref(run).and_then(|job| job.name.as_deref());
            name.is_some_and(|name| is_of(pod, name))
        }
        Stage::Before {
            turn: Turn::Step(_),
            ..
        }
        | Stage::Over => false,
    }
}
