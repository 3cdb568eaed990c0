//! What there is of the Job that a run needs or has.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};

use super::graves::Grave;
use super::look::is_held;
use crate::api::contract::finalizer;
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
    /// Nothing, but this pod says that it is of the Job, and nothing holds it. It may be someone else's, or ours, cut off
    /// by hand: nobody can tell, so nothing is started beside it, and what it says is not believed.
    Claimed(Arc<Pod>),
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
            Self::Taken(_) | Self::Claimed(_) => false,
        }
    }

    /// What is left of a Job whose uid was never kept and that a live read did not find. `grave` is what is remembered of
    /// it, `pods` are those that say that they are of it.
    pub(in crate::controller) fn of_remains(grave: Option<Grave>, pods: &[Arc<Pod>]) -> Self {
        if grave.is_some() || any_of_ours(pods) {
            let last = grave.and_then(|grave| grave.last);
            return Self::Gone {
                absence: Absence::NotFound,
                last,
            };
        }
        // The same one each time, or the message about it would change.
        let first = pods.iter().min_by_key(|pod| pod.name_any());
        first.map_or(Self::Absent, |pod| Self::Claimed(Arc::clone(pod)))
    }

    /// Whether a Job of this run is known to have been made.
    pub(in crate::controller) fn was_made(&self) -> bool {
        match self {
            Self::Ours(_) | Self::Gone { .. } => true,
            Self::Absent | Self::Taken(_) | Self::Claimed(_) => false,
        }
    }

    /// In which way it is not there, and how it was last seen.
    pub(in crate::controller) fn absence(&self) -> (Absence, Option<&Arc<Job>>) {
        match self {
            Self::Ours(job) => (Absence::NotFound, Some(job)),
            Self::Gone { absence, last } => (*absence, last.as_ref()),
            Self::Absent | Self::Claimed(_) => (Absence::NotFound, None),
            Self::Taken(_) => (Absence::NameTaken, None),
        }
    }
}

/// Whether there is a pod of a Job of ours whose uid was never stored. Anyone can write a label; the pods of our own Jobs are
/// held from their first moment on.
pub(in crate::controller) fn any_of_ours<'a>(pods: impl IntoIterator<Item = &'a Arc<Pod>>) -> bool {
    let mut pods = pods.into_iter();
    pods.any(|pod| is_held(&**pod, finalizer::EVIDENCE))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_left_of_a_job_that_was_never_bound_says_whether_it_was_made() {
        let pod = |name: &str, held: bool| -> Arc<Pod> {
            let finalizers = held.then_some([finalizer::EVIDENCE]);
            let metadata = json!({"name": name, "finalizers": finalizers});
            Arc::new(serde_json::from_value(json!({ "metadata": metadata })).unwrap())
        };
        let job = || Arc::new(Job::default());
        let said = |sight: Sight| match sight {
            Sight::Absent => "nothing".to_owned(),
            Sight::Claimed(pod) => format!("claimed by {}", pod.name_any()),
            Sight::Gone { last: None, .. } => "gone".to_owned(),
            Sight::Gone { last: Some(_), .. } => "gone, and seen".to_owned(),
            Sight::Ours(_) | Sight::Taken(_) => "there".to_owned(),
        };
        let buried = |last| Some(Grave { last });
        for (row, grave, pods, expected) in [
            ("no trace", None, vec![], "nothing"),
            ("a pod of ours", None, vec![pod("a", true)], "gone"),
            (
                "a pod that nothing holds",
                None,
                vec![pod("b", false), pod("a", false)],
                "claimed by a",
            ),
            ("both", None, vec![pod("a", false), pod("b", true)], "gone"),
            ("it was seen once", buried(None), vec![], "gone"),
            (
                "it was seen to go",
                buried(Some(job())),
                vec![],
                "gone, and seen",
            ),
        ] {
            assert_eq!(said(Sight::of_remains(grave, &pods)), expected, "{row}");
        }
    }
}
