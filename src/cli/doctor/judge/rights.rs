//! Who may do what.

use crate::cli::doctor::check::{Check, Verdict, When, none_of, seen};
use crate::cli::doctor::facts::{Component, Facts};

const HINT: &str = "grant them; the roles of the chart do (`rbac.create`), and the start of each program names what it lacks";
const LINK: &str = "docs/install.md#where-it-works";

/// About rights.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "rights-install",
        title: "you may install",
        hint: "install with the rights of a cluster administrator: kinds and webhook configurations belong to the whole cluster",
        link: "docs/install.md",
        when: When::Before,
        judge: |facts| {
            seen(&facts.installer, |lacking| {
                none_of(lacking, "nothing is lacking")
            })
        },
    },
    Check {
        id: "rights-controllers",
        title: "the controllers have their rights",
        hint: HINT,
        link: LINK,
        when: When::After,
        judge: |facts| of(facts, Component::Controllers),
    },
    Check {
        id: "rights-webhook",
        title: "the webhook has its rights",
        hint: HINT,
        link: LINK,
        when: When::After,
        judge: |facts| of(facts, Component::Webhook),
    },
    Check {
        id: "rights-control-plane",
        title: "the control plane has its rights",
        hint: HINT,
        link: LINK,
        when: When::After,
        judge: |facts| of(facts, Component::ControlPlane),
    },
];

fn of(facts: &Facts, component: Component) -> Verdict {
    match facts.lacking.get(&component) {
        Some(lacking) => seen(lacking, |lacking| none_of(lacking, "nothing is lacking")),
        None => Verdict::Beside("it is not installed here".to_owned()),
    }
}
