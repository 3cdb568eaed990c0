//! A run at work, and what can be done to its Job.

use agents::api::contract::env;
use agents::api::kinds::AgentRun;
use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use nix::sys::signal::Signal;
use serde_json::json;
use support::gateway::Gateway;
use support::{lab, wait};

use super::witness::{Known, Witness};
use crate::controller::scene::{ALONE, DEADLINE, Scene, phase_of};
use crate::kit::process::Process;

/// A run at work, and what is counted about it.
pub(super) struct Case {
    pub(super) scene: Scene,
    pub(super) witness: Witness,
    pub(super) run: AgentRun,
    job: Job,
    pub(super) pod: Pod,
}

pub(super) async fn kill(controller: Process) {
    controller.signal(Signal::SIGKILL);
    controller.end().await;
}

impl Case {
    /// A run whose Job runs.
    pub(super) async fn running() -> Result<(Self, Process)> {
        let (scene, witness) = Self::scene().await?;
        let controller = scene.controller().await?;
        let case = Self::run(scene, witness).await?;
        Ok((case, controller))
    }

    /// The same, where what the controller asks for can be held back.
    pub(super) async fn running_behind() -> Result<(Self, Process, Gateway)> {
        let (scene, witness) = Self::scene().await?;
        let way = Gateway::open(lab::shared().await?.kubeconfig(), None).await?;
        let controller = scene.controller_by(way.kubeconfig())?;
        let case = Self::run(scene, witness).await?;
        Ok((case, controller, way))
    }

    /// The same, and who works on runs is busy with another one: what happens to this one is seen by the watch alone until
    /// the way is released. The scene is made with the settings of its controllers.
    pub(super) async fn running_unseen(
        scene: impl AsyncFnOnce(&[(&str, &str)]) -> Result<Scene>,
    ) -> Result<(Self, Process, Gateway)> {
        let witness = Witness::start().await?;
        let endpoint = witness.endpoint();
        let settings = [
            ALONE,
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
            ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
            (env::WORKERS, "1"),
        ];
        let scene = scene(&settings).await?;
        let way = Gateway::open(lab::shared().await?.kubeconfig(), None).await?;
        let controller = scene.controller_by(way.kubeconfig())?;
        let case = Self::run(scene, witness).await?;
        case.scene.keep_busy(&way).await?;
        Ok((case, controller, way))
    }

    async fn scene() -> Result<(Scene, Witness)> {
        let witness = Witness::start().await?;
        let endpoint = witness.endpoint();
        let own = [ALONE, ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint)];
        let scene = Scene::with_agent(&own).await?;
        Ok((scene, witness))
    }

    async fn run(scene: Scene, witness: Witness) -> Result<Self> {
        scene.run("x", json!({})).await?;
        let run = scene.until_phase("x", "Running").await?;
        let pod = scene.pod("x").await?;
        let job = scene.until_job("x", |_| true).await?;
        Ok(Self {
            scene,
            witness,
            run,
            job,
            pod,
        })
    }

    /// A run whose pod has ended well while nobody was there to store it.
    pub(super) async fn ended_alone(ttl: Option<u32>, is_free: bool) -> Result<Self> {
        let (case, controller) = Self::running().await?;
        kill(controller).await;
        if is_free {
            case.free().await?;
        }
        if let Some(ttl) = ttl {
            case.set_ttl(ttl).await?;
        }
        case.scene.end_pod("x", 0).await?;
        Ok(case)
    }

    pub(super) fn jobs(&self) -> Api<Job> {
        self.scene.here.api()
    }

    /// Takes our finalizer off the Job.
    pub(super) async fn free(&self) -> Result<()> {
        let none = Patch::Merge(json!({"metadata": {"finalizers": []}}));
        let jobs = self.jobs();
        jobs.patch("x-job", &PatchParams::default(), &none).await?;
        Ok(())
    }

    /// Takes our finalizer off the pod, and leaves the one by which the Job counts it.
    pub(super) async fn free_pod(&self) -> Result<()> {
        let none = json!({"metadata": {"finalizers": ["batch.kubernetes.io/job-tracking"]}});
        let (pods, pod) = (self.scene.here.api::<Pod>(), self.pod.name_any());
        let none = Patch::Merge(none);
        pods.patch(&pod, &PatchParams::default(), &none).await?;
        Ok(())
    }

    pub(super) async fn until_pod_is_gone(&self) -> Result<()> {
        let pods = self.scene.here.api::<Pod>();
        wait::until_gone(&pods, &self.pod.name_any(), DEADLINE).await
    }

    pub(super) async fn set_ttl(&self, seconds: u32) -> Result<()> {
        let ttl = Patch::Merge(json!({"spec": {"ttlSecondsAfterFinished": seconds}}));
        let jobs = self.jobs();
        jobs.patch("x-job", &PatchParams::default(), &ttl).await?;
        Ok(())
    }

    pub(super) async fn until_complete(&self) -> Result<()> {
        let is_complete = |job: &Job| {
            let status = job.status.as_ref();
            status.is_some_and(|status| status.completion_time.is_some())
        };
        self.scene.until_job("x", is_complete).await?;
        Ok(())
    }

    pub(super) async fn delete(&self, how: DeleteParams) -> Result<()> {
        self.jobs().delete("x-job", &how).await?;
        Ok(())
    }

    pub(super) async fn until_job_is_gone(&self) -> Result<()> {
        wait::until_gone(&self.jobs(), "x-job", DEADLINE).await
    }

    /// Waits until the pod is going, and only held by us.
    pub(super) async fn until_pod_goes(&self) -> Result<()> {
        let is_going = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
        let pods = self.scene.here.api::<Pod>();
        wait::until(&pods, &self.pod.name_any(), DEADLINE, is_going).await?;
        Ok(())
    }

    /// Waits for the end of the run, ends the controller, and compares all that there is to see.
    pub(super) async fn agrees(self, name: &str, controller: Process) -> Result<()> {
        let is_over =
            |run: &AgentRun| ["Succeeded", "Failed", "Cancelled"].contains(&phase_of(run));
        self.scene.until("x", is_over).await?;
        self.scene.until_free("x").await?;
        self.compare(name, controller).await
    }

    pub(super) async fn compare(self, name: &str, controller: Process) -> Result<()> {
        let job = self.job.uid().context("a uid")?;
        let pod = self.pod.name_any();
        let known = Known {
            run: &self.run,
            job: &job,
            pod: &pod,
        };
        let seen = self.witness.end(controller).await?;
        seen.agrees(name, &self.scene, known).await
    }
}
