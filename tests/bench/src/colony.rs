//! A namespace full of runs: made, carried out by a node that ends every pod as soon as it is there, and watched. [`calls`]
//! counts what a run costs the API server, [`hooked`] puts the webhook in between.

pub mod calls;
pub mod hooked;

use agents::api::{
    contract::label,
    kinds::{Agent, AgentProvider, AgentRun},
};
use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::{
    batch::v1::{Job, JobStatus},
    core::v1::Pod,
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    fmt::Debug,
    time::Duration,
};
use support::Namespace;
use tokio::time::{Instant, timeout};

/// Calls that are made at once.
const AT_ONCE: usize = 16;
/// Nothing that is measured takes longer.
const DEADLINE: Duration = Duration::from_secs(300);

/// Makes an Agent and its provider.
pub async fn settle(here: &Namespace) -> Result<()> {
    let provider: AgentProvider = object("AgentProvider", "shell", json!({"binary": "/agent"}))?;
    let agent: Agent = object("Agent", "coder", json!({"providerRef": {"name": "shell"}}))?;
    here.api().create(&PostParams::default(), &provider).await?;
    here.api().create(&PostParams::default(), &agent).await?;
    Ok(())
}

fn object<K: DeserializeOwned>(kind: &str, name: &str, spec: Value) -> Result<K> {
    let metadata = json!({"name": name});
    let version = "agents.proompteng.ai/v1alpha1";
    let whole = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
    Ok(serde_json::from_value(whole)?)
}

/// A run with one pod.
pub fn run(name: &str) -> Result<AgentRun> {
    let spec = json!({
        "agentRef": {"name": "coder"},
        "implementation": {"inline": {"text": "Do it."}},
        "runtime": {"type": "job"},
        "workload": {"image": "registry.example/agents:1.2.3"},
    });
    object("AgentRun", name, spec)
}

/// A Job with one pod, as plain as can be.
pub fn job(name: &str) -> Result<Job> {
    let container = json!({"name": "agent-runner", "image": "registry.example/agents:1.2.3"});
    let template = json!({
        "metadata": {"labels": {label::AGENT_RUN: name}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    });
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": template},
    }))?)
}

/// Makes objects, several at once.
pub async fn make<K>(here: &Namespace, objects: Vec<K>) -> Result<()>
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + serde::Serialize
        + DeserializeOwned
        + Clone
        + Debug,
{
    let api: Api<K> = here.api();
    stream::iter(objects)
        .map(|object| {
            let api = api.clone();
            async move { api.create(&PostParams::default(), &object).await.map(drop) }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    Ok(())
}

/// Ends every pod of a namespace well as soon as it is there; never returns unless that fails.
pub async fn node(pods: Api<Pod>) -> Result<()> {
    let done = json!({"status": {"phase": "Succeeded", "containerStatuses": [{
        "name": "agent-runner", "image": "x", "imageID": "x", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
    }]}});
    let done = Patch::Merge(done);
    watcher(pods.clone(), watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .try_filter(|pod| {
            let phase = pod
                .status
                .as_ref()
                .and_then(|status| status.phase.as_deref());
            let works = !matches!(phase, Some("Succeeded" | "Failed"));
            std::future::ready(works && pod.metadata.deletion_timestamp.is_none())
        })
        .map_err(anyhow::Error::from)
        .try_for_each_concurrent(AT_ONCE, |pod| {
            let (pods, done) = (pods.clone(), &done);
            async move {
                let params = PatchParams::default();
                match pods.patch_status(&pod.name_any(), &params, done).await {
                    Ok(_) => Ok(()),
                    Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
        })
        .await?;
    bail!("the watch of the pods ended")
}

/// When each of so many objects first was as wanted.
pub async fn when<K>(
    api: Api<K>,
    count: usize,
    wanted: fn(&K) -> bool,
) -> Result<HashMap<String, Instant>>
where
    K: kube::Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
{
    let mut seen = HashMap::new();
    let mut states = watcher(api, watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .boxed();
    let watch = async {
        while seen.len() < count {
            let object = states.try_next().await?.context("the watch ended")?;
            if wanted(&object) {
                seen.entry(object.name_any()).or_insert_with(Instant::now);
            }
        }
        anyhow::Ok(())
    };
    let watched = timeout(DEADLINE, watch).await;
    watched.with_context(|| format!("not {count} objects within {DEADLINE:?}"))??;
    Ok(seen)
}

/// Whether a Job has ended well.
pub fn is_complete(job: &Job) -> bool {
    let conditions = |status: &JobStatus| status.conditions.clone().unwrap_or_default();
    let conditions = job.status.as_ref().map(conditions).unwrap_or_default();
    let complete = |name: &str, status: &str| name == "Complete" && status == "True";
    conditions.iter().any(|it| complete(&it.type_, &it.status))
}

/// Whether the outcome of a run is stored.
pub fn is_stored(run: &AgentRun) -> bool {
    let status = run.status.as_ref();
    status.and_then(|status| status.phase.as_deref()) == Some("Succeeded")
}

/// Writes the status of a run that ended long ago.
pub async fn age(here: &Namespace, names: Vec<String>) -> Result<()> {
    let runs: Api<AgentRun> = here.api();
    let done = json!({"status": {
        "phase": "Succeeded",
        "observedGeneration": 1,
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:01:00Z",
        "updatedAt": "2026-01-01T00:01:00Z",
    }});
    let done = Patch::Merge(done);
    stream::iter(names)
        .map(|name| {
            let (runs, done) = (runs.clone(), &done);
            async move {
                runs.patch_status(&name, &PatchParams::default(), done)
                    .await
                    .map(drop)
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    Ok(())
}

/// The versions of all runs: whoever writes to one changes this.
pub async fn versions(here: &Namespace) -> Result<HashSet<String>> {
    let runs: Api<AgentRun> = here.api();
    let (mut versions, mut params) = (HashSet::new(), ListParams::default().limit(500));
    loop {
        let page = runs.list_metadata(&params).await?;
        versions.extend(
            page.items
                .into_iter()
                .filter_map(|run| run.metadata.resource_version),
        );
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(versions),
        }
    }
}
