//! The reconciler of runs with one rule broken on purpose: a simulation that never complains would prove nothing.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;

use crate::api::contract::finalizer;
use crate::api::kind::Kind;
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::AgentRunStatus;
use crate::controller::agent_run::AgentRuns;
use crate::controller::agent_run::plan::{Action, Observed, Why};
use crate::controller::agent_run::status::phase;
use crate::controller::agent_run::turn::job_ref;
use crate::controller::cache::{Key, Shelf};
use crate::controller::driver::Reconciler;
use crate::controller::driver::fault::Fault;
use crate::controller::driver::plan::{Plan, Standing, Step};
use crate::controller::runs::Sight;

/// A rule of the custody of outcomes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// Jobs are held until their outcome is stored.
    Hold,
    /// The outcome is stored before the Job is marked and let go.
    StoreFirst,
    /// A Job that vanished is not made again.
    StartOnce,
}

impl Rule {
    /// Every rule, and what is said of one who breaks it.
    pub(super) const ALL: [(Self, &'static str); 3] = [
        (Self::Hold, "a run failed of which every Job succeeded"),
        (Self::StoreFirst, "was let go before its outcome was stored"),
        (Self::StartOnce, "was made a second time"),
    ];
}

/// Does what the reconciler does, but for one rule.
pub(super) struct Mutant {
    pub(super) runs: Arc<AgentRuns>,
    pub(super) rule: Rule,
}

impl Reconciler for Mutant {
    const KIND: Kind = AgentRuns::KIND;
    type Object = AgentRun;
    type Status = AgentRunStatus;
    type Observed = Observed;
    type Action = Action;

    fn shelf(&self) -> &Shelf<AgentRun> {
        self.runs.shelf()
    }

    fn status(object: &AgentRun) -> Option<&AgentRunStatus> {
        AgentRuns::status(object)
    }

    fn object(observed: &Observed) -> Option<&AgentRun> {
        AgentRuns::object(observed)
    }

    async fn gather(&self, key: &Key, now: Timestamp) -> Result<Observed, Fault> {
        self.runs.gather(key, now).await
    }

    fn plan(&self, observed: &Observed) -> Plan<Action, AgentRunStatus> {
        let mut plan = self.runs.plan(observed);
        if let (Rule::StartOnce, Some(job)) = (self.rule, vanished(observed)) {
            plan.steps = vec![Step::Do(Action::MakeJob(Box::new(job)))];
        }
        let ends = |step: &Step<Action, AgentRunStatus>| matches!(step, Step::Status(next) if next.status.finished_at.is_some());
        if let (Rule::StoreFirst, Sight::Ours(job)) = (self.rule, &observed.job)
            && plan.steps.iter().any(ends)
        {
            let job = Arc::clone(job);
            let why = Why::Stored { ttl: None };
            plan.steps.insert(0, Step::Do(Action::Release { job, why }));
        }
        plan
    }

    async fn act(&self, observed: &Observed, action: &Action) -> Result<bool, Fault> {
        let Action::MakeJob(job) = action else {
            return self.runs.act(observed, action).await;
        };
        let mut job = job.clone();
        if let Rule::Hold = self.rule {
            let pods = job
                .spec
                .iter_mut()
                .filter_map(|spec| spec.template.metadata.as_mut());
            for held in pods.chain([&mut job.metadata]) {
                let finalizers = held.finalizers.iter_mut();
                for list in finalizers {
                    list.retain(|name| {
                        ![finalizer::OUTCOME, finalizer::EVIDENCE].contains(&&**name)
                    });
                }
            }
        }
        self.runs.act(observed, &Action::MakeJob(job)).await
    }

    fn failed(&self, object: &AgentRun, fault: &Fault) -> Option<Standing<AgentRunStatus>> {
        self.runs.failed(object, fault)
    }

    fn stored(&self, before: &AgentRun) {
        self.runs.stored(before);
    }

    fn strays(&self) -> Vec<Key> {
        self.runs.strays()
    }
}

/// The Job of a run that has not ended, if it is gone: by its name alone, which is all that a second start needs.
fn vanished(observed: &Observed) -> Option<Job> {
    let run = observed.run.as_ref()?;
    let is_gone = matches!(observed.job, Sight::Gone { .. });
    let name = job_ref(run)?.name.clone();
    (is_gone && !phase(&**run).is_terminal()).then(|| {
        let mut job = Job::default();
        (job.metadata.name, job.metadata.namespace) = (name, run.metadata.namespace.clone());
        job
    })
}
