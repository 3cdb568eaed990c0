//! Memory: a store that agents remember things in.

use crate::api::condition::Condition;
use crate::api::crd::schema;
use crate::api::kinds::shared::SecretRef;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// What kind of store it is and how it is reached.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agents.proompteng.ai",
    version = "v1alpha1",
    kind = "Memory",
    doc = "A store that agents remember things in.",
    namespaced,
    status = "MemoryStatus",
    shortname = "mem",
    derive = "PartialEq"
)]
pub struct MemorySpec {
    /// Software of the store.
    #[serde(rename = "type")]
    pub type_: MemoryType,
    /// How the store is reached.
    pub connection: Connection,
    /// What the store can do, for example vector, kv or blob.
    pub capabilities: Option<Vec<String>>,
    /// Whether runs that name no Memory use this one.
    #[serde(default)]
    pub default: bool,
}

/// Software of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MemoryType {
    /// PostgreSQL.
    Postgres,
    /// Redis.
    Redis,
    /// Weaviate.
    Weaviate,
    /// Pinecone.
    Pinecone,
    /// Anything else.
    #[default]
    Custom,
}

/// How a store is reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// Secret with address and credentials.
    pub secret_ref: SecretRef,
}

/// What is known about a Memory.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStatus {
    /// When the store was last looked at.
    pub last_checked_at: Option<Timestamp>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::strict_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
