//! Reads what a plan about a run needs. That an object is gone is said only after a live read.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;

use super::child::{self, Child};
use super::plan::{Observed, flaw};
use super::step::{self, Sight};
use super::{OrchestrationRuns, status};
use crate::api::kind::Kind;
use crate::api::kinds::orchestrations::orchestration::Step;
use crate::api::kinds::orchestrations::orchestration_run::StepStatus;
use crate::api::kinds::{OrchestrationRun, SignalDelivery};
use crate::api::phase::StepPhase;
use crate::api::validate::StepKind;
use crate::controller::cache::shelves;
use crate::controller::cache::{Key, Shelf};
use crate::controller::context::Thing;
use crate::controller::driver::fault::Fault;
use crate::controller::kinds::plain::decision;

impl OrchestrationRuns {
    pub(super) async fn observe(&self, key: &Key, now: Timestamp) -> Result<Observed, Fault> {
        let mut observed = Observed {
            now,
            run: self.shelves.orchestration_runs.get(key),
            orchestration: None,
            seen: Vec::new(),
            left: Vec::new(),
        };
        let Some(run) = observed.run.clone() else {
            return Ok(observed);
        };
        let name = run.spec.orchestration_ref.name.trim();
        let orchestration = self
            .shelves
            .orchestrations
            .get(&Key::new(&key.namespace, name));
        let definitions = orchestration
            .as_ref()
            .map(|found| found.spec.steps.as_slice());
        let definitions = definitions.unwrap_or_default();
        for (step, status) in definitions.iter().zip(status::steps(&run, definitions)) {
            let is_open = !status::phase(&*run).is_terminal();
            observed.seen.push(match step::phase(&status) {
                StepPhase::Running if is_open => self.sight(&run, step, &status).await?,
                StepPhase::Retrying if is_open && step::is_due(&status, now) => {
                    self.last_try(&run, &status).await?
                }
                StepPhase::Running
                | StepPhase::Retrying
                | StepPhase::Pending
                | StepPhase::Succeeded
                | StepPhase::Failed
                | StepPhase::Cancelled
                | StepPhase::Skipped => Sight::Nothing,
            });
        }
        observed.left = self.left(&run);
        observed.orchestration = orchestration;
        Ok(observed)
    }

    /// Objects that are at work for steps for which nobody waits any more.
    fn left(&self, run: &OrchestrationRun) -> Vec<Child> {
        let statuses = run
            .status
            .as_ref()
            .and_then(|status| status.step_statuses.as_ref());
        let over = statuses
            .into_iter()
            .flatten()
            .filter(|status| match step::phase(status) {
                StepPhase::Retrying | StepPhase::Failed | StepPhase::Cancelled => true,
                StepPhase::Pending
                | StepPhase::Running
                | StepPhase::Succeeded
                | StepPhase::Skipped => false,
            });
        over.filter_map(|status| {
            let (kind, at) = named(run, status)?;
            self.known(kind, &at).filter(|found| is_at_work(found, run))
        })
        .collect()
    }

    /// What the last try of a step left at work. That this is nothing is said only after a live read, since the next try
    /// must not run beside it.
    async fn last_try(&self, run: &OrchestrationRun, status: &StepStatus) -> Result<Sight, Fault> {
        let Some((kind, at)) = named(run, status) else {
            return Ok(Sight::Nothing);
        };
        let mut found = self.known(kind, &at);
        if found.is_none() {
            found = self.live(kind, &at).await?;
        }
        let found = found.filter(|found| is_at_work(found, run));
        Ok(found.map_or(Sight::Nothing, Sight::Ours))
    }

    fn known(&self, kind: Kind, at: &Key) -> Option<Child> {
        let shelves = &self.shelves;
        if kind == Kind::AgentRun {
            shelves.runs.get(at).map(Child::Agent)
        } else if kind == Kind::ToolRun {
            shelves.tool_runs.get(at).map(Child::Tool)
        } else {
            shelves.orchestration_runs.get(at).map(Child::Orchestration)
        }
    }

    /// What there is of a step that has begun.
    async fn sight(
        &self,
        run: &OrchestrationRun,
        step: &Step,
        status: &StepStatus,
    ) -> Result<Sight, Fault> {
        let Some(kind) = StepKind::parse(step.kind.trim()) else {
            return Ok(Sight::Nothing);
        };
        let namespace = run.namespace().unwrap_or_default();
        match kind {
            StepKind::ApprovalGate => Ok(self.approval(step, &namespace)),
            StepKind::SignalWait => Ok(self.signal(run, step, &namespace)),
            StepKind::Checkpoint | StepKind::MemoryOp => Ok(Sight::Open),
            StepKind::AgentRun | StepKind::ToolRun | StepKind::SubOrchestration => {
                self.object(run, step, status, &namespace).await
            }
        }
    }

    async fn object(
        &self,
        run: &OrchestrationRun,
        step: &Step,
        status: &StepStatus,
        namespace: &str,
    ) -> Result<Sight, Fault> {
        let reference = status.resource_ref.clone().unwrap_or_default();
        let kind = StepKind::parse(step.kind.trim()).and_then(child::kind);
        let (Some(name), Some(kind)) = (reference.name, kind) else {
            return Ok(Sight::Nothing);
        };
        let at = Key::new(namespace, &name);
        let mut found = self.known(kind, &at);
        if found.is_none() && reference.uid.is_some() {
            found = self.live(kind, &at).await?;
        }
        Ok(match (found, reference.uid) {
            (Some(child), None) if child.belongs_to(run.uid().as_deref()) => Sight::Ours(child),
            (Some(_), None) => Sight::Taken,
            (Some(child), Some(uid)) if child.uid() == Some(uid.clone()) => Sight::Ours(child),
            (Some(_) | None, Some(_)) => Sight::Gone,
            (None, None) => {
                let refusal = self.refusals.of(&at, run.uid().as_deref());
                let flaw = refusal.or_else(|| flaw(run, step, &name));
                flaw.map_or(Sight::Absent, Sight::Refused)
            }
        })
    }

    /// An object as it is stored now.
    async fn live(&self, kind: Kind, at: &Key) -> Result<Option<Child>, Fault> {
        let shelves = &self.shelves;
        Ok(if kind == Kind::AgentRun {
            self.look(&shelves.runs, at).await?.map(Child::Agent)
        } else if kind == Kind::ToolRun {
            self.look(&shelves.tool_runs, at).await?.map(Child::Tool)
        } else {
            let found = self.look(&shelves.orchestration_runs, at).await?;
            found.map(Child::Orchestration)
        })
    }

    async fn look<K>(&self, shelf: &Shelf<K>, at: &Key) -> Result<Option<Arc<K>>, Fault>
    where
        K: Thing + Send + Sync + 'static,
    {
        let (namespace, name) = (&at.namespace, &at.name);
        let live = self
            .context
            .look_up("look up the object of a step", namespace, name);
        let Some(mut found): Option<K> = live.await? else {
            return Ok(None);
        };
        shelves::prune(&mut found);
        shelf.announce(found);
        Ok(shelf.get(at))
    }

    fn approval(&self, step: &Step, namespace: &str) -> Sight {
        let name = child::reference(step, "policyRef").unwrap_or_default();
        let policy = self.shelves.approvals.get(&Key::new(namespace, &name));
        let Some(policy) = policy else {
            return Sight::Waits(format!(
                "waits for ApprovalPolicy {name}, which does not exist yet"
            ));
        };
        match decision(&policy) {
            Some(true) => Sight::Open,
            Some(false) => Sight::Denied,
            None => Sight::Waits(format!("waits for a decision in ApprovalPolicy {name}")),
        }
    }

    /// A delivery by its id counts whenever it came; any other one must be newer than the run that waits for it.
    fn signal(&self, run: &OrchestrationRun, step: &Step, namespace: &str) -> Sight {
        let id = child::reference(step, "deliveryId");
        let signal = child::reference(step, "signalRef");
        let made = run.creation_timestamp().map(|made| made.0);
        let fits = |delivery: &SignalDelivery| {
            let status = delivery.status.as_ref();
            let Some(delivered) = status.and_then(|status| status.delivered_at) else {
                return false;
            };
            let same_id = id.is_none() || delivery.spec.delivery_id == id;
            let name = delivery.spec.signal_ref.name.trim();
            let same_signal = signal.as_deref().is_none_or(|signal| signal == name);
            let in_time = id.is_some() || made.is_none_or(|made| delivered >= made);
            same_id && same_signal && in_time
        };
        let deliveries = self.shelves.deliveries.in_namespace(namespace, fits);
        if !deliveries.is_empty() {
            return Sight::Open;
        }
        let what = signal.or(id).unwrap_or_default();
        Sight::Waits(format!("waits for a delivery of {what}"))
    }
}

/// The object that the status of a step names.
fn named(run: &OrchestrationRun, status: &StepStatus) -> Option<(Kind, Key)> {
    let reference = status.resource_ref.as_ref()?;
    let at = Key::new(
        run.namespace().unwrap_or_default(),
        reference.name.as_deref()?,
    );
    let kind = StepKind::parse(status.kind.trim()).and_then(child::kind)?;
    Some((kind, at))
}

/// Whether an object was made for this run and has not ended.
fn is_at_work(found: &Child, run: &OrchestrationRun) -> bool {
    found.belongs_to(run.uid().as_deref()) && found.end().is_none()
}
