//! Jobs that went before their outcome was stored, and how they were last seen. Bounded: the oldest is forgotten first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::batch::v1::Job;
use kube::{Resource, ResourceExt};

use crate::api::contract::annotation;
use crate::api::custody::{LastStatus, last_status_of};

/// Jobs that are remembered.
const KEPT: usize = 1024;

#[derive(Debug, Default)]
pub(in crate::controller) struct Graves {
    jobs: Mutex<VecDeque<Buried>>,
}

#[derive(Debug)]
struct Buried {
    job: Arc<Job>,
    /// Whether how it was last seen says how it went.
    is_proof: bool,
}

/// What is remembered of a Job that was made for certain.
#[derive(Debug)]
pub(in crate::controller) struct Grave {
    /// How it was last seen, if that says how it went.
    pub(in crate::controller) last: Option<Arc<Job>>,
}

impl Grave {
    /// Nobody saw it, only what it left.
    pub(in crate::controller) const UNSEEN: Self = Self { last: None };
}

impl Graves {
    /// Remembers a Job that is gone, unless its outcome is stored. One that nobody saw go while it was at work may have
    /// ended since, so how it was last seen proves only that it was made. One that was being deleted by then proves that much.
    pub(in crate::controller) fn bury(&self, job: &Arc<Job>, is_last: bool) {
        if job.annotations().contains_key(annotation::OUTCOME_RECORDED) {
            return;
        }
        let is_going = job.meta().deletion_timestamp.is_some();
        let is_proof = is_last || is_going || last_status_of(job) != LastStatus::Active;
        let mut jobs = self.jobs();
        if jobs.len() == KEPT {
            jobs.pop_front();
        }
        let job = Arc::clone(job);
        jobs.push_back(Buried { job, is_proof });
    }

    /// How the Job with this uid was last seen.
    pub(in crate::controller) fn find(&self, uid: &str) -> Option<Arc<Job>> {
        self.recall(|job| job.uid().as_deref() == Some(uid))?.last
    }

    /// The newest Job of this sort that is remembered.
    pub(in crate::controller) fn recall(&self, is_it: impl Fn(&Job) -> bool) -> Option<Grave> {
        let jobs = self.jobs();
        let found = jobs.iter().rev().find(|buried| is_it(&buried.job))?;
        let last = found.is_proof.then(|| Arc::clone(&found.job));
        Some(Grave { last })
    }

    fn jobs(&self) -> MutexGuard<'_, VecDeque<Buried>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_nobody_saw_to_its_end_proves_nothing() {
        let when = "2026-01-01T12:00:00Z";
        let (at_work, nothing) = (json!([]), json!({}));
        let ended = json!([{"type": "Complete", "status": "True", "lastTransitionTime": when}]);
        let going = json!({"deletionTimestamp": when});
        let recorded = json!({"annotations": {annotation::OUTCOME_RECORDED: when}});
        let is_known = |more: &Value, conditions: &Value, is_last: bool| {
            let mut job = json!({
                "metadata": {"name": "j", "uid": "j-1"}, "status": {"conditions": conditions},
            });
            json_patch::merge(&mut job["metadata"], more);
            let graves = Graves::default();
            graves.bury(&Arc::new(serde_json::from_value(job).unwrap()), is_last);
            let is_made = graves.recall(|job| job.name_any() == "j").is_some();
            (is_made, graves.find("j-1").is_some())
        };
        for (row, more, conditions, seen, missed) in [
            ("at work", &nothing, &at_work, true, false),
            ("at work, being deleted", &going, &at_work, true, true),
            ("ended", &nothing, &ended, true, true),
        ] {
            assert_eq!(is_known(more, conditions, true), (true, seen), "{row}");
            assert_eq!(is_known(more, conditions, false), (true, missed), "{row}");
        }
        for is_last in [true, false] {
            let stored = is_known(&recorded, &ended, is_last);
            assert_eq!(stored, (false, false), "its outcome is stored");
        }
    }
}
