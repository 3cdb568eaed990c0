//! AgentRun: one piece of work, done once by one agent.

use crate::api::condition::Condition;
use crate::api::crd::schema::{self, FreeObject};
use crate::api::kinds::agents::implementation_spec::ImplementationFields;
use crate::api::kinds::shared::{ArtifactRef, JobRef, LocalRef, SystemPromptRef, Workload};
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

/// Who does what, where, and with which rights.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agents.proompteng.ai",
    version = "v1alpha1",
    kind = "AgentRun",
    doc = "One piece of work, done once by one agent.",
    namespaced,
    status = "AgentRunStatus",
    shortname = "arun",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::some_work(), schema::one_system_prompt()]))]
pub struct AgentRunSpec {
    /// Agent that does the work.
    pub agent_ref: LocalRef,
    /// ImplementationSpec that says what is to be done.
    pub implementation_spec_ref: Option<LocalRef>,
    /// What is to be done, written here; wins over implementationSpecRef.
    pub implementation: Option<InlineImplementation>,
    /// What carries the run out.
    pub runtime: Runtime,
    /// Steps of a run of type workflow.
    pub workflow: Option<Workflow>,
    /// Image, resources and volumes of the pod.
    pub workload: Option<Workload>,
    /// Values for the templates of the provider.
    #[schemars(extend("maxProperties" = 100))]
    pub parameters: Option<BTreeMap<String, String>>,
    /// Secrets whose entries become environment variables.
    pub secrets: Option<Vec<String>>,
    /// System prompt as text.
    #[schemars(length(max = 16384))]
    pub system_prompt: Option<String>,
    /// System prompt from a Secret or ConfigMap.
    pub system_prompt_ref: Option<SystemPromptRef>,
    /// Memory that the agent uses.
    pub memory_ref: Option<LocalRef>,
    /// VersionControlProvider that holds the repository.
    pub vcs_ref: Option<LocalRef>,
    /// What the agent may do with the repository.
    pub vcs_policy: Option<VcsPolicy>,
    /// Runs with the same key are made only once.
    pub idempotency_key: Option<String>,
    /// Seconds that the run is kept after its end; 0 keeps it forever.
    #[schemars(range(min = 0))]
    #[schemars(extend("format" = "int32"))]
    pub ttl_seconds_after_finished: Option<i64>,
    /// Stop the run and keep its record. Addition of this project.
    pub cancel: Option<bool>,
}

/// What is to be done, written in the run itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InlineImplementation {
    /// The piece of work.
    pub inline: ImplementationFields,
}

/// What carries a run out.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Runtime {
    /// Which sort of runtime.
    #[serde(rename = "type")]
    pub type_: RuntimeType,
    /// Settings of that runtime.
    #[serde(default)]
    #[schemars(schema_with = "schema::any_map")]
    pub config: Option<FreeObject>,
}

/// Runtimes that can be stored, but not be carried out yet.
pub const UNBUILT_RUNTIMES: [&str; 1] = ["temporal"];

/// Sorts of runtimes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RuntimeType {
    /// One Job per step, one step after the other.
    Workflow,
    /// One Job.
    #[default]
    Job,
    /// A workflow in Temporal.
    Temporal,
    /// An HTTP endpoint that takes the run over.
    Custom,
}

/// Steps that are done one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workflow {
    /// The steps in order.
    pub steps: Vec<WorkflowStep>,
}

/// One step of a workflow. What is left out is taken from the run.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStep {
    /// Name of the step, unique within the run.
    pub name: String,
    /// ImplementationSpec that says what is to be done.
    pub implementation_spec_ref: Option<LocalRef>,
    /// What is to be done, written here; wins over implementationSpecRef.
    pub implementation: Option<InlineImplementation>,
    /// Values added to those of the run.
    #[schemars(extend("maxProperties" = 100))]
    pub parameters: Option<BTreeMap<String, String>>,
    /// Image, resources and volumes of the pod; replaces those of the run as a whole.
    pub workload: Option<Workload>,
    /// How often a failed step is tried again.
    #[schemars(extend("format" = "int32"))]
    pub retries: Option<i64>,
    /// Seconds to wait before the next try.
    #[schemars(extend("format" = "int32"))]
    pub retry_backoff_seconds: Option<i64>,
    /// Seconds after which the step is stopped; 0 means never.
    #[schemars(range(min = 0))]
    #[schemars(extend("format" = "int32"))]
    pub timeout_seconds: Option<i64>,
    /// Doing the step twice does no harm, so it may be tried again when its Job vanished. Addition of this project.
    pub idempotent: Option<bool>,
    /// Do the step several times, one after the other. Addition of this project.
    #[serde(rename = "loop")]
    pub loop_: Option<StepLoop>,
}

/// How often a step is done.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepLoop {
    /// Rounds, each with all its tries; the first that fails ends the run. One if left out.
    #[schemars(range(min = 1))]
    #[schemars(extend("format" = "int32"))]
    pub max_iterations: Option<i64>,
}

/// What an agent may do with the repository.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VcsPolicy {
    /// Refuse to run without a repository; no if left out.
    pub required: Option<bool>,
    /// How the repository is used; read-write if left out.
    pub mode: Option<VcsMode>,
}

/// How a repository is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VcsMode {
    /// Fetch and push.
    ReadWrite,
    /// Fetch only.
    ReadOnly,
    /// Not at all.
    None,
}

/// What is known about an AgentRun.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRunStatus {
    /// Pending, Running, Succeeded, Failed or Cancelled.
    pub phase: Option<String>,
    /// What the runtime made for the run.
    #[serde(default)]
    #[schemars(schema_with = "schema::any_map")]
    pub runtime_ref: Option<FreeObject>,
    /// Job that carries out a run of type job. Addition of this project.
    pub job_ref: Option<JobRef>,
    /// Where a run of type workflow stands.
    pub workflow: Option<WorkflowStatus>,
    /// When the run first became Running; never changes.
    pub started_at: Option<Timestamp>,
    /// When the run ended; never changes.
    pub finished_at: Option<Timestamp>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// What the run left behind.
    #[schemars(length(max = 50))]
    pub artifacts: Option<Vec<ArtifactRef>>,
    /// Repository and branches that the run works with.
    pub vcs: Option<VcsStatus>,
    /// SHA-256 of the system prompt, in hex.
    pub system_prompt_hash: Option<String>,
    /// SHA-256 of the spec, in hex.
    pub spec_hash: Option<String>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::strict_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Parameters that the work asks for and those that are missing.
    pub contract: Option<ContractStatus>,
}

/// Where a workflow stands.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStatus {
    /// Pending, Running, Succeeded, Failed or Cancelled.
    pub phase: Option<String>,
    /// When the phase last changed.
    pub last_transition_time: Option<Timestamp>,
    /// Where each step stands.
    pub steps: Option<Vec<WorkflowStepStatus>>,
}

/// Where a step of a workflow stands.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStepStatus {
    /// Name of the step.
    pub name: Option<String>,
    /// Pending, Running, Retrying, Succeeded, Failed, Cancelled or Skipped.
    pub phase: Option<String>,
    /// Number of the current try; 0 before the first.
    #[schemars(extend("format" = "int32"))]
    pub attempt: Option<i64>,
    /// Number of the current round, from 1. Addition of this project.
    #[schemars(extend("format" = "int32"))]
    pub iteration: Option<i64>,
    /// When the step started.
    pub started_at: Option<Timestamp>,
    /// When the step ended.
    pub finished_at: Option<Timestamp>,
    /// When the phase last changed.
    pub last_transition_time: Option<Timestamp>,
    /// When the next try is due.
    pub next_retry_at: Option<Timestamp>,
    /// When the Job was first seen.
    pub job_observed_at: Option<Timestamp>,
    /// A sentence for people.
    pub message: Option<String>,
    /// Job of the current try.
    pub job_ref: Option<JobRef>,
}

/// Repository and branches that a run works with.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VcsStatus {
    /// Name of the VersionControlProvider.
    pub provider: Option<String>,
    /// The repository, as owner/name.
    pub repository: Option<String>,
    /// Branch that work starts from.
    pub base_branch: Option<String>,
    /// Branch with the work.
    pub head_branch: Option<String>,
    /// How the repository is used.
    pub mode: Option<VcsMode>,
}

/// Parameters that the work asks for and those that are missing.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContractStatus {
    /// Names that must be set.
    pub required_keys: Option<Vec<String>>,
    /// Names of these that are not set.
    pub missing_keys: Option<Vec<String>>,
}
