//! OrchestrationRun: one run of an Orchestration.

use crate::api::condition::Condition;
use crate::api::crd::schema::{self, FreeObject};
use crate::api::kinds::shared::LocalRef;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

/// Which Orchestration is run, and with which values.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "orchestration.proompteng.ai",
    version = "v1alpha1",
    kind = "OrchestrationRun",
    doc = "One run of an Orchestration.",
    namespaced,
    status = "OrchestrationRunStatus",
    shortname = "orun",
    derive = "PartialEq",
    derive = "Default",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct OrchestrationRunSpec {
    /// Orchestration that is run.
    pub orchestration_ref: LocalRef,
    /// Values for the steps.
    pub parameters: Option<BTreeMap<String, String>>,
    /// Deliveries with the same id are run only once.
    pub delivery_id: Option<String>,
    /// Stop the run and keep its record. Addition of this project.
    pub cancel: Option<bool>,
}

/// What is known about an OrchestrationRun.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrchestrationRunStatus {
    /// Pending, Running, Succeeded, Failed or Cancelled.
    pub phase: Option<String>,
    /// How the runtime calls the run.
    pub run_id: Option<String>,
    /// When the run first became Running; never changes.
    pub started_at: Option<Timestamp>,
    /// When the run ended; never changes.
    pub finished_at: Option<Timestamp>,
    /// Where each step stands.
    pub step_statuses: Option<Vec<StepStatus>>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::loose_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}

/// Where a step stands. Fields beyond these are kept as they are.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepStatus {
    /// Name of the step.
    pub name: String,
    /// What the step does.
    pub kind: String,
    /// Pending, Running, Retrying, Succeeded, Failed or Skipped.
    pub phase: Option<String>,
    /// A sentence for people.
    pub message: Option<String>,
    /// Number of the current try.
    #[schemars(extend("format" = "int32"))]
    pub attempt: Option<i64>,
    /// When the step started.
    pub started_at: Option<Timestamp>,
    /// When the step ended.
    pub finished_at: Option<Timestamp>,
    /// When the phase last changed.
    pub last_transition_time: Option<Timestamp>,
    /// When the next try is due.
    pub next_retry_at: Option<Timestamp>,
    /// Object that carries out the step.
    pub resource_ref: Option<ResourceRef>,
    /// Values that the step produced.
    #[serde(default)]
    #[schemars(schema_with = "schema::free_object")]
    pub outputs: Option<FreeObject>,
    /// Every other field.
    #[serde(flatten)]
    pub extra: FreeObject,
}

/// Object that carries out a step.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRef {
    /// Group and version of the object.
    pub api_version: Option<String>,
    /// Kind of the object.
    pub kind: Option<String>,
    /// Name of the object.
    pub name: Option<String>,
    /// Namespace of the object.
    pub namespace: Option<String>,
    /// Uid of the object.
    pub uid: Option<String>,
}
