//! ToolRun: one call of a Tool.

use crate::api::condition::Condition;
use crate::api::crd::schema::{self, FreeObject};
use crate::api::kinds::shared::{JobRef, LocalRef};
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

/// Which Tool is called, and with which values.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tools.proompteng.ai",
    version = "v1alpha1",
    kind = "ToolRun",
    doc = "One call of a Tool.",
    namespaced,
    status = "ToolRunStatus",
    shortname = "trun",
    derive = "PartialEq",
    derive = "Default",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct ToolRunSpec {
    /// Tool that is called.
    pub tool_ref: LocalRef,
    /// Values that the program gets.
    pub parameters: Option<BTreeMap<String, String>>,
    /// Deliveries with the same id are run only once.
    pub delivery_id: Option<String>,
    /// Free settings of the runtime.
    #[serde(default)]
    #[schemars(schema_with = "schema::free_object")]
    pub runtime: Option<FreeObject>,
    /// Stop the call and keep its record. Addition of this project.
    pub cancel: Option<bool>,
}

/// What is known about a ToolRun.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRunStatus {
    /// Pending, Running, Succeeded, Failed or Cancelled.
    pub phase: Option<String>,
    /// How the runtime calls the run.
    pub run_id: Option<String>,
    /// What the runtime made for the call.
    #[serde(default)]
    #[schemars(schema_with = "schema::free_object")]
    pub runtime_ref: Option<FreeObject>,
    /// Job that carries out the call. Addition of this project.
    pub job_ref: Option<JobRef>,
    /// When the call first became Running; never changes.
    pub started_at: Option<Timestamp>,
    /// When the call ended; never changes.
    pub finished_at: Option<Timestamp>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::loose_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
