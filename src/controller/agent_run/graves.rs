//! How Jobs were last seen that went before their outcome was stored. Bounded: the oldest is forgotten first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;

use crate::api::contract::annotation;

/// Jobs that are remembered.
const KEPT: usize = 1024;

#[derive(Debug, Default)]
pub(in crate::controller) struct Graves {
    jobs: Mutex<VecDeque<Arc<Job>>>,
}

impl Graves {
    /// Remembers a Job that is gone, unless its outcome is stored.
    pub(in crate::controller) fn bury(&self, job: &Arc<Job>) {
        if job.annotations().contains_key(annotation::OUTCOME_RECORDED) {
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
