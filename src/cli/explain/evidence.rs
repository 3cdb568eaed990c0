//! What the Jobs and pods of a run show beyond its status.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerState, Pod};
use kube::ResourceExt;

use super::text::{Facts, when};
use crate::api::contract::{annotation, finalizer};
use crate::api::custody::{LastStatus, Outcome, PodState, last_status_of, pod_state_of};

/// The sentences.
pub(super) fn sentences(facts: &Facts) -> Vec<String> {
    let jobs = facts.jobs.iter().flatten();
    let mut all: Vec<String> = jobs.filter_map(|job| of_job(job, facts.now)).collect();
    let pods = facts.pods.iter().flatten();
    let newest = pods.max_by_key(|pod| pod.creation_timestamp().map(|made| made.0));
    all.extend(newest.and_then(of_pod));
    all
}

/// Only what is worth a word: a Job at work, and one whose outcome is stored, is told by the status.
fn of_job(job: &Job, now: Timestamp) -> Option<String> {
    let name = job.name_any();
    if job.annotations().contains_key(annotation::OUTCOME_RECORDED) {
        return None;
    }
    let is_held = job.finalizers().iter().any(|one| one == finalizer::OUTCOME);
    let going = job.metadata.deletion_timestamp.as_ref().map(|at| at.0);
    match (last_status_of(job), going) {
        (LastStatus::Finished { at, outcome }, _) => {
            let how = match outcome {
                Outcome::Succeeded => "well",
                Outcome::Failed => "badly",
            };
            Some(format!(
                "Its Job {name} ended {how} at {}, and that is not recorded yet.",
                when(at, now)
            ))
        }
        (LastStatus::Active | LastStatus::Unknown, Some(at)) if is_held => Some(format!(
            "Its Job {name} is being deleted since {} and held until its outcome is recorded.",
            when(at, now)
        )),
        (LastStatus::Active | LastStatus::Unknown, _) => None,
    }
}

fn of_pod(pod: &Pod) -> Option<String> {
    let name = pod.name_any();
    let status = pod.status.as_ref()?;
    if pod_state_of(pod) == PodState::Active {
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let unplaced = conditions
            .iter()
            .find(|one| one.type_ == "PodScheduled" && one.status == "False");
        if let Some(why) = unplaced.and_then(|one| one.message.as_deref()) {
            return Some(format!(
                "Its pod {name} has no node: {}.",
                why.trim_end_matches('.')
            ));
        }
    }
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    let mut states = containers
        .iter()
        .filter_map(|container| container.state.as_ref());
    states
        .find_map(state)
        .map(|words| format!("Its pod {name} {words}."))
}

/// What keeps a container from its work, or ended it badly.
fn state(state: &ContainerState) -> Option<String> {
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref()?;
        let message = waiting
            .message
            .as_deref()
            .map(|text| format!(": {}", text.trim_end_matches('.')));
        return Some(format!("waits, {reason}{}", message.unwrap_or_default()));
    }
    let ended = state
        .terminated
        .as_ref()
        .filter(|ended| ended.exit_code != 0)?;
    let reason = ended.reason.as_deref().map(|reason| format!(" ({reason})"));
    Some(format!(
        "ended with exit code {}{}",
        ended.exit_code,
        reason.unwrap_or_default()
    ))
}
