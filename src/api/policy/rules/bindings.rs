//! What SecretBindings give to an Agent.
//!
//! An Agent that some binding names may use what the bindings give; one that none names is free, unless the operator
//! requires a binding. What the operator gives to every run needs none.

use std::sync::Arc;

use super::Report;
use crate::api::object::cause::{Path, Reason, quoted};
use crate::api::policy::{BindingFacts, Intake, Rule, SecretEntry, SecretWay};

pub(super) fn judge(report: &mut Report<'_>, intake: &Intake<'_>) {
    let (Some(agent), Some(bindings)) = (intake.agent_name, intake.bindings) else {
        return;
    };
    let is_bound = |entry: &&SecretEntry| {
        entry.way != SecretWay::OperatorCredentials && !report.is_blocked(entry)
    };
    let bound: Vec<&SecretEntry> = intake.secrets.iter().filter(is_bound).collect();
    let bindings = bindings.iter().map(Arc::as_ref);
    let naming: Vec<&BindingFacts> = bindings
        .filter(|binding| names_agent(binding, agent, intake.namespace))
        .collect();
    if !naming.is_empty() {
        judge_by(report, &naming, &bound, agent);
    } else if report.policy.require_secret_binding && !bound.is_empty() {
        let spec = Path::root("spec");
        let message = format!(
            "secrets are used, but no SecretBinding names Agent {}; create one with the Agent as subject",
            quoted(agent)
        );
        let at = (&spec.field("agentRef")).into();
        // One fault for all of them, and one more secret makes it another.
        let names: Vec<&str> = bound.iter().map(|entry| entry.name.as_str()).collect();
        report.judging(&names.join(","));
        report.add(
            Rule::SecretBindings,
            at,
            Reason::SecretBindingMissing,
            message,
        );
    }
}

fn judge_by(
    report: &mut Report<'_>,
    naming: &[&BindingFacts],
    bound: &[&SecretEntry],
    agent: &str,
) {
    let given = |name: &String| naming.iter().any(|binding| binding.secrets.contains(name));
    for entry in bound.iter().filter(|entry| !given(&entry.name)) {
        let message = format!(
            "no SecretBinding gives secret {} to Agent {}; add it to one that names the Agent",
            quoted(&entry.name),
            quoted(agent)
        );
        report.add_secret(
            Rule::SecretBindings,
            entry,
            Reason::SecretNotAllowed,
            message,
        );
    }
}

/// Namespaces are compared only where both sides have one.
fn names_agent(binding: &BindingFacts, agent: &str, namespace: Option<&str>) -> bool {
    binding.agents.iter().any(|(name, home)| {
        let elsewhere = match (home.as_deref(), namespace) {
            (Some(subject), Some(run)) => subject != run,
            (None, _) | (_, None) => false,
        };
        name == agent && !elsewhere
    })
}
