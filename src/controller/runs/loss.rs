//! A Job that went before its outcome was stored: what is said, and what the status keeps.

use jiff::Timestamp;

use super::whole_seconds;
use crate::api::condition::{Lifecycle, Reason};
use crate::api::custody::{Deletion, Evidence, Finding, Outcome, Recovered, classify};
use crate::api::kinds::shared::{JobDeletion, JobMissing, JobRef};

/// What is known about a Job that is gone.
#[derive(Clone, Debug)]
pub(in crate::controller) struct Loss {
    pub(in crate::controller) finding: Finding,
    pub(in crate::controller) deletion: Option<Deletion>,
    /// What its pod said about its end.
    pub(in crate::controller) detail: Option<String>,
    /// How its runner says that it ended.
    pub(in crate::controller) report: Option<Outcome>,
}

impl Loss {
    /// A finding of which nothing else is known.
    pub(in crate::controller) fn of(finding: Finding) -> Self {
        Self {
            finding,
            deletion: None,
            detail: None,
            report: None,
        }
    }

    /// What the evidence shows, and what its pod said about its end.
    pub(in crate::controller) fn shown_by(evidence: Evidence, detail: Option<String>) -> Self {
        Self {
            finding: classify(&evidence),
            deletion: evidence.deletion,
            detail,
            report: evidence.runner_report,
        }
    }

    /// Why it is gone, for people.
    pub(in crate::controller) fn why(&self) -> String {
        self.finding.why()
    }

    /// How it ended, as far as anyone knows.
    pub(in crate::controller) fn end(&self) -> (Reason, String) {
        let witness = match self.finding.recovered {
            Recovered::None => "nobody knows",
            Recovered::FromDeletedObject => "its last state tells how it ended",
            Recovered::FromPod => "its pod tells how it ended",
            Recovered::FromRunnerReport => "its runner told how it ended",
        };
        let told = |word: &str| format!("the Job is missing, but {witness}: it ended {word}");
        match (self.finding.outcome, &self.detail) {
            (Some(Outcome::Succeeded), _) => (Lifecycle::Completed.into(), told("well")),
            (Some(Outcome::Failed), None) => (Lifecycle::JobFailed.into(), told("badly")),
            (Some(Outcome::Failed), Some(detail)) => {
                let message = format!("{}; {detail}", told("badly"));
                (Lifecycle::JobFailed.into(), message)
            }
            (None, _) => {
                let message = format!("the outcome is lost: {}", self.why());
                (self.finding.class.into(), message)
            }
        }
    }

    /// When it ended; now, if nobody knows.
    pub(in crate::controller) fn at(&self, now: Timestamp) -> Timestamp {
        self.finding.ended_at.unwrap_or(now)
    }

    /// Keeps the first sight of the deletion.
    pub(in crate::controller) fn keep_deletion(&self, reference: &mut JobRef) {
        if let Some(Deletion { at, finalizers }) = &self.deletion {
            reference.deletion.get_or_insert_with(|| JobDeletion {
                deleted_at: Some(*at),
                finalizers: Some(finalizers.clone()),
            });
        }
    }

    /// Keeps all that was found out.
    pub(in crate::controller) fn keep(&self, reference: &mut JobRef, now: Timestamp) {
        let Finding {
            class,
            certainty,
            recovered,
            outcome: _,
            ended_at: _,
            actor,
        } = &self.finding;
        self.keep_deletion(reference);
        reference.missing = Some(JobMissing {
            class: Some(class.as_str().to_owned()),
            certainty: Some(certainty.as_str().to_owned()),
            recovered: Some(recovered.as_str().to_owned()),
            actor: actor.clone(),
            noticed_at: Some(whole_seconds(now)),
        });
    }
}
