//! Signal: something that steps can wait for.

use crate::api::condition::Condition;
use crate::api::crd::schema::{self, FreeObject};
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// What the signal is about. Fields beyond these are kept as they are.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "signals.proompteng.ai",
    version = "v1alpha1",
    kind = "Signal",
    doc = "Something that steps can wait for.",
    namespaced,
    status = "SignalStatus",
    shortname = "sig",
    derive = "PartialEq",
    derive = "Default",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct SignalSpec {
    /// Channel that the signal belongs to.
    pub channel: Option<String>,
    /// What the signal means.
    pub description: Option<String>,
    /// Values for deliveries that bring none.
    #[serde(default)]
    #[schemars(schema_with = "schema::free_object")]
    pub payload: Option<FreeObject>,
    /// Every other field.
    #[serde(flatten)]
    pub extra: FreeObject,
}

/// What is known about a Signal.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalStatus {
    /// Where the object stands, for example Ready.
    pub phase: Option<String>,
    /// When the signal was last delivered.
    pub last_delivery_at: Option<Timestamp>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::loose_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
