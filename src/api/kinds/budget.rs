//! Budget: how much may be spent, and how much has been.

use crate::api::condition::Condition;
use crate::api::crd::schema::{self, FreeObject};
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// How much may be spent.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "budgets.proompteng.ai",
    version = "v1alpha1",
    kind = "Budget",
    doc = "How much may be spent, and how much has been.",
    namespaced,
    status = "BudgetStatus",
    shortname = "bgt",
    derive = "PartialEq",
    derive = "Default",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct BudgetSpec {
    /// Greatest amounts.
    pub limits: Option<Amounts>,
}

/// Amounts per resource. Resources beyond these are kept as they are.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Amounts {
    /// Tokens of language models.
    pub tokens: Option<String>,
    /// US dollars.
    pub dollars: Option<String>,
    /// Processor time.
    pub cpu: Option<String>,
    /// Memory.
    pub memory: Option<String>,
    /// Accelerator time.
    pub gpu: Option<String>,
    /// Every other field.
    #[serde(flatten)]
    pub extra: FreeObject,
}

/// What is known about a Budget.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetStatus {
    /// Where the object stands, for example Ready.
    pub phase: Option<String>,
    /// Amounts spent so far.
    pub used: Option<Amounts>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::loose_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
