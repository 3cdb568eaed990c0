//! SecretBinding.

use super::SPEC;
use super::shared::{check_names, check_subjects};
use crate::api::kinds::SecretBindingSpec;
use crate::api::object::cause::{Causes, Reason};

pub(super) fn check(causes: &mut Causes, spec: &SecretBindingSpec) {
    let subjects = SPEC.field("subjects");
    if spec.subjects.as_ref().is_none_or(Vec::is_empty) {
        causes.add(
            &subjects,
            Reason::MissingSubjects,
            "the binding is for nobody; name at least one subject",
        );
    }
    let secrets = SPEC.field("allowedSecrets");
    if spec.allowed_secrets.as_ref().is_none_or(Vec::is_empty) {
        causes.add(
            &secrets,
            Reason::MissingSecrets,
            "the binding allows nothing; name at least one Secret",
        );
    }
    check_subjects(causes, &subjects, spec.subjects.as_ref());
    check_names(causes, &secrets, spec.allowed_secrets.as_ref());
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::json;

    #[test]
    fn each_fault_of_a_binding_is_named() {
        let agent = json!([{"kind": "Agent", "name": "coder", "namespace": "team"}]);
        for (row, spec, expected) in [
            (
                "right",
                json!({"subjects": agent, "allowedSecrets": ["key"]}),
                vec![],
            ),
            (
                "nothing",
                json!({}),
                vec![
                    "spec.subjects MissingSubjects",
                    "spec.allowedSecrets MissingSecrets",
                ],
            ),
            (
                "names are compared exactly, so a pattern is none",
                json!({"subjects": agent, "allowedSecrets": ["key-*"]}),
                vec!["spec.allowedSecrets[0] InvalidName"],
            ),
        ] {
            assert_eq!(brief(Kind::SecretBinding, spec), expected, "{row}");
        }
    }
}
