//! The operator's policy on what an object brings in, and what a candidate policy would say instead.

use agents::api::kind::Kind;
use agents::api::policy::{Finding, Intake, Policy, evaluate, newly_broken};
use serde_json::Value;

use super::Context;
use super::spec::Change;
use crate::decision::{Decision, Rule};
use crate::policy::differences;
use crate::subject::{Door, Subject};

pub(super) fn decide(
    kind: Kind,
    subject: &Subject<'_>,
    context: &Context<'_>,
    change: &Change,
    decision: &mut Decision,
) {
    let active = broken(kind, change, context, &context.in_force.active.policy);
    // Once per request is enough, on the object as it would be stored.
    if subject.door == Door::Validate
        && let Some(candidate) = &context.in_force.candidate
    {
        let candidate = broken(kind, change, context, &candidate.policy);
        decision.differences = differences(&active, &candidate);
    }
    for Finding { rule, mode, cause } in active {
        decision.find(Rule::Policy(rule), context.stance.cap(mode), Some(cause));
    }
}

/// What the change breaks that was not broken before.
fn broken(kind: Kind, change: &Change, context: &Context<'_>, policy: &Policy) -> Vec<Finding> {
    let judge = |object: &Value| {
        let around = context.lookup.surroundings(kind, object);
        let intake = Intake::of(kind, object, &around, &policy.defaults);
        evaluate(policy, &intake)
    };
    let findings = judge(&change.object);
    match &change.old {
        Some(old) if !findings.is_empty() => newly_broken(findings, &judge(old)),
        Some(_) | None => findings,
    }
}
