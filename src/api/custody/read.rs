//! Reads evidence from Jobs and pods as the API server shows them.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use serde::Deserialize;

use super::evidence::{Deletion, LastStatus, Outcome, PodEvidence, PodState};
use crate::api::contract::{annotation, label};

/// How a Job stands.
pub fn last_status_of(job: &Job) -> LastStatus {
    let status = job.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    ended(conditions.unwrap_or_default())
}

/// How a Job with these conditions stands. They decide, not the counters: a Job that failed by deadline may count no
/// failed pod, and a failed Job has no `completionTime`.
pub fn ended(conditions: &[JobCondition]) -> LastStatus {
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
    state_of(pod.status.as_ref())
}

fn state_of(status: Option<&PodStatus>) -> PodState {
    match status.and_then(|status| status.phase.as_deref()) {
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

/// What a pod can tell. One that was deleted before it had a node never ran, and never will.
pub fn witness(pod: &Pod) -> Option<PodEvidence> {
    testimony(&pod.metadata, node_of(pod), pod.status.as_ref())
}

/// The same, where no more was read of a pod than this.
pub fn testimony(
    metadata: &ObjectMeta,
    node: Option<&str>,
    status: Option<&PodStatus>,
) -> Option<PodEvidence> {
    if was_never_placed(metadata, node, status) {
        return None;
    }
    let owners = metadata.owner_references.as_ref();
    let state = state_of(status);
    let containers = status.and_then(|status| status.container_statuses.as_ref());
    let ends = containers.into_iter().flatten().filter_map(|container| {
        let ended = container.state.as_ref()?.terminated.as_ref()?;
        Some(ended.finished_at.as_ref()?.0)
    });
    Some(PodEvidence {
        owned: owners.is_some_and(|owners| !owners.is_empty()),
        state,
        ended_at: ends.max().filter(|_| state != PodState::Active),
    })
}

/// Whether a pod was deleted before it had a node.
pub fn never_ran(pod: &Pod) -> bool {
    was_never_placed(&pod.metadata, node_of(pod), pod.status.as_ref())
}

fn was_never_placed(metadata: &ObjectMeta, node: Option<&str>, status: Option<&PodStatus>) -> bool {
    let is_going = metadata.deletion_timestamp.is_some();
    state_of(status) == PodState::Active && is_going && node.is_none()
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// Who deleted a Job, as the webhook writes it down on its run.
#[derive(Deserialize)]
struct DeletedBy {
    uid: String,
    user: String,
}

/// Who deleted the Job with this uid, by the annotations of its run.
pub fn actor_of(annotations: Option<&BTreeMap<String, String>>, uid: &str) -> Option<String> {
    let record = annotations?.get(annotation::JOB_DELETED_BY)?;
    let DeletedBy { uid: job, user } = serde_json::from_str(record).ok()?;
    (job == uid).then_some(user)
}
