//! The policy on a run that is about to begin, with all that is known of what it refers to. Pure.

use std::sync::Arc;

use kube::ResourceExt;
use serde::Serialize;
use serde_json::Value;

use super::work::Found;
use crate::api::kind::Kind;
use crate::api::kinds::AgentRun;
use crate::api::object::cause::{FieldPath, Path};
use crate::api::policy::{
    AgentFacts, BindingFacts, Intake, MemoryFacts, SecretEntry, SecretWay, Surroundings, evaluate,
};
use crate::controller::kinds::plain::spent;
use crate::controller::policy::{Verdict, judge};

/// Judges a run. Its version control is not part of it: that is judged when it is resolved, since a run may go on
/// without.
pub(super) fn verdict(run: &AgentRun, found: &Found) -> Verdict {
    let around = Surroundings {
        agent: found
            .agent
            .as_deref()
            .map(|agent| Arc::new(AgentFacts::of(&json(agent)))),
        memory: found
            .memory
            .as_deref()
            .map(|memory| Arc::new(MemoryFacts::of(&json(memory)))),
        vcs: Vec::new(),
        tool: None,
        bindings: Some(bindings(found)),
    };
    judge(&found.policy, Kind::AgentRun, &json(run), &around)
}

/// Judges one Secret that a run would get besides those that it names itself.
pub(super) fn secret(run: &AgentRun, found: &Found, name: &str) -> Verdict {
    let agent = found
        .agent
        .as_deref()
        .map(|agent| AgentFacts::of(&json(agent)));
    let agent = agent.unwrap_or_default();
    let bindings = bindings(found);
    let namespace = run.namespace();
    let intake = Intake {
        secrets: vec![SecretEntry {
            at: FieldPath::from(&Path::root("spec").field("vcsRef")),
            name: name.to_owned(),
            // Whether the run goes on without it is for the caller to say.
            way: SecretWay::VersionControl { required: true },
        }],
        allowed_secrets: agent.secrets.iter().map(String::as_str).collect(),
        agent_name: Some(&run.spec.agent_ref.name),
        namespace: namespace.as_deref(),
        bindings: Some(&bindings),
        ..Intake::default()
    };
    Verdict::of(evaluate(&found.policy, &intake))
}

/// Why the run may not begin yet: a Budget that it is held to is used up.
pub(super) fn over_budget(found: &Found) -> Option<String> {
    let budgets = found
        .budgets
        .iter()
        .filter_map(|(_, budget)| budget.as_deref());
    let spent: Vec<_> = budgets.filter_map(spent).collect();
    (!spent.is_empty()).then(|| spent.join("; "))
}

fn bindings(found: &Found) -> Vec<Arc<BindingFacts>> {
    let bindings = found.bindings.iter();
    bindings
        .map(|binding| Arc::new(BindingFacts::of(&json(&**binding))))
        .collect()
}

/// An object of ours can always be written as JSON.
fn json(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
