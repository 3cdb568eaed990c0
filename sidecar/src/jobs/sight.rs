//! A Job as the watch delivers it, read only as far as anybody looks: a whole Job has 50 KB in memory, this one a few
//! hundred bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer};

/// What is read of a Job.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Sight {
    /// Names, owners, marks and finalizers; nothing about who wrote what.
    #[serde(deserialize_with = "read_meta")]
    pub(super) metadata: ObjectMeta,
    /// What it should do.
    #[serde(default)]
    pub(super) spec: Spec,
    /// How far it is.
    #[serde(default)]
    pub(super) status: Status,
}

/// What is read of the spec.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    /// Seconds after its end at which the cluster removes it.
    pub(super) ttl_seconds_after_finished: Option<i32>,
}

/// What is read of the status.
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
        creation_timestamp,
        deletion_timestamp,
        labels,
        annotations,
        finalizers,
        owner_references,
        ..ObjectMeta::default()
    })
}

impl Resource for Sight {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Job::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Job::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Job::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Job::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
