//! One shelf per kind that is followed, and the questions that decisions ask.

use agents::api::kind::Kind;
use agents::api::policy::{
    AgentFacts, BindingFacts, MemoryFacts, Surroundings, ToolFacts, VcsFacts, WorkFacts,
};
use agents::api::references::Reference;
use serde_json::Value;

use super::shelf::Shelf;

/// Of some kinds only the existence counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Present;

/// All that is followed. Runs are not: there are too many of them, and only a Schedule refers to one.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) agents: Shelf<AgentFacts>,
    pub(super) providers: Shelf<Present>,
    pub(super) work: Shelf<WorkFacts>,
    pub(super) vcs: Shelf<VcsFacts>,
    pub(super) memories: Shelf<MemoryFacts>,
    pub(super) bindings: Shelf<BindingFacts>,
    pub(super) orchestrations: Shelf<Present>,
    pub(super) tools: Shelf<ToolFacts>,
    pub(super) approvals: Shelf<Present>,
    pub(super) signals: Shelf<Present>,
}

impl Index {
    /// Whether a reference of an object in this namespace is known to lead nowhere.
    pub(super) fn is_missing(&self, namespace: &str, reference: &Reference) -> bool {
        let namespace = reference.namespace.as_deref().unwrap_or(namespace);
        let name = reference.name.as_str();
        match reference.kind {
            Kind::Agent => self.agents.lacks(namespace, name),
            Kind::AgentProvider => self.providers.lacks(namespace, name),
            Kind::ImplementationSpec => self.work.lacks(namespace, name),
            Kind::VersionControlProvider => self.vcs.lacks(namespace, name),
            Kind::Memory => self.memories.lacks(namespace, name),
            Kind::SecretBinding => self.bindings.lacks(namespace, name),
            Kind::Orchestration => self.orchestrations.lacks(namespace, name),
            Kind::Tool => self.tools.lacks(namespace, name),
            Kind::ApprovalPolicy => self.approvals.lacks(namespace, name),
            Kind::Signal => self.signals.lacks(namespace, name),
            Kind::AgentRun
            | Kind::ImplementationSource
            | Kind::OrchestrationRun
            | Kind::ToolRun
            | Kind::Budget
            | Kind::SignalDelivery
            | Kind::Schedule
            | Kind::Artifact
            | Kind::Workspace => false,
        }
    }

    /// What the policy needs to know about what an object refers to.
    pub(super) fn surroundings(&self, kind: Kind, object: &Value) -> Surroundings {
        let namespace = object
            .get("metadata")
            .and_then(|meta| text(meta, "namespace"));
        let (Some(namespace), Some(spec)) = (namespace, object.get("spec")) else {
            return Surroundings::default();
        };
        match kind {
            Kind::AgentRun => self.around_run(namespace, spec),
            Kind::ToolRun => Surroundings {
                tool: named(spec, "toolRef").and_then(|name| self.tools.get(namespace, name)),
                ..Surroundings::default()
            },
            Kind::Agent
            | Kind::AgentProvider
            | Kind::ImplementationSpec
            | Kind::ImplementationSource
            | Kind::VersionControlProvider
            | Kind::Memory
            | Kind::Orchestration
            | Kind::OrchestrationRun
            | Kind::Tool
            | Kind::ApprovalPolicy
            | Kind::Budget
            | Kind::SecretBinding
            | Kind::Signal
            | Kind::SignalDelivery
            | Kind::Schedule
            | Kind::Artifact
            | Kind::Workspace => Surroundings::default(),
        }
    }

    /// Chooses as the controller does: what the run names, then its work, then its Agent, then the namespace.
    fn around_run(&self, namespace: &str, spec: &Value) -> Surroundings {
        let agent = named(spec, "agentRef").and_then(|name| self.agents.get(namespace, name));
        let memory = named(spec, "memoryRef").or_else(|| agent.as_ref()?.memory.as_deref());
        let memory = match memory {
            Some(name) => self.memories.get(namespace, name),
            None => {
                let defaults = self.memories.all(namespace, |memory| memory.is_default);
                defaults.into_iter().next()
            }
        };
        let inline = spec
            .get("implementation")
            .and_then(|work| work.get("inline"));
        let work = match inline {
            // Written out, the work counts even where it names no repository host.
            Some(_) => None,
            None => {
                named(spec, "implementationSpecRef").and_then(|name| self.work.get(namespace, name))
            }
        };
        let vcs = named(spec, "vcsRef")
            .or_else(|| named(inline?, "vcsRef"))
            .or_else(|| work.as_ref()?.vcs.as_deref())
            .or_else(|| agent.as_ref()?.vcs.as_deref());
        Surroundings {
            vcs: vcs.and_then(|name| self.vcs.get(namespace, name)),
            memory,
            agent,
            tool: None,
            bindings: self.bindings.all(namespace, |_| true),
        }
    }
}

/// The name in a field that refers to something.
fn named<'v>(owner: &'v Value, field: &str) -> Option<&'v str> {
    text(owner.get(field)?, "name")
}

fn text<'v>(owner: &'v Value, field: &str) -> Option<&'v str> {
    let text = owner.get(field)?.as_str()?.trim();
    (!text.is_empty()).then_some(text)
}
