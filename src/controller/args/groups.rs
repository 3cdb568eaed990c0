//! Which kinds are worked on, and where. Operators switch them in three groups, each with namespaces of its own.

use crate::api::contract::env;
use crate::api::kind::Kind;
use crate::cluster::{Namespaces, Rights, Scope};
use crate::kit::config::{Invalid, Reader, Setting, Settings};

/// Kinds that are switched on and off together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::controller) enum Group {
    /// Agents, their runs, and what runs refer to.
    Agents,
    /// Orchestrations and their runs.
    Orchestrations,
    /// All other kinds.
    Supporting,
}

/// Where the kinds of each group are worked on; nowhere if the group is off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::controller) struct Groups {
    pub(in crate::controller) agents: Option<Namespaces>,
    pub(in crate::controller) orchestrations: Option<Namespaces>,
    pub(in crate::controller) supporting: Option<Namespaces>,
    /// A kind that is neither worked on nor read, so that it need not even be installed.
    pub(in crate::controller) left_out: Option<Kind>,
}

impl Settings for Groups {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let enabled = reader.value(
            Setting::<bool>::new(
                env::ENABLED,
                "Whether Agents, AgentRuns and what they refer to are reconciled",
            )
            .or("true"),
        );
        let agents = Rights::read(
            reader,
            "Namespaces whose objects are reconciled; * for all needs JANGAR_RBAC_CLUSTER_SCOPED and a ClusterRole",
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
        let (agents, rights) = agents?;
        let place = |(enabled, own): (bool, Option<Namespaces>)| {
            enabled.then(|| own.unwrap_or_else(|| agents.clone()))
        };
        let groups = Self {
            orchestrations: place(orchestrations?),
            supporting: place(supporting?),
            agents: place((enabled?, None)),
            left_out: None,
        };
        groups.check(rights, reader)
    }
}

impl Groups {
    /// Refuses what cannot work: nothing at all, or all namespaces without the rights for that.
    fn check(self, rights: Rights, reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let groups = [
            (&self.agents, env::NAMESPACES),
            (&self.orchestrations, env::ORCHESTRATIONS_NAMESPACES),
            (&self.supporting, env::SUPPORTING_NAMESPACES),
        ];
        if groups.iter().all(|(namespaces, _)| namespaces.is_none()) {
            let complaint = "nothing is left to do; set at least one of the three groups to true";
            return Err(reader.contradiction(env::ENABLED, complaint));
        }
        for (namespaces, variable) in groups {
            if let Some(namespaces) = namespaces {
                rights.suffice(variable, namespaces, reader)?;
            }
        }
        Ok(self)
    }

    /// Where objects of a group are worked on, one entry for each watch.
    pub(in crate::controller) fn scopes(&self, group: Group) -> Vec<Scope> {
        let namespaces = match group {
            Group::Agents => self.agents.as_ref(),
            Group::Orchestrations => self.orchestrations.as_ref(),
            Group::Supporting => self.supporting.as_ref(),
        };
        namespaces.map(Namespaces::scopes).unwrap_or_default()
    }

    /// Where objects of a kind are worked on, one entry for each watch.
    pub(in crate::controller) fn worked_on(&self, kind: Kind) -> Vec<Scope> {
        match self.left_out == Some(kind) {
            true => Vec::new(),
            false => self.scopes(group(kind)),
        }
    }

    /// Where objects of a kind are followed: wherever a group works that reads them.
    pub(in crate::controller) fn followed(&self, kind: Kind) -> Vec<Scope> {
        if self.left_out == Some(kind) {
            return Vec::new();
        }
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
pub(in crate::controller) const fn group(kind: Kind) -> Group {
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

/// The groups that read a kind.
const fn readers(kind: Kind) -> &'static [Group] {
    match kind {
        Kind::Agent
        | Kind::AgentProvider
        | Kind::ImplementationSpec
        | Kind::ImplementationSource
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
    use crate::kit::config::Flags;

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
            agents: Some(some(&["a", "b"])),
            orchestrations: Some(some(&["b", "c"])),
            supporting: None,
            left_out: Some(Kind::Memory),
        };
        assert_eq!(
            names(&apart, Kind::Agent),
            "in namespace a and in namespace b"
        );
        assert_eq!(names(&apart, Kind::Tool), "", "its group is off");
        assert_eq!(names(&apart, Kind::Memory), "", "it is left out");
        assert_eq!(apart.worked_on(Kind::Memory), []);
        assert_eq!(apart.worked_on(Kind::Agent).len(), 2);
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

    fn read(environment: &[(&str, &str)]) -> Result<Groups, String> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment = environment.iter().map(own).collect();
        let read = Flags::<Groups>::default().resolve(environment);
        read.map(|(groups, _)| groups)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn all_namespaces_need_rights_in_the_whole_cluster() {
        let all = (env::NAMESPACES, "*");
        let error = read(&[all]).unwrap_err();
        assert!(
            error.contains(
                "JANGAR_AGENTS_CONTROLLER_NAMESPACES: `*` needs JANGAR_RBAC_CLUSTER_SCOPED=true"
            ),
            "{error}"
        );
        let error = read(&[(env::SUPPORTING_NAMESPACES, "*")]).unwrap_err();
        assert!(
            error.contains("JANGAR_SUPPORTING_CONTROLLER_NAMESPACES: `*` needs"),
            "{error}"
        );
        let groups = read(&[all, ("JANGAR_RBAC_CLUSTER_SCOPED", "true")]).unwrap();
        assert_eq!(groups.agents, Some(Namespaces::All));
        assert_eq!(groups.supporting, Some(Namespaces::All));
    }

    #[test]
    fn a_program_with_nothing_to_do_does_not_start() {
        let off = [
            (env::ENABLED, "false"),
            (env::ORCHESTRATIONS_ENABLED, "0"),
            (env::SUPPORTING_ENABLED, "no"),
        ];
        let error = read(&off).unwrap_err();
        assert!(error.contains("nothing is left to do"), "{error}");
        let groups = read(&off[..2]).unwrap();
        assert_eq!((groups.agents, groups.orchestrations), (None, None));
        assert_eq!(groups.supporting, Some(some(&["agents"])));
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
