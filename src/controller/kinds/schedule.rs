//! Schedule: makes a run of something again and again.
//!
//! [`times`] says when, [`plan`] what then happens, [`copy`] is the run that is made. The name of a run follows from its
//! time, so one that was made before a crash is found again and never made twice.

mod copy;
mod plan;
mod times;

use std::sync::Arc;

use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use serde_json::json;

use crate::api::contract::label;
use crate::api::kind::Kind;
use crate::api::kinds::schedule::ConcurrencyPolicy;
use crate::api::kinds::{Schedule, ScheduleStatus};
use crate::api::phase::Phase;
use crate::controller::cache::shelves::{self, Shelves};
use crate::controller::cache::{Key, Shelf, Told};
use crate::controller::context::{Context, Thing};
use crate::controller::driver::fault::{Class, Fault};
use crate::controller::driver::plan::{Plan, Standing};
use crate::controller::driver::queue::Priority;
use crate::controller::driver::stand::failed;
use crate::controller::driver::{Reconciler, Work};
use plan::{Action, Observed, Run};

/// The reconciler of schedules.
pub(in crate::controller) struct Schedules {
    context: Arc<Context>,
    shelves: Arc<Shelves>,
}

impl Schedules {
    pub(in crate::controller) fn new(context: Arc<Context>, shelves: Arc<Shelves>) -> Self {
        Self { context, shelves }
    }

    /// The run that is copied, if it is there.
    fn target(&self, schedule: &Schedule, key: &Key) -> Option<Run> {
        let target = &schedule.spec.target_ref;
        let at = Key::new(&key.namespace, target.name.trim());
        if target.kind.trim() == Kind::AgentRun.as_str() {
            self.shelves.runs.get(&at).map(Run::Agent)
        } else {
            let run = self.shelves.orchestration_runs.get(&at);
            run.map(Run::Orchestration)
        }
    }

    /// Runs that the schedule made and that have not ended.
    fn active(&self, key: &Key) -> Vec<Run> {
        let shelves = &self.shelves;
        let agents = shelves.runs.in_namespace(&key.namespace, |run| {
            let phase = run
                .status
                .as_ref()
                .and_then(|status| status.phase.as_deref());
            is_made_by(run, &key.name) && is_open(phase)
        });
        let others = shelves
            .orchestration_runs
            .in_namespace(&key.namespace, |run| {
                let phase = run
                    .status
                    .as_ref()
                    .and_then(|status| status.phase.as_deref());
                is_made_by(run, &key.name) && is_open(phase)
            });
        let agents = agents.into_iter().map(Run::Agent);
        agents
            .chain(others.into_iter().map(Run::Orchestration))
            .collect()
    }

    /// Makes a run. One that is there already was made by an earlier try.
    async fn make<K: Thing>(&self, schedule: &Key, run: &K) -> Result<Option<K>, Fault> {
        const MAKE: &str = "make the run";
        match self.context.create(MAKE, run).await {
            Ok(made) => {
                tracing::info!(%schedule, run = run.name_any(), "Run made at its time");
                return Ok(Some(made));
            }
            Err(fault) if fault.class == Class::Conflict => {}
            Err(fault) => return Err(fault),
        }
        let namespace = &schedule.namespace;
        let there: Option<K> = self
            .context
            .look_up(MAKE, namespace, &run.name_any())
            .await?;
        match there {
            Some(there) if is_made_by(&there, &schedule.name) => Ok(None),
            Some(there) => {
                let name = there.name_any();
                let why = format!("another object has the name {name}, which the run needs");
                Err(Fault::new(MAKE, Class::NameTaken, &why))
            }
            None => Err(Fault::new(
                MAKE,
                Class::Conflict,
                "it went while it was looked at",
            )),
        }
    }

    /// Asks a run to stop; its record stays.
    async fn stop<K: Thing>(&self, run: &K) -> Result<K, Fault> {
        let cancel = json!({"op": "add", "path": "/spec/cancel", "value": true});
        self.context.change("stop the run", run, vec![cancel]).await
    }
}

fn is_made_by<K: Resource>(run: &K, schedule: &str) -> bool {
    let label = run.labels().get(label::SCHEDULE);
    label.is_some_and(|label| label == schedule)
}

fn is_open(phase: Option<&str>) -> bool {
    let phase = phase.and_then(Phase::parse);
    phase.is_none_or(|phase| !phase.is_terminal())
}

fn pruned<K: Resource>(mut object: K) -> K {
    shelves::prune(&mut object);
    object
}

impl Reconciler for Schedules {
    const KIND: Kind = Kind::Schedule;
    type Object = Schedule;
    type Status = ScheduleStatus;
    type Observed = Observed;
    type Action = Action;

    fn shelf(&self) -> &Shelf<Schedule> {
        &self.shelves.schedules
    }

    fn status(object: &Schedule) -> Option<&ScheduleStatus> {
        object.status.as_ref()
    }

    fn object(observed: &Observed) -> Option<&Schedule> {
        observed.schedule.as_deref()
    }

    async fn gather(&self, key: &Key, now: Timestamp) -> Result<Observed, Fault> {
        let schedule = self.shelves.schedules.get(key);
        let target = schedule
            .as_ref()
            .and_then(|schedule| self.target(schedule, key));
        let policy = schedule.as_ref().map(|schedule| plan::policy(schedule));
        // Where all may run at once, nobody asks which do.
        let asks = policy.is_some_and(|policy| policy != ConcurrencyPolicy::Allow);
        Ok(Observed {
            now,
            schedule,
            target,
            active: if asks { self.active(key) } else { Vec::new() },
        })
    }

    fn plan(&self, observed: &Observed) -> Plan<Action, ScheduleStatus> {
        plan::plan(observed)
    }

    async fn act(&self, seen: &Observed, action: &Action) -> Result<bool, Fault> {
        let Some(schedule) = &seen.schedule else {
            return Ok(false);
        };
        let (key, shelves) = (Key::of(&**schedule), &self.shelves);
        match action {
            Action::Make(Run::Agent(run)) => {
                if let Some(made) = self.make(&key, &**run).await? {
                    shelves.runs.announce(pruned(made));
                }
            }
            Action::Make(Run::Orchestration(run)) => {
                if let Some(made) = self.make(&key, &**run).await? {
                    shelves.orchestration_runs.announce(pruned(made));
                }
            }
            Action::Stop(Run::Agent(run)) => {
                let stopped = self.stop(&**run).await?;
                shelves.runs.announce(pruned(stopped));
            }
            Action::Stop(Run::Orchestration(run)) => {
                let stopped = self.stop(&**run).await?;
                shelves.orchestration_runs.announce(pruned(stopped));
            }
        }
        Ok(true)
    }

    fn failed(&self, schedule: &Schedule, fault: &Fault) -> Option<Standing<ScheduleStatus>> {
        failed(schedule, fault)
    }
}

/// Looks again at the schedules that copy a run which came or went.
pub(in crate::controller) fn on_target<K>(
    work: Work,
    shelf: Arc<Shelf<Schedule>>,
    kind: Kind,
) -> Told<K>
where
    K: Thing + Send + Sync + 'static,
{
    Arc::new(move |change| {
        let Some(run) = change.came_or_went() else {
            return;
        };
        let name = run.name_any();
        let copies = |schedule: &Schedule| {
            let target = &schedule.spec.target_ref;
            target.kind.trim() == kind.as_str() && target.name.trim() == name
        };
        let namespace = run.namespace().unwrap_or_default();
        for schedule in shelf.in_namespace(&namespace, copies) {
            work.add(Key::of(&*schedule), Priority::Create);
        }
    })
}
