//! Runs whose pods are real: an image of our own on a node of the lab. How each of them ends is compared whole, as in
//! `lifecycle`: status, Events and metrics. A pod that ends by itself must show what one of the table there shows.

use std::path::Path;

use agents::api::kinds::{Agent, AgentProvider, AgentRun};
use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, EvictParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use support::{crds, gateway::Gateway, lab::Lab, wait};
use tokio::sync::OnceCell;

use super::lifecycle::hold_pods;
use super::witness::{Known, Witness};
use crate::controller::scene::{DEADLINE, Scene, phase_of};
use crate::kit::process::Process;
use crate::lab::node::import_probe;

/// A scene on a node, with an Agent that behaves as the parameter `behave` says. The settings hold for every controller.
pub(crate) async fn stage(lab: &Lab, settings: &[(&str, &str)]) -> Result<(Scene, String)> {
    static KINDS: OnceCell<String> = OnceCell::const_new();
    KINDS.get_or_try_init(|| crds::install(lab)).await?;
    let image = import_probe(lab).await?;
    let scene = Scene::at(support::namespace_in(lab, "pods").await?, settings);
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

/// A run that behaves so and is called so; `more` goes into its spec.
pub(crate) async fn run(scene: &Scene, image: &str, behave: &str, more: Value) -> Result<AgentRun> {
    scene.run(behave, spec(image, behave, more)).await
}

fn spec(image: &str, behave: &str, more: Value) -> Value {
    let mut spec = json!({
        "parameters": {"behave": behave},
        "workload": {"image": image, "resources": {"limits": {"memory": "64Mi"}}},
    });
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    spec
}

/// A run on a node, and what is counted about it.
struct Case {
    scene: Scene,
    witness: Witness,
    controller: Process,
    run: AgentRun,
    pod: Pod,
}

impl Case {
    /// A run whose Agent behaves so, once it has its pod; `more` goes into its spec.
    async fn start(lab: &Lab, behave: &str, more: Value) -> Result<Self> {
        Self::start_by(lab, lab.kubeconfig(), behave, more).await
    }

    /// The same, by another way to the API server.
    async fn start_by(lab: &Lab, way: &Path, behave: &str, more: Value) -> Result<Self> {
        let witness = Witness::start().await?;
        let endpoint = witness.endpoint();
        let (scene, image) = stage(lab, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint)]).await?;
        let controller = scene.controller_by(way)?;
        let run = scene.run("x", spec(&image, behave, more)).await?;
        let pod = scene.pod("x").await?;
        Ok(Self {
            scene,
            witness,
            controller,
            run,
            pod,
        })
    }

    /// The same, once the container works and the run says so.
    async fn at_work(lab: &Lab, way: &Path) -> Result<Self> {
        let case = Self::start_by(lab, way, "wait", json!({})).await?;
        case.until_pod_is("Running").await?;
        case.scene.until_phase("x", "Running").await?;
        Ok(case)
    }

    async fn until_pod_is(&self, phase: &str) -> Result<()> {
        let is_it = |pod: &Pod| {
            let status = pod.status.as_ref();
            status.and_then(|status| status.phase.as_deref()) == Some(phase)
        };
        let (pods, pod) = (self.scene.here.api::<Pod>(), self.pod.name_any());
        wait::until(&pods, &pod, DEADLINE, is_it).await?;
        Ok(())
    }

    /// Waits for the end of the run, and compares all that there is to see.
    async fn agrees(self, name: &str) -> Result<()> {
        let is_over =
            |run: &AgentRun| ["Succeeded", "Failed", "Cancelled"].contains(&phase_of(run));
        self.scene.until("x", is_over).await?;
        self.scene.until_free("x").await?;
        let owner = self.pod.owner_references().first().context("an owner")?;
        let pod = self.pod.name_any();
        let known = Known {
            run: &self.run,
            job: &owner.uid,
            pod: &pod,
        };
        let seen = self.witness.end(self.controller).await?;
        seen.agrees(name, &self.scene, known).await
    }
}

#[tokio::test]
async fn real_pods_end_well_badly_for_lack_of_memory_and_after_their_time() -> Result<()> {
    let lab = support::node_lab!();
    let step = json!({"runtime": {"type": "workflow"}, "workflow": {"steps": [{"name": "only", "timeoutSeconds": 3}]}});
    let (well, badly, memory, overdue) = tokio::try_join!(
        Case::start(lab, "succeed", json!({})),
        Case::start(lab, "fail", json!({})),
        Case::start(lab, "eat", json!({})),
        Case::start(lab, "wait", step),
    )?;
    well.scene.until_phase("x", "Succeeded").await?;
    let log = well.scene.here.kubectl.run(&["logs", "job/x-job"]).await?;
    assert_eq!(log.ok()?, "Do it.\n");
    well.agrees("well").await?;
    badly.agrees("badly").await?;
    memory.agrees("pod-memory").await?;
    overdue.agrees("pod-overdue").await
}

#[tokio::test]
async fn a_real_pod_that_is_evicted_fails_its_run() -> Result<()> {
    let lab = support::node_lab!();
    let case = Case::at_work(lab, lab.kubeconfig()).await?;
    let pods = case.scene.here.api::<Pod>();
    let pod = case.pod.name_any();
    pods.evict(&pod, &EvictParams::default()).await?;
    case.agrees("pod-evicted").await
}

#[tokio::test]
async fn a_real_pod_whose_job_is_deleted_is_stopped_and_tells_how_it_ended() -> Result<()> {
    let lab = support::node_lab!();
    let way = Gateway::open(lab.kubeconfig(), None).await?;
    let case = Case::at_work(lab, way.kubeconfig()).await?;
    hold_pods(&way);
    let jobs = case.scene.here.api::<Job>();
    jobs.delete("x-job", &DeleteParams::foreground()).await?;
    case.until_pod_is("Failed").await?;
    way.release();
    case.agrees("pod-foreground").await
}

#[tokio::test]
async fn a_real_pod_stops_when_its_run_is_cancelled() -> Result<()> {
    let lab = support::node_lab!();
    let case = Case::at_work(lab, lab.kubeconfig()).await?;
    let cancel = Patch::Merge(json!({"spec": {"cancel": true}}));
    let runs = case.scene.here.api::<AgentRun>();
    runs.patch("x", &PatchParams::default(), &cancel).await?;
    let pods = case.scene.here.api::<Pod>();
    wait::until_gone(&pods, &case.pod.name_any(), DEADLINE).await?;
    case.agrees("pod-cancelled").await
}
