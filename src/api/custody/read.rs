//! Reads evidence from Jobs and pods as the API server shows them.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use super::evidence::{Deletion, LastStatus, Outcome, PodState};

/// How a Job stands. The condition decides, not the counters: a Job that failed by deadline may count no failed pod,
/// and a failed Job has no `completionTime`.
pub fn last_status_of(job: &Job) -> LastStatus {
    let conditions = job
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let ended = conditions.iter().find_map(|condition| {
        let outcome = match condition.type_.as_str() {
            "Complete" => Outcome::Succeeded,
            "Failed" => Outcome::Failed,
            _ => return None,
        };
        let at = condition.last_transition_time.as_ref()?.0;
        (condition.status == "True").then_some(LastStatus::Finished { at, outcome })
    });
    ended.unwrap_or(LastStatus::Active)
}

/// The first sight of a Job's deletion, if it is being deleted.
pub fn deletion_of(job: &Job) -> Option<Deletion> {
    Some(Deletion {
        at: job.metadata.deletion_timestamp.as_ref()?.0,
        finalizers: job.metadata.finalizers.clone().unwrap_or_default(),
    })
}

/// How a pod stands.
pub fn pod_state_of(pod: &Pod) -> PodState {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    match phase {
        Some("Succeeded") => PodState::Succeeded,
        Some("Failed") => PodState::Failed,
        Some(_) | None => PodState::Active,
    }
}
