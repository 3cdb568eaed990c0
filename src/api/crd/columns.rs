//! What `kubectl get` shows: what an object is doing, why, and since when.
//!
//! The columns that operators know come first and keep their names; reason, times and age are ours. A run says when it
//! started and ended, anything else since when it is ready or not.

use crate::api::kind::Kind;
use crate::api::phase;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceColumnDefinition as Column;

/// The columns of a kind, from left to right.
pub(super) fn of(kind: Kind) -> Vec<Column> {
    let mut columns = known(kind);
    if !phase::is_run(kind) {
        columns.push(text("Reason", &condition("Ready", "reason")));
        let flipped = condition("Ready", "lastTransitionTime");
        columns.push(column("Since", "date", &flipped));
    } else if kind != Kind::AgentRun {
        columns.push(text("Reason", &condition("Succeeded", "reason")));
        columns.extend(run_times());
    }
    columns.push(column("Age", "date", ".metadata.creationTimestamp"));
    columns
}

/// The columns that operators know.
fn known(kind: Kind) -> Vec<Column> {
    let ready = || text("Ready", &condition("Ready", "status"));
    let phase = || text("Phase", ".status.phase");
    match kind {
        Kind::Agent => vec![ready(), text("Provider", ".spec.providerRef.name")],
        Kind::AgentRun => agent_run(),
        Kind::AgentProvider => vec![ready()],
        Kind::ImplementationSpec => vec![
            ready(),
            text("Source", ".spec.source.provider"),
            column("Updated", "date", ".status.syncedAt"),
        ],
        Kind::ImplementationSource => vec![
            ready(),
            text("Provider", ".spec.provider"),
            column("LastSync", "date", ".status.lastSyncedAt"),
        ],
        Kind::VersionControlProvider => vec![ready(), text("Provider", ".spec.provider")],
        Kind::Memory => vec![
            ready(),
            text("Type", ".spec.type"),
            column("Default", "boolean", ".spec.default"),
        ],
        Kind::Orchestration => vec![phase(), text("Entrypoint", ".spec.entrypoint")],
        Kind::OrchestrationRun => vec![
            phase(),
            text("Orchestration", ".spec.orchestrationRef.name"),
            text("RunId", ".status.runId"),
        ],
        Kind::Tool => vec![phase(), text("Image", ".spec.image")],
        Kind::ToolRun => vec![phase(), text("Tool", ".spec.toolRef.name")],
        Kind::ApprovalPolicy => vec![phase(), text("Mode", ".spec.mode")],
        Kind::Budget | Kind::SecretBinding | Kind::Signal => vec![phase()],
        Kind::SignalDelivery => vec![phase(), text("Signal", ".spec.signalRef.name")],
        Kind::Schedule => vec![phase(), text("Cron", ".spec.cron")],
        Kind::Artifact => vec![phase(), text("URI", ".status.uri")],
        Kind::Workspace => vec![phase(), text("Volume", ".status.volumeName")],
    }
}

/// A run has all that there is to say, in the order that operators know.
fn agent_run() -> Vec<Column> {
    let mut columns = vec![
        text("Phase", ".status.phase"),
        text("Agent", ".spec.agentRef.name"),
        text("Succeeded", &condition("Succeeded", "status")),
        text("Reason", &condition("Succeeded", "reason")),
    ];
    columns.extend(run_times());
    columns.push(text("Runtime", ".spec.runtime.type"));
    columns
}

fn run_times() -> [Column; 2] {
    [
        column("StartTime", "date", ".status.startedAt"),
        column("CompletionTime", "date", ".status.finishedAt"),
    ]
}

fn condition(type_: &str, field: &str) -> String {
    format!(r#".status.conditions[?(@.type=="{type_}")].{field}"#)
}

fn text(name: &str, json_path: &str) -> Column {
    column(name, "string", json_path)
}

fn column(name: &str, type_: &str, json_path: &str) -> Column {
    Column {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: json_path.to_owned(),
        ..Column::default()
    }
}
