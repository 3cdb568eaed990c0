//! What the policy needs to know about objects that others refer to. Small, because the webhook keeps one for each
//! object of the cluster, and read from whatever is stored, so that no old object is beyond the rules.

use std::sync::Arc;

use serde_json::Value;

use super::read::{at, list, text, texts};
use crate::api::object::cause::FieldPath;
use crate::api::object::tree::Json;

/// What an Agent says about its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentFacts {
    /// Secrets that its runs may use; all if empty.
    pub secrets: Vec<String>,
    /// Service accounts that its runs may use; all if empty.
    pub service_accounts: Vec<String>,
    /// Secret that holds its default system prompt.
    pub prompt_secret: Option<String>,
    /// Memory of its runs.
    pub memory: Option<String>,
    /// VersionControlProvider of its runs.
    pub vcs: Option<String>,
}

impl AgentFacts {
    /// As an Agent states them.
    pub fn of(agent: &Value) -> Self {
        let named = |field: &str| at(agent, &["spec", field]).and_then(|given| text(given, "name"));
        let listed = |field: &str| {
            let security = at(agent, &["spec", "security"]);
            security.map_or(Vec::new(), |security| owned(texts(security, field)))
        };
        let prompt = at(agent, &["spec", "defaults", "systemPromptRef"]);
        Self {
            secrets: listed("allowedSecrets"),
            service_accounts: listed("allowedServiceAccounts"),
            prompt_secret: prompt.and_then(prompt_secret).map(str::to_owned),
            memory: named("memoryRef").map(str::to_owned),
            vcs: named("vcsRef").map(str::to_owned),
        }
    }
}

/// What a Memory says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryFacts {
    /// Secret with its connection.
    pub secret: Option<String>,
    /// Whether runs of the namespace use it when they name none.
    pub is_default: bool,
}

impl MemoryFacts {
    /// As a Memory states them.
    pub fn of(memory: &Value) -> Self {
        let secret = at(memory, &["spec", "connection", "secretRef"]);
        let default = at(memory, &["spec", "default"]);
        Self {
            secret: secret
                .and_then(|secret| text(secret, "name"))
                .map(str::to_owned),
            is_default: default.and_then(Value::as_bool).unwrap_or(false),
        }
    }
}

/// What a VersionControlProvider says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VcsFacts {
    /// Secrets that sign in.
    pub secrets: Vec<String>,
}

impl VcsFacts {
    /// As a VersionControlProvider states them.
    pub fn of(provider: &Value) -> Self {
        let auth = at(provider, &["spec", "auth"]);
        let secrets = auth.into_iter().flat_map(auth_secrets);
        Self {
            secrets: secrets.map(|(_, _, name)| name.to_owned()).collect(),
        }
    }
}

/// What an ImplementationSpec says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkFacts {
    /// VersionControlProvider of the work.
    pub vcs: Option<String>,
}

impl WorkFacts {
    /// As an ImplementationSpec states them.
    pub fn of(work: &Value) -> Self {
        let reference = at(work, &["spec", "vcsRef"]);
        Self {
            vcs: reference
                .and_then(|reference| text(reference, "name"))
                .map(str::to_owned),
        }
    }
}

/// What a Tool says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFacts {
    /// Its image.
    pub image: Option<String>,
}

impl ToolFacts {
    /// As a Tool states them.
    pub fn of(tool: &Value) -> Self {
        let image = tool.get("spec").and_then(|spec| text(spec, "image"));
        Self {
            image: image.map(str::to_owned),
        }
    }
}

/// What a SecretBinding gives to Agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindingFacts {
    /// The Agents that it names, each with a namespace if it has one.
    pub agents: Vec<(String, Option<String>)>,
    /// The secrets that it gives.
    pub secrets: Vec<String>,
}

impl BindingFacts {
    /// As a SecretBinding states them.
    pub fn of(binding: &Value) -> Self {
        let Some(spec) = binding.get("spec") else {
            return Self::default();
        };
        let agent = |subject: &Value| {
            let name = text(subject, "name").filter(|_| text(subject, "kind") == Some("Agent"))?;
            let namespace = text(subject, "namespace").map(str::to_owned);
            Some((name.to_owned(), namespace))
        };
        Self {
            agents: list(spec, "subjects").iter().filter_map(agent).collect(),
            secrets: owned(texts(spec, "allowedSecrets")),
        }
    }
}

/// The objects that an object refers to, as far as they exist.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The Agent.
    pub agent: Option<Arc<AgentFacts>>,
    /// The Memory, chosen by the run, by the Agent or as the default of the namespace.
    pub memory: Option<Arc<MemoryFacts>>,
    /// The VersionControlProviders of the run and of its steps, chosen by the run, the work or the Agent, each with the
    /// place that chooses it.
    pub vcs: Vec<(FieldPath, Arc<VcsFacts>)>,
    /// The Tool.
    pub tool: Option<Arc<ToolFacts>>,
    /// SecretBindings of the namespace; none where nobody looked.
    pub bindings: Option<Vec<Arc<BindingFacts>>>,
}

/// The secret behind a reference to a system prompt, if it is one. The word is read without regard to case, as the
/// controller reads it.
pub(super) fn prompt_secret<J: Json>(reference: &J) -> Option<&str> {
    let kind = text(reference, "kind")?;
    text(reference, "name").filter(|_| kind.eq_ignore_ascii_case("Secret"))
}

/// The secrets of an authentication: block, field and name. Every block counts, whatever the method: the method can
/// change later without the secret being looked at again.
pub(super) fn auth_secrets<J: Json>(
    auth: &J,
) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
    const BLOCKS: [(&str, &str); 3] = [
        ("token", "secretRef"),
        ("app", "privateKeySecretRef"),
        ("ssh", "privateKeySecretRef"),
    ];
    BLOCKS.into_iter().filter_map(|(block, field)| {
        let name = text(at(auth, &[block, field])?, "name")?;
        Some((block, field, name))
    })
}

fn owned<'v>(names: impl Iterator<Item = &'v str>) -> Vec<String> {
    names.map(str::to_owned).collect()
}
