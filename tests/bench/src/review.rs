//! Reviews as the API server sends them: the create of an AgentRun that is allowed, by `kubectl apply --server-side`.

use agents::api::{contract, kind::Kind};
use serde_json::{Value, json};

/// A review of about this many bytes. What makes it large is what makes real ones large: managed fields, parameters,
/// environment, and the words of the work itself.
pub fn of_size(size: usize) -> String {
    let spare = size.saturating_sub(with(&spec(0, "x")).len());
    // A third of the rest is structure, the rest is text.
    let entries = spare / 3 / with_one_more();
    let bare = with(&spec(entries, "")).len();
    let text: String = "words of work, "
        .chars()
        .cycle()
        .take(size.saturating_sub(bare).max(1))
        .collect();
    with(&spec(entries, &text))
}

/// What one more parameter costs, with its managed field.
fn with_one_more() -> usize {
    with(&spec(11, "")).len() - with(&spec(10, "")).len()
}

fn spec(entries: usize, text: &str) -> Value {
    let entries = entries.min(100); // a run takes no more parameters
    let parameters: serde_json::Map<String, Value> = (0..entries)
        .map(|entry| (format!("parameter{entry}"), json!("value of a parameter")))
        .collect();
    json!({
        "agentRef": {"name": "writer"},
        "implementation": {"inline": {"text": text}},
        "parameters": parameters,
        "runtime": {"type": "job"},
        "secrets": ["model-key"],
        "ttlSecondsAfterFinished": 86400,
        "workload": {
            "image": "registry.example/agents:1.2.3",
            "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        },
    })
}

fn with(spec: &Value) -> String {
    let (group, version) = (Kind::AgentRun.group(), contract::VERSION);
    let kind = json!({"group": group, "version": version, "kind": "AgentRun"});
    let resource = json!({"group": group, "version": version, "resource": "agentruns"});
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": "bench",
            "namespace": "bench",
            "operation": "CREATE",
            "userInfo": {"username": "bench", "groups": ["developers", "system:authenticated"]},
            "dryRun": false,
            "options": {"kind": "PatchOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl", "fieldValidation": "Strict"},
            "object": {
                "apiVersion": Kind::AgentRun.api_version(),
                "kind": "AgentRun",
                "metadata": {
                    "name": "bench",
                    "namespace": "bench",
                    "labels": {"team": "shop"},
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                    "managedFields": [{
                        "manager": "kubectl",
                        "operation": "Apply",
                        "apiVersion": Kind::AgentRun.api_version(),
                        "time": "2026-01-01T00:00:00Z",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:metadata": {"f:labels": {"f:team": {}}}, "f:spec": managed(spec)},
                    }],
                },
                "spec": spec,
            },
            "oldObject": null,
        },
    })
    .to_string()
}

/// The managed fields of a value.
fn managed(value: &Value) -> Value {
    let fields = value.as_object().into_iter().flatten();
    fields
        .map(|(name, value)| (format!("f:{name}"), managed(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_is_as_large_as_asked_for() {
        for size in [4 * 1024, 64 * 1024] {
            assert_eq!(of_size(size).len(), size);
        }
    }
}
