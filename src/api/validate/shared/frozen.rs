//! What may not change once a run has started: it would say something else than what is being carried out.

use serde_json::Value;

use crate::api::cause::{Causes, Path, Reason};
use crate::api::kind::Kind;
use crate::api::phase::Phase;

/// Fields of the spec that are fixed once the run has started.
const fn fields(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::AgentRun => &[
            "agentRef",
            "implementationSpecRef",
            "implementation",
            "runtime",
            "workflow",
            "secrets",
            "systemPrompt",
            "systemPromptRef",
            "vcsRef",
            "memoryRef",
        ],
        Kind::OrchestrationRun => &["orchestrationRef"],
        Kind::ToolRun => &["toolRef"],
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
        | Kind::Workspace => &[],
    }
}

pub(in crate::api::validate) fn check(causes: &mut Causes, kind: Kind, old: &Value, new: &Value) {
    if !has_started(old) {
        return;
    }
    let spec = Path::root("spec");
    for field in fields(kind) {
        let (before, after) = (value(old, field), value(new, field));
        if before != after {
            causes.add(
                &spec.field(field),
                Reason::SpecImmutableViolation,
                "the run has started, so this cannot change any more; create a new run instead",
            );
        }
    }
}

/// Accepted, or in any phase but Pending.
fn has_started(object: &Value) -> bool {
    let phase = object
        .pointer("/status/phase")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let conditions = object
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let accepted = |entry: &Value| entry["type"] == "Accepted" && entry["status"] == "True";
    let accepted = conditions.is_some_and(|list| list.iter().any(accepted));
    accepted || !(phase.is_empty() || phase == Phase::Pending.as_str())
}

/// The value to compare: null is absent, and the order of secrets means nothing.
fn value(object: &Value, field: &str) -> Option<Value> {
    let value = object
        .get("spec")?
        .get(field)
        .filter(|value| !value.is_null())?;
    if field != "secrets" {
        return Some(value.clone());
    }
    let list = value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let mut names: Vec<&str> = list
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    names.sort_unstable();
    (!names.is_empty()).then(|| names.into())
}
