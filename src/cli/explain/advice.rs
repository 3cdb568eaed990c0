//! What to do about a run, by the word that says why it stands as it does.

use crate::api::condition::{Hindrance, Lifecycle};
use crate::api::custody::Class;
use crate::api::object::cause;
use crate::controller::is_of_policy;

const MAKE_IT: &str = "Make what is missing, or correct the name; the run goes on by itself then, and fails when \
    AGENTS_REFERENCE_GRACE_SECONDS of the controllers are over.";

/// What to do about a run that is held back.
pub(super) const fn of_blocked(reason: Hindrance) -> &'static str {
    match reason {
        Hindrance::ConcurrencyLimit => {
            "It begins by itself when another one ends; JANGAR_AGENTS_CONTROLLER_CONCURRENCY_NAMESPACE, _AGENT and _CLUSTER of \
             the controllers set how many may run at a time."
        }
        Hindrance::QueueLimit => {
            "It gets into line by itself when the line is shorter; JANGAR_AGENTS_CONTROLLER_QUEUE_NAMESPACE, _REPO and _CLUSTER of \
             the controllers set how many may wait."
        }
        Hindrance::RateLimit => {
            "It begins by itself when the window is over; JANGAR_AGENTS_CONTROLLER_RATE_NAMESPACE, _REPO, _CLUSTER and \
             _WINDOW_SECONDS of the controllers set how many may begin in which time."
        }
        Hindrance::Exceeded => {
            "It begins by itself when the Budget has room again: raise its limits, or wait until other runs have ended."
        }
        Hindrance::MissingAgent
        | Hindrance::MissingProvider
        | Hindrance::MissingImplementation
        | Hindrance::MissingMemory
        | Hindrance::MissingBudget
        | Hindrance::MissingVcsProvider
        | Hindrance::SecretNotFound
        | Hindrance::SecretKeyMissing
        | Hindrance::ConfigMapNotFound
        | Hindrance::ConfigMapKeyMissing
        | Hindrance::ClaimNotFound => MAKE_IT,
        Hindrance::JobNameConflict => {
            "Remove the other object, or submit the run under another name; it fails when AGENTS_REFERENCE_GRACE_SECONDS of the \
             controllers are over."
        }
        Hindrance::PodNotEnding => {
            "See whether its node is lost; only if it is certain that the pod does not work any more, delete it with --force."
        }
    }
}

/// What to do about a run that ended badly.
pub(super) fn of_end(
    lifecycle: Option<Lifecycle>,
    cause: Option<cause::Reason>,
) -> Option<&'static str> {
    match cause {
        Some(reason) if is_of_policy(reason) => {
            return Some(
                "Submit it again as the operator's policy allows, or have the policy changed (docs/policy.md).",
            );
        }
        Some(cause::Reason::SpecImmutableViolation) => {
            return Some("Submit another run instead of changing one that has begun.");
        }
        Some(_) => {
            return Some(
                "Mend the spec and submit it again; `agents run submit` says beforehand what is wrong.",
            );
        }
        None => {}
    }
    let reads_logs = [
        Lifecycle::JobFailed,
        Lifecycle::TimedOut,
        Lifecycle::WorkflowStepFailed,
        Lifecycle::WorkflowStepTimedOut,
    ];
    if lifecycle.is_some_and(|word| reads_logs.contains(&word)) {
        return Some("`agents run logs` shows what its pod wrote, as long as it is kept.");
    }
    let is_duplicate = [
        Lifecycle::IdempotencyKeyInUse,
        Lifecycle::IdempotencyKeyCompleted,
    ];
    if lifecycle.is_some_and(|word| is_duplicate.contains(&word)) {
        return Some(
            "Look at the other run, or submit with another key if the work is to be done once more.",
        );
    }
    let waited_for = lifecycle.and_then(|word| Hindrance::parse(word.as_str()));
    let lacking = waited_for.is_some_and(Hindrance::is_missing);
    lacking.then_some(
        "Make what is missing and submit the run again: a run that has ended stays as it is.",
    )
}

/// What to do about a Job that is missing.
pub(super) const fn of_missing(class: Class) -> &'static str {
    match class {
        Class::JobReplaced => {
            "Find out who makes Jobs of this name: nobody else may, or outcomes are taken for those of others."
        }
        Class::NamespaceTerminating => {
            "Nothing is left to do: the namespace goes with everything in it."
        }
        Class::OwnerDeleted => "Submit the run again if its work is still wanted.",
        Class::JobNeverCreated => {
            "See what the API server said when it refused the Job, and submit the run again."
        }
        Class::JobTtlExpired => {
            "Find out who put a time to live on the Job before its outcome was stored: the controllers set it only afterwards."
        }
        Class::JobDeletedWhileRunning => {
            "To stop a run, use `agents run cancel` and leave its Job alone."
        }
        Class::JobDeletedOrphaned => {
            "Whoever deleted the Job left its pods behind (--cascade=orphan): see that they end, and use `agents run cancel` next time."
        }
        Class::JobDeletedByActor => {
            "Ask them why; AGENTS_POLICY_JOB_DELETE of the webhook can refuse such a deletion before the outcome is stored."
        }
        Class::JobDeletedUnknown => {
            "The audit log of the API server may tell who deleted it; with the webhook in place the next one is known by name."
        }
    }
}
