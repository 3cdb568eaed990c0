//! Webhooks of others: whether one is in the way of what we store, or of what runs need.

use crate::api::contract::{GROUP, VERSION};
use crate::api::kind::Kind;
use crate::api::registration::{self, Operation, asks_about, selects};
use crate::cli::doctor::check::Verdict::{self, Bad, Good, Warning};
use crate::cli::doctor::check::{seen, some};
use crate::cli::doctor::facts::{self, Facts, Labels, Other, Probe};

/// The hook that the API server names in a refusal.
pub(super) fn who(words: &str) -> Option<&str> {
    words.split("webhook \"").nth(1)?.split('"').next()
}

/// Whether a hook is one of ours, by its name.
pub(super) fn is_ours(hook: &str) -> bool {
    hook.ends_with(&format!(".{GROUP}"))
}

/// Judges the entries of others.
pub(super) fn others(facts: &Facts) -> Verdict {
    seen(&facts.others, |others| {
        let labels = facts.namespaces.as_ref().ok();
        let labels = labels.and_then(|all| all.get(&facts.namespace));
        let near = others.iter().filter(|other| is_near(other, labels));
        let (mut dead, mut touching) = (Vec::new(), Vec::new());
        for other in near {
            let Other {
                configuration,
                mutates,
                hook,
                endpoints,
            } = other;
            let fails = hook.failure_policy.as_deref() != Some("Ignore");
            let is_dead = matches!(endpoints, Some(Ok(0) | Err(facts::Unseen::Absent(_))));
            let name = format!("{} of {configuration}", hook.name);
            if fails && is_dead {
                let what = "is asked about what we store, and nobody answers behind its Service";
                dead.push(format!("{name} {what}"));
            } else if *mutates && asks_about_ours(hook) {
                touching.push(format!("{name} may change our objects"));
            }
        }
        if let Ok(Probe::Refused(words)) = &facts.probe
            && who(words).is_some_and(|hook| !is_ours(hook))
        {
            dead.push(words.clone());
        }
        match (dead.as_slice(), touching.as_slice()) {
            ([], []) => Good("none".to_owned()),
            ([], touching) => Warning(some(touching)),
            (dead, _) => Bad(some(dead)),
        }
    })
}

/// Whether it is asked about anything in our namespace that we store or that runs need.
fn is_near(other: &Other, labels: Option<&Labels>) -> bool {
    let hook = &other.hook;
    let here = labels.is_none_or(|labels| selects(hook.namespaces.as_ref(), labels));
    let asked = |group, resource, operations: &[Operation]| {
        let mut each = operations.iter();
        each.any(|operation| asks_about(hook, (group, "v1", resource, *operation)))
    };
    here && (asks_about_ours(hook)
        || asked("batch", "jobs", &Operation::ALL)
        || asked("", "pods", &[Operation::Create]))
}

fn asks_about_ours(hook: &registration::Hook) -> bool {
    Kind::ALL.into_iter().any(|kind| {
        let status = format!("{}/status", kind.plural());
        let asked =
            |resource, operation| asks_about(hook, (kind.group(), VERSION, resource, operation));
        asked(kind.plural(), Operation::Create)
            || asked(kind.plural(), Operation::Update)
            || asked(&status, Operation::Update)
    })
}
