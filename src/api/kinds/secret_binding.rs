//! SecretBinding: which Secrets certain subjects may use.

use crate::api::condition::Condition;
use crate::api::crd::schema;
use crate::api::kinds::shared::Subject;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Who may use which Secrets.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "security.proompteng.ai",
    version = "v1alpha1",
    kind = "SecretBinding",
    doc = "Which Secrets certain subjects may use.",
    namespaced,
    status = "SecretBindingStatus",
    shortname = "sbind",
    derive = "PartialEq",
    derive = "Default",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct SecretBindingSpec {
    /// Who the binding applies to.
    pub subjects: Option<Vec<Subject>>,
    /// Secrets that these subjects may use.
    pub allowed_secrets: Option<Vec<String>>,
}

/// What is known about a SecretBinding.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretBindingStatus {
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
