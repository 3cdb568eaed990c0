//! What `kubectl get` shows: what an object is doing, why, and since when.
//!
//! The columns that operators know come first and keep their names; reason, times and age are ours.

use crate::api::kind::Kind;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceColumnDefinition as Column;

/// The columns of a kind, from left to right.
pub(super) fn of(kind: Kind) -> Vec<Column> {
    let mut columns = known(kind);
    match kind {
        Kind::AgentRun => {}
        Kind::OrchestrationRun | Kind::ToolRun => {
            columns.push(column(
                "Reason",
                "string",
                &condition("Succeeded", "reason"),
            ));
            columns.extend(run_times());
        }
        Kind::Agent
        | Kind::AgentProvider
        | Kind::ImplementationSpec
        | Kind::ImplementationSource
        | Kind::VersionControlProvider
        | Kind::Memory
        | Kind::Orchestration
        | Kind::Tool
        | Kind::ApprovalPolicy
        | Kind::Budget
        | Kind::SecretBinding
        | Kind::Signal
        | Kind::SignalDelivery
        | Kind::Schedule
        | Kind::Artifact
        | Kind::Workspace => columns.push(text("Reason", &condition("Ready", "reason"))),
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
