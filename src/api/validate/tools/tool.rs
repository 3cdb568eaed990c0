//! Tool.

use crate::api::kinds::ToolSpec;
use crate::api::object::cause::{Causes, Reason};
use crate::api::text::names::Form;
use crate::api::validate::SPEC;
use crate::api::validate::shared::{
    check_env, check_image, check_name, check_not_negative, check_path,
};

pub(in crate::api::validate) fn check(causes: &mut Causes, spec: &ToolSpec) {
    let image_at = SPEC.field("image");
    match spec.image.as_deref().map(str::trim) {
        None | Some("") => {
            causes.add(
                &image_at,
                Reason::MissingImage,
                "there is no image; name the one that holds the tool",
            );
        }
        Some(image) => check_image(causes, &image_at, image),
    }
    let given = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    if !given(&spec.command) && !given(&spec.args) {
        let message = "there is neither command nor args; say what the tool runs";
        causes.add(&SPEC.field("command"), Reason::MissingCommand, message);
    }
    check_env(causes, &SPEC.field("env"), spec.env.as_ref());
    if let Some(account) = &spec.service_account {
        check_name(
            causes,
            &SPEC.field("serviceAccount"),
            account,
            Form::DnsSubdomain,
        );
    }
    if let Some(directory) = &spec.working_dir {
        check_path(causes, &SPEC.field("workingDir"), directory);
    }
    check_not_negative(causes, &SPEC.field("timeoutSeconds"), spec.timeout_seconds);
    let ttl = spec.ttl_seconds_after_finished;
    check_not_negative(causes, &SPEC.field("ttlSecondsAfterFinished"), ttl);
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::json;

    #[test]
    fn each_fault_of_a_tool_is_named() {
        for (row, spec, expected) in [
            (
                "with a command",
                json!({"image": "a", "command": ["b"]}),
                vec![],
            ),
            (
                "with arguments",
                json!({"image": "a", "args": ["b"], "workingDir": "/w", "serviceAccount": "s"}),
                vec![],
            ),
            (
                "nothing",
                json!({}),
                vec!["spec.image MissingImage", "spec.command MissingCommand"],
            ),
            (
                "everything wrong",
                json!({
                    "image": "a b", "command": [], "args": [], "env": [{"name": "=", "value": ""}],
                    "serviceAccount": "S", "workingDir": "w", "timeoutSeconds": -1, "ttlSecondsAfterFinished": -1,
                }),
                vec![
                    "spec.image InvalidImage",
                    "spec.command MissingCommand",
                    "spec.env[0].name InvalidEnvName",
                    "spec.serviceAccount InvalidName",
                    "spec.workingDir InvalidPath",
                    "spec.timeoutSeconds OutOfRange",
                    "spec.ttlSecondsAfterFinished OutOfRange",
                ],
            ),
        ] {
            assert_eq!(brief(Kind::Tool, spec), expected, "{row}");
        }
    }
}
