//! OrchestrationRun.

use crate::api::kinds::OrchestrationRunSpec;
use crate::api::object::cause::Causes;
use crate::api::validate::SPEC;
use crate::api::validate::shared::{check_parameters, check_ref};

pub(in crate::api::validate) fn check(causes: &mut Causes, spec: &OrchestrationRunSpec) {
    check_ref(
        causes,
        &SPEC.field("orchestrationRef"),
        &spec.orchestration_ref,
    );
    check_parameters(causes, &SPEC.field("parameters"), spec.parameters.as_ref());
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::json;

    #[test]
    fn each_fault_of_an_orchestration_run_is_named() {
        for (row, spec, expected) in [
            (
                "right",
                json!({"orchestrationRef": {"name": "ship"}, "parameters": {"a": "b"}}),
                vec![],
            ),
            ("nothing", json!({}), vec!["spec Malformed"]),
            (
                "wrong",
                json!({"orchestrationRef": {"name": ""}, "parameters": {"": ""}}),
                vec![
                    "spec.orchestrationRef.name Required",
                    "spec.parameters[] ParameterKeyInvalid",
                ],
            ),
        ] {
            assert_eq!(brief(Kind::OrchestrationRun, spec), expected, "{row}");
        }
    }
}
