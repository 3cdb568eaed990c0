//! Objects as the API server shows them, read only as far as anybody looks: a whole Job has 50 KB in memory, this one a few
//! hundred bytes. What is not looked at is not in the program either.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use agents::api::kinds::{AgentRun, AgentRunStatus, ToolRun, ToolRunStatus};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::{self as batch, JobCondition};
use k8s_openapi::api::core::v1::{self as core, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// What is read of an object of kind `K`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(bound = "S: Deserialize<'de> + Default, T: Deserialize<'de> + Default")]
pub(super) struct Sight<K, S, T> {
    /// Names, owners, marks and finalizers; nothing about who wrote what.
    #[serde(deserialize_with = "read_meta")]
    pub(super) metadata: ObjectMeta,
    /// What it should do.
    #[serde(default)]
    pub(super) spec: S,
    /// How far it is.
    #[serde(default)]
    pub(super) status: T,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

/// A Job.
pub(super) type JobSight = Sight<batch::Job, Spec, Status>;

/// A pod.
pub(super) type PodSight = Sight<core::Pod, Placed, Option<PodStatus>>;

/// An AgentRun.
pub(super) type AgentRunSight = Sight<AgentRun, IgnoredAny, Option<AgentRunStatus>>;

/// A ToolRun.
pub(super) type ToolRunSight = Sight<ToolRun, IgnoredAny, Option<ToolRunStatus>>;

/// What is read of the spec of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Placed {
    /// Where it runs.
    pub(super) node_name: Option<String>,
}

/// What is read of the spec of a Job.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    /// Seconds after its end at which the cluster removes it.
    pub(super) ttl_seconds_after_finished: Option<i32>,
}

/// What is read of the status of a Job.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    /// When the cluster took it up.
    pub(super) start_time: Option<Time>,
    /// Pods that have not ended.
    pub(super) active: Option<i32>,
    /// Whether and how it ended.
    #[serde(default)]
    pub(super) conditions: Vec<JobCondition>,
}

/// Metadata without `managedFields`, which are most of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

fn read_meta<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let Meta {
        name,
        namespace,
        uid,
        resource_version,
        generation,
        creation_timestamp,
        deletion_timestamp,
        labels,
        annotations,
        finalizers,
        owner_references,
    } = Meta::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name,
        namespace,
        uid,
        resource_version,
        generation,
        creation_timestamp,
        deletion_timestamp,
        labels,
        annotations,
        finalizers,
        owner_references,
        ..ObjectMeta::default()
    })
}

impl<K, S, T> Resource for Sight<K, S, T>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
