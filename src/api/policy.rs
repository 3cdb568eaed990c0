//! Admission policy: which labels, images, secrets and service accounts the operator, the Agent and the SecretBindings
//! let through.
//!
//! One engine for webhook, reconciler and command line. It judges what `intake` collected from an object; it looks
//! nothing up.

mod facts;
mod file;
mod intake;
mod pattern;
mod read;
mod rules;
#[cfg(test)]
mod tests;

pub use facts::{
    AgentFacts, BindingFacts, MemoryFacts, Surroundings, ToolFacts, VcsFacts, WorkFacts,
};
pub use file::PolicyError;
pub use intake::{Bearer, Entry, Intake, SecretEntry, SecretWay};
pub use pattern::{Pattern, Patterns};

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::object::cause::Cause;
use super::status::StatusRule;
use super::text::names::closed_words;

closed_words! {
    /// A rule of the policy; each has a mode of its own.
    #[derive(Serialize, Deserialize)]
    pub enum Rule {
        /// Labels that every AgentRun must have.
        RequiredLabels,
        /// Labels that no AgentRun may have.
        DeniedLabels,
        /// The only labels that an AgentRun may have.
        AllowedLabels,
        /// Images that nothing may use.
        DeniedImages,
        /// The only images that anything may use.
        AllowedImages,
        /// Secrets that nothing may use.
        BlockedSecrets,
        /// Secrets that a run uses without naming them in `spec.secrets`.
        DeclaredSecrets,
        /// The only secrets that runs of an Agent may use.
        AgentSecrets,
        /// The only service accounts that runs of an Agent may use.
        AgentServiceAccounts,
        /// The only secrets that SecretBindings give to an Agent.
        SecretBindings,
        /// No more images, secrets and service accounts in one object than can be judged.
        Amount,
    }
}

/// What happens when a rule is broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is recorded.
    Audit,
    /// The user is warned.
    Warn,
    /// The object is refused.
    #[default]
    Enforce,
}

impl Mode {
    /// The word in configuration, metrics and audit annotations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Warn => "warn",
            Self::Enforce => "enforce",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the operator set. The default lets everything through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Policy {
    /// Rules about labels of AgentRuns.
    pub labels: LabelRules,
    /// Rules about images.
    pub images: ImageRules,
    /// Secrets that nothing may use, by exact name.
    pub blocked_secrets: Vec<String>,
    /// An Agent that no SecretBinding names may use no secret.
    pub require_secret_binding: bool,
    /// What runs get that the operator, not the user, chose.
    pub defaults: Defaults,
    /// Modes that differ from enforce.
    pub modes: BTreeMap<Rule, Mode>,
    /// Modes of the status contract that differ from enforce.
    pub status_modes: BTreeMap<StatusRule, Mode>,
    /// What happens when a Job is deleted before its outcome is stored.
    pub job_delete: Mode,
}

/// Rules about the keys of labels; values are not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LabelRules {
    /// Keys that must be there with a value, by exact name.
    pub required: Vec<String>,
    /// Keys that may be there; all if empty.
    pub allowed: Patterns,
    /// Keys that may not be there.
    pub denied: Patterns,
}

/// Rules about image references as they are written, registry, tag and digest included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ImageRules {
    /// Images that may be used; all if empty.
    pub allowed: Patterns,
    /// Images that may not be used.
    pub denied: Patterns,
}

/// What the controller gives to runs that leave it out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Defaults {
    /// Image of runs that name none.
    pub image: Option<String>,
    /// Service account of runs that name none; the namespace's `default` if this is not set.
    pub service_account: Option<String>,
    /// Secret with the credentials that every run gets.
    pub auth_secret: Option<String>,
    /// Secrets that pull the images of runs that name none.
    pub image_pull_secrets: Option<Vec<String>>,
}

impl Policy {
    /// The mode of a rule.
    pub fn mode(&self, rule: Rule) -> Mode {
        self.modes.get(&rule).copied().unwrap_or_default()
    }

    /// The mode of a rule of the status contract.
    pub fn status_mode(&self, rule: StatusRule) -> Mode {
        self.status_modes.get(&rule).copied().unwrap_or_default()
    }
}

/// A rule that an object breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// What happens.
    pub mode: Mode,
    /// Where and why.
    pub cause: Cause,
    /// What was judged, whole: of a long one the cause shows the start only, and two that begin alike are not the same.
    pub judged: String,
}

/// Every rule that the object breaks.
pub fn evaluate(policy: &Policy, intake: &Intake<'_>) -> Vec<Finding> {
    rules::evaluate(policy, intake)
}

/// What an update breaks that the object did not break before. Both must be judged by the same policy; so an object
/// that a later policy would refuse can still be updated elsewhere, and lose its finalizers.
pub fn newly_broken(findings: Vec<Finding>, before: &[Finding]) -> Vec<Finding> {
    findings
        .into_iter()
        .filter(|finding| !before.contains(finding))
        .collect()
}
