//! What really happened, and what is therefore wrong about what the controller did.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::world::{NAMESPACE, Sort, World, finalizers, is_going, is_held, made_for, name, uid};
use crate::api::condition::Moment;
use crate::api::contract::{finalizer, label};
use crate::api::kind::Kind;
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::RuntimeType;
use crate::api::status::check;
use crate::controller::agent_run::turn;

/// What really happened.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// Someone asked for the run to be stopped.
    pub(super) is_stopped: bool,
    /// Someone took off a finalizer.
    pub(super) is_stripped: bool,
    /// Someone deleted or changed something else.
    pub(super) is_disturbed: bool,
    /// Whether the pod of a Job ended well.
    pods: BTreeMap<String, bool>,
    /// Whether a Job ended well, in its own words.
    jobs: BTreeMap<String, bool>,
    /// Uids of Jobs by name.
    made: BTreeMap<String, Vec<String>>,
    /// Uids of Jobs that a status has named.
    bound: BTreeSet<String>,
    /// Uids of Jobs whose finalizer someone took off.
    stripped: BTreeSet<String>,
    /// Uids of Jobs of which someone let a pod go: how it ended may be known to nobody.
    unwitnessed: BTreeSet<String>,
    /// Uids of Jobs that the controller which is at work now was told of.
    heard: BTreeSet<String>,
    pub(super) wrongs: Vec<String>,
}

impl Truth {
    pub(super) fn stripped(&mut self, object: &Value) {
        self.is_stripped = true;
        self.stripped.insert(uid(object).to_owned());
        self.unwitnessed.extend(made_for(object).map(str::to_owned));
    }

    /// The controller has heard of a Job, from a watch or as the answer to its call.
    pub(super) fn heard(&mut self, job: &Value) {
        self.heard.insert(uid(job).to_owned());
    }

    /// The controller has died, with all that it knew.
    pub(super) fn forgotten(&mut self) {
        self.heard.clear();
    }

    pub(super) fn ended(&mut self, job: String, well: bool) {
        self.pods.insert(job, well);
    }

    pub(super) fn judged(&mut self, job: String, well: bool) {
        self.jobs.insert(job, well);
    }

    fn outcome(&self, job: &str) -> Option<bool> {
        self.jobs.get(job).or_else(|| self.pods.get(job)).copied()
    }

    fn wrong(&mut self, what: impl Into<String>) {
        self.wrongs.push(what.into());
    }

    /// The controller has made a Job.
    pub(super) fn job_made(&mut self, world: &World, job: &Value) {
        let earlier = self.made.get(name(job)).into_iter().flatten();
        let again = earlier.clone().any(|job| !self.is_erased(world, job));
        if again {
            self.wrong(format!("Job {} was made a second time", name(job)));
        }
        let all = self.made.entry(name(job).to_owned()).or_default();
        all.push(uid(job).to_owned());
    }

    /// The one case in which nobody can know that a Job was made: before its uid was stored, someone took its finalizer off
    /// by hand, it went with all its pods, which takes the same for each of them, and the controller that is at work now
    /// never heard of it. `docs/job-retention.md` says so.
    fn is_erased(&self, world: &World, job: &str) -> bool {
        let mut pods = world.all(Sort::Pod).into_iter();
        let has_pod = pods.any(|pod| made_for(&pod) == Some(job));
        self.stripped.contains(job)
            && !self.bound.contains(job)
            && !self.heard.contains(job)
            && !world.is_there(job)
            && !has_pod
    }

    /// The controller has taken our finalizer off a Job.
    pub(super) fn job_released(&mut self, world: &World, job: &Value) {
        let Some(run) = world.run().and_then(typed) else {
            return;
        };
        let owner = job["metadata"]["labels"][label::RUN_UID].as_str();
        if owner != run.metadata.uid.as_deref() || super::super::status::phase(&run).is_terminal() {
            return;
        }
        let current = turn::job_ref(&run).and_then(|job| job.uid.as_deref());
        let is_whole = run.spec.runtime.type_ == RuntimeType::Job;
        if is_whole || current == Some(uid(job)) {
            self.wrong(format!(
                "Job {} was let go before its outcome was stored",
                name(job)
            ));
        }
    }

    /// The controller has written a status.
    pub(super) fn status_written(&mut self, world: &World, old: &Value, new: &Value) {
        let at = Moment {
            generation: new["metadata"]["generation"].as_i64().unwrap_or_default(),
            now: world.now,
        };
        for cause in check(Kind::AgentRun, given(old), given(new), at) {
            self.wrong(format!("{}: {}", cause.field, cause.message));
        }
        let Some(run) = typed(new) else {
            self.wrong("the run cannot be read");
            return;
        };
        let job = turn::job_ref(&run).and_then(|job| job.uid.clone());
        self.bound.extend(job);
        self.judge_missing(world, old, new);
    }

    /// Whether a Job that the status now calls missing is there all the same.
    fn judge_missing(&mut self, world: &World, old: &Value, new: &Value) {
        let known = job_refs(old);
        let is_new = |job: &&Value| !job["missing"].is_null() && !known.contains(job);
        let jobs = world.all(Sort::Job);
        for job in job_refs(new).into_iter().filter(is_new) {
            // Without a uid it is one of those that the controller made under the name: those of others are none of the run.
            let made = self.made.get(job["name"].as_str().unwrap_or_default());
            let is_meant = |there: &Value| match job["uid"].as_str() {
                Some(known) => known == uid(there),
                None => made.is_some_and(|made| made.iter().any(|made| made == uid(there))),
            };
            if jobs.iter().any(|there| is_meant(there) && !is_going(there)) {
                self.wrong("a Job that is there was called missing");
            }
        }
    }

    /// Nothing happens any more: is everything as it must be?
    pub(super) fn judge(&mut self, world: &World) {
        for ((sort, name), object) in &world.objects {
            let ours = finalizers(object);
            let ours = ours
                .iter()
                .filter(|held| [finalizer::OUTCOME, finalizer::EVIDENCE].contains(held));
            if ours.count() > 0 {
                self.wrong(format!("{sort:?} {name} is held for ever"));
            }
        }
        let Some(run) = world.run() else {
            if !self.is_stopped {
                self.wrong("the run is gone");
            }
            return;
        };
        let phase = run["status"]["phase"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if is_going(run) && is_held(run, finalizer::RUNTIME_CLEANUP) {
            self.wrong("the run cannot go");
        }
        if !self.is_disturbed && !self.is_stripped && is_missing(run) {
            self.wrong("a Job is called missing that nobody touched");
        }
        match phase.as_str() {
            "Succeeded" => self.judge_success(run),
            "Failed" => self.judge_failure(run),
            "Cancelled" if self.is_stopped => self.judge_stop(world),
            other => self.wrong(format!("the run ends as {other:?}")),
        }
    }

    /// Jobs that the status names, by uid. Of one that went before its uid was kept the name is enough.
    fn named(&self, run: &Value) -> Vec<String> {
        let all = job_refs(run).into_iter();
        all.filter_map(|job| {
            let by_name = || self.made.get(job["name"].as_str()?)?.last().cloned();
            job["uid"].as_str().map(str::to_owned).or_else(by_name)
        })
        .collect()
    }

    fn judge_success(&mut self, run: &Value) {
        let jobs = self.named(run);
        if jobs.is_empty() || jobs.iter().any(|job| self.outcome(job) != Some(true)) {
            self.wrong("a run succeeded of which a Job did not");
        }
    }

    fn judge_failure(&mut self, run: &Value) {
        let jobs = self.named(run);
        // What someone let go by hand may be gone before anyone could see how it ended.
        let is_let_go = |job| self.stripped.contains(job) || self.unwitnessed.contains(job);
        if jobs.iter().any(is_let_go) {
            return;
        }
        let last = jobs.iter().filter_map(|job| self.outcome(job));
        if !jobs.is_empty() && last.clone().count() == jobs.len() && last.clone().all(|well| well) {
            self.wrong("a run failed of which every Job succeeded");
        }
    }

    fn judge_stop(&mut self, world: &World) {
        for pod in world.all(Sort::Pod) {
            let phase = pod["status"]["phase"].as_str();
            if phase == Some("Running") && !is_going(&pod) {
                self.wrong(format!("pod {} works on in {NAMESPACE}", name(&pod)));
            }
        }
    }
}

fn typed(run: &Value) -> Option<AgentRun> {
    AgentRun::deserialize(run).ok()
}

fn given(run: &Value) -> Option<&Value> {
    run.get("status").filter(|status| !status.is_null())
}

/// Every place of a status that names a Job.
fn job_refs(run: &Value) -> Vec<&Value> {
    let steps = run["status"]["workflow"]["steps"].as_array();
    let steps = steps.into_iter().flatten().map(|step| &step["jobRef"]);
    steps.chain([&run["status"]["jobRef"]]).collect()
}

fn is_missing(run: &Value) -> bool {
    let conditions = run["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "JobMissing" && condition["status"] == "True")
}
