//! The objects that decisions look up: one shelf per kind that is followed, and the questions that are asked of them.
//!
//! Only what decisions need is kept: of an Agent its lists, of an ImplementationSpec the name of its repository host, of
//! a Signal its name. Whoever knows the objects puts them here: the webhook follows a cluster, the command line reads
//! files.

mod shelf;

use std::sync::Arc;

use crate::api::kind::Kind;
use crate::api::object::cause::{FieldPath, Path};
use crate::api::object::references::Reference;
use crate::api::object::tree::Json;
use crate::api::policy::{
    AgentFacts, BindingFacts, MemoryFacts, Surroundings, ToolFacts, VcsFacts, WorkFacts,
};
use serde_json::Value;

pub use shelf::Shelve;
use shelf::{Facts, Shelf};

/// Of some kinds only the existence counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Present;

macro_rules! facts {
    ($($kept:ty),+) => {
        $(impl Facts for $kept {
            fn of(object: &Value) -> Self {
                <$kept>::of(object)
            }
        })+
    };
}

facts!(
    AgentFacts,
    BindingFacts,
    MemoryFacts,
    ToolFacts,
    VcsFacts,
    WorkFacts
);

impl Facts for Present {
    fn of(_: &Value) -> Self {
        Self
    }
}

/// All that is followed. Runs are not: there are too many of them, and only a Schedule refers to one.
#[derive(Debug, Default)]
pub struct Known {
    agents: Shelf<AgentFacts>,
    providers: Shelf<Present>,
    work: Shelf<WorkFacts>,
    vcs: Shelf<VcsFacts>,
    memories: Shelf<MemoryFacts>,
    bindings: Shelf<BindingFacts>,
    orchestrations: Shelf<Present>,
    tools: Shelf<ToolFacts>,
    approvals: Shelf<Present>,
    signals: Shelf<Present>,
}

/// How much of its objects a watch has to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// All of it.
    Whole,
    /// Names.
    Names,
}

impl Known {
    /// The kinds that are followed, and how.
    pub fn followed() -> impl Iterator<Item = (Kind, Need)> {
        let nothing = Self::default();
        Kind::ALL
            .into_iter()
            .filter_map(move |kind| nothing.shelf(kind).map(|(need, _)| (kind, need)))
    }

    /// Where the objects of a kind are kept, if it is followed.
    pub fn shelf(&self, kind: Kind) -> Option<(Need, &dyn Shelve)> {
        match kind {
            Kind::Agent => Some((Need::Whole, &self.agents)),
            Kind::AgentProvider => Some((Need::Names, &self.providers)),
            Kind::ImplementationSpec => Some((Need::Whole, &self.work)),
            Kind::VersionControlProvider => Some((Need::Whole, &self.vcs)),
            Kind::Memory => Some((Need::Whole, &self.memories)),
            Kind::Orchestration => Some((Need::Names, &self.orchestrations)),
            Kind::Tool => Some((Need::Whole, &self.tools)),
            Kind::ApprovalPolicy => Some((Need::Names, &self.approvals)),
            Kind::SecretBinding => Some((Need::Whole, &self.bindings)),
            Kind::Signal => Some((Need::Names, &self.signals)),
            Kind::AgentRun
            | Kind::ImplementationSource
            | Kind::OrchestrationRun
            | Kind::ToolRun
            | Kind::Budget
            | Kind::SignalDelivery
            | Kind::Schedule
            | Kind::Artifact
            | Kind::Workspace => None,
        }
    }

    /// The references, of an object in this namespace, that lead nowhere. Of a kind or a namespace that is not followed,
    /// or not yet listed, nothing is said.
    pub fn missing(&self, namespace: &str, references: &[Reference]) -> Vec<Reference> {
        references
            .iter()
            .filter(|reference| self.is_missing(namespace, reference))
            .cloned()
            .collect()
    }

    /// Whether a reference of an object in this namespace is known to lead nowhere.
    fn is_missing(&self, namespace: &str, reference: &Reference) -> bool {
        let namespace = reference.namespace.as_deref().unwrap_or(namespace);
        self.shelf(reference.kind)
            .is_some_and(|(_, shelf)| shelf.lacks(namespace, &reference.name))
    }

    /// What the policy needs to know about what an object refers to.
    pub fn surroundings(&self, kind: Kind, object: &Value) -> Surroundings {
        let namespace = object
            .get("metadata")
            .and_then(|meta| text(meta, "namespace"));
        let (Some(namespace), Some(spec)) = (namespace, object.get("spec")) else {
            return Surroundings::default();
        };
        self.surroundings_of(kind, namespace, spec)
    }

    /// The same for an object in parts.
    pub fn surroundings_of(&self, kind: Kind, namespace: &str, spec: &impl Json) -> Surroundings {
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
    fn around_run(&self, namespace: &str, spec: &impl Json) -> Surroundings {
        let agent = named(spec, "agentRef").and_then(|name| self.agents.get(namespace, name));
        let memory = named(spec, "memoryRef").or_else(|| agent.as_ref()?.memory.as_deref());
        let memory = match memory {
            Some(name) => self.memories.get(namespace, name),
            None => {
                let defaults = self.memories.all(namespace, |memory| memory.is_default);
                defaults.into_iter().next()
            }
        };
        let of_agent = agent.as_ref().and_then(|agent| agent.vcs.as_deref());
        Surroundings {
            vcs: self.hosts(namespace, spec, of_agent),
            memory,
            agent,
            tool: None,
            bindings: self.bindings.all_known(namespace),
        }
    }

    /// The repository hosts of a run and of those of its steps that have work of their own.
    fn hosts(
        &self,
        namespace: &str,
        spec: &impl Json,
        of_agent: Option<&str>,
    ) -> Vec<(FieldPath, Arc<VcsFacts>)> {
        const SPEC: Path<'static> = Path::root("spec");
        let mut hosts = Vec::new();
        let mut add = |at: &Path<'_>, name: Option<&str>| {
            let facts = name.and_then(|name| self.vcs.get(namespace, name));
            hosts.extend(facts.map(|facts| (at.into(), facts)));
        };
        let of_run = named(spec, "vcsRef");
        let chosen = of_run.map(str::to_owned);
        let chosen = chosen.or_else(|| self.host_of_work(namespace, spec)?);
        add(&SPEC.field("vcsRef"), chosen.as_deref().or(of_agent));
        if of_run.is_some() {
            return hosts;
        }
        let workflow = SPEC.field("workflow");
        let steps_at = workflow.field("steps");
        let steps = spec
            .field("workflow")
            .and_then(|workflow| workflow.field("steps"));
        let steps = steps.map_or(&[][..], Json::entries);
        for (index, step) in steps.iter().enumerate() {
            if let Some(host) = self.host_of_work(namespace, step) {
                add(&steps_at.index(index), host.as_deref().or(of_agent));
            }
        }
        hosts
    }

    /// The host that the work of a run or a step names; nothing where it has no work of its own. Written out, work
    /// counts even where it names no host.
    fn host_of_work(&self, namespace: &str, owner: &impl Json) -> Option<Option<String>> {
        let inline = owner
            .field("implementation")
            .and_then(|work| work.field("inline"));
        if let Some(inline) = inline {
            return Some(named(inline, "vcsRef").map(str::to_owned));
        }
        let work = self
            .work
            .get(namespace, named(owner, "implementationSpecRef")?);
        Some(work.and_then(|work| work.vcs.clone()))
    }
}

/// The name in a field that refers to something.
fn named<'v, J: Json>(owner: &'v J, field: &str) -> Option<&'v str> {
    text(owner.field(field)?, "name")
}

fn text<'v, J: Json>(owner: &'v J, field: &str) -> Option<&'v str> {
    let text = owner.field(field)?.text()?.trim();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests;
