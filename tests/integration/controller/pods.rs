//! Runs whose pods are real: an image of our own on a node of the lab.

use agents::api::contract::label;
use agents::api::kinds::{Agent, AgentProvider, AgentRun};
use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{EvictParams, PostParams};
use serde_json::{Value, json};
use support::{crds, lab::Lab, wait};
use tokio::sync::OnceCell;

use super::scene::{DEADLINE, Scene, condition, holds, phase_of};
use crate::lab::node::import_probe;

/// A scene on a node, with an Agent that behaves as the parameter `behave` says.
pub(crate) async fn stage(lab: &Lab) -> Result<(Scene, String)> {
    static KINDS: OnceCell<String> = OnceCell::const_new();
    KINDS.get_or_try_init(|| crds::install(lab)).await?;
    let image = import_probe(lab).await?;
    let scene = Scene::at(support::namespace_in(lab, "pods").await?, &[]);
    let provider: AgentProvider = serde_json::from_value(json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentProvider", "metadata": {"name": "probe"},
        "spec": {"binary": "/probe", "argsTemplate": ["agent", "{{ parameters.behave }}"],
            "envTemplate": {"TASK": "{{ implementation.text }}"}},
    }))?;
    let agent: Agent = serde_json::from_value(json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "Agent", "metadata": {"name": "coder"},
        "spec": {"providerRef": {"name": "probe"}},
    }))?;
    let params = PostParams::default();
    scene.here.api().create(&params, &provider).await?;
    scene.here.api().create(&params, &agent).await?;
    Ok((scene, image))
}

/// A run that behaves so; `more` goes into its spec.
pub(crate) async fn run(scene: &Scene, image: &str, behave: &str, more: Value) -> Result<AgentRun> {
    let mut spec = json!({
        "parameters": {"behave": behave},
        "workload": {"image": image, "resources": {"limits": {"memory": "64Mi"}}},
    });
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    scene.run(behave, spec).await
}

/// Waits for the end of a run and says how it ended.
async fn end(scene: &Scene, name: &str) -> Result<(String, String, String)> {
    let is_over = |run: &AgentRun| ["Succeeded", "Failed", "Cancelled"].contains(&phase_of(run));
    let run = scene.until(name, is_over).await?;
    let conditions = run
        .status
        .as_ref()
        .and_then(|status| status.conditions.clone());
    let mut conditions = conditions.unwrap_or_default().into_iter();
    let ready = conditions.find(|condition| condition.type_ == "Ready");
    let ready = ready.context("a condition Ready")?;
    scene.until_free(name).await?;
    Ok((
        phase_of(&run).to_owned(),
        ready.reason.unwrap_or_default(),
        ready.message.unwrap_or_default(),
    ))
}

fn ends(phase: &str, reason: &str, message: &str) -> (String, String, String) {
    (phase.to_owned(), reason.to_owned(), message.to_owned())
}

#[tokio::test]
async fn real_pods_end_well_badly_for_lack_of_memory_and_after_their_time() -> Result<()> {
    let lab = support::node_lab!();
    let (scene, image) = stage(lab).await?;
    let _controller = scene.controller_by(lab.kubeconfig())?;
    run(&scene, &image, "succeed", json!({})).await?;
    run(&scene, &image, "fail", json!({})).await?;
    run(&scene, &image, "eat", json!({})).await?;
    let step = json!({"runtime": {"type": "workflow"}, "workflow": {"steps": [{"name": "only", "timeoutSeconds": 3}]}});
    run(&scene, &image, "wait", step).await?;

    assert_eq!(
        end(&scene, "succeed").await?,
        ends("Succeeded", "Completed", "the Job completed")
    );
    let log = scene.here.kubectl.run(&["logs", "job/succeed-job"]).await?;
    assert_eq!(log.ok()?, "Do it.\n");
    assert_eq!(
        end(&scene, "fail").await?,
        ends(
            "Failed",
            "JobFailed",
            "the Job failed: BackoffLimitExceeded; the container ended with exit code 3"
        )
    );
    assert_eq!(
        end(&scene, "eat").await?,
        ends(
            "Failed",
            "JobFailed",
            "the Job failed: BackoffLimitExceeded; the container ended with exit code 137 (OOMKilled)"
        )
    );
    let (phase, reason, _) = end(&scene, "wait").await?;
    assert_eq!((&*phase, &*reason), ("Failed", "WorkflowStepTimedOut"));
    Ok(())
}

/// The pod of a run, once its container works.
async fn working_pod(scene: &Scene, run: &str) -> Result<Pod> {
    let labels = format!("{}={run}", label::AGENT_RUN);
    let works = |pods: &[Pod]| {
        pods.iter().any(|pod| {
            let phase = pod
                .status
                .as_ref()
                .and_then(|status| status.phase.as_deref());
            phase == Some("Running")
        })
    };
    let pods = wait::until_listed(&scene.here.api(), &labels, DEADLINE, works).await?;
    pods.into_iter().next().context("a pod")
}

#[tokio::test]
async fn a_real_pod_that_is_evicted_fails_its_run() -> Result<()> {
    let lab = support::node_lab!();
    let (scene, image) = stage(lab).await?;
    let _controller = scene.controller_by(lab.kubeconfig())?;
    run(&scene, &image, "wait", json!({})).await?;
    let pod = working_pod(&scene, "wait").await?;
    let pods = scene.here.api::<Pod>();
    pods.evict(&pod.name_any(), &EvictParams::default()).await?;
    let (phase, reason, message) = end(&scene, "wait").await?;
    assert_eq!((&*phase, &*reason), ("Failed", "JobFailed"), "{message}");
    assert!(message.contains("exit code 143"), "{message}");
    Ok(())
}

#[tokio::test]
async fn a_real_pod_stops_when_its_run_is_cancelled() -> Result<()> {
    let lab = support::node_lab!();
    let (scene, image) = stage(lab).await?;
    let _controller = scene.controller_by(lab.kubeconfig())?;
    run(&scene, &image, "wait", json!({})).await?;
    let pod = working_pod(&scene, "wait").await?;
    let cancel = r#"{"spec":{"cancel":true}}"#;
    let patch = [
        "patch",
        "agentrun",
        "wait",
        "--type=merge",
        "--patch",
        cancel,
    ];
    scene.here.kubectl.run(&patch).await?.ok()?;
    let cancelled = scene.until_phase("wait", "Cancelled").await?;
    assert_eq!(
        condition(&cancelled, "Cancelled"),
        holds("True", "Cancelled")
    );
    wait::until_gone(&scene.here.api::<Pod>(), &pod.name_any(), DEADLINE).await
}
