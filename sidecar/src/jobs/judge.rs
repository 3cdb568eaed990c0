//! What is wrong with a Job, from what was seen of it and of its run. Pure: `look` gathers, this decides.
//!
//! A Job is missed only if the status of its run lacks the outcome. Why it is missing says [`classify`], the same function
//! that the controller goes by.

#[cfg(test)]
mod tests;

use agents::api::custody::{
    Absence, Class, CreateCall, Evidence, OwnerState, PodEvidence, classify,
};
use agents::closed_labels;
use agents::events::Reason;
use jiff::{SignedDuration, Timestamp};

use super::standing::Standing;
use super::view::View;

closed_labels! {
    /// What endangers an outcome before anything is lost.
    pub(super) enum Hazard {
        /// Someone else put a time to live on a Job whose outcome is not stored.
        TtlInjected = "ttl_injected",
        /// The time to live was over before the outcome was stored: it is shorter than storing takes.
        TtlOverrun = "ttl_overrun",
        /// Someone took away our finalizer.
        FinalizerRemoved = "finalizer_removed",
        /// A pod lost its Job and was left to itself.
        PodOrphaned = "pod_orphaned",
    }
}

closed_labels! {
    /// How far a premature deletion has come.
    pub(super) enum Stage {
        /// Someone asked for it; the Job may still be held.
        Asked = "asked",
        /// The Job is gone.
        Gone = "gone",
    }
}

/// Something that only the run can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Is this time to live someone else's?
    TtlInjected,
    /// Is our finalizer missing although the outcome is?
    FinalizerRemoved,
    /// Is it being deleted too soon?
    Going,
    /// Is it gone too soon?
    Gone,
}

/// What a change of a Job gives reason to ask. Where the outcome is stored, nothing.
pub(super) fn questions(before: Option<&View>, now: &View) -> Vec<Question> {
    if now.is_recorded {
        return Vec::new();
    }
    let is_new = |was: fn(&View) -> bool| was(now) && !before.is_some_and(was);
    let mut asked = Vec::new();
    if is_new(|view| view.ttl.is_some()) {
        asked.push(Question::TtlInjected);
    }
    if is_new(|view| !view.is_held) {
        asked.push(Question::FinalizerRemoved);
    }
    if is_new(|view| view.deletion.is_some()) {
        asked.push(Question::Going);
    }
    asked
}

/// Whether the time to live of a Job was over before its outcome was stored.
pub(super) fn is_overrun(before: Option<&View>, view: &View, now: Timestamp) -> bool {
    // The time to live of a marked Job was set with the mark.
    let (ttl, until) = match view.is_recorded {
        true => (
            before
                .filter(|before| !before.is_recorded)
                .and_then(|before| before.ttl),
            view.recorded,
        ),
        false => (view.ttl, Some(now)),
    };
    let due = ttl.and_then(|ttl| {
        let ttl = SignedDuration::from_secs(ttl.into());
        view.ended()?.checked_add(ttl).ok()
    });
    due.zip(until).is_some_and(|(due, until)| due <= until)
}

/// What was found around a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// What there is under its name, if it is gone.
    pub(super) absence: Absence,
    /// Its run.
    pub(super) run: Run,
    /// Whether its namespace is being deleted.
    pub(super) namespace_terminating: bool,
    /// Its pods.
    pub(super) pods: Vec<PodEvidence>,
}

/// The run of a Job, as a live read found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// It is not there.
    Gone,
    /// Another one has its name.
    Replaced,
    /// It is there.
    There(Standing),
}

/// What is made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing is wrong.
    InOrder,
    /// Something endangers the outcome.
    Endangered(Hazard, Option<Notice>),
    /// The Job goes, or has gone, before its outcome was stored.
    Premature {
        /// Why.
        class: Class,
        /// How far it has come.
        stage: Stage,
        /// What is to be told.
        notice: Option<Notice>,
    },
}

/// What is to be told on the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    /// The same as the controller would give.
    pub(super) reason: Reason,
    /// In words.
    pub(super) note: String,
}

/// Judges one question about a Job.
pub(super) fn judge(question: Question, job: &View, found: &Found, now: Timestamp) -> Verdict {
    match question {
        Question::TtlInjected => injected(job, found),
        Question::FinalizerRemoved => removed(job, found),
        Question::Going => premature(Stage::Asked, job, found, now),
        Question::Gone => premature(Stage::Gone, job, found, now),
    }
}

/// The run, if it still waits for the outcome.
fn waiting(found: &Found) -> Option<&Standing> {
    match &found.run {
        Run::Gone | Run::Replaced => None,
        Run::There(standing) if standing.is_recorded || found.namespace_terminating => None,
        Run::There(standing) => Some(standing),
    }
}

fn injected(job: &View, found: &Found) -> Verdict {
    let (Some(standing), Some(ttl)) = (waiting(found), job.ttl) else {
        return Verdict::InOrder;
    };
    let notice = Notice {
        reason: Reason::JobTtlInjected,
        note: format!(
            "someone put a time to live of {ttl} s on the Job; it is held until its outcome is stored"
        ),
    };
    let notice = (!standing.is_warned).then_some(notice);
    Verdict::Endangered(Hazard::TtlInjected, notice)
}

fn removed(job: &View, found: &Found) -> Verdict {
    if waiting(found).is_none() {
        return Verdict::InOrder;
    }
    let notice = Notice {
        reason: Reason::JobFinalizerRemoved,
        note: format!(
            "nothing holds Job {} any more, and its outcome is not stored: someone took away its finalizer",
            job.name
        ),
    };
    Verdict::Endangered(Hazard::FinalizerRemoved, Some(notice))
}

fn premature(stage: Stage, job: &View, found: &Found, now: Timestamp) -> Verdict {
    let known = match &found.run {
        Run::There(standing) => match (standing.is_recorded, standing.missing) {
            (true, None) => return Verdict::InOrder,
            (_, missing) => missing,
        },
        Run::Gone | Run::Replaced => None,
    };
    let finding = classify(&evidence(job, found, now));
    // What the controller has stored counts: it may have seen more.
    let class = known.unwrap_or(finding.class);
    // A Job that has ended and is still held is not lost: the controller stores its outcome when it is back.
    let is_safe = stage == Stage::Asked && job.is_held && job.ended().is_some();
    let has_reader = !matches!(class, Class::OwnerDeleted | Class::NamespaceTerminating);
    let notice = Notice {
        reason: match job.turn {
            Some(_) => Reason::WorkflowJobMissing,
            None => class.into(),
        },
        note: finding.why(),
    };
    Verdict::Premature {
        class,
        stage,
        notice: (known.is_none() && !is_safe && has_reader).then_some(notice),
    }
}

fn evidence(job: &View, found: &Found, now: Timestamp) -> Evidence {
    let (owner, actor) = match &found.run {
        Run::Gone => (OwnerState::Gone, None),
        Run::Replaced => (OwnerState::Replaced, None),
        Run::There(standing) if standing.is_going => {
            (OwnerState::Terminating, standing.actor.clone())
        }
        Run::There(standing) => (OwnerState::Alive, standing.actor.clone()),
    };
    let ttl = job.ttl.map(|ttl| SignedDuration::from_secs(ttl.into()));
    Evidence {
        absence: found.absence,
        create: CreateCall::Accepted,
        last_status: job.last,
        ttl,
        deletion: job.deletion.as_deref().cloned(),
        noticed_at: now,
        owner,
        namespace_terminating: found.namespace_terminating,
        pods: found.pods.clone(),
        runner_report: None,
        actor,
    }
}
