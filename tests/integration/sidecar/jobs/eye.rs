//! A sidecar beside a controller or without one, and what is done to the Jobs that it looks at.

use std::path::Path;

use agents::api::contract::env;
use agents::api::kinds::AgentRun;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, Patch, PatchParams};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::{events, lab, metrics::Page, wait};

use crate::controller::scene::{ALONE, DEADLINE, Scene, job_name};
use crate::kit::client::get;
use crate::kit::process::{Process, product};

/// A sidecar that runs.
pub(super) struct Eye {
    pub(super) process: Process,
    pub(super) admin: String,
}

impl Eye {
    /// A sidecar for the namespace of a scene.
    pub(super) fn open(scene: &Scene, kubeconfig: &Path, instance: &str) -> Result<Process> {
        Self::open_with(scene, kubeconfig, instance, &[])
    }

    fn open_with(
        scene: &Scene,
        kubeconfig: &Path,
        instance: &str,
        more: &[(&str, &str)],
    ) -> Result<Process> {
        let mut environment = vec![
            ("KUBECONFIG", kubeconfig.to_str().context("UTF-8")?),
            ("AGENTS_ADMIN_LISTEN", "127.0.0.1:0"),
            ("HOSTNAME", instance),
            (env::NAMESPACES, &scene.here.name),
        ];
        environment.extend(more);
        Ok(Process::start(
            &product("agents-sidecar"),
            &[],
            &environment,
        ))
    }

    pub(super) async fn of(mut process: Process) -> Self {
        let admin = process.address("admin").await.to_string();
        Self { process, admin }
    }

    /// The same, once it sees everything.
    pub(super) async fn at(scene: &Scene, instance: &str) -> Result<Self> {
        Self::with(scene, instance, &[]).await
    }

    /// The same, with more settings.
    pub(super) async fn with(scene: &Scene, instance: &str, more: &[(&str, &str)]) -> Result<Self> {
        let lab = lab::shared().await?;
        let process = Self::open_with(scene, lab.kubeconfig(), instance, more)?;
        let eye = Self::of(process).await;
        eye.until_up().await?;
        Ok(eye)
    }

    pub(super) async fn until_up(&self) -> Result<()> {
        for resource in ["jobs", "pods"] {
            self.until("job_watch_up", &[("resource", resource)], 1.0)
                .await?;
        }
        Ok(())
    }

    /// Waits until a metric has a value, or more.
    pub(super) async fn until(
        &self,
        name: &str,
        labels: &[(&str, &str)],
        least: f64,
    ) -> Result<()> {
        let look = || async {
            let value = self.value(name, labels).await?;
            ensure!(value >= least, "{name} {labels:?} is {value}");
            Ok(())
        };
        wait::retry(name, DEADLINE, look).await
    }

    pub(super) async fn value(&self, name: &str, labels: &[(&str, &str)]) -> Result<f64> {
        let page = Page::scrape(&self.admin).await?;
        let name = format!("agents_sidecar_{name}");
        page.value(&name, labels)
            .with_context(|| format!("no series {name} {labels:?}"))
    }

    pub(super) async fn until_premature(&self, class: &str, stage: &str) -> Result<()> {
        let labels = [("class", class), ("stage", stage)];
        self.until("job_premature_deletions_total", &labels, 1.0)
            .await
    }

    pub(super) async fn until_mode(&self, mode: &str) -> Result<()> {
        self.until("job_watch_mode", &[("mode", mode)], 1.0).await
    }

    pub(super) async fn is_ready(&self) -> Result<bool> {
        Ok(get(self.admin.parse()?, "/readyz").await.status == 200)
    }
}

/// A scene in which these runs are at work and nobody looks after them any more.
pub(super) async fn left_alone(runs: &[&str]) -> Result<Scene> {
    let scene = Scene::with_agent(&[ALONE]).await?;
    let controller = scene.controller().await?;
    begin(&scene, runs).await?;
    controller.signal(Signal::SIGKILL);
    controller.end().await;
    Ok(scene)
}

pub(super) async fn begin(scene: &Scene, runs: &[&str]) -> Result<()> {
    for run in runs {
        scene.run(run, json!({})).await?;
    }
    for run in runs {
        scene.until_phase(run, "Running").await?;
        scene.pod(run).await?;
    }
    Ok(())
}

pub(super) async fn change(scene: &Scene, run: &str, change: Value) -> Result<()> {
    let jobs = scene.here.api::<Job>();
    let change = Patch::Merge(change);
    jobs.patch(&job_name(run), &PatchParams::default(), &change)
        .await?;
    Ok(())
}

/// Takes away all that holds a Job.
pub(super) async fn strip(scene: &Scene, run: &str) -> Result<()> {
    change(scene, run, json!({"metadata": {"finalizers": []}})).await
}

pub(super) async fn delete(scene: &Scene, run: &str, params: &DeleteParams) -> Result<()> {
    scene
        .here
        .api::<Job>()
        .delete(&job_name(run), params)
        .await?;
    Ok(())
}

/// Waits until a run has been told this, and says how many Events of the reason there are and how often they were told.
pub(super) async fn told(scene: &Scene, run: &str, reason: &str) -> Result<Vec<i32>> {
    let run = scene.here.api::<AgentRun>().get(run).await?;
    let said = scene.told(&run, reason).await?;
    let same = said.iter().filter(|said| said.reason == reason);
    Ok(same.map(|said| said.count).collect())
}

pub(super) async fn reasons(scene: &Scene, run: &str) -> Result<Vec<String>> {
    let run = scene.here.api::<AgentRun>().get(run).await?;
    let said = events::about(&scene.here.client, &run).await?;
    Ok(said.into_iter().map(|said| said.reason).collect())
}

pub(super) fn is_complete(job: &Job) -> bool {
    let status = job.status.as_ref();
    status.is_some_and(|status| status.completion_time.is_some())
}
