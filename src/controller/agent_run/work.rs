//! What a run is to do, from the objects that it refers to. Pure; what is not there yet is waited for.

mod metadata;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::custom::is_custom;
use super::settings::Runner;
use super::turn::{self, Turn};
use super::vcs::{self, Ask, Resolved};
use crate::api::condition::{Hindrance, Lifecycle, Reason};
use crate::api::kinds::agents::agent_run::{ContractStatus, WorkflowStep};
use crate::api::kinds::agents::implementation_spec::ImplementationFields;
use crate::api::kinds::shared::{SystemPromptKind, SystemPromptRef, Workload};
use crate::api::kinds::{
    Agent, AgentProvider, AgentRun, Budget, ImplementationSpec, Memory, SecretBinding,
    VersionControlProvider,
};
use crate::api::policy::Policy;

/// The objects that a run refers to, as far as they are there.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) agent: Option<Arc<Agent>>,
    pub(super) provider: Option<Arc<AgentProvider>>,
    /// Implementations by name, also those of steps.
    pub(super) implementations: BTreeMap<String, Arc<ImplementationSpec>>,
    pub(super) memory: Option<Arc<Memory>>,
    /// Text of a system prompt that is in a ConfigMap.
    pub(super) prompt: Option<String>,
    /// Secrets that are not there.
    pub(super) absent_secrets: Vec<String>,
    /// ConfigMaps that are not there.
    pub(super) absent_config_maps: Vec<String>,
    /// Claims of volumes that are not there.
    pub(super) absent_claims: Vec<String>,
    /// The Budgets that the run is held to, by name, each if it is there.
    pub(super) budgets: Vec<(String, Option<Arc<Budget>>)>,
    /// SecretBindings of the namespace.
    pub(super) bindings: Vec<Arc<SecretBinding>>,
    /// What the run is judged by.
    pub(super) policy: Arc<Policy>,
    /// VersionControlProviders by name.
    pub(super) hosts: BTreeMap<String, Arc<VersionControlProvider>>,
    /// Names of the entries of Secrets that sign in somewhere, if they are there.
    pub(super) secrets: BTreeMap<String, BTreeSet<String>>,
    /// The same of ConfigMaps.
    pub(super) config_maps: BTreeMap<String, BTreeSet<String>>,
    /// Repositories, in lower case, and branches that other runs work on.
    pub(super) heads: BTreeSet<(String, String)>,
    /// Whether what may come late had its time.
    pub(super) is_late: bool,
}

/// Everything that a Job of a run is made from.
#[derive(Clone, Debug)]
pub(super) struct Work<'a> {
    pub(super) run: &'a AgentRun,
    pub(super) turn: Turn,
    /// The step that the turn is about, if it is about one.
    pub(super) step: Option<&'a WorkflowStep>,
    pub(super) agent: &'a Agent,
    pub(super) provider: &'a AgentProvider,
    pub(super) implementation: &'a ImplementationFields,
    pub(super) memory: Option<&'a Memory>,
    pub(super) prompt: Prompt<'a>,
    /// Its text; none if it is in a Secret, which nobody reads.
    pub(super) prompt_text: Option<String>,
    pub(super) workload: Option<&'a Workload>,
    pub(super) image: &'a str,
    /// Parameters as they were given.
    pub(super) parameters: BTreeMap<String, String>,
    /// Parameters under all the names that agents know them by.
    pub(super) metadata: BTreeMap<String, String>,
    /// The repository.
    pub(super) vcs: Resolved,
    /// Everything else that is known.
    pub(super) found: &'a Found,
}

/// The system prompt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Prompt<'a> {
    None,
    Text(&'a str),
    Stored(&'a SystemPromptRef),
}

/// Why a run cannot begin.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Lack {
    /// Something is not there yet.
    Waits { reason: Hindrance, message: String },
    /// Waiting does not help.
    Wrong {
        reason: Reason,
        message: String,
        contract: Option<ContractStatus>,
    },
}

impl Lack {
    /// Something of someone else stands where the Job or what it reads must be.
    pub(super) fn conflict(message: String) -> Self {
        Self::Waits {
            reason: Hindrance::JobNameConflict,
            message,
        }
    }
}

/// The name of the Memory that a run uses, if it or its agent names one.
pub(super) fn memory_name<'a>(run: &'a AgentRun, agent: Option<&'a Agent>) -> Option<&'a str> {
    let own = run.spec.memory_ref.as_ref();
    let memory = own.or_else(|| agent?.spec.memory_ref.as_ref())?;
    Some(&memory.name)
}

/// The system prompt of a run: its own before that of its agent, a reference before a text. A blank text is none.
pub(super) fn prompt<'a>(run: &'a AgentRun, agent: Option<&'a Agent>) -> Prompt<'a> {
    let filled = |text: &'a Option<String>| text.as_deref().filter(|text| !text.trim().is_empty());
    let defaults = agent.and_then(|agent| agent.spec.defaults.as_ref());
    if let Some(stored) = &run.spec.system_prompt_ref {
        Prompt::Stored(stored)
    } else if let Some(text) = filled(&run.spec.system_prompt) {
        Prompt::Text(text)
    } else if let Some(stored) = defaults.and_then(|defaults| defaults.system_prompt_ref.as_ref()) {
        Prompt::Stored(stored)
    } else if let Some(text) = defaults.and_then(|defaults| filled(&defaults.system_prompt)) {
        Prompt::Text(text)
    } else {
        Prompt::None
    }
}

/// The implementation that a run, or a step of it, names: its own before that of the run, a text before a reference.
enum Task<'a> {
    Inline(&'a ImplementationFields),
    Stored(&'a str),
}

fn task<'a>(run: &'a AgentRun, step: Option<&'a WorkflowStep>) -> Option<Task<'a>> {
    let own = step.and_then(|step| {
        let inline = step.implementation.as_ref();
        let inline = inline.map(|given| Task::Inline(&given.inline));
        inline.or_else(|| Some(Task::Stored(&step.implementation_spec_ref.as_ref()?.name)))
    });
    own.or_else(|| {
        let inline = run.spec.implementation.as_ref();
        let inline = inline.map(|given| Task::Inline(&given.inline));
        inline.or_else(|| {
            Some(Task::Stored(
                &run.spec.implementation_spec_ref.as_ref()?.name,
            ))
        })
    })
}

/// What a turn of the run is to do, or why it cannot begin.
pub(super) fn resolve<'a>(
    run: &'a AgentRun,
    turn: Turn,
    found: &'a Found,
    runner: &'a Runner,
) -> Result<Work<'a>, Lack> {
    let step = match turn {
        Turn::Whole => None,
        Turn::Step(this) => turn::step(run, this.index),
    };
    let (agent, provider, implementation) = referred(run, step, found)?;
    let own = step.and_then(|step| step.workload.as_ref());
    let workload = own.or(run.spec.workload.as_ref());
    let image = image(run, workload, runner)?;
    let mut parameters = run.spec.parameters.clone().unwrap_or_default();
    let added = step.and_then(|step| step.parameters.clone());
    parameters.extend(added.unwrap_or_default());
    let mut metadata = metadata::of(Some(&parameters), implementation);
    metadata::check(implementation, &metadata)?;
    let vcs = vcs::resolve(&Ask {
        run,
        agent,
        implementation,
        parameters: &parameters,
        metadata: &metadata,
        found,
        settings: &runner.vcs,
    })?;
    if turn == Turn::Whole {
        name_branches(&vcs, &mut parameters, &mut metadata);
    }
    let prompt = prompt(run, Some(agent));
    let prompt_text = match prompt {
        Prompt::Text(text) => Some(text.to_owned()),
        Prompt::None | Prompt::Stored(_) => found.prompt.clone(),
    };
    Ok(Work {
        run,
        turn,
        step,
        agent,
        provider,
        implementation,
        memory: found.memory.as_deref(),
        prompt,
        prompt_text,
        workload,
        image,
        parameters,
        metadata,
        vcs,
        found,
    })
}

/// What every turn refers to, if it is all there.
fn referred<'a>(
    run: &'a AgentRun,
    step: Option<&'a WorkflowStep>,
    found: &'a Found,
) -> Result<(&'a Agent, &'a AgentProvider, &'a ImplementationFields), Lack> {
    let implementation = match task(run, step) {
        Some(Task::Inline(inline)) => Some(inline),
        Some(Task::Stored(name)) => found.implementations.get(name).map(|stored| &stored.spec),
        None => None,
    };
    let missing = missing(run, step, found);
    let there = (
        found.agent.as_deref(),
        found.provider.as_deref(),
        implementation,
        missing.first(),
    );
    match there {
        (Some(agent), Some(provider), Some(implementation), None) => {
            Ok((agent, provider, implementation))
        }
        _ => Err(waits(&missing)),
    }
}

/// The image of a turn: its own before that of the operator.
fn image<'a>(
    run: &AgentRun,
    workload: Option<&'a Workload>,
    runner: &'a Runner,
) -> Result<&'a str, Lack> {
    let own = workload.and_then(|workload| workload.image.as_deref());
    // An endpoint needs no image.
    let none = is_custom(run).then_some("");
    own.or(runner.image.as_deref())
        .or(none)
        .ok_or_else(|| Lack::Wrong {
            reason: Lifecycle::MissingWorkloadImage.into(),
            message: "no image is given; set spec.workload.image, or ask the operator for a default image"
                .to_owned(),
            contract: None,
        })
}

/// Branches that were found out are parameters like others, unless one says so already.
fn name_branches(
    vcs: &Resolved,
    parameters: &mut BTreeMap<String, String>,
    metadata: &mut BTreeMap<String, String>,
) {
    let Some(vcs) = vcs.used() else { return };
    for (name, branch) in [("base", &vcs.base), ("head", &vcs.head)] {
        let Some(branch) = branch.as_ref().filter(|_| !metadata.contains_key(name)) else {
            continue;
        };
        parameters.insert(name.to_owned(), branch.clone());
        metadata.insert(name.to_owned(), branch.clone());
    }
}

/// What is not there, each with its reason.
fn missing(run: &AgentRun, step: Option<&WorkflowStep>, found: &Found) -> Vec<(Hindrance, String)> {
    let mut missing = Vec::new();
    let mut note =
        |reason, kind: &str, name: &str| missing.push((reason, format!("{kind} {name}")));
    let spec = &run.spec;
    match &found.agent {
        None => note(Hindrance::MissingAgent, "Agent", &spec.agent_ref.name),
        Some(agent) if found.provider.is_none() => {
            let name = &agent.spec.provider_ref.name;
            note(Hindrance::MissingProvider, "AgentProvider", name);
        }
        Some(_) => {}
    }
    let implementation = match task(run, step) {
        Some(Task::Inline(_)) => None,
        Some(Task::Stored(name)) => Some(name),
        None => Some(""),
    };
    if let Some(name) = implementation.filter(|name| !found.implementations.contains_key(*name)) {
        note(Hindrance::MissingImplementation, "ImplementationSpec", name);
    }
    let memory = memory_name(run, found.agent.as_deref());
    if let Some(name) = memory.filter(|_| found.memory.is_none()) {
        note(Hindrance::MissingMemory, "Memory", name);
    }
    for name in &found.absent_secrets {
        note(Hindrance::SecretNotFound, "Secret", name);
    }
    for name in &found.absent_config_maps {
        note(Hindrance::ConfigMapNotFound, "ConfigMap", name);
    }
    for name in &found.absent_claims {
        note(Hindrance::ClaimNotFound, "PersistentVolumeClaim", name);
    }
    for (name, _) in found.budgets.iter().filter(|(_, budget)| budget.is_none()) {
        note(Hindrance::MissingBudget, "Budget", name);
    }
    if let Prompt::Stored(stored) = prompt(run, found.agent.as_deref())
        && stored.kind == SystemPromptKind::ConfigMap
        && found.absent_config_maps.is_empty()
        && found.prompt.is_none()
    {
        let entry = format!("entry {} of ConfigMap {}", stored.key, stored.name);
        missing.push((Hindrance::ConfigMapKeyMissing, entry));
    }
    missing
}

fn waits(missing: &[(Hindrance, String)]) -> Lack {
    let names: Vec<_> = missing.iter().map(|(_, name)| name.as_str()).collect();
    let verb = if names.len() == 1 { "does" } else { "do" };
    let reason = missing.first().map(|(reason, _)| *reason);
    Lack::Waits {
        reason: reason.unwrap_or(Hindrance::MissingImplementation),
        message: format!("{} {verb} not exist yet", names.join(", ")),
    }
}
