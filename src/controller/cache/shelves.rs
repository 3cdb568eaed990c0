//! All copies that reconcilers share, one shelf per kind.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod};
use kube::Resource;

use crate::api::kind::Kind;
use crate::api::kinds::{
    Agent, AgentProvider, AgentRun, ApprovalPolicy, Artifact, Budget, ImplementationSource,
    ImplementationSpec, Memory, Orchestration, OrchestrationRun, Schedule, SecretBinding, Signal,
    SignalDelivery, Tool, ToolRun, VersionControlProvider, Workspace,
};
use crate::api::tracker::source_of;
use crate::controller::agent_run;
use crate::controller::cache::{Key, Shelf};
use crate::controller::kinds::tool_run;

/// Keeps a whole manifest beside the object that it was made into.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Copies of what reconcilers read.
#[derive(Debug)]
pub(in crate::controller) struct Shelves {
    /// A kind of which there are no copies.
    pub(in crate::controller) left_out: Option<Kind>,
    pub(in crate::controller) runs: Arc<Shelf<AgentRun>>,
    pub(in crate::controller) agents: Arc<Shelf<Agent>>,
    pub(in crate::controller) providers: Arc<Shelf<AgentProvider>>,
    pub(in crate::controller) implementations: Arc<Shelf<ImplementationSpec>>,
    pub(in crate::controller) sources: Arc<Shelf<ImplementationSource>>,
    /// Deliveries that wait for their sources.
    pub(in crate::controller) inbox: Arc<Shelf<ConfigMap>>,
    pub(in crate::controller) hosts: Arc<Shelf<VersionControlProvider>>,
    pub(in crate::controller) memories: Arc<Shelf<Memory>>,
    pub(in crate::controller) signals: Arc<Shelf<Signal>>,
    pub(in crate::controller) deliveries: Arc<Shelf<SignalDelivery>>,
    pub(in crate::controller) bindings: Arc<Shelf<SecretBinding>>,
    pub(in crate::controller) approvals: Arc<Shelf<ApprovalPolicy>>,
    pub(in crate::controller) budgets: Arc<Shelf<Budget>>,
    pub(in crate::controller) artifacts: Arc<Shelf<Artifact>>,
    pub(in crate::controller) tools: Arc<Shelf<Tool>>,
    pub(in crate::controller) tool_runs: Arc<Shelf<ToolRun>>,
    pub(in crate::controller) tool_jobs: Arc<Shelf<Job>>,
    pub(in crate::controller) tool_pods: Arc<Shelf<Pod>>,
    pub(in crate::controller) schedules: Arc<Shelf<Schedule>>,
    pub(in crate::controller) orchestrations: Arc<Shelf<Orchestration>>,
    pub(in crate::controller) orchestration_runs: Arc<Shelf<OrchestrationRun>>,
    pub(in crate::controller) workspaces: Arc<Shelf<Workspace>>,
    pub(in crate::controller) claims: Arc<Shelf<PersistentVolumeClaim>>,
    pub(in crate::controller) jobs: Arc<Shelf<Job>>,
    pub(in crate::controller) pods: Arc<Shelf<Pod>>,
}

impl Default for Shelves {
    fn default() -> Self {
        Self {
            left_out: None,
            runs: Default::default(),
            agents: Default::default(),
            providers: Default::default(),
            implementations: Default::default(),
            sources: Default::default(),
            inbox: Shelf::with_owner(source_of).into(),
            hosts: Default::default(),
            memories: Default::default(),
            signals: Default::default(),
            deliveries: Default::default(),
            bindings: Default::default(),
            approvals: Default::default(),
            budgets: Default::default(),
            artifacts: Default::default(),
            tools: Default::default(),
            tool_runs: Default::default(),
            tool_jobs: Shelf::with_owner(tool_run::owner).into(),
            tool_pods: Shelf::with_owner(tool_run::owner).into(),
            schedules: Default::default(),
            orchestrations: Default::default(),
            orchestration_runs: Default::default(),
            workspaces: Default::default(),
            claims: Default::default(),
            jobs: Shelf::with_owner(agent_run::owner).into(),
            pods: Shelf::with_owner(agent_run::owner).into(),
        }
    }
}

impl Shelves {
    /// Whether an object is there; none if its kind is not followed for others to refer to.
    pub(in crate::controller) fn has(&self, kind: Kind, key: &Key) -> Option<bool> {
        if self.left_out == Some(kind) {
            return None;
        }
        match kind {
            Kind::Agent => Some(self.agents.get(key).is_some()),
            Kind::AgentProvider => Some(self.providers.get(key).is_some()),
            Kind::ImplementationSpec => Some(self.implementations.get(key).is_some()),
            Kind::VersionControlProvider => Some(self.hosts.get(key).is_some()),
            Kind::Memory => Some(self.memories.get(key).is_some()),
            Kind::Signal => Some(self.signals.get(key).is_some()),
            Kind::AgentRun
            | Kind::ImplementationSource
            | Kind::Orchestration
            | Kind::OrchestrationRun
            | Kind::Tool
            | Kind::ToolRun
            | Kind::ApprovalPolicy
            | Kind::Budget
            | Kind::SecretBinding
            | Kind::SignalDelivery
            | Kind::Schedule
            | Kind::Artifact
            | Kind::Workspace => None,
        }
    }

    /// When a Signal was last delivered, as far as its deliveries are still there.
    pub(in crate::controller) fn last_delivery(&self, signal: &Key) -> Option<Timestamp> {
        let of_signal =
            |delivery: &SignalDelivery| delivery.spec.signal_ref.name.trim() == signal.name;
        let deliveries = self.deliveries.in_namespace(&signal.namespace, of_signal);
        let times = deliveries.iter();
        let times = times.filter_map(|delivery| delivery.status.as_ref()?.delivered_at);
        times.max()
    }
}

/// Takes out what is bookkeeping of others and half of the memory.
pub(in crate::controller) fn prune<K: Resource>(object: &mut K) {
    let meta = object.meta_mut();
    meta.managed_fields = None;
    if let Some(annotations) = &mut meta.annotations {
        annotations.remove(LAST_APPLIED);
    }
}
