//! The 19 kinds as a value: group, kind, plural.
//!
//! A rule that applies to several kinds matches on [`Kind`] without a wildcard, so a new kind breaks every place that
//! forgot it.

use super::contract;
use std::fmt;

/// One of the 19 kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant is the kind it names")]
pub enum Kind {
    Agent,
    AgentRun,
    AgentProvider,
    ImplementationSpec,
    ImplementationSource,
    VersionControlProvider,
    Memory,
    Orchestration,
    OrchestrationRun,
    Tool,
    ToolRun,
    ApprovalPolicy,
    Budget,
    SecretBinding,
    Signal,
    SignalDelivery,
    Schedule,
    Artifact,
    Workspace,
}

impl Kind {
    /// All kinds, in the order of the reference.
    pub const ALL: [Self; 19] = [
        Self::Agent,
        Self::AgentRun,
        Self::AgentProvider,
        Self::ImplementationSpec,
        Self::ImplementationSource,
        Self::VersionControlProvider,
        Self::Memory,
        Self::Orchestration,
        Self::OrchestrationRun,
        Self::Tool,
        Self::ToolRun,
        Self::ApprovalPolicy,
        Self::Budget,
        Self::SecretBinding,
        Self::Signal,
        Self::SignalDelivery,
        Self::Schedule,
        Self::Artifact,
        Self::Workspace,
    ];

    /// The kind as manifests write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "Agent",
            Self::AgentRun => "AgentRun",
            Self::AgentProvider => "AgentProvider",
            Self::ImplementationSpec => "ImplementationSpec",
            Self::ImplementationSource => "ImplementationSource",
            Self::VersionControlProvider => "VersionControlProvider",
            Self::Memory => "Memory",
            Self::Orchestration => "Orchestration",
            Self::OrchestrationRun => "OrchestrationRun",
            Self::Tool => "Tool",
            Self::ToolRun => "ToolRun",
            Self::ApprovalPolicy => "ApprovalPolicy",
            Self::Budget => "Budget",
            Self::SecretBinding => "SecretBinding",
            Self::Signal => "Signal",
            Self::SignalDelivery => "SignalDelivery",
            Self::Schedule => "Schedule",
            Self::Artifact => "Artifact",
            Self::Workspace => "Workspace",
        }
    }

    /// The API group of the kind.
    pub const fn group(self) -> &'static str {
        match self {
            Self::Agent
            | Self::AgentRun
            | Self::AgentProvider
            | Self::ImplementationSpec
            | Self::ImplementationSource
            | Self::VersionControlProvider
            | Self::Memory => contract::GROUP,
            Self::Orchestration | Self::OrchestrationRun => "orchestration.proompteng.ai",
            Self::Tool | Self::ToolRun => "tools.proompteng.ai",
            Self::ApprovalPolicy => "approvals.proompteng.ai",
            Self::Budget => "budgets.proompteng.ai",
            Self::SecretBinding => "security.proompteng.ai",
            Self::Signal | Self::SignalDelivery => "signals.proompteng.ai",
            Self::Schedule => "schedules.proompteng.ai",
            Self::Artifact => "artifacts.proompteng.ai",
            Self::Workspace => "workspaces.proompteng.ai",
        }
    }

    /// Group and version, as `apiVersion` of an object has them.
    pub fn api_version(self) -> String {
        format!("{}/{}", self.group(), contract::VERSION)
    }

    /// The resource name of the kind in a request path.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Agent => "agents",
            Self::AgentRun => "agentruns",
            Self::AgentProvider => "agentproviders",
            Self::ImplementationSpec => "implementationspecs",
            Self::ImplementationSource => "implementationsources",
            Self::VersionControlProvider => "versioncontrolproviders",
            Self::Memory => "memories",
            Self::Orchestration => "orchestrations",
            Self::OrchestrationRun => "orchestrationruns",
            Self::Tool => "tools",
            Self::ToolRun => "toolruns",
            Self::ApprovalPolicy => "approvalpolicies",
            Self::Budget => "budgets",
            Self::SecretBinding => "secretbindings",
            Self::Signal => "signals",
            Self::SignalDelivery => "signaldeliveries",
            Self::Schedule => "schedules",
            Self::Artifact => "artifacts",
            Self::Workspace => "workspaces",
        }
    }

    /// The kind that a request path names, if it is one of ours.
    pub fn of_resource(group: &str, plural: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.group() == group && kind.plural() == plural)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_own_resource() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_resource(kind.group(), kind.plural()), Some(kind));
        }
    }

    #[test]
    fn a_resource_of_another_group_is_not_ours() {
        assert_eq!(Kind::of_resource("batch", "jobs"), None);
        assert_eq!(Kind::of_resource("tools.proompteng.ai", "agents"), None);
    }
}
