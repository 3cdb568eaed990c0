//! What a run is to do, from the objects that it refers to. Pure; what is not there yet is waited for.

mod metadata;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::settings::Runner;
use crate::api::condition::Lifecycle;
use crate::api::kinds::agents::agent_run::ContractStatus;
use crate::api::kinds::agents::implementation_spec::ImplementationFields;
use crate::api::kinds::shared::SystemPromptRef;
use crate::api::kinds::{Agent, AgentProvider, AgentRun, ImplementationSpec, Memory};

/// The objects that a run refers to, as far as they are there.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) agent: Option<Arc<Agent>>,
    pub(super) provider: Option<Arc<AgentProvider>>,
    pub(super) implementation: Option<Arc<ImplementationSpec>>,
    pub(super) memory: Option<Arc<Memory>>,
    /// Secrets that are not there.
    pub(super) absent_secrets: Vec<String>,
    /// ConfigMaps that are not there.
    pub(super) absent_config_maps: Vec<String>,
}

/// Everything that the Job of a run is made from.
#[derive(Clone, Debug)]
pub(super) struct Work<'a> {
    pub(super) run: &'a AgentRun,
    pub(super) agent: &'a Agent,
    pub(super) provider: &'a AgentProvider,
    pub(super) implementation: &'a ImplementationFields,
    pub(super) memory: Option<&'a Memory>,
    pub(super) prompt: Prompt<'a>,
    pub(super) image: &'a str,
    /// Parameters under all the names that agents know them by.
    pub(super) metadata: BTreeMap<String, String>,
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
    Waits { reason: Lifecycle, message: String },
    /// Waiting does not help.
    Wrong {
        reason: Lifecycle,
        message: String,
        contract: Option<ContractStatus>,
    },
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

/// What the run is to do, or why it cannot begin.
pub(super) fn resolve<'a>(
    run: &'a AgentRun,
    found: &'a Found,
    runner: &'a Runner,
) -> Result<Work<'a>, Lack> {
    let inline = run.spec.implementation.as_ref().map(|given| &given.inline);
    let stored = found.implementation.as_ref().map(|stored| &stored.spec);
    let missing = missing(run, found);
    let (Some(agent), Some(provider), Some(implementation), None) = (
        found.agent.as_deref(),
        found.provider.as_deref(),
        inline.or(stored),
        missing.first(),
    ) else {
        return Err(waits(&missing));
    };
    let workload = run.spec.workload.as_ref();
    let image = workload.and_then(|workload| workload.image.as_deref());
    let Some(image) = image.or(runner.image.as_deref()) else {
        return Err(Lack::Wrong {
            reason: Lifecycle::MissingWorkloadImage,
            message: "no image is given; set spec.workload.image, or ask the operator for a default image".to_owned(),
            contract: None,
        });
    };
    let parameters = run.spec.parameters.as_ref();
    let metadata = metadata::of(parameters, implementation);
    metadata::check(implementation, &metadata)?;
    Ok(Work {
        run,
        agent,
        provider,
        implementation,
        memory: found.memory.as_deref(),
        prompt: prompt(run, Some(agent)),
        image,
        metadata,
    })
}

/// What is not there, each with its reason.
fn missing(run: &AgentRun, found: &Found) -> Vec<(Lifecycle, String)> {
    let mut missing = Vec::new();
    let mut note =
        |reason, kind: &str, name: &str| missing.push((reason, format!("{kind} {name}")));
    let spec = &run.spec;
    match &found.agent {
        None => note(Lifecycle::MissingAgent, "Agent", &spec.agent_ref.name),
        Some(agent) if found.provider.is_none() => {
            let name = &agent.spec.provider_ref.name;
            note(Lifecycle::MissingProvider, "AgentProvider", name);
        }
        Some(_) => {}
    }
    if spec.implementation.is_none() && found.implementation.is_none() {
        let name = spec.implementation_spec_ref.as_ref();
        let name = name.map_or("", |reference| &reference.name);
        note(Lifecycle::MissingImplementation, "ImplementationSpec", name);
    }
    let memory = memory_name(run, found.agent.as_deref());
    if let Some(name) = memory.filter(|_| found.memory.is_none()) {
        note(Lifecycle::MissingMemory, "Memory", name);
    }
    for name in &found.absent_secrets {
        note(Lifecycle::SecretNotFound, "Secret", name);
    }
    for name in &found.absent_config_maps {
        note(Lifecycle::ConfigMapNotFound, "ConfigMap", name);
    }
    missing
}

fn waits(missing: &[(Lifecycle, String)]) -> Lack {
    let names: Vec<_> = missing.iter().map(|(_, name)| name.as_str()).collect();
    let verb = if names.len() == 1 { "does" } else { "do" };
    let reason = missing.first().map(|(reason, _)| *reason);
    Lack::Waits {
        reason: reason.unwrap_or(Lifecycle::MissingImplementation),
        message: format!("{} {verb} not exist yet", names.join(", ")),
    }
}
