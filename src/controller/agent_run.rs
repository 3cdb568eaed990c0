//! AgentRun: one piece of work, done by one Job or step by step by several, whose outcome is never lost.
//!
//! [`gather`] reads, [`plan`] decides, [`apply`] and the status step write. [`turn`] is where a run stands, [`work`] what is
//! to be done, [`admission`] whether it may begin, [`job`] the objects that do it, [`custom`] the endpoint that does it instead, [`status`] how a run stands in words, [`retention`] how long everything is
//! kept.

mod admission;
mod apply;
mod artifacts;
mod custom;
mod find;
mod gather;
mod job;
mod line;
mod log_gone;
mod plan;
mod retention;
mod rules;
mod settings;
#[cfg(test)]
mod simulation;
mod status;
mod turn;
mod vcs;
mod work;

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use kube::{Resource, ResourceExt};

use super::cache::shelves::Shelves;
use super::cache::{Change, Key, Shelf, Told};
use super::context::Context;
use super::driver::fault::{Class, Fault};
use super::driver::plan::{Plan, Standing};
use super::driver::queue::Priority;
use super::driver::{Reconciler, Work};
use super::runs::documents::Conflicts;
use super::runs::{Graves, Untried, is_job_new, is_pod_new, strays};
use crate::api::condition::Hindrance;
use crate::api::contract::label;
use crate::api::kind::Kind;
use crate::api::kinds::agents::agent_run::AgentRunStatus;
use crate::api::kinds::{AgentRun, Budget};
use admission::Book;
use custom::call::Replies;
use plan::pods::DISRUPTION;
use plan::{Action, Observed};
use turn::job_ref;

pub(crate) use admission::load;
pub(super) use admission::{Book as RunBook, Sort};
pub(super) use apply::{gone, release, with, without};
pub(super) use job::template::render;
pub(crate) use log_gone::LogGone;
pub(super) use plan::evidence::{Trace, deadline, never_made};
pub(super) use plan::pods::{detail, is_at_work, never_ran, report, works};
pub(super) use plan::{Why, claimed_by};
pub(super) use retention::keep_for;
pub(crate) use settings::Keep;
pub(super) use settings::Settings;
pub(super) use status::verdict::failure;
pub(super) use vcs::{Auth, Deprecated, auth};

/// The reconciler of runs.
pub(super) struct AgentRuns {
    context: Arc<Context>,
    shelves: Arc<Shelves>,
    settings: Settings,
    graves: Graves,
    untried: Untried,
    conflicts: Conflicts,
    book: Arc<Book>,
    /// What endpoints said that is not stored yet.
    replies: Replies,
    /// Where runs are woken that wait in line.
    work: OnceLock<Work>,
}

impl AgentRuns {
    pub(super) fn new(context: Arc<Context>, shelves: Arc<Shelves>, settings: Settings) -> Self {
        let book = Arc::new(Book::new(settings.limits.clone()));
        line::keep_book(&book, &shelves.runs, context.clock);
        Self {
            context,
            shelves,
            settings,
            graves: Graves::default(),
            untried: Untried::default(),
            conflicts: Conflicts::default(),
            book,
            replies: Replies::default(),
            work: OnceLock::new(),
        }
    }

    /// All runs, as admission sees them.
    pub(super) fn book(&self) -> &Arc<Book> {
        &self.book
    }
}

impl Reconciler for AgentRuns {
    const KIND: Kind = Kind::AgentRun;
    type Object = AgentRun;
    type Status = AgentRunStatus;
    type Observed = Observed;
    type Action = Action;

    fn shelf(&self) -> &Shelf<AgentRun> {
        &self.shelves.runs
    }

    fn status(object: &AgentRun) -> Option<&AgentRunStatus> {
        object.status.as_ref()
    }

    fn object(observed: &Observed) -> Option<&AgentRun> {
        observed.run.as_deref()
    }

    async fn gather(&self, key: &Key, now: Timestamp) -> Result<Observed, Fault> {
        self.observe(key, now).await
    }

    fn plan(&self, observed: &Observed) -> Plan<Action, AgentRunStatus> {
        plan::plan(observed, &self.settings)
    }

    async fn act(&self, observed: &Observed, action: &Action) -> Result<bool, Fault> {
        self.carry_out(observed, action).await
    }

    fn failed(&self, run: &AgentRun, fault: &Fault) -> Option<Standing<AgentRunStatus>> {
        if status::phase(run).is_terminal() {
            return None;
        }
        self.give_back(run, fault);
        let is_refusal = [apply::MAKE_JOB, apply::MAKE_CONFIG_MAP].contains(&fault.what);
        match fault.class {
            Class::Spec if is_refusal => {
                Some(status::not_submitted(run, fault, self.context.clock.now()))
            }
            Class::Retryable
            | Class::Spec
            | Class::Config
            | Class::Forbidden
            | Class::NameTaken
            | Class::Panic
            | Class::Conflict
            | Class::Fenced => status::troubled(run, fault),
        }
    }

    fn stored(&self, before: &AgentRun) {
        let after = self.shelves.runs.get(&Key::of(before));
        self.replies.settle(before, after.as_deref());
        let at_work = after
            .as_deref()
            .filter(|run| !status::phase(*run).is_terminal());
        let reserved = at_work.and_then(job_ref);
        self.untried.stored(before, job_ref(before), reserved);
        self.noted(before, after.as_deref());
    }

    /// Jobs and pods that are held for a run that is gone.
    fn strays(&self) -> Vec<Key> {
        let Shelves {
            runs, jobs, pods, ..
        } = &*self.shelves;
        strays(runs, jobs, pods)
    }
}

/// Who is told what about runs, Jobs, pods, and what runs refer to.
pub(super) struct Wakes {
    runs: Arc<AgentRuns>,
    work: Work,
}

impl Wakes {
    pub(super) fn new(runs: Arc<AgentRuns>, work: Work) -> Arc<Self> {
        // Set once: there is one of these for all runs.
        let work = runs.work.get_or_init(|| work).clone();
        Arc::new(Self { runs, work })
    }

    pub(super) fn on_run(self: &Arc<Self>) -> Told<AgentRun> {
        let wakes = Arc::clone(self);
        Arc::new(move |change| match change {
            Change::Applied { object, before } => {
                wakes
                    .work
                    .add(Key::of(&**object), urgency(object, before.is_some()));
                if let Some(before) = before {
                    wakes.runs.noted(before, Some(object));
                }
            }
            Change::Deleted { object: run, .. } => {
                wakes.work.add(Key::of(&**run), Priority::Resync);
                wakes.runs.replies.settle(run, None);
                wakes.runs.untried.forget(&**run);
                wakes.runs.noted(run, None);
            }
        })
    }

    pub(super) fn on_job(self: &Arc<Self>) -> Told<Job> {
        let wakes = Arc::clone(self);
        Arc::new(move |change| match change {
            Change::Applied { object, before } if !is_job_new(object, before.as_deref()) => {}
            Change::Applied { object, .. } => wakes.wake_owner(&**object),
            Change::Deleted { object, is_last } => {
                wakes.runs.graves.bury(object, *is_last);
                wakes.wake_owner(&**object);
            }
        })
    }

    pub(super) fn on_pod(self: &Arc<Self>) -> Told<Pod> {
        let wakes = Arc::clone(self);
        Arc::new(move |change| match change {
            Change::Applied { object, before } if !is_pod_new(object, before.as_deref()) => {}
            Change::Applied { object, .. } | Change::Deleted { object, .. } => {
                wakes.wake_owner(&**object);
            }
        })
    }

    fn wake_owner<K: Resource>(&self, object: &K) {
        if let Some(run) = owner(object) {
            let namespace = object.namespace().unwrap_or_default();
            self.work.add(Key::new(namespace, run), Priority::Record);
        }
    }

    /// A Budget has come or changed: the runs that it holds back look again.
    pub(super) fn on_budget(self: &Arc<Self>) -> Told<Budget> {
        let wakes = Arc::clone(self);
        Arc::new(move |change| {
            let Change::Applied { object, .. } = change else {
                return;
            };
            let namespace = object.namespace().unwrap_or_default();
            let held = [Hindrance::Exceeded, Hindrance::MissingBudget].map(Hindrance::as_str);
            let waiting = |run: &AgentRun| {
                status::blocked_reason(run).is_some_and(|reason| held.contains(&reason))
            };
            for run in wakes.runs.shelves.runs.in_namespace(&namespace, waiting) {
                wakes.work.add(Key::of(&*run), Priority::Create);
            }
        })
    }

    /// Something that runs refer to has come or changed: those that wait in its namespace look again.
    pub(super) fn on_reference<K>(self: &Arc<Self>) -> Told<K>
    where
        K: Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        let wakes = Arc::clone(self);
        Arc::new(move |change| {
            let Change::Applied { object, before } = change else {
                return;
            };
            let generation = |object: &K| object.meta().generation;
            if before
                .as_ref()
                .is_some_and(|before| generation(before) == generation(object))
            {
                return;
            }
            let namespace = object.namespace().unwrap_or_default();
            let waiting = |run: &AgentRun| status::missing_since(run).is_some();
            for run in wakes.runs.shelves.runs.in_namespace(&namespace, waiting) {
                wakes.work.add(Key::of(&*run), Priority::Create);
            }
        })
    }
}

/// How urgent a change of a run is.
fn urgency(run: &AgentRun, is_known: bool) -> Priority {
    let is_over = status::phase(run).is_terminal();
    if run.meta().deletion_timestamp.is_some() || (run.spec.cancel == Some(true) && !is_over) {
        Priority::Record
    } else if is_over && !is_known {
        Priority::Resync
    } else {
        Priority::Create
    }
}

/// Name of the run that a Job or pod was made for.
pub(super) fn owner<K: Resource>(object: &K) -> Option<String> {
    object.labels().get(label::AGENT_RUN).cloned()
}

/// A run without what nobody reads.
pub(super) fn pruned_run(mut run: AgentRun) -> AgentRun {
    prune_run(&mut run);
    run
}

pub(super) fn prune_run(run: &mut AgentRun) {
    super::cache::shelves::prune(run);
}

/// Conditions of a Job that say how it ended.
const ENDS: [&str; 2] = ["Complete", "Failed"];

/// A Job without its template, and of its status only when it began and how it ended.
pub(super) fn pruned_job(mut job: Job) -> Job {
    prune_job(&mut job);
    job
}

pub(super) fn prune_job(job: &mut Job) {
    super::cache::shelves::prune(job);
    let spec = job.spec.take().unwrap_or_default();
    job.spec = Some(JobSpec {
        ttl_seconds_after_finished: spec.ttl_seconds_after_finished,
        active_deadline_seconds: spec.active_deadline_seconds,
        ..JobSpec::default()
    });
    job.status = job.status.take().map(|status| JobStatus {
        start_time: status.start_time,
        conditions: status.conditions.map(|mut conditions| {
            conditions.retain(|condition| ENDS.contains(&condition.type_.as_str()));
            conditions
        }),
        ..JobStatus::default()
    });
}

/// A pod of which only its phase, its node and how it and its containers ended is kept.
pub(super) fn pruned_pod(mut pod: Pod) -> Pod {
    prune_pod(&mut pod);
    pod
}

pub(super) fn prune_pod(pod: &mut Pod) {
    super::cache::shelves::prune(pod);
    pod.spec = pod.spec.take().map(|spec| PodSpec {
        node_name: spec.node_name,
        ..PodSpec::default()
    });
    pod.status = pod.status.take().map(|status| PodStatus {
        phase: status.phase,
        reason: status.reason,
        conditions: status.conditions.map(|mut conditions| {
            conditions.retain(|condition| condition.type_ == DISRUPTION);
            conditions
        }),
        container_statuses: status.container_statuses,
        ..PodStatus::default()
    });
}
