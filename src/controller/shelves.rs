//! All copies that reconcilers share, one shelf per kind.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;

use super::agent_run;
use super::cache::Shelf;
use crate::api::kinds::{Agent, AgentProvider, AgentRun, ImplementationSpec, Memory};

/// Keeps a whole manifest beside the object that it was made into.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Copies of what reconcilers read.
#[derive(Debug)]
pub(super) struct Shelves {
    pub(super) runs: Arc<Shelf<AgentRun>>,
    pub(super) agents: Arc<Shelf<Agent>>,
    pub(super) providers: Arc<Shelf<AgentProvider>>,
    pub(super) implementations: Arc<Shelf<ImplementationSpec>>,
    pub(super) memories: Arc<Shelf<Memory>>,
    pub(super) jobs: Arc<Shelf<Job>>,
    pub(super) pods: Arc<Shelf<Pod>>,
}

impl Default for Shelves {
    fn default() -> Self {
        Self {
            runs: Default::default(),
            agents: Default::default(),
            providers: Default::default(),
            implementations: Default::default(),
            memories: Default::default(),
            jobs: Shelf::with_owner(agent_run::owner).into(),
            pods: Shelf::with_owner(agent_run::owner).into(),
        }
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
