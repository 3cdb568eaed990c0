//! Rules of a hook: what they match, as the API server reads them, and whether that is the business of its door.

use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;

use super::{Check, Say};
use crate::api::registration::door::Door;
use crate::api::registration::hook::Hook;

/// Most examples in one sentence.
const EXAMPLES: usize = 3;

/// A request as far as rules look at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    /// With its subresource, as in `agentruns/status`.
    pub(super) resource: &'a str,
    pub(super) operation: &'a str,
}

/// Whether one of the rules matches.
pub(super) fn matches(hook: &Hook, request: Request<'_>) -> bool {
    hook.rules.iter().any(|rule| rule_matches(rule, request))
}

fn rule_matches(rule: &RuleWithOperations, request: Request<'_>) -> bool {
    let lists = |list: &Option<Vec<String>>, wanted: &str| {
        list.iter()
            .flatten()
            .any(|given| given == "*" || given == wanted)
    };
    let resources = rule.resources.iter().flatten();
    lists(&rule.api_groups, request.group)
        && lists(&rule.api_versions, request.version)
        && lists(&rule.operations, request.operation)
        && resources
            .map(String::as_str)
            .any(|pattern| resource_matches(pattern, request.resource))
}

/// `*` is every resource but no subresource, `*/*` is everything, `pods/*` and `*/status` are what they look like.
fn resource_matches(pattern: &str, resource: &str) -> bool {
    let (name, part) = split(resource);
    let (wanted_name, wanted_part) = split(pattern);
    if pattern == "*/*" {
        return true;
    }
    let names = wanted_name == "*" || wanted_name == name;
    names && (wanted_part == part || (wanted_part == "*" && !part.is_empty()))
}

fn split(resource: &str) -> (&str, &str) {
    resource.split_once('/').unwrap_or((resource, ""))
}

/// Whether the hook matches a request that belongs to the door.
pub(super) fn reaches(hook: &Hook, door: Door) -> bool {
    requests(door, |request| matches(hook, request))
        .next()
        .is_some()
}

/// Requests that belong to the door and are wanted, in words.
pub(super) fn requests(
    door: Door,
    wanted: impl Fn(Request<'_>) -> bool,
) -> impl Iterator<Item = String> {
    let resources = door.resources().into_iter();
    resources
        .flat_map(move |(group, version, resource)| {
            let operations = door.operations().iter();
            operations.map(move |operation| (group, version, resource.clone(), operation.as_str()))
        })
        .filter(move |(group, version, resource, operation)| {
            wanted(Request {
                group,
                version,
                resource,
                operation,
            })
        })
        .map(|(group, _, resource, operation)| format!("{operation} of {resource} in {group}"))
}

/// The first few of a list, and how many more.
pub(super) fn some(all: &[String]) -> String {
    let shown = all[..all.len().min(EXAMPLES)].join(", ");
    match all.len().saturating_sub(EXAMPLES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// What the rules say besides what the door answers.
pub(super) fn look(hook: &Hook, door: Option<Door>, say: Say<'_>) {
    let wild = |list: &Option<Vec<String>>| list.iter().flatten().any(|word| word.contains('*'));
    if hook
        .rules
        .iter()
        .any(|rule| wild(&rule.api_groups) || wild(&rule.resources) || wild(&rule.operations))
    {
        say(
            Check::Wildcard,
            "a rule has `*`; groups, resources and operations should be named".to_owned(),
        );
    }
    let Some(door) = door else { return };
    let foreign: Vec<String> = hook
        .rules
        .iter()
        .flat_map(|rule| foreign(rule, door))
        .collect();
    if !foreign.is_empty() {
        let (door, foreign) = (door.path(), some(&foreign));
        say(Check::Foreign, format!("{door} is not for {foreign}"));
    }
    if hook.objects.is_none() && door.objects().is_some() {
        say(
            Check::Foreign,
            "objectSelector is missing; Jobs of others are matched as well".to_owned(),
        );
    }
}

/// Named resources and operations that the door is not for.
fn foreign(rule: &RuleWithOperations, door: Door) -> Vec<String> {
    let ours = door.resources();
    let mut found = Vec::new();
    for group in rule.api_groups.iter().flatten() {
        for resource in rule.resources.iter().flatten() {
            let named = !group.contains('*') && !resource.contains('*');
            let known = ours
                .iter()
                .any(|(known, _, name)| known == group && name == resource);
            if named && !known {
                found.push(format!("{resource} in {}", shown(group)));
            }
        }
    }
    for operation in rule.operations.iter().flatten() {
        let known = door
            .operations()
            .iter()
            .any(|known| known.as_str() == operation);
        if operation != "*" && !known {
            found.push(format!("the operation {operation}"));
        }
    }
    found
}

/// The group as people call it.
pub(super) fn shown(group: &str) -> &str {
    if group.is_empty() {
        "the core group"
    } else {
        group
    }
}
