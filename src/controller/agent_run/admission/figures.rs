//! How the queue stands, in numbers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use super::index::Index;
use super::scope::{Scope, Sort};

/// How the queue stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Figures {
    pub(crate) cluster: Load,
    pub(crate) namespaces: Ranked,
    pub(crate) agents: Ranked,
    pub(crate) repositories: Ranked,
}

/// The runs of one scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Load {
    /// In line for a slot.
    pub(crate) waiting: usize,
    /// Begun and not ended.
    pub(crate) running: usize,
    /// Held back, by reason: by a limit, or by something that is missing.
    pub(crate) blocked: BTreeMap<&'static str, usize>,
    /// When the one was made that has been in line for longest.
    pub(crate) oldest_waiting_since: Option<Timestamp>,
}

/// Scopes of one sort: those with most to do one by one, the others together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ranked {
    pub(crate) top: Vec<Named>,
    pub(crate) rest: Rest,
}

/// A scope and its runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Named {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) load: Load,
}

/// Scopes that are not told one by one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Rest {
    pub(crate) scopes: usize,
    #[serde(flatten)]
    pub(crate) load: Load,
}

impl Load {
    /// With the runs of another scope.
    fn and(mut self, other: Self) -> Self {
        let Self {
            waiting,
            running,
            blocked,
            oldest_waiting_since,
        } = other;
        self.waiting += waiting;
        self.running += running;
        for (reason, count) in blocked {
            *self.blocked.entry(reason).or_default() += count;
        }
        let oldest = self.oldest_waiting_since.into_iter();
        self.oldest_waiting_since = oldest.chain(oldest_waiting_since).min();
        self
    }
}

impl Figures {
    pub(super) fn of(index: &Index, most: usize) -> Self {
        let scopes: BTreeSet<&Scope> = index
            .lines()
            .keys()
            .chain(index.runners().keys())
            .chain(index.held_back().keys())
            .collect();
        let ranked = |sort: Sort| {
            let of_sort = scopes.iter().copied().filter(|scope| scope.sort() == sort);
            rank(index, of_sort.collect(), most)
        };
        Self {
            cluster: load(index, &Scope::Cluster),
            namespaces: ranked(Sort::Namespace),
            agents: ranked(Sort::Agent),
            repositories: ranked(Sort::Repository),
        }
    }
}

fn rank(index: &Index, mut scopes: Vec<&Scope>, most: usize) -> Ranked {
    let waiting = |scope: &Scope| index.lines().get(scope).map_or(0, BTreeSet::len);
    let running = |scope: &Scope| index.running(scope);
    scopes.sort_by_cached_key(|scope| {
        (
            Reverse(waiting(scope)),
            Reverse(running(scope)),
            (*scope).clone(),
        )
    });
    let (top, others) = scopes.split_at(most.min(scopes.len()));
    Ranked {
        top: top.iter().filter_map(|scope| named(index, scope)).collect(),
        rest: Rest {
            scopes: others.len(),
            load: others
                .iter()
                .map(|scope| load(index, scope))
                .fold(Load::default(), Load::and),
        },
    }
}

fn named(index: &Index, scope: &Scope) -> Option<Named> {
    let (namespace, name) = match scope {
        Scope::Agent(namespace, name) => (Some(namespace), name),
        Scope::Repository(name) | Scope::Namespace(name) => (None, name),
        Scope::Cluster => return None,
    };
    Some(Named {
        namespace: namespace.map(|name| name.as_ref().to_owned()),
        name: name.as_ref().to_owned(),
        load: load(index, scope),
    })
}

fn load(index: &Index, scope: &Scope) -> Load {
    let line = index.lines().get(scope);
    let first = line.and_then(|line| line.first());
    Load {
        waiting: line.map_or(0, BTreeSet::len),
        running: index.running(scope),
        blocked: index.held_back().get(scope).cloned().unwrap_or_default(),
        oldest_waiting_since: first.map(|seat| seat.ticket.created),
    }
}
