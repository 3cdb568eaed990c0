//! The Job of a run and the ConfigMaps that it reads. Pure: the same work gives the same objects.
//!
//! The Job is held by a finalizer, and so are its pods, until its outcome is stored; it has no time to live before that.
//! Secrets are mounted and referred to, never copied.

mod documents;
mod pod;
pub(in crate::controller) mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{ConfigMap, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use serde_json::Value;

use super::settings::Runner;
use super::turn::Turn;
use super::vcs::{self, Resolved};
use super::work::Work;
use crate::api::contract::{container, finalizer, label};
use crate::api::kinds::agents::agent_run::WorkflowStep;
use crate::api::kinds::{Agent, AgentRun};
use crate::api::text::names::LabelValue;

/// Name of the container that does the work.
pub(super) const CONTAINER: &str = container::AGENT_RUNNER;

/// What is made for a turn of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Made {
    pub(super) config_maps: Vec<ConfigMap>,
    pub(super) job: Job,
    /// The system prompt, as far as it may be read.
    pub(super) prompt: Option<String>,
    /// The repository.
    pub(super) vcs: Resolved,
}

/// The objects that carry out the work.
///
/// # Errors
///
/// A sentence for people, when settings of the pod cannot be read.
pub(super) fn make(work: &Work<'_>, runner: &Runner) -> Result<Made, String> {
    let run = work.run;
    let config_maps = documents::config_maps(work, runner);
    let metadata = |name: String| ObjectMeta {
        name: Some(name),
        namespace: run.namespace(),
        labels: Some(labels(work)),
        owner_references: Some(vec![owner(run)]),
        ..ObjectMeta::default()
    };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels(work)),
            finalizers: Some(vec![finalizer::EVIDENCE.to_owned()]),
            ..ObjectMeta::default()
        }),
        spec: Some(pod::spec(work, runner)?),
    };
    let job = Job {
        metadata: ObjectMeta {
            finalizers: Some(vec![finalizer::OUTCOME.to_owned()]),
            ..metadata(work.turn.job(run))
        },
        spec: Some(JobSpec {
            backoff_limit: Some(backoff_limit(work, runner)),
            active_deadline_seconds: timeout(work.step, Some(work.agent)),
            // A pod that is still ending may still act: its successor waits for its end.
            pod_replacement_policy: Some("Failed".to_owned()),
            template,
            ..JobSpec::default()
        }),
        status: None,
    };
    let config_maps = config_maps.into_iter().map(|(name, data)| ConfigMap {
        metadata: metadata(name),
        data: Some(data),
        ..ConfigMap::default()
    });
    Ok(Made {
        config_maps: config_maps.collect(),
        job,
        prompt: work.prompt_text.clone(),
        vcs: work.vcs.clone(),
    })
}

/// Seconds after which the cluster stops the Job: as its step says, else the agent. It does so without us, and says so
/// only when the pods have ended.
pub(super) fn timeout(step: Option<&WorkflowStep>, agent: Option<&Agent>) -> Option<i64> {
    let own = step.and_then(|step| step.timeout_seconds);
    let timeout = own.or_else(|| agent?.spec.defaults.as_ref()?.timeout_seconds);
    timeout.filter(|seconds| *seconds > 0)
}

/// How often a failed pod is tried again: as the run says, else its agent, else the operator.
fn backoff_limit(work: &Work<'_>, runner: &Runner) -> i32 {
    let config = work.run.spec.runtime.config.as_ref();
    let own = config.and_then(|config| config.get("backoffLimit")?.as_f64());
    let own = own.map(|limit| limit.trunc().clamp(0.0, f64::from(i32::MAX)));
    let defaults = work.agent.spec.defaults.as_ref();
    let agents = defaults.and_then(|defaults| defaults.retry_limit);
    let limit = own
        .map(|limit| format!("{limit:.0}").parse().unwrap_or_default())
        .or(agents)
        .unwrap_or_else(|| i64::try_from(runner.backoff_limit).unwrap_or_default());
    i32::try_from(limit.max(0)).unwrap_or(i32::MAX)
}

/// The same on Job, pods and ConfigMaps.
fn labels(work: &Work<'_>) -> BTreeMap<String, String> {
    let Work {
        run,
        agent,
        provider,
        ..
    } = work;
    let normal = |text: &str| LabelValue::normalise(text).as_str().to_owned();
    let mut labels = BTreeMap::from([
        (label::AGENT_RUN.to_owned(), run.name_any()),
        (label::RUN_UID.to_owned(), run.uid().unwrap_or_default()),
        (label::AGENT.to_owned(), normal(&agent.name_any())),
        (label::PROVIDER.to_owned(), normal(&provider.name_any())),
    ]);
    if let Some(reference) = &run.spec.implementation_spec_ref {
        let name = normal(&reference.name);
        labels.insert(label::IMPLEMENTATION.to_owned(), name);
    }
    labels.extend(work.turn.labels(run));
    labels
}

/// The run owns what is made for it. It is not held back by it, since its own finalizer waits for what matters.
fn owner(run: &AgentRun) -> OwnerReference {
    OwnerReference {
        api_version: AgentRun::api_version(&()).into_owned(),
        kind: AgentRun::kind(&()).into_owned(),
        name: run.name_any(),
        uid: run.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

/// What templates can refer to.
fn scope(work: &Work<'_>) -> Value {
    let Work {
        run,
        agent,
        implementation,
        memory,
        parameters,
        ..
    } = work;
    serde_json::json!({
        "agentRun": {"name": run.name_any(), "uid": run.uid(), "namespace": run.namespace()},
        "agent": {"name": agent.name_any(), "config": agent.spec.config, "env": agent.spec.env},
        "implementation": implementation,
        "parameters": parameters,
        "memory": memory,
        "vcs": work.vcs.used().map_or_else(|| serde_json::json!({}), vcs::document),
        "step": place(work),
    })
}

/// Which try of which step it is; nothing for a run that is one turn.
fn place(work: &Work<'_>) -> Option<Value> {
    let (Turn::Step(this), Some(step)) = (work.turn, work.step) else {
        return None;
    };
    Some(serde_json::json!({
        "name": step.name, "index": this.index + 1, "iteration": this.iteration, "attempt": this.attempt,
    }))
}
