//! The part of `docs/controller.md` that says what the controllers must be able to do.

use std::collections::BTreeMap;

use agents::api::contract::env;
use agents::cluster::{Need, Scope};
use agents::controller::{Config, needs};
use agents::kit::config::Flags;

use super::bind_parts;

/// Where a right is needed: the namespace that stands for it here, and how people call it.
const PLACES: [(&str, &str); 4] = [
    ("agents", "agents"),
    ("orchestrations", "orchestrations"),
    ("supporting", "supporting kinds"),
    ("lease", "the lease"),
];

#[test]
fn the_document_of_the_controllers_shows_every_right_that_they_need() {
    let variables = [
        (env::NAMESPACES, "agents"),
        (env::ORCHESTRATIONS_NAMESPACES, "orchestrations"),
        (env::SUPPORTING_NAMESPACES, "supporting"),
        (env::POD_NAMESPACE, "lease"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (config, _) = Flags::<Config>::default()
        .resolve(variables.into())
        .expect("settings that can be used");
    bind_parts("docs/controller.md", &[("rights", table(&needs(&config)))]);
}

/// One line for the resources of a place with which the same is done.
fn table(needs: &[Need]) -> String {
    let mut text =
        "| In the namespaces of | Group | Resources | Verbs |\n|---|---|---|---|\n".to_owned();
    for (namespace, place) in PLACES {
        let here = Scope::Namespace(namespace.to_owned());
        let mut verbs: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for need in needs.iter().filter(|need| need.scope == here) {
            let known = verbs.entry((need.group, &need.resource)).or_default();
            let new = need.verbs.iter().filter(|verb| !known.contains(verb));
            let new: Vec<_> = new.copied().collect();
            known.extend(new);
        }
        let mut lines: BTreeMap<(&str, Vec<&str>), Vec<String>> = BTreeMap::new();
        for ((group, resource), verbs) in verbs {
            let same = lines.entry((group, verbs)).or_default();
            same.push(format!("`{resource}`"));
        }
        for ((group, verbs), resources) in lines {
            let group = if group.is_empty() { "core" } else { group };
            text += &format!(
                "| {place} | `{group}` | {} | {} |\n",
                resources.join(", "),
                verbs.join(", ")
            );
        }
    }
    text
}
