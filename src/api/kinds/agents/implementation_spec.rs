//! ImplementationSpec: a piece of work, written down so that any agent can do it.
//!
//! The same fields appear inline in an AgentRun; [`ImplementationFields`] is both.

use crate::api::condition::Condition;
use crate::api::crd::schema;
use crate::api::kinds::shared::LocalRef;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The spec of an ImplementationSpec.
pub type ImplementationSpecSpec = ImplementationFields;

/// What is to be done, where it comes from, and when it counts as done.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agents.proompteng.ai",
    version = "v1alpha1",
    kind = "ImplementationSpec",
    doc = "A piece of work, written down so that any agent can do it.",
    namespaced,
    status = "ImplementationSpecStatus",
    shortname = "ispec",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct ImplementationFields {
    /// Where the work was asked for.
    pub source: Option<WorkSource>,
    /// VersionControlProvider that holds the repository.
    pub vcs_ref: Option<LocalRef>,
    /// The task in full.
    #[schemars(length(max = 131072))]
    pub text: String,
    /// The task in one line.
    #[schemars(length(max = 256))]
    pub summary: Option<String>,
    /// Background for the task.
    #[schemars(length(max = 131072))]
    pub description: Option<String>,
    /// What must hold for the task to count as done.
    #[schemars(length(max = 50))]
    pub acceptance_criteria: Option<Vec<String>>,
    /// Labels copied from the source.
    pub labels: Option<Vec<String>>,
    /// Which parameters a run must bring.
    pub contract: Option<Contract>,
}

/// Where a piece of work was asked for.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkSource {
    /// The system that holds the request.
    pub provider: WorkSourceProvider,
    /// How that system calls the request, for example owner/repo#12.
    pub external_id: Option<String>,
    /// Page of the request.
    pub url: Option<String>,
}

/// A system in which work is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WorkSourceProvider {
    /// A GitHub issue.
    Github,
    /// A Linear issue.
    Linear,
    /// Written by hand.
    #[default]
    Manual,
    /// Anything else.
    Custom,
}

/// Which parameters a run must bring, and under which names they are passed on.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contract {
    /// Names that must be set.
    #[schemars(length(max = 50))]
    pub required_keys: Option<Vec<String>>,
    /// Names that are passed on under another name.
    #[schemars(length(max = 100))]
    pub mappings: Option<Vec<ContractMapping>>,
}

/// One name and the name it is passed on under.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContractMapping {
    /// Name in the metadata of the run.
    #[schemars(length(max = 256))]
    pub from: String,
    /// Name that the agent sees.
    #[schemars(length(max = 256))]
    pub to: String,
}

/// What is known about an ImplementationSpec.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImplementationSpecStatus {
    /// When the text was last taken from its source.
    pub synced_at: Option<Timestamp>,
    /// Version of the source that the text was taken from.
    pub source_version: Option<String>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::strict_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
