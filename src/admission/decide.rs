//! From what a review is about to what is decided: the dispatch table.
//!
//! Pure: no look at a clock, a file or the network; whatever counts comes in with the [`Context`]. Each file below is one
//! group of rules.

mod clean;
mod job;
mod policy;
mod spec;
mod status;
mod trace;

pub use job::goes_unrecorded;

use crate::api::policy::{Mode, Policy};
use crate::api::registration::rung::Rung;
use jiff::Timestamp;

use crate::admission::decision::{Decision, Finding, Rule, differences};
use crate::admission::in_force::InForce;
use crate::admission::known::Known;
use crate::admission::review::Request;
use crate::admission::subject::{Subject, Target};

/// What the operator set beside the policy.
#[derive(Clone, Debug, Default)]
pub struct Stance {
    /// How far the webhook has been rolled out.
    pub rung: Rung,
    /// Users and groups who restore statuses from a backup; the status contract is not theirs.
    pub restorers: Vec<String>,
}

impl Stance {
    /// What a mode means on this rung: below the rungs that refuse, less than it says.
    fn cap(&self, mode: Mode) -> Mode {
        let most = match self.rung {
            Rung::Audit => Mode::Audit,
            Rung::Warn => Mode::Warn,
            Rung::Deny | Rung::FailLabelled | Rung::Fail => Mode::Enforce,
        };
        mode.min(most)
    }
}

/// Everything that a decision depends on beside the review.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The policies.
    pub in_force: &'a InForce,
    /// The objects of the cluster.
    pub known: &'a Known,
    /// What else the operator set.
    pub stance: &'a Stance,
    /// The time.
    pub now: Timestamp,
    /// The trace that the review is part of.
    pub traceparent: Option<&'a str>,
}

/// Decides about a review that rules are about.
pub fn decide(subject: &Subject<'_>, context: &Context<'_>) -> Decision {
    let mut decision = Decision::default();
    if let Some(cause) = subject.contradiction() {
        decision.find(
            Rule::Subject,
            context.stance.cap(Mode::Enforce),
            Some(cause),
        );
        return decision;
    }
    match subject.target {
        Target::Spec(kind) => spec::decide(kind, subject, context, &mut decision),
        Target::Status(kind) => status::decide(kind, subject, context, &mut decision),
        Target::Job => job::decide(subject, context, &mut decision),
    }
    decision
}

/// Notes what the policy in force finds, and what a candidate would find instead.
fn conclude(
    subject: &Subject<'_>,
    context: &Context<'_>,
    judge: impl Fn(&Policy) -> Vec<Finding>,
    decision: &mut Decision,
) {
    let InForce { active, candidate } = context.in_force;
    let found = judge(&active.policy);
    let capped = found.iter().map(|finding| Finding {
        mode: context.stance.cap(finding.mode),
        ..finding.clone()
    });
    decision.findings.extend(capped);
    // Compared once per request.
    let is_last = decision.is_last_word(subject.door);
    if let Some(candidate) = candidate.as_ref().filter(|_| is_last) {
        decision.differences = differences(&found, &judge(&candidate.policy));
    }
}

/// Decides about a review that no rule is about: the configuration sends more than it should, which is no reason to
/// stand in anyone's way.
pub fn let_through(request: &Request<'_>) -> Decision {
    let quoted = crate::api::object::cause::quoted;
    Decision::noting(format!(
        "agents-webhook has no rule about {} of {} here and let it through; its configuration sends it by mistake",
        quoted(&request.operation),
        quoted(&request.resource.resource),
    ))
}
