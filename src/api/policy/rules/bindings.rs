//! What SecretBindings give to an Agent.
//!
//! An Agent that some binding names may use what the bindings give; one that none names is free, unless the operator
//! requires a binding. What the operator gives to every run needs none.

use super::Report;
use crate::api::cause::{Path, Reason, quoted};
use crate::api::kinds::SecretBinding;
use crate::api::policy::{Intake, Rule, SecretEntry, SecretWay};

pub(super) fn judge(report: &mut Report<'_>, intake: &Intake<'_>) {
    let Some(agent) = intake.agent_name else {
        return;
    };
    let is_bound = |entry: &&SecretEntry| entry.way != SecretWay::OperatorCredentials;
    let bound: Vec<&SecretEntry> = intake.secrets.iter().filter(is_bound).collect();
    let names_agent = |binding: &&SecretBinding| names_agent(binding, agent, intake.namespace);
    let naming: Vec<&SecretBinding> = intake.bindings.iter().filter(names_agent).collect();
    if !naming.is_empty() {
        judge_by(report, &naming, &bound, agent);
    } else if report.policy.require_secret_binding && !bound.is_empty() {
        let spec = Path::root("spec");
        let message = format!(
            "secrets are used, but no SecretBinding names Agent {}; create one with the Agent as subject",
            quoted(agent)
        );
        let at = (&spec.field("agentRef")).into();
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
    naming: &[&SecretBinding],
    bound: &[&SecretEntry],
    agent: &str,
) {
    let given = |name: &String| {
        let mut lists = naming
            .iter()
            .filter_map(|binding| binding.spec.allowed_secrets.as_ref());
        lists.any(|list| list.contains(name))
    };
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
fn names_agent(binding: &SecretBinding, agent: &str, namespace: Option<&str>) -> bool {
    let subjects = binding.spec.subjects.as_deref().unwrap_or_default();
    subjects.iter().any(|subject| {
        let elsewhere = match (subject.namespace.as_deref(), namespace) {
            (Some(subject), Some(run)) => subject != run,
            (None, _) | (_, None) => false,
        };
        subject.kind == "Agent" && subject.name == agent && !elsewhere
    })
}
