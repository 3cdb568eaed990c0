//! OrchestrationRun: one run of an Orchestration, step by step.
//!
//! [`gather`] reads, [`plan`] decides, [`step`] is what becomes of one step, [`child`] the object that carries it out,
//! [`status`] how the run stands in words. Objects of steps belong to the run, so they go with it.

mod child;
mod gather;
mod plan;
mod refusals;
mod status;
mod step;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use serde_json::json;

use crate::api::contract::label;
use crate::api::kind::Kind;
use crate::api::kinds::{Orchestration, OrchestrationRun, OrchestrationRunStatus};
use crate::controller::cache::shelves::{self, Shelves};
use crate::controller::cache::{Change, Kept, Key, Shelf, Told};
use crate::controller::context::{Context, Thing};
use crate::controller::driver::fault::{Class, Fault};
use crate::controller::driver::plan::{Plan, Standing};
use crate::controller::driver::queue::Priority;
use crate::controller::driver::{Reconciler, Work};
use child::Child;
use plan::{Action, Observed};
use refusals::Refusals;

/// The reconciler of runs of orchestrations.
pub(in crate::controller) struct OrchestrationRuns {
    context: Arc<Context>,
    shelves: Arc<Shelves>,
    grace: Duration,
    refusals: Refusals,
}

impl OrchestrationRuns {
    pub(in crate::controller) fn new(
        context: Arc<Context>,
        shelves: Arc<Shelves>,
        grace: Duration,
    ) -> Self {
        Self {
            context,
            shelves,
            grace,
            refusals: Refusals::default(),
        }
    }

    /// Makes the object of a step. One that is there already is looked at in the next pass.
    async fn make<K>(&self, shelf: &Shelf<K>, seen: &Observed, object: &K) -> Result<bool, Fault>
    where
        K: Thing + Kept,
    {
        match self
            .context
            .create("make the object of a step", object)
            .await
        {
            Ok(made) => {
                let (namespace, name) = (made.namespace(), made.name_any());
                let kind = K::kind(&());
                tracing::info!(namespace, %kind, name, "Object of a step made");
                learn(shelf, made);
            }
            Err(fault) if fault.class == Class::Conflict => {
                let at = Key::of(object);
                let (namespace, name) = (&at.namespace, &at.name);
                let there = self.context.look_up::<K>("look it up", namespace, name);
                if let Some(there) = there.await? {
                    learn(shelf, there);
                }
            }
            Err(fault) if fault.class == Class::Spec => {
                let uid = seen.run.as_ref().and_then(|run| run.uid());
                self.refusals.note(Key::of(object), uid, fault.sentence());
            }
            Err(fault) => return Err(fault),
        }
        Ok(true)
    }

    /// Asks the object of a step to stop; its record stays.
    async fn stop<K: Thing + Kept>(&self, shelf: &Shelf<K>, object: &K) -> Result<bool, Fault> {
        let cancel = json!({"op": "add", "path": "/spec/cancel", "value": true});
        let what = "stop the object of a step";
        match self.context.change(what, object, vec![cancel]).await {
            Ok(stopped) => learn(shelf, stopped),
            Err(fault) if fault.is_not_found() => shelf.unlearn(&Key::of(object)),
            Err(fault) => return Err(fault),
        }
        Ok(true)
    }
}

fn learn<K: Thing + Kept>(shelf: &Shelf<K>, mut object: K) {
    shelves::prune(&mut object);
    shelf.announce(object);
}

impl Reconciler for OrchestrationRuns {
    const KIND: Kind = Kind::OrchestrationRun;
    type Object = OrchestrationRun;
    type Status = OrchestrationRunStatus;
    type Observed = Observed;
    type Action = Action;

    fn shelf(&self) -> &Shelf<OrchestrationRun> {
        &self.shelves.orchestration_runs
    }

    fn status(object: &OrchestrationRun) -> Option<&OrchestrationRunStatus> {
        object.status.as_ref()
    }

    fn object(observed: &Observed) -> Option<&OrchestrationRun> {
        observed.run.as_deref()
    }

    async fn gather(&self, key: &Key, now: Timestamp) -> Result<Observed, Fault> {
        self.observe(key, now).await
    }

    fn plan(&self, observed: &Observed) -> Plan<Action, OrchestrationRunStatus> {
        plan::plan(observed, self.grace)
    }

    async fn act(&self, seen: &Observed, action: &Action) -> Result<bool, Fault> {
        let shelves = &self.shelves;
        match action {
            Action::Make(Child::Agent(run)) => self.make(&shelves.runs, seen, &**run).await,
            Action::Make(Child::Tool(run)) => self.make(&shelves.tool_runs, seen, &**run).await,
            Action::Make(Child::Orchestration(run)) => {
                self.make(&shelves.orchestration_runs, seen, &**run).await
            }
            Action::Stop(Child::Agent(run)) => self.stop(&shelves.runs, &**run).await,
            Action::Stop(Child::Tool(run)) => self.stop(&shelves.tool_runs, &**run).await,
            Action::Stop(Child::Orchestration(run)) => {
                self.stop(&shelves.orchestration_runs, &**run).await
            }
        }
    }

    fn failed(
        &self,
        run: &OrchestrationRun,
        fault: &Fault,
    ) -> Option<Standing<OrchestrationRunStatus>> {
        match status::phase(run).is_terminal() {
            true => None,
            false => status::troubled(run, fault),
        }
    }
}

/// Who is told what about runs of orchestrations.
#[derive(Clone)]
pub(in crate::controller) struct Wakes {
    shelves: Arc<Shelves>,
    work: Work,
}

impl Wakes {
    pub(in crate::controller) fn new(shelves: Arc<Shelves>, work: Work) -> Self {
        Self { shelves, work }
    }

    pub(in crate::controller) fn on_run(&self) -> Told<OrchestrationRun> {
        let work = self.work.clone();
        Arc::new(move |change| {
            if let Change::Applied { object, .. } = change {
                let is_stopped = object.spec.cancel == Some(true);
                let priority = match (is_stopped, status::phase(&**object).is_terminal()) {
                    (true, false) => Priority::Record,
                    (false, false) => Priority::Create,
                    (_, true) => Priority::Resync,
                };
                work.add(Key::of(&**object), priority);
            }
        })
    }

    /// An object of a step came, changed or went.
    pub(in crate::controller) fn on_child<K: Thing + Send + Sync + 'static>(&self) -> Told<K> {
        let work = self.work.clone();
        Arc::new(move |change| {
            let child = match change {
                Change::Applied { object, .. } | Change::Deleted { object, .. } => object,
            };
            if let Some(run) = child.labels().get(label::ORCHESTRATION_RUN) {
                let namespace = child.namespace().unwrap_or_default();
                work.add(Key::new(namespace, run), Priority::Record);
            }
        })
    }

    /// An Orchestration came or changed: its runs that have not ended look again.
    pub(in crate::controller) fn on_orchestration(&self) -> Told<Orchestration> {
        let wakes = self.clone();
        Arc::new(move |change| {
            if let Change::Applied { object, .. } = change {
                let name = object.name_any();
                wakes.wake(&**object, |run| {
                    run.spec.orchestration_ref.name.trim() == name
                });
            }
        })
    }

    /// Something came or changed that steps may wait for.
    pub(in crate::controller) fn on_awaited<K: Thing + Send + Sync + 'static>(&self) -> Told<K> {
        let wakes = self.clone();
        Arc::new(move |change| {
            if let Change::Applied { object, .. } = change {
                wakes.wake(&**object, |_| true);
            }
        })
    }

    fn wake<K: Resource>(&self, beside: &K, wanted: impl Fn(&OrchestrationRun) -> bool) {
        let namespace = beside.namespace().unwrap_or_default();
        let runs = &self.shelves.orchestration_runs;
        let is_open = |run: &OrchestrationRun| !status::phase(run).is_terminal() && wanted(run);
        for run in runs.in_namespace(&namespace, is_open) {
            self.work.add(Key::of(&*run), Priority::Create);
        }
    }
}
