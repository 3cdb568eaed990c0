//! How the queue stands, in numbers.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::index::Index;
use super::load::{Figures, Load, Named, Ranked, Rest};
use super::scope::{Scope, Sort};

/// How it stands; of each sort of scope so many one by one.
pub(super) fn figures(index: &Index, most: usize) -> Figures {
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
    Figures {
        cluster: load(index, &Scope::Cluster),
        namespaces: ranked(Sort::Namespace),
        agents: ranked(Sort::Agent),
        repositories: ranked(Sort::Repository),
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
                .fold(Load::default(), |sum, load| sum.and(&load)),
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
    let held_back = index.held_back().get(scope).into_iter().flatten();
    Load {
        waiting: line.map_or(0, BTreeSet::len),
        running: index.running(scope),
        blocked: held_back
            .map(|(reason, count)| (Cow::Borrowed(*reason), *count))
            .collect(),
        oldest_waiting_since: first.map(|seat| seat.ticket.created),
    }
}
