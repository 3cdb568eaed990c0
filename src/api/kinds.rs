//! The 19 kinds as Rust types, one file per kind; the CRDs are generated from them.
//!
//! A type says what an object may look like, never whether it makes sense: that is `validate`. Reading is tolerant of
//! everything that the schema admits. The twelve kinds outside the core group may lack `spec`; it then reads as the
//! default value of its type (`serde(default)` on the root, behind a `cfg_attr` because the derive of kube takes no
//! serde attribute by name). Numbers are 64 bits wide even where the schema says int32, because the API server does not
//! hold them to it. Times are `jiff::Timestamp`: the `Time` of k8s-openapi writes whole seconds only, so a
//! stored time with a fraction would change when written back, and times that are written once may not change.

pub mod agents;
pub mod approval_policy;
pub mod artifact;
pub mod budget;
pub mod orchestrations;
pub mod schedule;
pub mod secret_binding;
pub mod shared;
pub mod signals;
pub mod tools;
pub mod workspace;

pub use agents::agent::{Agent, AgentSpec, AgentStatus};
pub use agents::agent_provider::{AgentProvider, AgentProviderSpec, AgentProviderStatus};
pub use agents::agent_run::{AgentRun, AgentRunSpec, AgentRunStatus};
pub use agents::implementation_source::{
    ImplementationSource, ImplementationSourceSpec, ImplementationSourceStatus,
};
pub use agents::implementation_spec::{
    ImplementationSpec, ImplementationSpecSpec, ImplementationSpecStatus,
};
pub use agents::memory::{Memory, MemorySpec, MemoryStatus};
pub use agents::version_control_provider::{
    VersionControlProvider, VersionControlProviderSpec, VersionControlProviderStatus,
};
pub use approval_policy::{ApprovalPolicy, ApprovalPolicySpec, ApprovalPolicyStatus};
pub use artifact::{Artifact, ArtifactSpec, ArtifactStatus};
pub use budget::{Budget, BudgetSpec, BudgetStatus};
pub use orchestrations::orchestration::{Orchestration, OrchestrationSpec, OrchestrationStatus};
pub use orchestrations::orchestration_run::{
    OrchestrationRun, OrchestrationRunSpec, OrchestrationRunStatus,
};
pub use schedule::{Schedule, ScheduleSpec, ScheduleStatus};
pub use secret_binding::{SecretBinding, SecretBindingSpec, SecretBindingStatus};
pub use signals::signal::{Signal, SignalSpec, SignalStatus};
pub use signals::signal_delivery::{SignalDelivery, SignalDeliverySpec, SignalDeliveryStatus};
pub use tools::tool::{Tool, ToolSpec, ToolStatus};
pub use tools::tool_run::{ToolRun, ToolRunSpec, ToolRunStatus};
pub use workspace::{Workspace, WorkspaceSpec, WorkspaceStatus};

#[cfg(test)]
pub(crate) mod tests;
