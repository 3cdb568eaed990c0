//! The run that a schedule makes: a copy of its target, under a name that follows from the time. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};

use super::plan::Run;
use crate::api::contract::label;
use crate::api::kinds::{AgentRun, OrchestrationRun, Schedule};
use crate::api::text::names::ChildName;

/// The run for this time.
pub(super) fn copy(schedule: &Schedule, target: &Run, due: Timestamp) -> Run {
    match target {
        Run::Agent(run) => {
            let mut spec = run.spec.clone();
            // A target that is stopped never runs itself; its copies do.
            spec.cancel = None;
            spec.idempotency_key = Some(delivery(schedule, due));
            Run::Agent(Arc::new(AgentRun {
                metadata: metadata(schedule, &**run, due),
                spec,
                status: None,
            }))
        }
        Run::Orchestration(run) => {
            let mut spec = run.spec.clone();
            spec.cancel = None;
            spec.delivery_id = Some(delivery(schedule, due));
            Run::Orchestration(Arc::new(OrchestrationRun {
                metadata: metadata(schedule, &**run, due),
                spec,
                status: None,
            }))
        }
    }
}

/// No owner: what was run stays when the schedule goes.
fn metadata<K: Resource>(schedule: &Schedule, target: &K, due: Timestamp) -> ObjectMeta {
    let mut labels: BTreeMap<String, String> = target.labels().clone();
    labels.insert(label::SCHEDULE.to_owned(), schedule.name_any());
    labels.insert(label::DELIVERY_ID.to_owned(), delivery(schedule, due));
    let name = ChildName::derive(&schedule.name_any(), &due.as_second().to_string());
    ObjectMeta {
        name: Some(name.as_str().to_owned()),
        namespace: schedule.namespace(),
        labels: Some(labels),
        ..ObjectMeta::default()
    }
}

/// Tells this time of this very schedule from all others.
fn delivery(schedule: &Schedule, due: Timestamp) -> String {
    let uid = schedule.uid().unwrap_or_default();
    format!("{uid}-{}", due.as_second())
}
