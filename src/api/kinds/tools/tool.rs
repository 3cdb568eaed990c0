//! Tool: a program in an image that steps can call.

use crate::api::condition::Condition;
use crate::api::crd::schema;
use crate::api::kinds::shared::EnvVar;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The program and how it is started.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tools.proompteng.ai",
    version = "v1alpha1",
    kind = "Tool",
    doc = "A program in an image that steps can call.",
    namespaced,
    status = "ToolStatus",
    shortname = "tl",
    derive = "PartialEq",
    derive = "Default",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// Container image.
    pub image: Option<String>,
    /// Program that the container starts.
    pub command: Option<Vec<String>>,
    /// Arguments of the program.
    pub args: Option<Vec<String>>,
    /// Environment of the container.
    pub env: Option<Vec<EnvVar>>,
    /// Service account of the pod.
    pub service_account: Option<String>,
    /// Directory that the program starts in.
    pub working_dir: Option<String>,
    /// Seconds after which a call is stopped.
    #[schemars(extend("format" = "int32"))]
    pub timeout_seconds: Option<i64>,
    /// Seconds that the Job is kept after its end.
    #[schemars(extend("format" = "int32"))]
    pub ttl_seconds_after_finished: Option<i64>,
}

/// What is known about a Tool.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolStatus {
    /// Where the object stands, for example Ready.
    pub phase: Option<String>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::loose_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
