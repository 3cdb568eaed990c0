//! The operator's policy on what an object brings in, and what a candidate policy would say instead.

use crate::api::kind::Kind;
use crate::api::policy::{self, Intake, Policy, evaluate, newly_broken};
use serde_json::Value;

use super::spec::Change;
use super::{Context, conclude};
use crate::admission::decision::{Decision, Finding, Rule};
use crate::admission::subject::Subject;

pub(super) fn decide(
    kind: Kind,
    subject: &Subject<'_>,
    context: &Context<'_>,
    change: &Change,
    decision: &mut Decision,
) {
    let judge = |policy: &Policy| broken(kind, change, context, policy);
    conclude(subject, context, judge, decision);
}

/// What the change breaks that was not broken before.
fn broken(kind: Kind, change: &Change, context: &Context<'_>, policy: &Policy) -> Vec<Finding> {
    let judge = |object: &Value| {
        let around = context.known.surroundings(kind, object);
        let intake = Intake::of(kind, object, &around, &policy.defaults);
        evaluate(policy, &intake)
    };
    let findings = judge(&change.object);
    let findings = match &change.old {
        Some(old) if !findings.is_empty() => newly_broken(findings, &judge(old)),
        Some(_) | None => findings,
    };
    told(findings)
}

/// What the policy finds, as findings of a decision.
pub(super) fn told(findings: Vec<policy::Finding>) -> Vec<Finding> {
    let findings = findings.into_iter();
    findings
        .map(
            |policy::Finding {
                 rule, mode, cause, ..
             }| Finding {
                rule: Rule::Policy(rule),
                mode,
                cause,
            },
        )
        .collect()
}
