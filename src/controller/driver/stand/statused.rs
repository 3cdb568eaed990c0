//! What the statuses of all kinds have in common, so that one function can write them.

use jiff::Timestamp;
use serde::Serialize;

use crate::api::condition::Condition;
use crate::api::kind::Kind;
use crate::api::kinds::{
    Agent, AgentProvider, AgentProviderStatus, AgentStatus, ApprovalPolicy, ApprovalPolicyStatus,
    Artifact, ArtifactStatus, Budget, BudgetStatus, ImplementationSource,
    ImplementationSourceStatus, ImplementationSpec, ImplementationSpecStatus, Memory, MemoryStatus,
    Orchestration, OrchestrationStatus, Schedule, ScheduleStatus, SecretBinding,
    SecretBindingStatus, Signal, SignalDelivery, SignalDeliveryStatus, SignalStatus, Tool,
    ToolStatus, VersionControlProvider, VersionControlProviderStatus, Workspace, WorkspaceStatus,
};
use crate::controller::context::Thing;

/// A kind with the status that all kinds have.
pub(in crate::controller) trait Statused:
    Thing + Send + Sync + 'static
{
    /// The kind.
    const KIND: Kind;
    /// The type of its status.
    type Status: Clone + Default + Serialize + PartialEq + Send + Sync + 'static;

    /// Its status as it is stored.
    fn stored(&self) -> Option<&Self::Status>;

    /// The conditions of a status.
    fn conditions(status: &Self::Status) -> &[Condition];

    /// The generation that a status is about.
    fn observed_generation(status: &Self::Status) -> Option<i64>;

    /// Writes a phase, where the kind has one.
    fn mark(status: &mut Self::Status, phase: &str);

    /// Notes the time of a look that found something new, where the kind has a field for it.
    fn looked_at(status: &mut Self::Status, now: Timestamp);
}

macro_rules! statused {
    ($($kind:ident: $status:ident $(, phase $phase:ident)? $(, looked at $at:ident)?;)+) => {$(
        impl Statused for $kind {
            const KIND: Kind = Kind::$kind;
            type Status = $status;

            fn stored(&self) -> Option<&$status> {
                self.status.as_ref()
            }

            fn conditions(status: &$status) -> &[Condition] {
                status.conditions.as_deref().unwrap_or_default()
            }

            fn observed_generation(status: &$status) -> Option<i64> {
                status.observed_generation
            }

            fn mark(_status: &mut $status, _phase: &str) {
                $(_status.$phase = Some(_phase.to_owned());)?
            }

            fn looked_at(_status: &mut $status, _now: Timestamp) {
                $(_status.$at = Some(_now);)?
            }
        }
    )+};
}

statused! {
    Agent: AgentStatus;
    AgentProvider: AgentProviderStatus;
    ImplementationSpec: ImplementationSpecStatus;
    ImplementationSource: ImplementationSourceStatus;
    VersionControlProvider: VersionControlProviderStatus, looked at last_validated_at;
    Memory: MemoryStatus, looked at last_checked_at;
    ApprovalPolicy: ApprovalPolicyStatus, phase phase;
    Budget: BudgetStatus, phase phase;
    SecretBinding: SecretBindingStatus, phase phase;
    Signal: SignalStatus, phase phase;
    SignalDelivery: SignalDeliveryStatus, phase phase;
    Artifact: ArtifactStatus, phase phase;
    Tool: ToolStatus, phase phase;
    Schedule: ScheduleStatus, phase phase;
    Orchestration: OrchestrationStatus, phase phase;
    Workspace: WorkspaceStatus, phase phase;
}
