//! What is known about a Job that is going or gone, as `custody` wants to have it.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use super::Observed;
use super::pods::{report, witness};
use crate::api::custody::{
    CreateCall, Deletion, Evidence, Finding, LastStatus, OwnerState, actor_of, classify,
    deletion_of, last_status_of,
};
use crate::api::kinds::AgentRun;
use crate::api::kinds::shared::JobRef;
use crate::controller::agent_run::{job, turn::job_ref};
use crate::controller::runs::Sight;

/// What was seen of a Job that is going or gone.
pub(in crate::controller) struct Trace<'a> {
    /// The run that it was made for.
    pub(in crate::controller) run: &'a ObjectMeta,
    /// What the status of the run names.
    pub(in crate::controller) reference: Option<&'a JobRef>,
    pub(in crate::controller) job: &'a Sight,
    pub(in crate::controller) pods: &'a [Arc<Pod>],
    /// The container whose last words count.
    pub(in crate::controller) runner: &'static str,
    pub(in crate::controller) now: Timestamp,
    pub(in crate::controller) namespace_terminating: bool,
}

impl Trace<'_> {
    pub(in crate::controller) fn evidence(self) -> Evidence {
        let Self {
            run,
            reference,
            job,
            pods,
            runner,
            now,
            namespace_terminating,
        } = self;
        let (absence, last) = job.absence();
        let stored = reference.and_then(|job| job.deletion.as_ref());
        let stored = stored.and_then(|deletion| {
            Some(Deletion {
                at: deletion.deleted_at?,
                finalizers: deletion.finalizers.clone().unwrap_or_default(),
            })
        });
        let ttl = last.and_then(|job| job.spec.as_ref()?.ttl_seconds_after_finished);
        let uid = reference.and_then(|job| job.uid.as_deref());
        Evidence {
            absence,
            create: match job.was_made() {
                true => CreateCall::Accepted,
                false => CreateCall::Unanswered,
            },
            last_status: last.map_or(LastStatus::Unknown, |job| last_status_of(job)),
            ttl: ttl.map(|seconds| SignedDuration::from_secs(seconds.into())),
            // Finalizers vanish within milliseconds, so the first sight counts.
            deletion: stored.or_else(|| last.and_then(|job| deletion_of(job))),
            noticed_at: now,
            owner: match run.deletion_timestamp {
                Some(_) => OwnerState::Terminating,
                None => OwnerState::Alive,
            },
            namespace_terminating,
            pods: pods.iter().filter_map(|pod| witness(pod)).collect(),
            runner_report: report(pods, runner),
            actor: uid.and_then(|uid| actor_of(run.annotations.as_ref(), uid)),
        }
    }
}

/// When a Job that is going or gone would have been stopped. The cluster sees to that only while it is there. `timeout` is
/// what it got, if nobody saw it.
pub(in crate::controller) fn deadline(
    last: Option<&Arc<Job>>,
    pods: &[Arc<Pod>],
    timeout: Option<i64>,
) -> Option<Timestamp> {
    let seconds = match last {
        Some(job) => job.spec.as_ref()?.active_deadline_seconds,
        None => timeout,
    };
    let seconds = u64::try_from(seconds?).ok()?;
    let started = last.and_then(|job| job.status.as_ref()?.start_time.as_ref());
    // Its pods are held, so the first one is still there, and it is hardly younger than the start.
    let made = pods.iter();
    let made = made.filter_map(|pod| pod.metadata.creation_timestamp.as_ref());
    let first = made.map(|time| time.0).min();
    let start = started.map(|time| time.0).or(first)?;
    start.checked_add(Duration::from_secs(seconds)).ok()
}

/// A Job that the API server refused for certain.
pub(in crate::controller) fn never_made(now: Timestamp) -> Finding {
    let nothing = Trace {
        run: &ObjectMeta::default(),
        reference: None,
        job: &Sight::Absent,
        pods: &[],
        runner: job::CONTAINER,
        now,
        namespace_terminating: false,
    };
    classify(&Evidence {
        create: CreateCall::Refused,
        ..nothing.evidence()
    })
}

pub(super) fn of(seen: &Observed, run: &AgentRun) -> Evidence {
    let trace = Trace {
        run: run.meta(),
        reference: job_ref(run),
        job: &seen.job,
        pods: &seen.pods,
        runner: job::CONTAINER,
        now: seen.now,
        namespace_terminating: seen.namespace_terminating,
    };
    trace.evidence()
}
