//! What is known about a missing Job, as plain data: whoever gathers it decides nothing, whoever decides reads nothing.

use jiff::{SignedDuration, Timestamp};

/// Everything that is known about a Job that a live read did not find under its uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// What the live read by name gave.
    pub absence: Absence,
    /// What became of the call that should have created it.
    pub create: CreateCall,
    /// The last state that anyone saw, the object that the watch delivered on deletion included.
    pub last_status: LastStatus,
    /// Time to live after the end that was in force, whoever set it.
    pub ttl: Option<SignedDuration>,
    /// The first sight of a deletion timestamp.
    pub deletion: Option<Deletion>,
    /// When the absence was confirmed.
    pub noticed_at: Timestamp,
    /// The object that the Job belongs to.
    pub owner: OwnerState,
    /// The namespace is being deleted.
    pub namespace_terminating: bool,
    /// Pods of this Job, found by its uid or by the uid of the run.
    pub pods: Vec<PodEvidence>,
    /// What the runner reported apart from Job and pod.
    pub runner_report: Option<Outcome>,
    /// User that admission or the audit log saw deleting it.
    pub actor: Option<String>,
}

/// What a live read by name found instead of the Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// Nothing.
    NotFound,
    /// A Job of the same name with another uid.
    NameTaken,
}

/// What became of the call that should have created a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateCall {
    /// The API server took it and gave a uid.
    Accepted,
    /// The API server refused it for certain.
    Refused,
    /// Nobody knows: no answer came, or the controller died before it could keep the uid.
    Unanswered,
}

/// The last state of a Job that anyone saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastStatus {
    /// None.
    Unknown,
    /// It had not ended.
    Active,
    /// It had ended.
    Finished {
        /// When, by the time of the condition that says so.
        at: Timestamp,
        /// How.
        outcome: Outcome,
    },
}

/// How a Job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Well.
    Succeeded,
    /// Badly.
    Failed,
}

/// The first sight of a deletion timestamp. Finalizers vanish within milliseconds, so only the first sight counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The deletion timestamp.
    pub at: Timestamp,
    /// Finalizers that were on the Job then.
    pub finalizers: Vec<String>,
}

/// The object that a Job belongs to, known by uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerState {
    /// It is there.
    Alive,
    /// It has a deletion timestamp.
    Terminating,
    /// It is not there.
    Gone,
    /// Another object has its name.
    Replaced,
}

/// One pod of a missing Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodEvidence {
    /// It still has an owner reference.
    pub owned: bool,
    /// How it stands.
    pub state: PodState,
    /// When it ended, if it did and says so.
    pub ended_at: Option<Timestamp>,
}

/// How a pod stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodState {
    /// It has not ended.
    Active,
    /// It ended well.
    Succeeded,
    /// It ended badly.
    Failed,
}
