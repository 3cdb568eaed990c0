//! Agent: who does the work, with which settings, and what it may touch.

use crate::api::condition::Condition;
use crate::api::crd::schema::{self, FreeObject};
use crate::api::kinds::shared::{EnvVar, LocalRef, SystemPromptRef};
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// How the agent is run and what it may touch.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agents.proompteng.ai",
    version = "v1alpha1",
    kind = "Agent",
    doc = "An agent: who does the work, with which settings, and what it may touch.",
    namespaced,
    status = "AgentStatus",
    shortname = "agt",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct AgentSpec {
    /// AgentProvider that says which program is started.
    pub provider_ref: LocalRef,
    /// Free settings for the templates of the provider.
    #[serde(default)]
    #[schemars(schema_with = "schema::any_map")]
    pub config: Option<FreeObject>,
    /// Environment of the container.
    pub env: Option<Vec<EnvVar>>,
    /// What runs of this agent may use.
    pub security: Option<Security>,
    /// Memory that runs use unless they name another.
    pub memory_ref: Option<LocalRef>,
    /// VersionControlProvider that runs use unless they name another.
    pub vcs_ref: Option<LocalRef>,
    /// Values for runs that leave them out.
    pub defaults: Option<AgentDefaults>,
}

/// What runs of an agent may use. An absent or empty list allows everything.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Security {
    /// Service accounts that runs may use.
    pub allowed_service_accounts: Option<Vec<String>>,
    /// Secrets that runs may use.
    pub allowed_secrets: Option<Vec<String>>,
}

/// Values for runs that leave them out.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::one_system_prompt()]))]
pub struct AgentDefaults {
    /// Seconds after which a run is stopped; 0 means never.
    #[schemars(range(min = 0))]
    #[schemars(extend("format" = "int32"))]
    pub timeout_seconds: Option<i64>,
    /// How often a failed run is tried again.
    #[schemars(range(min = 0))]
    #[schemars(extend("format" = "int32"))]
    pub retry_limit: Option<i64>,
    /// System prompt as text.
    #[schemars(length(max = 16384))]
    pub system_prompt: Option<String>,
    /// System prompt from a Secret or ConfigMap.
    pub system_prompt_ref: Option<SystemPromptRef>,
}

/// What is known about an Agent.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::strict_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
