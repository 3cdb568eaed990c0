//! ToolRun: one call of a Tool, done by one Job, whose outcome is never lost.
//!
//! The custody of its Job is that of an AgentRun with one Job: reserve, make, bind, follow, store, mark, let go.

mod apply;
mod gather;
mod job;
mod plan;
mod status;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, SecurityContext};
use kube::{Resource, ResourceExt};

use crate::api::contract::label;
use crate::api::kind::Kind;
use crate::api::kinds::{Tool, ToolRun, ToolRunStatus};
use crate::controller::agent_run::Keep;
use crate::controller::cache::shelves::Shelves;
use crate::controller::cache::{Change, Key, Shelf, Told};
use crate::controller::context::Context;
use crate::controller::driver::fault::{Class, Fault};
use crate::controller::driver::plan::{Plan, Standing};
use crate::controller::driver::queue::Priority;
use crate::controller::driver::{Reconciler, Work};
use crate::controller::runs::documents::Conflicts;
use crate::controller::runs::{Graves, Untried, is_job_new, is_pod_new, strays};
use plan::{Action, Observed};

/// The reconciler of calls of tools.
pub(in crate::controller) struct ToolRuns {
    context: Arc<Context>,
    shelves: Arc<Shelves>,
    settings: Settings,
    graves: Graves,
    untried: Untried,
    conflicts: Conflicts,
}

/// What operators can set about runs, as far as calls of tools have to do with it.
#[derive(Clone, Debug, Default)]
pub(in crate::controller) struct Settings {
    /// How long a call waits for its Tool; zero for ever.
    pub(in crate::controller) grace: std::time::Duration,
    /// How long Jobs are kept.
    pub(in crate::controller) keep: Keep,
    /// Security context of every container.
    pub(in crate::controller) container: Option<SecurityContext>,
}

impl ToolRuns {
    pub(in crate::controller) fn new(
        context: Arc<Context>,
        shelves: Arc<Shelves>,
        settings: Settings,
    ) -> Self {
        Self {
            context,
            shelves,
            settings,
            graves: Graves::default(),
            untried: Untried::default(),
            conflicts: Conflicts::default(),
        }
    }
}

impl Reconciler for ToolRuns {
    const KIND: Kind = Kind::ToolRun;
    type Object = ToolRun;
    type Status = ToolRunStatus;
    type Observed = Observed;
    type Action = Action;

    fn shelf(&self) -> &Shelf<ToolRun> {
        &self.shelves.tool_runs
    }

    fn status(object: &ToolRun) -> Option<&ToolRunStatus> {
        object.status.as_ref()
    }

    fn object(observed: &Observed) -> Option<&ToolRun> {
        observed.run.as_deref()
    }

    async fn gather(&self, key: &Key, now: Timestamp) -> Result<Observed, Fault> {
        self.observe(key, now).await
    }

    fn plan(&self, observed: &Observed) -> Plan<Action, ToolRunStatus> {
        plan::plan(observed, &self.settings)
    }

    async fn act(&self, observed: &Observed, action: &Action) -> Result<bool, Fault> {
        self.carry_out(observed, action).await
    }

    fn failed(&self, run: &ToolRun, fault: &Fault) -> Option<Standing<ToolRunStatus>> {
        if status::phase(run).is_terminal() {
            return None;
        }
        let is_refusal = fault.class == Class::Spec && apply::MAKES.contains(&fault.what);
        match is_refusal {
            true => Some(status::not_submitted(run, fault, self.context.clock.now())),
            false => status::troubled(run, fault),
        }
    }

    fn stored(&self, before: &ToolRun) {
        let after = self.shelves.tool_runs.get(&Key::of(before));
        let at_work = after
            .as_deref()
            .filter(|run| !status::phase(*run).is_terminal());
        let reserved = at_work.and_then(status::job_ref);
        self.untried
            .stored(before, status::job_ref(before), reserved);
    }

    /// Jobs and pods that are held for a call that is gone.
    fn strays(&self) -> Vec<Key> {
        let shelves = &self.shelves;
        strays(&shelves.tool_runs, &shelves.tool_jobs, &shelves.tool_pods)
    }
}

/// Who is told what about calls of tools.
pub(in crate::controller) struct Wakes {
    runs: Arc<ToolRuns>,
    work: Work,
}

impl Wakes {
    pub(in crate::controller) fn new(runs: Arc<ToolRuns>, work: Work) -> Arc<Self> {
        Arc::new(Self { runs, work })
    }

    pub(in crate::controller) fn on_run(self: &Arc<Self>) -> Told<ToolRun> {
        let wakes = Arc::clone(self);
        Arc::new(move |change| {
            let (run, priority) = match change {
                Change::Applied { object, .. } => {
                    let is_going = object.meta().deletion_timestamp.is_some();
                    let is_stopped = is_going || object.spec.cancel == Some(true);
                    let is_over = status::phase(&**object).is_terminal();
                    let priority = match (is_stopped, is_over) {
                        (true, _) => Priority::Record,
                        (false, false) => Priority::Create,
                        (false, true) => Priority::Resync,
                    };
                    (object, priority)
                }
                Change::Deleted { object, .. } => {
                    wakes.runs.untried.forget(&**object);
                    (object, Priority::Resync)
                }
            };
            wakes.work.add(Key::of(&**run), priority);
        })
    }

    pub(in crate::controller) fn on_job(self: &Arc<Self>) -> Told<Job> {
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

    pub(in crate::controller) fn on_pod(self: &Arc<Self>) -> Told<Pod> {
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

    /// A Tool has come or changed: the calls that wait in its namespace look again.
    pub(in crate::controller) fn on_tool(self: &Arc<Self>) -> Told<Tool> {
        let wakes = Arc::clone(self);
        Arc::new(move |change| {
            let Change::Applied { object, .. } = change else {
                return;
            };
            let namespace = object.namespace().unwrap_or_default();
            let waits = |run: &ToolRun| status::missing_since(run).is_some();
            for run in wakes.runs.shelves.tool_runs.in_namespace(&namespace, waits) {
                wakes.work.add(Key::of(&*run), Priority::Create);
            }
        })
    }
}

/// Name of the call that a Job or pod was made for.
pub(in crate::controller) fn owner<K: Resource>(object: &K) -> Option<String> {
    object.labels().get(label::TOOL_RUN).cloned()
}
