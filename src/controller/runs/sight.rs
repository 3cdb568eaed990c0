//! What there is of the Job that a run needs or has.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use kube::Resource;

use crate::api::custody::{Absence, LastStatus, last_status_of};
use crate::api::kinds::shared::JobRef;
use crate::controller::cache::{Kept, Key, Shelf};

/// What there is under the name of the Job that is about to be made, or at work.
#[derive(Clone, Debug)]
pub(in crate::controller) enum Sight {
    /// Nothing, as far as we know.
    Absent,
    /// The Job of this run.
    Ours(Arc<Job>),
    /// Something that belongs to someone else.
    Taken(Arc<Job>),
    /// The Job of this run is not there any more: a live read has confirmed it.
    Gone {
        absence: Absence,
        /// As it was last seen, if anyone saw it go.
        last: Option<Arc<Job>>,
    },
}

impl Sight {
    /// Whether the Job can no longer tell how it ends, so that only its pods can. `kept` is what the run says about it.
    pub(in crate::controller) fn is_in_doubt(&self, kept: Option<&JobRef>) -> bool {
        match self {
            Self::Ours(job) => {
                let is_going = job.meta().deletion_timestamp.is_some();
                is_going && last_status_of(job) == LastStatus::Active
            }
            Self::Gone { .. } => true,
            Self::Absent => kept.is_some_and(|job| job.uid.is_some()),
            Self::Taken(_) => false,
        }
    }

    /// In which way it is not there, and how it was last seen.
    pub(in crate::controller) fn absence(&self) -> (Absence, Option<&Arc<Job>>) {
        match self {
            Self::Ours(job) => (Absence::NotFound, Some(job)),
            Self::Gone { absence, last } => (*absence, last.as_ref()),
            Self::Absent => (Absence::NotFound, None),
            Self::Taken(_) => (Absence::NameTaken, None),
        }
    }
}

/// Runs that are gone and for which something is still held.
pub(in crate::controller) fn strays<R: Kept, J: Kept, P: Kept>(
    runs: &Shelf<R>,
    jobs: &Shelf<J>,
    pods: &Shelf<P>,
) -> Vec<Key> {
    let held = jobs.owners().into_iter().chain(pods.owners());
    held.filter(|run| runs.get(run).is_none()).collect()
}
