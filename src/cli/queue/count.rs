//! The same numbers from the runs themselves. Pure.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use kube::ResourceExt;

use crate::api::condition::{ConditionType, Hindrance};
use crate::api::kinds::AgentRun;
use crate::cli::run::view::ended;
use crate::controller::load::{Figures, Load, Named, Ranked, Rest};

/// Scopes of one sort that are told one by one.
const TOP: usize = 20;

/// Who is in line, who runs and what is held back. A limit on repositories is known to the controllers only, so there are
/// none here.
pub(super) fn count(runs: &[AgentRun]) -> Figures {
    let mut cluster = Load::default();
    let mut namespaces: BTreeMap<String, Load> = BTreeMap::new();
    let mut agents: BTreeMap<(String, String), Load> = BTreeMap::new();
    for run in runs.iter().filter(|run| ended(run).is_none()) {
        let namespace = run.namespace().unwrap_or_default();
        let agent = (namespace.clone(), run.spec.agent_ref.name.clone());
        let of_namespace = namespaces.entry(namespace).or_default();
        let of_agent = agents.entry(agent).or_default();
        for load in [&mut cluster, of_namespace, of_agent] {
            take(load, run);
        }
    }
    let namespaces = namespaces.into_iter().map(|(name, load)| Named {
        namespace: None,
        name,
        load,
    });
    let agents = agents.into_iter().map(|((namespace, name), load)| Named {
        namespace: Some(namespace),
        name,
        load,
    });
    Figures {
        cluster,
        namespaces: ranked(namespaces.collect()),
        agents: ranked(agents.collect()),
        repositories: Ranked::default(),
    }
}

fn take(load: &mut Load, run: &AgentRun) {
    if run
        .status
        .as_ref()
        .is_some_and(|it| it.started_at.is_some())
    {
        load.running += 1;
        return;
    }
    let reason = held_back(run);
    if let Some(reason) = reason {
        *load.blocked.entry(reason.to_owned().into()).or_default() += 1;
    }
    if reason.is_none_or(Hindrance::names_capacity) {
        load.waiting += 1;
        let made = run.creation_timestamp().map(|made| made.0);
        let oldest = load.oldest_waiting_since.into_iter().chain(made).min();
        load.oldest_waiting_since = oldest;
    }
}

/// Why a run is held back, if it is.
pub(in crate::cli) fn held_back(run: &AgentRun) -> Option<&str> {
    let conditions = run.status.as_ref()?.conditions.as_ref()?;
    let mut all = conditions.iter();
    let blocked =
        all.find(|one| one.type_ == ConditionType::Blocked.as_str() && one.status == "True");
    blocked?.reason.as_deref()
}

fn ranked(mut all: Vec<Named>) -> Ranked {
    all.sort_by_key(|named| (Reverse(named.load.waiting), Reverse(named.load.running)));
    let others = all.split_off(all.len().min(TOP));
    Ranked {
        rest: Rest {
            scopes: others.len(),
            load: others
                .iter()
                .fold(Load::default(), |sum, named| sum.and(&named.load)),
        },
        top: all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn run(namespace: &str, made: &str, status: Value) -> AgentRun {
        serde_json::from_value(json!({
            "metadata": {"name": "r", "namespace": namespace, "creationTimestamp": made},
            "spec": {"agentRef": {"name": "coder"}, "runtime": {"type": "job"}},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn runs_are_in_line_at_work_or_held_back() {
        let (early, late) = ("2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z");
        let blocked = |reason: &str| json!({"conditions": [{"type": "Blocked", "status": "True", "reason": reason}]});
        let runs = [
            run("a", late, json!({})),
            run("a", early, blocked("ConcurrencyLimit")),
            run("a", early, blocked("MissingAgent")),
            run("b", early, json!({"phase": "Running", "startedAt": late})),
            run(
                "b",
                early,
                json!({"phase": "Succeeded", "startedAt": early}),
            ),
        ];
        let figures = count(&runs);
        let cluster = &figures.cluster;
        assert_eq!((cluster.waiting, cluster.running), (2, 1));
        assert_eq!(cluster.oldest_waiting_since, Some(early.parse().unwrap()));
        let held = [("ConcurrencyLimit", 1), ("MissingAgent", 1)];
        assert_eq!(
            cluster.blocked,
            held.map(|(why, many)| (why.into(), many)).into()
        );
        let names: Vec<&str> = figures
            .namespaces
            .top
            .iter()
            .map(|one| &*one.name)
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(figures.agents.top[1].namespace.as_deref(), Some("b"));
    }

    #[test]
    fn beyond_the_first_scopes_only_sums_are_told() {
        let made = "2026-01-01T10:00:00Z";
        let held =
            json!({"conditions": [{"type": "Blocked", "status": "True", "reason": "RateLimit"}]});
        let runs: Vec<AgentRun> = (0..25)
            .map(|n| run(&format!("n{n:02}"), made, held.clone()))
            .collect();
        let figures = count(&runs);
        assert_eq!(figures.namespaces.top.len(), TOP);
        let expected = Rest {
            scopes: 5,
            load: Load {
                waiting: 5,
                running: 0,
                blocked: [("RateLimit".into(), 5)].into(),
                oldest_waiting_since: Some(made.parse().unwrap()),
            },
        };
        assert_eq!(figures.namespaces.rest, expected);
    }
}
