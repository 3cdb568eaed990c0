//! ApprovalPolicy: who must agree before a step goes on.

use crate::api::condition::Condition;
use crate::api::crd::schema::{self, FreeObject};
use crate::api::kinds::shared::Subject;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// How decisions are made, and about whom. Fields beyond these are kept as they are.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "approvals.proompteng.ai",
    version = "v1alpha1",
    kind = "ApprovalPolicy",
    doc = "Who must agree before a step goes on.",
    namespaced,
    status = "ApprovalPolicyStatus",
    shortname = "apol",
    derive = "PartialEq",
    derive = "Default",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalPolicySpec {
    /// How decisions are made, for example manual.
    pub mode: Option<String>,
    /// What holds when nobody decides, for example deny.
    pub default_decision: Option<String>,
    /// Who the policy applies to.
    pub subjects: Option<Vec<Subject>>,
    /// Every other field.
    #[serde(flatten)]
    pub extra: FreeObject,
}

/// What is known about an ApprovalPolicy.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalPolicyStatus {
    /// Where the object stands, for example Ready.
    pub phase: Option<String>,
    /// When something was last decided.
    pub last_decision_at: Option<Timestamp>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::loose_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
