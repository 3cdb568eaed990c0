//! ToolRun.

use crate::api::kinds::ToolRunSpec;
use crate::api::object::cause::Causes;
use crate::api::validate::SPEC;
use crate::api::validate::shared::{check_parameters, check_ref};

pub(in crate::api::validate) fn check(causes: &mut Causes, spec: &ToolRunSpec) {
    check_ref(causes, &SPEC.field("toolRef"), &spec.tool_ref);
    check_parameters(causes, &SPEC.field("parameters"), spec.parameters.as_ref());
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::json;

    #[test]
    fn each_fault_of_a_tool_run_is_named() {
        for (row, spec, expected) in [
            (
                "right",
                json!({"toolRef": {"name": "lint"}, "parameters": {"a": ""}}),
                vec![],
            ),
            (
                "wrong",
                json!({"toolRef": {"name": "Lint"}, "parameters": {"a": "x".repeat(3000)}}),
                vec![
                    "spec.toolRef.name InvalidName",
                    "spec.parameters[a] ParameterValueTooLarge",
                ],
            ),
        ] {
            assert_eq!(brief(Kind::ToolRun, spec), expected, "{row}");
        }
    }
}
