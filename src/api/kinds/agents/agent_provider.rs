//! AgentProvider: the program behind agents, and how its command line, environment and files are made.

use crate::api::condition::Condition;
use crate::api::crd::schema;
use crate::api::kinds::shared::ArtifactRef;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

/// Which program is started and what it gets.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agents.proompteng.ai",
    version = "v1alpha1",
    kind = "AgentProvider",
    doc = "The program behind agents, and how its command line, environment and files are made.",
    namespaced,
    status = "AgentProviderStatus",
    shortname = "aprov",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct AgentProviderSpec {
    /// Program that the container starts.
    pub binary: String,
    /// Templates of the arguments.
    pub args_template: Option<Vec<String>>,
    /// Templates of environment variables.
    pub env_template: Option<BTreeMap<String, String>>,
    /// Files placed in the container before the start.
    pub input_files: Option<Vec<InputFile>>,
    /// What the program leaves behind.
    pub output_artifacts: Option<Vec<ArtifactRef>>,
}

/// One file placed in the container, word for word.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputFile {
    /// Absolute path in the container.
    pub path: String,
    /// Content of the file.
    pub content: String,
}

/// What is known about an AgentProvider.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentProviderStatus {
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::strict_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
