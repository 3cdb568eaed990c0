//! Reading is tolerant of what the API server stores.

pub(crate) mod fixtures;

use super::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn read<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap()
}

#[test]
fn an_object_without_spec_reads_as_the_default_spec() {
    let bare = json!({ "metadata": { "name": "bare" } });
    assert_eq!(
        read::<Orchestration>(&bare).spec,
        OrchestrationSpec::default()
    );
    assert_eq!(
        read::<OrchestrationRun>(&bare).spec,
        OrchestrationRunSpec::default()
    );
    assert_eq!(read::<Tool>(&bare).spec, ToolSpec::default());
    assert_eq!(read::<ToolRun>(&bare).spec, ToolRunSpec::default());
    assert_eq!(
        read::<ApprovalPolicy>(&bare).spec,
        ApprovalPolicySpec::default()
    );
    assert_eq!(read::<Budget>(&bare).spec, BudgetSpec::default());
    assert_eq!(
        read::<SecretBinding>(&bare).spec,
        SecretBindingSpec::default()
    );
    assert_eq!(read::<Signal>(&bare).spec, SignalSpec::default());
    assert_eq!(
        read::<SignalDelivery>(&bare).spec,
        SignalDeliverySpec::default()
    );
    assert_eq!(read::<Schedule>(&bare).spec, ScheduleSpec::default());
    assert_eq!(read::<Artifact>(&bare).spec, ArtifactSpec::default());
    assert_eq!(read::<Workspace>(&bare).spec, WorkspaceSpec::default());
}

#[test]
fn a_core_object_without_spec_is_refused() {
    let bare = json!({ "metadata": { "name": "bare" } });
    let error = serde_json::from_value::<Agent>(bare).unwrap_err();
    assert_eq!(error.to_string(), "missing field `spec`");
}

#[test]
fn a_number_beyond_32_bits_is_read() {
    let tool: Tool =
        read(&json!({ "metadata": {}, "spec": { "timeoutSeconds": 3_000_000_000_i64 } }));
    assert_eq!(tool.spec.timeout_seconds, Some(3_000_000_000));
}

#[test]
fn fractions_of_a_second_survive() {
    let written = json!({ "startedAt": "2026-02-08T10:00:00.123456Z" });
    let status: AgentRunStatus = read(&written);
    assert_eq!(serde_json::to_value(status).unwrap(), written);
}

#[test]
fn what_is_left_out_is_not_written() {
    let empty = serde_json::to_value(AgentRunStatus::default()).unwrap();
    assert_eq!(empty, json!({}));
    let step = serde_json::to_value(orchestrations::orchestration::Step::default()).unwrap();
    assert_eq!(step, json!({ "name": "", "kind": "" }));
}
