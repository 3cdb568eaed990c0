//! What is known about a Job that is going or gone, as `custody` wants to have it.

use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use serde::Deserialize;

use super::{Observed, Sight};
use crate::api::contract::annotation;
use crate::api::custody::{
    Absence, CreateCall, Deletion, Evidence, LastStatus, OwnerState, PodEvidence, PodState,
    deletion_of, last_status_of, pod_state_of,
};
use crate::api::kinds::AgentRun;
use crate::controller::agent_run::turn::job_ref;

/// Who deleted a Job, as the webhook writes it down.
#[derive(Deserialize)]
struct DeletedBy {
    uid: String,
    user: String,
}

pub(super) fn of(seen: &Observed, run: &AgentRun) -> Evidence {
    let reference = job_ref(run);
    let uid = reference.and_then(|job| job.uid.as_deref());
    let (absence, last) = match &seen.job {
        Sight::Ours(job) => (Absence::NotFound, Some(job)),
        Sight::Gone { absence, last } => (*absence, last.as_ref()),
        Sight::Absent => (Absence::NotFound, None),
        Sight::Taken(_) => (Absence::NameTaken, None),
    };
    let stored = reference.and_then(|job| job.deletion.as_ref());
    let stored = stored.and_then(|deletion| {
        Some(Deletion {
            at: deletion.deleted_at?,
            finalizers: deletion.finalizers.clone().unwrap_or_default(),
        })
    });
    let ttl = last.and_then(|job| job.spec.as_ref()?.ttl_seconds_after_finished);
    let owner = match run.meta().deletion_timestamp {
        Some(_) => OwnerState::Terminating,
        None => OwnerState::Alive,
    };
    Evidence {
        absence,
        create: match uid {
            Some(_) => CreateCall::Accepted,
            None => CreateCall::Unanswered,
        },
        last_status: last.map_or(LastStatus::Unknown, |job| last_status_of(job)),
        ttl: ttl.map(|seconds| SignedDuration::from_secs(seconds.into())),
        // Finalizers vanish within milliseconds, so the first sight counts.
        deletion: stored.or_else(|| last.and_then(|job| deletion_of(job))),
        noticed_at: seen.now,
        owner,
        namespace_terminating: seen.namespace_terminating,
        pods: seen.pods.iter().filter_map(|pod| witness(pod)).collect(),
        runner_report: None,
        actor: actor(run, uid),
    }
}

fn actor(run: &AgentRun, uid: Option<&str>) -> Option<String> {
    let annotations = run.meta().annotations.as_ref()?;
    let record = annotations.get(annotation::JOB_DELETED_BY)?;
    let DeletedBy { uid: job, user } = serde_json::from_str(record).ok()?;
    (Some(job.as_str()) == uid).then_some(user)
}

/// A pod that was deleted before it had a node never ran, and never will.
pub(in crate::controller) fn witness(pod: &Pod) -> Option<PodEvidence> {
    let state = pod_state_of(pod);
    if state == PodState::Active && !works(pod) {
        return None;
    }
    let owners = pod.meta().owner_references.as_ref();
    Some(PodEvidence {
        owned: owners.is_some_and(|owners| !owners.is_empty()),
        state,
    })
}

/// Whether a pod still works, or is about to.
pub(in crate::controller) fn works(pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
    let is_going = pod.meta().deletion_timestamp.is_some();
    pod_state_of(pod) == PodState::Active && !(is_going && node.is_none())
}

/// Whether a pod may still tell how it ends.
pub(in crate::controller) fn is_at_work(evidence: &Evidence) -> bool {
    evidence
        .pods
        .iter()
        .any(|pod| pod.state == PodState::Active)
}

/// How the container of the last pod ended, for people.
pub(in crate::controller) fn detail(pods: &[Arc<Pod>]) -> Option<String> {
    let ended = pods.iter().filter_map(|pod| {
        let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
        statuses.first()?.state.as_ref()?.terminated.as_ref()
    });
    let last = ended.max_by_key(|ended| ended.finished_at.as_ref().map(|time| time.0))?;
    let code = last.exit_code;
    match last.reason.as_deref() {
        None | Some("Error" | "Completed" | "") => {
            Some(format!("the container ended with exit code {code}"))
        }
        Some(reason) => Some(format!(
            "the container ended with exit code {code} ({reason})"
        )),
    }
}
