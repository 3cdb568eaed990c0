//! Orchestration: steps that depend on each other.

use crate::api::condition::Condition;
use crate::api::crd::schema::{self, FreeObject};
use crate::api::kinds::shared::OptionalRef;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

/// The steps and what they depend on.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "orchestration.proompteng.ai",
    version = "v1alpha1",
    kind = "Orchestration",
    doc = "Steps that depend on each other.",
    namespaced,
    status = "OrchestrationStatus",
    shortname = "orch",
    derive = "PartialEq",
    derive = "Default",
    attr = "cfg_attr(all(), serde(default))"
)]
pub struct OrchestrationSpec {
    /// Step that everything starts from.
    pub entrypoint: Option<String>,
    /// The steps.
    pub steps: Vec<Step>,
    /// Free settings.
    #[serde(default)]
    #[schemars(schema_with = "schema::free_object")]
    pub policies: Option<FreeObject>,
}

/// One step. Fields that a kind of step needs beyond these are kept as they are.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Name of the step, unique within the orchestration.
    pub name: String,
    /// What the step does, for example AgentRun or ToolRun.
    pub kind: String,
    /// Steps that must have succeeded before.
    pub depends_on: Option<Vec<String>>,
    /// Agent that does the step.
    pub agent_ref: Option<OptionalRef>,
    /// Tool that does the step.
    pub tool_ref: Option<OptionalRef>,
    /// Orchestration that does the step.
    pub orchestration_ref: Option<OptionalRef>,
    /// ApprovalPolicy that decides about the step.
    pub policy_ref: Option<String>,
    /// Values for the step.
    pub with: Option<BTreeMap<String, String>>,
    /// How often a failed step is tried again.
    #[schemars(extend("format" = "int32"))]
    pub retries: Option<i64>,
    /// Seconds to wait before the next try.
    #[schemars(extend("format" = "int32"))]
    pub retry_backoff_seconds: Option<i64>,
    /// Seconds after which the step is stopped.
    #[schemars(extend("format" = "int32"))]
    pub timeout_seconds: Option<i64>,
    /// Doing the step twice does no harm, so it may be tried again when its outcome is lost. Addition of this project.
    pub idempotent: Option<bool>,
    /// Every other field.
    #[serde(flatten)]
    pub extra: FreeObject,
}

/// What is known about an Orchestration.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrchestrationStatus {
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
