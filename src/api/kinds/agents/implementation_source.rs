//! ImplementationSource: an issue tracker whose issues become ImplementationSpecs.

use crate::api::condition::Condition;
use crate::api::crd::schema;
use crate::api::kinds::shared::SecretRef;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

/// Which tracker, which of its issues, and how its calls are checked.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agents.proompteng.ai",
    version = "v1alpha1",
    kind = "ImplementationSource",
    doc = "An issue tracker whose issues become ImplementationSpecs.",
    namespaced,
    status = "ImplementationSourceStatus",
    shortname = "isrc",
    derive = "PartialEq"
)]
pub struct ImplementationSourceSpec {
    /// The tracker.
    pub provider: TrackerProvider,
    /// How calls of the tracker are checked.
    pub auth: TrackerAuth,
    /// Whether calls of the tracker are taken.
    pub webhook: Option<TrackerWebhook>,
    /// Whether the tracker is read from time to time. Addition of this project.
    pub sync: Option<TrackerSync>,
    /// Which issues count; all conditions must hold.
    pub scope: Option<TrackerScope>,
    /// Names of fields in the tracker by name of our field.
    pub mapping: Option<BTreeMap<String, String>>,
}

/// A tracker that can call us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TrackerProvider {
    /// GitHub issues.
    #[default]
    Github,
    /// Linear issues.
    Linear,
}

/// How calls of a tracker are checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrackerAuth {
    /// Secret that signs the calls; the entry is token unless named.
    pub secret_ref: SecretRef,
}

/// Whether calls of a tracker are taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrackerWebhook {
    /// Take calls.
    #[serde(default)]
    pub enabled: bool,
}

/// Whether and how a tracker is read from time to time.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrackerSync {
    /// Read it.
    #[serde(default)]
    pub enabled: bool,
    /// Where its API is, if not at its usual place. The token goes to this host only.
    pub api_base_url: Option<String>,
    /// Secret with the token for its API; the entry is token unless named. Without it the API is asked without a token.
    pub secret_ref: Option<SecretRef>,
}

/// Which issues of a tracker count.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrackerScope {
    /// Organization that owns the repositories.
    pub organization: Option<String>,
    /// Repository, as owner/name.
    pub repository: Option<String>,
    /// Project in Linear.
    pub project: Option<String>,
    /// Key of the team in Linear.
    pub team: Option<String>,
    /// Labels that an issue must all have.
    pub labels: Option<Vec<String>>,
    /// Search text in the language of the tracker.
    pub query: Option<String>,
}

/// What is known about an ImplementationSource.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImplementationSourceStatus {
    /// When an issue was last taken over.
    pub last_synced_at: Option<Timestamp>,
    /// The last call of the tracker and what became of it.
    pub last_webhook: Option<LastWebhook>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::strict_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}

/// The last call of a tracker and what became of it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastWebhook {
    /// Tells a repeated call from a new one.
    pub idempotency_key: Option<String>,
    /// How the tracker calls the call.
    pub delivery_id: Option<String>,
    /// The tracker.
    pub provider: Option<String>,
    /// How the tracker calls the issue.
    pub external_id: Option<String>,
    /// Version of the issue.
    pub source_version: Option<String>,
    /// What became of the call: queued, synced, retrying or failed.
    pub status: Option<String>,
    /// What went wrong last.
    pub error: Option<String>,
    /// How often the call was worked on.
    #[schemars(extend("format" = "int32"))]
    pub attempts: Option<i64>,
    /// When the call came in.
    pub received_at: Option<Timestamp>,
    /// When the call was last worked on.
    pub processed_at: Option<Timestamp>,
}
