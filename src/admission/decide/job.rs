//! Jobs of ours stay until their outcome is stored. Decided from the Job alone: it has the mark or it has not.

use crate::api::contract::{annotation, label};
use crate::api::object::cause::{Cause, Path, Reason};
use crate::api::policy::{Mode, Policy};
use crate::api::registration::EXEMPT_USERS;

use super::{Context, conclude};
use crate::admission::decision::{Decision, Finding, Rule};
use crate::admission::subject::Subject;

pub(super) fn decide(subject: &Subject<'_>, context: &Context<'_>, decision: &mut Decision) {
    if !loses_an_outcome(subject) {
        return;
    }
    let judge = |policy: &Policy| {
        vec![Finding {
            rule: Rule::JobDelete,
            mode: policy.job_delete,
            cause: not_recorded(),
        }]
    };
    conclude(subject, context, judge, decision);
}

/// Whether this deletes a Job of ours whose outcome is not stored, and not on behalf of the cluster itself, which only
/// clears up after its owner or its namespace.
fn loses_an_outcome(subject: &Subject<'_>) -> bool {
    let Some(job) = &subject.request.old_object else {
        return false;
    };
    let username = &*subject.user().username;
    let is_ours = job.metadata.label(label::RUN_UID).is_some();
    is_ours && !job.metadata.outcome_recorded() && !EXEMPT_USERS.contains(&username)
}

fn not_recorded() -> Cause {
    let metadata = Path::root("metadata");
    let annotations = metadata.field("annotations");
    Cause::new(
        &annotations.key(annotation::OUTCOME_RECORDED),
        Reason::OutcomeNotRecorded,
        "the outcome of this Job is not stored yet and would be lost; wait for its run to end, or delete the run instead",
    )
}

/// A deletion that goes through although the outcome is not stored: whoever looks for the Job wants to know.
pub fn goes_unrecorded(subject: &Subject<'_>, decision: &Decision) -> bool {
    let noticed = |mode: Mode| mode != Mode::Enforce;
    let mut findings = decision.findings.iter();
    loses_an_outcome(subject)
        && findings.any(|finding| finding.rule == Rule::JobDelete && noticed(finding.mode))
}
