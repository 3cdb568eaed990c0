//! Short ways to write an object and to read its faults.

use serde_json::{Value, json};

use crate::api::kind::Kind;
use crate::api::validate::validate;

/// An object with this spec.
pub(in crate::api::validate) fn with_spec(spec: Value) -> Value {
    json!({"metadata": {"name": "x"}, "spec": spec})
}

/// A valid AgentRun of type job with these fields added or replaced.
pub(in crate::api::validate) fn agent_run(more: Value) -> Value {
    let mut spec = json!({
        "agentRef": {"name": "coder"}, "implementationSpecRef": {"name": "task"}, "runtime": {"type": "job"},
    });
    for (name, value) in more.as_object().unwrap() {
        spec[name] = value.clone();
    }
    with_spec(spec)
}

/// Place, reason and message of each fault of a new object.
pub(in crate::api::validate) fn faults(kind: Kind, object: &Value) -> Vec<String> {
    faults_of_update(kind, object, None)
}

/// Same for an update.
pub(in crate::api::validate) fn faults_of_update(
    kind: Kind,
    object: &Value,
    old: Option<&Value>,
) -> Vec<String> {
    validate(kind, object, old)
        .into_iter()
        .map(|cause| format!("{} {}: {}", cause.field, cause.reason, cause.message))
        .collect()
}

/// Place and reason only, for tables in which the sentence is checked elsewhere.
pub(in crate::api::validate) fn brief(kind: Kind, spec: Value) -> Vec<String> {
    validate(kind, &with_spec(spec), None)
        .into_iter()
        .map(|cause| format!("{} {}", cause.field, cause.reason))
        .collect()
}
