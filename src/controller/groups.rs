//! Which kinds are worked on, and where. Operators switch them in three groups, each with namespaces of its own.

use crate::api::contract::env;
use crate::api::kind::Kind;
use crate::cluster::{Namespaces, Scope};
use crate::kit::config::{Invalid, Reader, Setting, Settings};

/// Kinds that are switched on and off together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Agents, their runs, and what runs refer to. Always on.
    Agents,
    /// Orchestrations and their runs.
    Orchestrations,
    /// All other kinds.
    Supporting,
}

/// Where the kinds of each group are worked on; nowhere if the group is off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    pub(super) agents: Namespaces,
    pub(super) orchestrations: Option<Namespaces>,
    pub(super) supporting: Option<Namespaces>,
}

impl Settings for Groups {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let agents = reader.value(
            Setting::new(
                env::NAMESPACES,
                "Namespaces whose objects are reconciled; * for all needs a ClusterRole",
            )
            .or("agents"),
        );
        let mut group = |enabled, on, namespaces, place| {
            let enabled = reader.value(Setting::<bool>::new(enabled, on).or("true"));
            let namespaces = reader.optional(Setting::<Namespaces>::new(namespaces, place));
            Ok((enabled?, namespaces?))
        };
        let orchestrations = group(
            env::ORCHESTRATIONS_ENABLED,
            "Whether Orchestrations and OrchestrationRuns are reconciled",
            env::ORCHESTRATIONS_NAMESPACES,
            "Namespaces in which they are; those of the agents if not set",
        );
        let supporting = group(
            env::SUPPORTING_ENABLED,
            "Whether Tools, ToolRuns, Schedules, Workspaces and all kinds besides agents and orchestrations are reconciled",
            env::SUPPORTING_NAMESPACES,
            "Namespaces in which they are; those of the agents if not set",
        );
        let agents: Namespaces = agents?;
        let place = |(enabled, own): (bool, Option<Namespaces>)| {
            enabled.then(|| own.unwrap_or_else(|| agents.clone()))
        };
        Ok(Self {
            orchestrations: place(orchestrations?),
            supporting: place(supporting?),
            agents,
        })
    }
}

impl Groups {
    /// Where objects of a group are worked on, one entry for each watch.
    pub(super) fn scopes(&self, group: Group) -> Vec<Scope> {
        let namespaces = match group {
            Group::Agents => Some(&self.agents),
            Group::Orchestrations => self.orchestrations.as_ref(),
            Group::Supporting => self.supporting.as_ref(),
        };
        namespaces.map(Namespaces::scopes).unwrap_or_default()
    }

    /// Where objects of a kind are followed: wherever a group works that reads them.
    pub(super) fn followed(&self, kind: Kind) -> Vec<Scope> {
        let readers = readers(kind).iter();
        let mut scopes: Vec<_> = readers.flat_map(|group| self.scopes(*group)).collect();
        if scopes.contains(&Scope::Cluster) {
            return vec![Scope::Cluster];
        }
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }
}

/// The group that a kind is worked on with.
pub(super) const fn group(kind: Kind) -> Group {
    match kind {
        Kind::Agent
        | Kind::AgentRun
        | Kind::AgentProvider
        | Kind::ImplementationSpec
        | Kind::ImplementationSource
        | Kind::VersionControlProvider
        | Kind::Memory => Group::Agents,
        Kind::Orchestration | Kind::OrchestrationRun => Group::Orchestrations,
        Kind::Tool
        | Kind::ToolRun
        | Kind::ApprovalPolicy
        | Kind::Budget
        | Kind::SecretBinding
        | Kind::Signal
        | Kind::SignalDelivery
        | Kind::Schedule
        | Kind::Artifact
        | Kind::Workspace => Group::Supporting,
    }
}

/// The groups that read a kind. Nobody does anything about sources of implementations yet.
const fn readers(kind: Kind) -> &'static [Group] {
    match kind {
        Kind::ImplementationSource => &[],
        Kind::Agent
        | Kind::AgentProvider
        | Kind::ImplementationSpec
        | Kind::VersionControlProvider
        | Kind::Memory => &[Group::Agents],
        // Steps make runs, and schedules copy them.
        Kind::AgentRun => &[Group::Agents, Group::Orchestrations, Group::Supporting],
        Kind::OrchestrationRun => &[Group::Orchestrations, Group::Supporting],
        Kind::Orchestration => &[Group::Orchestrations],
        // Steps make calls, and wait for approvals and signals.
        Kind::ToolRun | Kind::ApprovalPolicy | Kind::SignalDelivery => {
            &[Group::Orchestrations, Group::Supporting]
        }
        // Runs are held to them, whether or not anybody says how they stand.
        Kind::Budget | Kind::SecretBinding => &[Group::Agents, Group::Supporting],
        Kind::Tool | Kind::Signal | Kind::Schedule | Kind::Artifact | Kind::Workspace => {
            &[Group::Supporting]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(names: &[&str]) -> Namespaces {
        Namespaces::Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_kind_is_followed_wherever_it_is_read() {
        let names = |groups: &Groups, kind| {
            let scopes = groups.followed(kind);
            let scopes: Vec<_> = scopes.iter().map(Scope::to_string).collect();
            scopes.join(" and ")
        };
        let apart = Groups {
            agents: some(&["a", "b"]),
            orchestrations: Some(some(&["b", "c"])),
            supporting: None,
        };
        assert_eq!(
            names(&apart, Kind::Agent),
            "in namespace a and in namespace b"
        );
        assert_eq!(names(&apart, Kind::Tool), "", "its group is off");
        assert_eq!(
            names(&apart, Kind::Budget),
            "in namespace a and in namespace b",
            "runs are held to it"
        );
        assert_eq!(
            names(&apart, Kind::OrchestrationRun),
            "in namespace b and in namespace c"
        );
        let wide = Groups {
            supporting: Some(Namespaces::All),
            ..apart
        };
        assert_eq!(names(&wide, Kind::Budget), "in all namespaces");
        assert_eq!(wide.scopes(Group::Orchestrations).len(), 2);
    }

    #[test]
    fn a_kind_is_read_by_the_group_that_works_on_it() {
        for kind in Kind::ALL {
            let readers = readers(kind);
            assert!(
                readers.is_empty() || readers.contains(&group(kind)),
                "{kind}"
            );
        }
    }
}
