//! Workspace: a claim that the API server would take.

use super::SPEC;
use super::shared::{Quantity, check_name, check_not_negative, check_quantity};
use crate::api::kinds::WorkspaceSpec;
use crate::api::object::cause::{Causes, Path, Reason, not_one_of};
use crate::api::text::names::Form;

/// Access modes that Kubernetes knows.
const MODES: [&str; 4] = [
    "ReadWriteOnce",
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOncePod",
];

pub(super) fn check(causes: &mut Causes, spec: &WorkspaceSpec) {
    let size_at = SPEC.field("size");
    match spec.size.as_deref().map(str::trim) {
        None | Some("") => {
            causes.add(
                &size_at,
                Reason::MissingSize,
                "there is no size; write one, e.g. 10Gi",
            );
        }
        Some(size) => {
            if check_quantity(causes, &size_at, size) == Some(Quantity::ZERO) {
                causes.add(
                    &size_at,
                    Reason::OutOfRange,
                    "a workspace of size 0 holds nothing; write e.g. 10Gi",
                );
            }
        }
    }
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    check_modes(causes, &SPEC.field("accessModes"), modes);
    check_not_negative(causes, &SPEC.field("ttlSeconds"), spec.ttl_seconds);
    if let Some(class) = spec
        .storage_class_name
        .as_ref()
        .filter(|class| !class.is_empty())
    {
        check_name(
            causes,
            &SPEC.field("storageClassName"),
            class,
            Form::DnsSubdomain,
        );
    }
}

fn check_modes(causes: &mut Causes, at: &Path<'_>, modes: &[String]) {
    for (index, mode) in modes.iter().enumerate() {
        if !MODES.contains(&mode.as_str()) {
            causes.add(
                &at.index(index),
                Reason::InvalidAccessMode,
                not_one_of(mode, &MODES),
            );
        }
    }
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        let message = "ReadWriteOncePod excludes all other modes; use it alone or not at all";
        causes.add(at, Reason::InvalidAccessMode, message);
    }
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::{brief, faults, with_spec};
    use serde_json::json;

    #[test]
    fn each_fault_of_a_workspace_is_named() {
        for (row, spec, expected) in [
            ("the least", json!({"size": "1Gi"}), vec![]),
            (
                "everything right",
                json!({"size": "1Gi", "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "ttlSeconds": 0, "storageClassName": ""}),
                vec![],
            ),
            ("no size", json!({}), vec!["spec.size MissingSize"]),
            (
                "size 0",
                json!({"size": "0Gi"}),
                vec!["spec.size OutOfRange"],
            ),
            (
                "everything wrong",
                json!({"size": "big", "accessModes": ["RWO", "ReadWriteOncePod"], "ttlSeconds": -1, "storageClassName": "A"}),
                vec![
                    "spec.size InvalidQuantity",
                    "spec.accessModes[0] InvalidAccessMode",
                    "spec.accessModes InvalidAccessMode",
                    "spec.ttlSeconds OutOfRange",
                    "spec.storageClassName InvalidName",
                ],
            ),
        ] {
            assert_eq!(brief(Kind::Workspace, spec), expected, "{row}");
        }
    }

    #[test]
    fn a_slip_in_a_mode_is_recognised() {
        assert_eq!(
            faults(
                Kind::Workspace,
                &with_spec(json!({"size": "1Gi", "accessModes": ["ReadWriteonce"]}))
            ),
            [
                "spec.accessModes[0] InvalidAccessMode: \"ReadWriteonce\" is not known; did you mean \"ReadWriteOnce\"? allowed: \"ReadWriteOnce\", \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOncePod\""
            ]
        );
    }
}
