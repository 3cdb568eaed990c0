//! How Jobs were last seen that went before their outcome was stored. Bounded: the oldest is forgotten first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::batch::v1::Job;
use kube::{Resource, ResourceExt};

use crate::api::contract::annotation;
use crate::api::custody::{LastStatus, last_status_of};

/// Jobs that are remembered.
const KEPT: usize = 1024;

#[derive(Debug, Default)]
pub(in crate::controller) struct Graves {
    jobs: Mutex<VecDeque<Arc<Job>>>,
}

impl Graves {
    /// Remembers a Job that is gone, unless its outcome is stored, or unless nobody saw it go while it was at work: it may
    /// have ended since, so how it was last seen proves nothing. One that was being deleted by then proves that much.
    pub(in crate::controller) fn bury(&self, job: &Arc<Job>, is_last: bool) {
        if job.annotations().contains_key(annotation::OUTCOME_RECORDED) {
            return;
        }
        let is_going = job.meta().deletion_timestamp.is_some();
        if !is_last && !is_going && last_status_of(job) == LastStatus::Active {
            return;
        }
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.len() == KEPT {
            jobs.pop_front();
        }
        jobs.push_back(Arc::clone(job));
    }

    pub(in crate::controller) fn find(&self, uid: &str) -> Option<Arc<Job>> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let found = jobs
            .iter()
            .rev()
            .find(|job| job.uid().as_deref() == Some(uid));
        found.cloned()
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
            graves.find("j-1").is_some()
        };
        for (row, more, conditions, seen, missed) in [
            ("at work", &nothing, &at_work, true, false),
            ("at work, being deleted", &going, &at_work, true, true),
            ("ended", &nothing, &ended, true, true),
            ("stored", &recorded, &ended, false, false),
        ] {
            assert_eq!(is_known(more, conditions, true), seen, "{row}");
            assert_eq!(is_known(more, conditions, false), missed, "{row}");
        }
    }
}
