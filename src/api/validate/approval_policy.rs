//! ApprovalPolicy. How decisions are made is free text, so only the subjects can be wrong.

use super::SPEC;
use super::shared::check_subjects;
use crate::api::kinds::ApprovalPolicySpec;
use crate::api::object::cause::Causes;

pub(super) fn check(causes: &mut Causes, spec: &ApprovalPolicySpec) {
    check_subjects(causes, &SPEC.field("subjects"), spec.subjects.as_ref());
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::json;

    #[test]
    fn each_fault_of_an_approval_policy_is_named() {
        for (row, spec, expected) in [
            ("nothing", json!({}), vec![]),
            (
                "right",
                json!({"mode": "manual", "subjects": [{"kind": "Agent", "name": "a"}], "more": 1}),
                vec![],
            ),
            (
                "wrong",
                json!({"subjects": [{"kind": "", "name": "", "namespace": "a.b"}]}),
                vec![
                    "spec.subjects[0].kind Required",
                    "spec.subjects[0].name Required",
                    "spec.subjects[0].namespace InvalidName",
                ],
            ),
        ] {
            assert_eq!(brief(Kind::ApprovalPolicy, spec), expected, "{row}");
        }
    }
}
