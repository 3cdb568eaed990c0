//! Every transition is a table row: what was stored, what is written, which rule refuses it.

use super::*;
use serde_json::json;

/// Messages with which the rules of a kind refuse a write of `new` over `old`.
fn refusals(kind: Kind, old: &Value, new: &Value) -> Vec<String> {
    let crd = definition(kind);
    let schema = serde_json::to_value(
        crd.spec.versions[0]
            .schema
            .as_ref()
            .unwrap()
            .open_api_v3_schema
            .as_ref()
            .unwrap(),
    )
    .unwrap();
    let object = |status: &Value| {
        let mut object = json!({ "metadata": { "name": "a" }, "spec": {
            "agentRef": { "name": "a" }, "implementationSpecRef": { "name": "a" }, "runtime": { "type": "job" },
        } });
        if !status.is_null() {
            object["status"] = status.clone();
        }
        object
    };
    match kube_cel::validate(&schema, &object(new), Some(&object(old))) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(|error| error.message.clone()).collect(),
    }
}

#[test]
fn a_run_keeps_its_history() {
    let r = refusals(
        Kind::AgentRun,
        &json!({"startedAt": "2026-01-01T00:00:00Z"}),
        &Value::Null,
    );
    println!("{r:?}");
    let r = refusals(
        Kind::AgentRun,
        &json!({"startedAt": "2026-01-01T00:00:00Z"}),
        &json!({"startedAt": "2026-01-01T00:00:00.000Z", "finishedAt": "2026-01-01T00:00:00.1Z"}),
    );
    println!("{r:?}");
    let r = refusals(
        Kind::AgentRun,
        &json!({"startedAt": "2026-01-01T00:00:00Z"}),
        &json!({"startedAt": "2026-01-01T00:00:00.000Z", "finishedAt": "2025-01-01T00:00:00.1Z"}),
    );
    println!("{r:?}");
}
