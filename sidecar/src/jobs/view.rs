//! A Job in a few hundred bytes: all that is kept of it, and what happened between two looks. Pure.

#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

use agents::api::contract::{annotation, finalizer, label};
use agents::api::custody::{Deletion, LastStatus, Outcome, ended};
use agents::api::kind::Kind;
use agents::closed_labels;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::sight::JobSight;

/// What is kept of a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// What tells it from a later one of the same name.
    pub(super) uid: Arc<str>,
    /// Where it is.
    pub(super) namespace: Box<str>,
    /// How it is called.
    pub(super) name: Box<str>,
    /// The run that it carries out.
    pub(super) owner: Owner,
    /// Which try of which step, if the run is a workflow.
    pub(super) turn: Option<Turn>,
    /// When it was made.
    pub(super) created: Option<Timestamp>,
    /// When the cluster took it up.
    pub(super) started: Option<Timestamp>,
    /// Whether a pod works on it.
    pub(super) is_active: bool,
    /// Whether and how it ended.
    pub(super) last: LastStatus,
    /// The first sight of its deletion.
    pub(super) deletion: Option<Box<Deletion>>,
    /// Whether it is marked: its outcome is stored in the status of its run.
    pub(super) is_recorded: bool,
    /// When that was, if the mark says so.
    pub(super) recorded: Option<Timestamp>,
    /// Whether our finalizer holds it.
    pub(super) is_held: bool,
    /// Seconds after its end at which the cluster removes it.
    pub(super) ttl: Option<i32>,
}

/// The run that a Job carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// AgentRun or ToolRun.
    pub(super) kind: Kind,
    /// Its name; it is in the namespace of the Job.
    pub(super) name: Box<str>,
    /// Its uid.
    pub(super) uid: Box<str>,
}

/// One try of one step of a workflow. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    /// Position of the step, from 0.
    pub(super) index: usize,
    /// Round of the step, from 1.
    pub(super) iteration: i64,
    /// Try within the round, from 1.
    pub(super) attempt: i64,
}

closed_labels! {
    /// How a Job stands.
    pub(super) enum State {
        /// No pod works on it yet.
        Pending = "pending",
        /// It is being carried out.
        Running = "running",
        /// It has ended, and its outcome is not stored.
        Unrecorded = "unrecorded",
        /// Its outcome is stored.
        Recorded = "recorded",
        /// It is being deleted, and its outcome is not stored.
        Going = "going",
    }
}

/// Something that happened to a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    /// It was made.
    Created,
    /// A pod works on it.
    Running,
    /// It ended.
    Finished {
        /// How.
        outcome: Outcome,
        /// So long after its start.
        after: Option<SignedDuration>,
    },
    /// Its outcome was stored.
    Recorded {
        /// So long after its end.
        after: Option<SignedDuration>,
    },
    /// It is gone.
    Deleted,
}

impl View {
    /// A Job of ours; none if it only says so. Anyone can write a label, so the API server must know the same run as its
    /// owner.
    pub(super) fn of(job: &JobSight) -> Option<Self> {
        let meta = &job.metadata;
        let marks = meta.annotations.as_ref();
        let mark = marks.and_then(|marks| marks.get(annotation::OUTCOME_RECORDED));
        let finalizers = meta.finalizers.as_deref().unwrap_or_default();
        Some(Self {
            uid: meta.uid.as_deref()?.into(),
            namespace: meta.namespace.as_deref()?.into(),
            name: meta.name.as_deref()?.into(),
            owner: owner(meta)?,
            turn: turn(meta),
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            started: job.status.start_time.as_ref().map(|time| time.0),
            is_active: job.status.active.is_some_and(|pods| pods > 0),
            last: ended(&job.status.conditions),
            deletion: meta.deletion_timestamp.as_ref().map(|time| {
                Box::new(Deletion {
                    at: time.0,
                    finalizers: finalizers.to_vec(),
                })
            }),
            is_recorded: mark.is_some(),
            recorded: mark.and_then(|mark| mark.parse().ok()),
            is_held: finalizers.iter().any(|name| name == finalizer::OUTCOME),
            ttl: job.spec.ttl_seconds_after_finished,
        })
    }

    /// The same, with what only an earlier look could see: finalizers vanish within milliseconds of a deletion.
    pub(super) fn after(mut self, before: &Self) -> Self {
        if before.deletion.is_some() {
            self.deletion.clone_from(&before.deletion);
        }
        self
    }

    /// How it stands.
    pub(super) fn state(&self) -> State {
        match self.last {
            _ if self.is_recorded => State::Recorded,
            _ if self.deletion.is_some() => State::Going,
            LastStatus::Finished { .. } => State::Unrecorded,
            LastStatus::Active | LastStatus::Unknown if self.is_active => State::Running,
            LastStatus::Active | LastStatus::Unknown => State::Pending,
        }
    }

    /// When it ended, if it has.
    pub(super) fn ended(&self) -> Option<Timestamp> {
        match self.last {
            LastStatus::Finished { at, .. } => Some(at),
            LastStatus::Active | LastStatus::Unknown => None,
        }
    }

    /// When it ended, if it has and nobody has stored that.
    pub(super) fn unrecorded_since(&self) -> Option<Timestamp> {
        self.ended().filter(|_| !self.is_recorded)
    }

    /// When the cluster removes it although its outcome is not stored, if that is so.
    pub(super) fn due(&self) -> Option<Timestamp> {
        let ttl = SignedDuration::from_secs(self.ttl?.into());
        self.unrecorded_since()?.checked_add(ttl).ok()
    }

    fn has_run(&self) -> bool {
        self.is_active || (self.ended().is_some() && self.started.is_some())
    }
}

/// What happened since an earlier look; all that there was, if there was none.
pub(super) fn transitions(before: Option<&View>, now: &View) -> Vec<Transition> {
    let mut all = Vec::new();
    let is_new = |was: fn(&View) -> bool| was(now) && !before.is_some_and(was);
    if before.is_none() {
        all.push(Transition::Created);
    }
    if is_new(View::has_run) {
        all.push(Transition::Running);
    }
    if let LastStatus::Finished { at, outcome } = now.last
        && before.and_then(View::ended).is_none()
    {
        all.push(Transition::Finished {
            outcome,
            after: now.started.map(|started| at.duration_since(started)),
        });
    }
    if is_new(|view| view.is_recorded) {
        let lag = |recorded: Timestamp| Some(recorded.duration_since(now.ended()?));
        all.push(Transition::Recorded {
            after: now.recorded.and_then(lag),
        });
    }
    all
}

/// The run that a Job of ours belongs to.
fn owner(meta: &ObjectMeta) -> Option<Owner> {
    let uid = meta.labels.as_ref()?.get(label::RUN_UID)?;
    let owners = meta.owner_references.iter().flatten();
    let owner = owners.into_iter().find(|owner| owner.uid == *uid)?;
    let kinds = [Kind::AgentRun, Kind::ToolRun].into_iter();
    let kind = kinds
        .into_iter()
        .find(|kind| kind.as_str() == owner.kind && kind.api_version() == owner.api_version)?;
    Some(Owner {
        kind,
        name: owner.name.as_str().into(),
        uid: owner.uid.as_str().into(),
    })
}

fn turn(meta: &ObjectMeta) -> Option<Turn> {
    let labels = meta.labels.as_ref()?;
    let number = |name: &str| labels.get(name)?.parse::<i64>().ok();
    let index = usize::try_from(number(label::STEP_INDEX)?).ok()?;
    Some(Turn {
        index: index.checked_sub(1)?,
        iteration: number(label::STEP_ITERATION)?,
        attempt: number(label::STEP_ATTEMPT)?,
    })
}
