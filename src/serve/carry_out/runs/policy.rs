//! What a submission is held to before anything is made: a Budget that is not used up, and a SecretBinding that allows its
//! secrets. The controllers and admission hold the run to the rest.

use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::kind::Kind;
use crate::api::kinds::shared::LocalRef;
use crate::api::kinds::{Budget, SecretBinding};
use crate::controller::spent;
use crate::serve::fault::{Fault, Reason};
use crate::serve::state::State;

/// What a run is held to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::serve) struct Policy {
    /// Budget that must not be used up; the run is held to it as well.
    #[serde(default)]
    budget_ref: Option<LocalRef>,
    /// SecretBinding that must allow the secrets of the run to its Agent.
    #[serde(default)]
    secret_binding_ref: Option<LocalRef>,
}

impl Policy {
    pub(super) fn budget(&self) -> Option<&str> {
        self.budget_ref.as_ref().map(|budget| budget.name.as_str())
    }
}

/// Refuses a run that its policy does not allow.
pub(super) async fn check(
    state: &State,
    namespace: &str,
    policy: &Policy,
    run: &Value,
) -> Result<(), Fault> {
    if let Some(name) = policy.budget() {
        let budgets = state.api(Kind::Budget, Some(namespace));
        let budget = budgets.get_opt(name).await?;
        let budget = budget.ok_or_else(|| Fault::not_found("Budget", namespace, name))?;
        // One that cannot be read is not used up as far as anyone knows; the controllers say what is wrong with it.
        let budget = budget.try_parse::<Budget>().ok();
        if let Some(why) = budget.as_ref().and_then(spent) {
            return Err(
                Fault::new(StatusCode::FORBIDDEN, Reason::BudgetExceeded, why)
                    .next("raise the limits of the Budget, or use another one"),
            );
        }
    }
    if let Some(binding) = &policy.secret_binding_ref {
        let name = binding.name.as_str();
        let bindings = state.api(Kind::SecretBinding, Some(namespace));
        let found = bindings.get_opt(name).await?;
        let found = found.ok_or_else(|| Fault::not_found("SecretBinding", namespace, name))?;
        let binding = found.try_parse::<SecretBinding>().ok();
        let refusal = match &binding {
            Some(binding) => refusal(binding, namespace, run),
            None => Some("it cannot be read".to_owned()),
        };
        if let Some(why) = refusal {
            let message = format!("SecretBinding {name} does not allow this run: {why}");
            let status = StatusCode::FORBIDDEN;
            return Err(Fault::new(status, Reason::SecretBindingRefused, message)
                .next("ask whoever keeps the SecretBinding, or leave the secrets out"));
        }
    }
    Ok(())
}

/// Why a binding does not allow the secrets of a run to its Agent.
fn refusal(binding: &SecretBinding, namespace: &str, run: &Value) -> Option<String> {
    let agent = run.pointer("/spec/agentRef/name").and_then(Value::as_str);
    let agent = agent.unwrap_or_default();
    let mut subjects = binding.spec.subjects.iter().flatten();
    let is_meant = subjects.any(|subject| {
        let elsewhere = subject
            .namespace
            .as_deref()
            .is_some_and(|of| of != namespace);
        subject.kind == Kind::Agent.as_str() && subject.name == agent && !elsewhere
    });
    if !is_meant {
        return Some(format!("Agent {agent} is not among its subjects"));
    }
    let secrets = run.pointer("/spec/secrets").and_then(Value::as_array);
    let secrets = secrets.into_iter().flatten().filter_map(Value::as_str);
    let allowed = binding.spec.allowed_secrets.as_deref().unwrap_or_default();
    let denied: Vec<_> = secrets
        .filter(|name| !allowed.iter().any(|known| known == name))
        .collect();
    (!denied.is_empty()).then(|| format!("secrets that it does not list: {}", denied.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_binding_allows_its_secrets_to_its_agents() {
        let binding = |subjects: Value| -> SecretBinding {
            serde_json::from_value(json!({
                "apiVersion": "security.proompteng.ai/v1alpha1", "kind": "SecretBinding", "metadata": {"name": "b"},
                "spec": {"subjects": subjects, "allowedSecrets": ["one"]},
            }))
            .unwrap()
        };
        let run =
            |secrets: Value| json!({"spec": {"agentRef": {"name": "coder"}, "secrets": secrets}});
        let coder = || binding(json!([{"kind": "Agent", "name": "coder"}]));
        for (row, binding, run, expected) in [
            ("its own", coder(), run(json!(["one"])), None),
            ("none", coder(), run(json!([])), None),
            ("another", coder(), run(json!(["one", "two"])), Some("two")),
            ("nobody", binding(json!([])), run(json!([])), Some("coder")),
            (
                "elsewhere",
                binding(json!([{"kind": "Agent", "name": "coder", "namespace": "other"}])),
                run(json!([])),
                Some("coder"),
            ),
        ] {
            let found = refusal(&binding, "here", &run);
            match expected {
                None => assert_eq!(found, None, "{row}"),
                Some(word) => assert!(found.is_some_and(|why| why.contains(word)), "{row}"),
            }
        }
    }
}
