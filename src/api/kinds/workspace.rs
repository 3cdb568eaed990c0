//! Workspace: storage that several runs share.

use crate::api::condition::Condition;
use crate::api::crd::schema;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// How much storage, of which sort, for how long.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "workspaces.proompteng.ai",
    version = "v1alpha1",
    kind = "Workspace",
    doc = "Storage that several runs share.",
    namespaced,
    status = "WorkspaceStatus",
    shortname = "wsp",
    derive = "PartialEq",
    derive = "Default",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceSpec {
    /// StorageClass of the claim; the default one if left out.
    pub storage_class_name: Option<String>,
    /// Size of the claim, for example 10Gi.
    pub size: Option<String>,
    /// Access modes of the claim.
    pub access_modes: Option<Vec<String>>,
    /// Seconds that the workspace is kept.
    #[schemars(extend("format" = "int32"))]
    pub ttl_seconds: Option<i64>,
}

/// What is known about a Workspace.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceStatus {
    /// Where the object stands, for example Ready.
    pub phase: Option<String>,
    /// Volume that the claim is bound to.
    pub volume_name: Option<String>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::loose_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
