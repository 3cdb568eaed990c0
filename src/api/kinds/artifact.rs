//! Artifact: something that runs left behind, and where it is stored.

use crate::api::condition::Condition;
use crate::api::crd::schema;
use crate::api::kinds::shared::OptionalRef;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Where it is stored, and for how long.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "artifacts.proompteng.ai",
    version = "v1alpha1",
    kind = "Artifact",
    doc = "Something that runs left behind, and where it is stored.",
    namespaced,
    status = "ArtifactStatus",
    shortname = "art",
    derive = "PartialEq",
    derive = "Default",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactSpec {
    /// Store that holds it.
    pub storage_ref: Option<OptionalRef>,
    /// How long it is kept.
    pub lifecycle: Option<Lifecycle>,
}

/// How long an artifact is kept.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// Days that it is kept.
    #[schemars(extend("format" = "int32"))]
    pub ttl_days: Option<i64>,
}

/// What is known about an Artifact.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactStatus {
    /// Where the object stands, for example Ready.
    pub phase: Option<String>,
    /// Where it can be fetched.
    pub uri: Option<String>,
    /// Checksum of the content.
    pub checksum: Option<String>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::loose_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
