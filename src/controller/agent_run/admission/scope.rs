//! What a limit is about.

use std::sync::Arc;

use super::Ticket;
use super::limits::{ByScope, Limits};
use crate::closed_labels;

closed_labels! {
    /// The sorts of scopes.
    pub(crate) enum Sort {
        /// The runs of one agent.
        Agent = "agent",
        /// The runs of one repository, in all namespaces.
        Repository = "repository",
        /// The runs of one namespace.
        Namespace = "namespace",
        /// All runs.
        Cluster = "cluster",
    }
}

/// One thing that runs are counted for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Scope {
    Agent(Arc<str>, Arc<str>),
    Repository(Arc<str>),
    Namespace(Arc<str>),
    Cluster,
}

impl Scope {
    /// What a run counts for, in the order in which limits are looked at.
    pub(super) fn all_of(ticket: &Ticket) -> Arc<[Self]> {
        let namespace: Arc<str> = ticket.key.namespace.as_str().into();
        let repository = ticket.repository.as_deref();
        let repository = repository.map(|name| Self::Repository(name.into()));
        [Self::Agent(
            Arc::clone(&namespace),
            ticket.agent.as_str().into(),
        )]
        .into_iter()
        .chain(repository)
        .chain([Self::Namespace(namespace), Self::Cluster])
        .collect()
    }

    pub(super) fn sort(&self) -> Sort {
        match self {
            Self::Agent(..) => Sort::Agent,
            Self::Repository(_) => Sort::Repository,
            Self::Namespace(_) => Sort::Namespace,
            Self::Cluster => Sort::Cluster,
        }
    }

    /// Most runs at a time.
    pub(super) fn at_a_time(&self, limits: &Limits) -> Option<usize> {
        match self {
            Self::Agent(..) => Some(limits.agent),
            Self::Namespace(_) => Some(limits.namespace),
            Self::Cluster => Some(limits.cluster),
            Self::Repository(name) => limits.of_repository(name),
        }
    }

    /// Most runs that begin within the window.
    pub(super) fn in_window(&self, limits: &Limits) -> Option<usize> {
        limits.rate.of(self.sort())
    }

    /// Most runs that wait.
    pub(super) fn in_line(&self, limits: &Limits) -> Option<usize> {
        limits.queue.of(self.sort())
    }

    /// So many runs do something, for people.
    pub(super) fn runs(&self, count: usize, (one, many): (&str, &str)) -> String {
        let of = match self {
            Self::Cluster => String::new(),
            Self::Namespace(_) => " of the namespace".to_owned(),
            Self::Agent(_, name) => format!(" of agent {name}"),
            Self::Repository(name) => format!(" of repository {name}"),
        };
        match count {
            1 => format!("1 run{of} {one}"),
            count => format!("{count} runs{of} {many}"),
        }
    }
}

impl ByScope {
    /// Zero is no limit, and there is none for an agent.
    fn of(self, sort: Sort) -> Option<usize> {
        let limit = match sort {
            Sort::Agent => 0,
            Sort::Namespace => self.namespace,
            Sort::Cluster => self.cluster,
            Sort::Repository => self.repository,
        };
        (limit > 0).then_some(limit)
    }
}
