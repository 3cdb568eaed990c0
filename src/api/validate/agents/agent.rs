//! Agent.

use crate::api::kinds::AgentSpec;
use crate::api::object::cause::Causes;
use crate::api::validate::SPEC;
use crate::api::validate::shared::{
    check_env, check_names, check_not_negative, check_optional_ref, check_ref, check_retries,
    check_system_prompt,
};

pub(in crate::api::validate) fn check(causes: &mut Causes, spec: &AgentSpec) {
    check_ref(causes, &SPEC.field("providerRef"), &spec.provider_ref);
    check_optional_ref(causes, &SPEC.field("memoryRef"), spec.memory_ref.as_ref());
    check_optional_ref(causes, &SPEC.field("vcsRef"), spec.vcs_ref.as_ref());
    check_env(causes, &SPEC.field("env"), spec.env.as_ref());
    if let Some(security) = &spec.security {
        let at = SPEC.field("security");
        let accounts = security.allowed_service_accounts.as_ref();
        check_names(causes, &at.field("allowedServiceAccounts"), accounts);
        check_names(
            causes,
            &at.field("allowedSecrets"),
            security.allowed_secrets.as_ref(),
        );
    }
    if let Some(defaults) = &spec.defaults {
        let at = SPEC.field("defaults");
        check_not_negative(
            causes,
            &at.field("timeoutSeconds"),
            defaults.timeout_seconds,
        );
        check_retries(causes, &at.field("retryLimit"), defaults.retry_limit);
        let (prompt, reference) = (
            defaults.system_prompt.as_ref(),
            defaults.system_prompt_ref.as_ref(),
        );
        check_system_prompt(causes, &at, prompt, reference);
    }
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::json;

    #[test]
    fn each_fault_of_an_agent_is_named() {
        for (row, spec, expected) in [
            (
                "the least",
                json!({"providerRef": {"name": "codex"}}),
                vec![],
            ),
            (
                "everything right",
                json!({
                    "providerRef": {"name": "codex"}, "memoryRef": {"name": "m"}, "vcsRef": {"name": "v"},
                    "config": {"model": "large"}, "env": [{"name": "A_B", "value": ""}],
                    "security": {"allowedSecrets": ["a"], "allowedServiceAccounts": ["b"]},
                    "defaults": {"timeoutSeconds": 0, "retryLimit": 3, "systemPrompt": "be kind"},
                }),
                vec![],
            ),
            (
                "no provider",
                json!({"providerRef": {"name": " "}}),
                vec!["spec.providerRef.name Required"],
            ),
            (
                "everything wrong",
                json!({
                    "providerRef": {"name": "A"}, "memoryRef": {"name": ""}, "vcsRef": {"name": "a_b"},
                    "env": [{"name": "1A", "value": ""}, {"name": "B", "value": ""}, {"name": "B", "value": ""}],
                    "security": {"allowedSecrets": ["*"], "allowedServiceAccounts": [""]},
                    "defaults": {
                        "timeoutSeconds": -1, "retryLimit": -1, "systemPrompt": "x",
                        "systemPromptRef": {"kind": "Secret", "name": "", "key": ""},
                    },
                }),
                vec![
                    "spec.providerRef.name InvalidName",
                    "spec.memoryRef.name Required",
                    "spec.vcsRef.name InvalidName",
                    "spec.env[0].name InvalidEnvName",
                    "spec.env[2].name Duplicate",
                    "spec.security.allowedServiceAccounts[0] Required",
                    "spec.security.allowedSecrets[0] InvalidName",
                    "spec.defaults.timeoutSeconds OutOfRange",
                    "spec.defaults.retryLimit OutOfRange",
                    "spec.defaults.systemPromptRef SystemPromptConflict",
                    "spec.defaults.systemPromptRef.name InvalidSystemPromptRef",
                    "spec.defaults.systemPromptRef.key InvalidSystemPromptRef",
                ],
            ),
        ] {
            assert_eq!(brief(Kind::Agent, spec), expected, "{row}");
        }
    }
}
