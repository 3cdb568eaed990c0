//! SignalDelivery: one delivery of a Signal.

use crate::api::condition::Condition;
use crate::api::crd::schema::{self, FreeObject};
use crate::api::kinds::shared::LocalRef;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Which Signal is delivered, with which values.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "signals.proompteng.ai",
    version = "v1alpha1",
    kind = "SignalDelivery",
    doc = "One delivery of a Signal.",
    namespaced,
    status = "SignalDeliveryStatus",
    shortname = "sdel",
    derive = "PartialEq",
    derive = "Default",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct SignalDeliverySpec {
    /// Signal that is delivered.
    pub signal_ref: LocalRef,
    /// Deliveries with the same id count once.
    pub delivery_id: Option<String>,
    /// Values that come with the delivery.
    #[serde(default)]
    #[schemars(schema_with = "schema::free_object")]
    pub payload: Option<FreeObject>,
}

/// What is known about a SignalDelivery.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalDeliveryStatus {
    /// Pending, Delivered or Failed.
    pub phase: Option<String>,
    /// When the signal was delivered.
    pub delivered_at: Option<Timestamp>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::loose_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
