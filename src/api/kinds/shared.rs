//! Parts that several kinds have in common: references, environment, subjects, workload.
//!
//! A part that only one kind has is in the file of that kind.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

/// Names an object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LocalRef {
    /// Name of the object.
    pub name: String,
}

impl LocalRef {
    /// A reference to the object of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

/// May name an object in the same namespace.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OptionalRef {
    /// Name of the object.
    pub name: Option<String>,
}

/// Names a Secret and one entry of it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecretRef {
    /// Name of the Secret.
    pub name: String,
    /// Entry of the Secret.
    pub key: Option<String>,
}

/// Names a ConfigMap and one entry of it.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigMapRef {
    /// Name of the ConfigMap.
    pub name: String,
    /// Entry of the ConfigMap.
    pub key: Option<String>,
}

/// Names the entry of a Secret or ConfigMap that holds a system prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemPromptRef {
    /// Whether the text is in a Secret or in a ConfigMap.
    pub kind: SystemPromptKind,
    /// Name of the Secret or ConfigMap.
    pub name: String,
    /// Entry that holds the text.
    pub key: String,
}

/// Where the text of a system prompt is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SystemPromptKind {
    /// In a Secret.
    Secret,
    /// In a ConfigMap.
    #[default]
    ConfigMap,
}

/// One environment variable with a literal value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnvVar {
    /// Name of the variable.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Something that a run leaves behind.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactRef {
    /// Name of the artifact, unique within the run.
    pub name: String,
    /// File in the container that holds it.
    pub path: Option<String>,
    /// Key under which a store keeps it.
    pub key: Option<String>,
    /// Where it can be fetched.
    #[schemars(length(max = 2048))]
    pub url: Option<String>,
}

/// Names a Job; the uid tells it from a later Job of the same name.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobRef {
    /// Name of the Job. Without a uid beside it, the Job is about to be made.
    pub name: Option<String>,
    /// Namespace of the Job.
    pub namespace: Option<String>,
    /// Uid of the Job.
    pub uid: Option<String>,
    /// First sight of its deletion before its outcome was stored. Addition of this project.
    pub deletion: Option<JobDeletion>,
    /// What was found out when it was missing. Addition of this project.
    pub missing: Option<JobMissing>,
}

/// First sight of the deletion of a Job whose outcome was not stored.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobDeletion {
    /// When it was asked for.
    pub deleted_at: Option<Timestamp>,
    /// What held the Job then.
    pub finalizers: Option<Vec<String>>,
}

/// Why a Job is missing, as far as that can be known.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobMissing {
    /// Why it is missing, in one word.
    pub class: Option<String>,
    /// How sure that is: certain, likely or unknown.
    pub certainty: Option<String>,
    /// Where its outcome was still found: none, fromDeletedObject, fromPod or fromRunnerReport.
    pub recovered: Option<String>,
    /// Who deleted it, if that is known.
    pub actor: Option<String>,
    /// When its absence was confirmed.
    pub noticed_at: Option<Timestamp>,
}

/// Someone to whom a policy or a binding applies.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// Kind of the object, for example Agent.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; that of the policy or binding if left out.
    pub namespace: Option<String>,
}

/// Image, resources and volumes of the pod that does the work.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Container image.
    pub image: Option<String>,
    /// What the container asks for and may use at most.
    pub resources: Option<Resources>,
    /// Volumes that the container sees.
    pub volumes: Option<Vec<Volume>>,
}

/// Requests and limits of a container.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    /// Reserved amount per resource, for example cpu: 500m.
    pub requests: Option<BTreeMap<String, String>>,
    /// Greatest amount per resource.
    pub limits: Option<BTreeMap<String, String>>,
}

/// One volume and where it is mounted.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// What the volume is made of.
    #[serde(rename = "type")]
    pub type_: VolumeType,
    /// Name of the volume within the pod.
    pub name: String,
    /// Absolute path in the container.
    pub mount_path: String,
    /// Whether writing is refused.
    pub read_only: Option<bool>,
    /// PersistentVolumeClaim behind a volume of type pvc.
    pub claim_name: Option<String>,
    /// Secret behind a volume of type secret.
    pub secret_name: Option<String>,
    /// Greatest size of a volume of type emptyDir.
    pub size_limit: Option<String>,
    /// Medium of a volume of type emptyDir, for example Memory.
    pub medium: Option<String>,
}

/// What a volume is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum VolumeType {
    /// An empty directory that ends with the pod.
    #[default]
    EmptyDir,
    /// A PersistentVolumeClaim.
    Pvc,
    /// The entries of a Secret as files.
    Secret,
}
