//! Reads evidence from Jobs and pods as the API server shows them.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde::Deserialize;

use super::evidence::{Deletion, LastStatus, Outcome, PodState};
use crate::api::contract::label;

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

/// What a runner says about its work, in the termination message of its container. Other fields are its own business.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    outcome: ReportedOutcome,
    run_uid: Option<String>,
    attempt: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum ReportedOutcome {
    Succeeded,
    Failed,
}

/// How the runner itself says that it ended, once it has. A message that is no report says nothing, and neither does
/// one about another run or another try.
pub fn report_of(pod: &Pod, container: &str) -> Option<Outcome> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let own = statuses.iter().find(|status| status.name == container)?;
    let message = own.state.as_ref()?.terminated.as_ref()?.message.as_ref()?;
    let Report {
        outcome,
        run_uid,
        attempt,
    } = serde_json::from_str(message).ok()?;
    let labelled = |name: &str| pod.labels().get(name).map(String::as_str);
    let is_of_run = run_uid.is_none_or(|uid| labelled(label::RUN_UID) == Some(&uid));
    let made_for = labelled(label::STEP_ATTEMPT).unwrap_or("1");
    let is_of_try = attempt.is_none_or(|attempt| attempt.to_string() == made_for);
    (is_of_run && is_of_try).then_some(match outcome {
        ReportedOutcome::Succeeded => Outcome::Succeeded,
        ReportedOutcome::Failed => Outcome::Failed,
    })
}
