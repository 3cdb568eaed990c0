//! What all hooks of a configuration do together: whether every request finds its door, and as the rung means it.

use super::rule::{Request, matches, requests, some};
use super::{Check, Finding, policy};
use crate::api::contract::label;
use crate::api::registration::door::Door;
use crate::api::registration::hook::{Configuration, Hook};
use crate::api::registration::rung::{FailurePolicy, Rung, Territory};
use crate::api::registration::selector::{Labels, labels_of, selects};

/// A namespace like any other.
const NAMESPACE: &str = "default";

/// Looks at each door in each sort of namespace.
pub(super) fn look(configuration: &Configuration, rung: Rung, findings: &mut Vec<Finding>) {
    let doors = Door::ALL
        .into_iter()
        .filter(|door| door.mutates() == configuration.mutates);
    for door in doors {
        for territory in [Territory::Plain, Territory::Labelled] {
            let mut texts = vec![];
            let [agent_runs, tool_runs] = [label::AGENT_RUN, label::TOOL_RUN]
                .map(|sort| hooks(configuration, door, (territory, sort)));
            let passed = passed_by(&agent_runs, door).or_else(|| passed_by(&tool_runs, door));
            texts.extend(passed.map(|text| (Check::Coverage, text)));
            let meant = (rung, territory);
            texts.extend(drift(&agent_runs, door, meant).map(|text| (Check::Rung, text)));
            findings.extend(texts.into_iter().map(|(check, text)| Finding {
                check,
                hook: door.name(),
                text: format!("in {} namespaces {text}", word(territory)),
            }));
        }
    }
}

const fn word(territory: Territory) -> &'static str {
    match territory {
        Territory::Plain => "plain",
        Territory::Labelled => "labelled",
    }
}

/// The hooks that lead to the door in this sort of namespace, for objects of ours that carry out this sort of run.
fn hooks<'c>(
    configuration: &'c Configuration,
    door: Door,
    (territory, sort): (Territory, &str),
) -> Vec<&'c Hook> {
    let namespace = labels_of(NAMESPACE, territory);
    let object: Labels = [sort, label::RUN_UID]
        .map(|label| (label.to_owned(), "any".to_owned()))
        .into();
    let leads = |hook: &&Hook| {
        hook.path() == door.path()
            && selects(hook.namespaces.as_ref(), &namespace)
            && selects(hook.objects.as_ref(), &object)
    };
    configuration.hooks.iter().filter(leads).collect()
}

fn passed_by(hooks: &[&Hook], door: Door) -> Option<String> {
    let unasked = |request: Request<'_>| !hooks.iter().any(|hook| matches(hook, request));
    let unasked: Vec<String> = requests(door, unasked).collect();
    let door = door.path();
    (!unasked.is_empty()).then(|| format!("{door} is not asked about {}", some(&unasked)))
}

/// Where the API server would do other than the rung means. Nothing is said of what never waits: that has its own check.
fn drift(hooks: &[&Hook], door: Door, meant: (Rung, Territory)) -> Option<String> {
    let (rung, territory) = meant;
    let waits = Rung::ALL
        .into_iter()
        .any(|rung| door.failure_policy(rung, territory) == FailurePolicy::Fail);
    let live = hooks.iter().map(|hook| policy(hook)).max()?;
    let meant = door.failure_policy(rung, territory);
    (waits && live != meant).then(|| {
        format!(
            "failurePolicy is {}, but the rung {rung} means {}",
            live.as_str(),
            meant.as_str()
        )
    })
}
