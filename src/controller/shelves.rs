//! All copies that reconcilers share, one shelf per kind.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod};
use kube::Resource;

use super::cache::{Key, Shelf};
use super::{agent_run, tool_run};
use crate::api::kind::Kind;
use crate::api::kinds::{
    Agent, AgentProvider, AgentRun, ApprovalPolicy, Artifact, Budget, ImplementationSource,
    ImplementationSpec, Memory, Orchestration, OrchestrationRun, Schedule, SecretBinding, Signal,
    SignalDelivery, Tool, ToolRun, VersionControlProvider, Workspace,
};
use crate::api::tracker::source_of;

/// Keeps a whole manifest beside the object that it was made into.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Copies of what reconcilers read.
#[derive(Debug)]
pub(super) struct Shelves {
    /// A kind of which there are no copies.
    pub(super) left_out: Option<Kind>,
    pub(super) runs: Arc<Shelf<AgentRun>>,
    pub(super) agents: Arc<Shelf<Agent>>,
    pub(super) providers: Arc<Shelf<AgentProvider>>,
    pub(super) implementations: Arc<Shelf<ImplementationSpec>>,
    pub(super) sources: Arc<Shelf<ImplementationSource>>,
    /// Deliveries that wait for their sources.
    pub(super) inbox: Arc<Shelf<ConfigMap>>,
    pub(super) hosts: Arc<Shelf<VersionControlProvider>>,
    pub(super) memories: Arc<Shelf<Memory>>,
    pub(super) signals: Arc<Shelf<Signal>>,
    pub(super) deliveries: Arc<Shelf<SignalDelivery>>,
    pub(super) bindings: Arc<Shelf<SecretBinding>>,
    pub(super) approvals: Arc<Shelf<ApprovalPolicy>>,
    pub(super) budgets: Arc<Shelf<Budget>>,
    pub(super) artifacts: Arc<Shelf<Artifact>>,
    pub(super) tools: Arc<Shelf<Tool>>,
    pub(super) tool_runs: Arc<Shelf<ToolRun>>,
    pub(super) tool_jobs: Arc<Shelf<Job>>,
    pub(super) tool_pods: Arc<Shelf<Pod>>,
    pub(super) schedules: Arc<Shelf<Schedule>>,
    pub(super) orchestrations: Arc<Shelf<Orchestration>>,
    pub(super) orchestration_runs: Arc<Shelf<OrchestrationRun>>,
    pub(super) workspaces: Arc<Shelf<Workspace>>,
    pub(super) claims: Arc<Shelf<PersistentVolumeClaim>>,
    pub(super) jobs: Arc<Shelf<Job>>,
    pub(super) pods: Arc<Shelf<Pod>>,
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
    pub(super) fn has(&self, kind: Kind, key: &Key) -> Option<bool> {
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
    pub(super) fn last_delivery(&self, signal: &Key) -> Option<Timestamp> {
        let of_signal =
            |delivery: &SignalDelivery| delivery.spec.signal_ref.name.trim() == signal.name;
        let deliveries = self.deliveries.in_namespace(&signal.namespace, of_signal);
        let times = deliveries.iter();
        let times = times.filter_map(|delivery| delivery.status.as_ref()?.delivered_at);
        times.max()
    }
}

/// Takes out what is bookkeeping of others and half of the memory.
pub(super) fn prune<K: Resource>(object: &mut K) {
    let meta = object.meta_mut();
    meta.managed_fields = None;
    if let Some(annotations) = &mut meta.annotations {
        annotations.remove(LAST_APPLIED);
    }
}
