//! Custody of a Job's outcome: why a Job is missing, what can still be known about how it ended, and when the
//! finalizers that hold it may go.
//!
//! Works on evidence that others gathered; it reads no cluster and asks no clock.

mod evidence;
mod read;
#[cfg(test)]
mod tests;

pub use evidence::{
    Absence, CreateCall, Deletion, Evidence, LastStatus, Outcome, OwnerState, PodEvidence, PodState,
};
pub use read::{
    actor_of, deletion_of, ended, last_status_of, never_ran, pod_state_of, report_of, testimony,
    witness,
};

use jiff::{SignedDuration, Timestamp};

use super::contract::user;
use super::text::names::closed_words;

/// Times of Kubernetes have a grain of one second, so a TTL may seem to fire up to a second early.
const TIME_GRAIN: SignedDuration = SignedDuration::from_secs(1);

closed_words! {
    /// Why a Job is missing. Conditions, Events and metrics show the word.
    pub enum Class {
        /// Another Job has taken its name.
        JobReplaced,
        /// The whole namespace is being deleted.
        NamespaceTerminating,
        /// The object it belongs to is gone or going.
        OwnerDeleted,
        /// It was planned, but the API server never took it.
        JobNeverCreated,
        /// Its time to live after the end was over.
        JobTtlExpired,
        /// It was deleted before it had ended.
        JobDeletedWhileRunning,
        /// It was deleted and its pods were left to themselves.
        JobDeletedOrphaned,
        /// Someone whose name is known deleted it after its end.
        JobDeletedByActor,
        /// It is gone and nothing says why.
        JobDeletedUnknown,
    }
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The evidence allows no other reading.
    Certain,
    /// The evidence fits and nothing speaks against it.
    Likely,
    /// There is no evidence.
    Unknown,
}

impl Certainty {
    /// The word that status and metrics show.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Unknown => "unknown",
        }
    }
}

/// Where the outcome of a missing Job was still found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// Nowhere: the outcome is lost.
    None,
    /// In the last state of the Job that the watch delivered.
    FromDeletedObject,
    /// In the state of its pods.
    FromPod,
    /// In what the runner itself reported.
    FromRunnerReport,
}

impl Recovered {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::None,
        Self::FromDeletedObject,
        Self::FromPod,
        Self::FromRunnerReport,
    ];

    /// The word that status and metrics show.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::FromDeletedObject => "fromDeletedObject",
            Self::FromPod => "fromPod",
            Self::FromRunnerReport => "fromRunnerReport",
        }
    }
}

/// What is concluded about a missing Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Why it is missing.
    pub class: Class,
    /// How sure that is.
    pub certainty: Certainty,
    /// Where its outcome was still found.
    pub recovered: Recovered,
    /// That outcome.
    pub outcome: Option<Outcome>,
    /// When it ended, if the witness knows.
    pub ended_at: Option<Timestamp>,
    /// Who deleted it, if admission or the audit log saw it.
    pub actor: Option<String>,
}

impl Finding {
    /// Why it is missing, for people.
    pub fn why(&self) -> String {
        let Self { class, actor, .. } = self;
        let by = actor.as_ref().map(|actor| format!(" by {actor}"));
        let meaning = class.meaning().trim_end_matches('.');
        format!("{meaning} ({class}{})", by.unwrap_or_default())
    }
}

/// Says why a Job is missing and how it ended, from the evidence. The first test that holds decides.
pub fn classify(evidence: &Evidence) -> Finding {
    let (class, certainty) = class_of(evidence);
    let Recovery {
        recovered,
        outcome,
        ended_at,
    } = recover(evidence);
    Finding {
        class,
        certainty,
        recovered,
        outcome,
        ended_at,
        actor: evidence.actor.clone(),
    }
}

fn class_of(evidence: &Evidence) -> (Class, Certainty) {
    use Certainty::{Certain, Unknown};
    if evidence.absence == Absence::NameTaken {
        return (Class::JobReplaced, Certain);
    }
    if evidence.namespace_terminating {
        return (Class::NamespaceTerminating, Certain);
    }
    match evidence.owner {
        OwnerState::Gone | OwnerState::Replaced | OwnerState::Terminating => {
            return (Class::OwnerDeleted, Certain);
        }
        OwnerState::Alive => {}
    }
    if let Some(certainty) = never_created(evidence) {
        return (Class::JobNeverCreated, certainty);
    }
    if let Some(certainty) = ttl_expired(evidence) {
        return (Class::JobTtlExpired, certainty);
    }
    if evidence.last_status == LastStatus::Active {
        return (Class::JobDeletedWhileRunning, Certain);
    }
    if saw_finalizer(evidence, "orphan") || evidence.pods.iter().any(|pod| !pod.owned) {
        return (Class::JobDeletedOrphaned, Certain);
    }
    if evidence.actor.is_some() {
        return (Class::JobDeletedByActor, Certain);
    }
    (Class::JobDeletedUnknown, Unknown)
}

/// A Job that has no uid and left no pod was never there; a definite refusal of the create call proves it.
fn never_created(evidence: &Evidence) -> Option<Certainty> {
    if !evidence.pods.is_empty() {
        return None;
    }
    match evidence.create {
        CreateCall::Accepted => None,
        CreateCall::Refused => Some(Certainty::Certain),
        CreateCall::Unanswered => Some(Certainty::Likely),
    }
}

/// The TTL controller deletes in the foreground, after the end plus TTL. A person who is known to have deleted the
/// Job speaks against it.
fn ttl_expired(evidence: &Evidence) -> Option<Certainty> {
    let LastStatus::Finished { at, .. } = evidence.last_status else {
        return None;
    };
    let due = at
        .checked_add(evidence.ttl?)
        .ok()?
        .checked_sub(TIME_GRAIN)
        .ok()?;
    if evidence
        .actor
        .as_deref()
        .is_some_and(|actor| !is_ttl_controller(actor))
    {
        return None;
    }
    match &evidence.deletion {
        Some(deletion) if due <= deletion.at && saw_finalizer(evidence, "foregroundDeletion") => {
            Some(Certainty::Certain)
        }
        Some(_) => None,
        None => (due <= evidence.noticed_at).then_some(Certainty::Likely),
    }
}

/// The TTL controller, or the manager that runs it where its controllers share one identity.
fn is_ttl_controller(actor: &str) -> bool {
    [user::TTL_CONTROLLER, user::CONTROLLER_MANAGER].contains(&actor)
}

fn saw_finalizer(evidence: &Evidence, name: &str) -> bool {
    evidence.deletion.as_ref().is_some_and(|deletion| {
        deletion
            .finalizers
            .iter()
            .any(|finalizer| finalizer == name)
    })
}

/// What the best witness says.
struct Recovery {
    recovered: Recovered,
    outcome: Option<Outcome>,
    ended_at: Option<Timestamp>,
}

/// The best witness first: the Job itself, then its pods, then the runner's own word.
fn recover(evidence: &Evidence) -> Recovery {
    if let LastStatus::Finished { at, outcome } = evidence.last_status {
        return Recovery {
            recovered: Recovered::FromDeletedObject,
            outcome: Some(outcome),
            ended_at: Some(at),
        };
    }
    if let Some(outcome) = pods_say(&evidence.pods) {
        let ends = evidence.pods.iter().filter_map(|pod| pod.ended_at);
        return Recovery {
            recovered: Recovered::FromPod,
            outcome: Some(outcome),
            ended_at: ends.max(),
        };
    }
    Recovery {
        recovered: match evidence.runner_report {
            Some(_) => Recovered::FromRunnerReport,
            None => Recovered::None,
        },
        outcome: evidence.runner_report,
        ended_at: None,
    }
}

/// One pod that succeeded is success; only failed pods are failure; a pod that still works can tell nothing yet.
fn pods_say(pods: &[PodEvidence]) -> Option<Outcome> {
    let any = |state| pods.iter().any(|pod| pod.state == state);
    if any(PodState::Succeeded) {
        Some(Outcome::Succeeded)
    } else if any(PodState::Failed) && !any(PodState::Active) {
        Some(Outcome::Failed)
    } else {
        None
    }
}

/// What decides whether a Job and its pods must still be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The outcome is stored in the status of the owner.
    pub recorded: bool,
    /// The object that the Job belongs to, known by uid.
    pub owner: OwnerState,
    /// The namespace is being deleted.
    pub namespace_terminating: bool,
}

/// Why the finalizers may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The outcome is stored.
    Recorded,
    /// There is nobody left to store it for.
    OwnerGone,
    /// Holding on would keep the namespace from ending.
    NamespaceTerminating,
}

/// Whether the finalizers on a Job and its pods may be dropped. No time limit: one would turn load into loss.
pub fn release(hold: Hold) -> Option<Release> {
    if hold.recorded {
        return Some(Release::Recorded);
    }
    match hold.owner {
        OwnerState::Gone | OwnerState::Replaced => Some(Release::OwnerGone),
        // Deleting is not deleted: the owner still waits for the outcome.
        OwnerState::Alive | OwnerState::Terminating => hold
            .namespace_terminating
            .then_some(Release::NamespaceTerminating),
    }
}
