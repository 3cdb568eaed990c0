//! Every way in which a Job can go, as a table: what is done to it, and all that the run then shows. Status, Events and
//! metrics are compared whole with `tests/fixtures/lifecycle`.
//!
//! | the Job | our finalizer | is deleted by | case |
//! | --- | --- | --- | --- |
//! | ends well, ends badly | holds | nobody too soon | `well`, `badly` |
//! | has ended | holds | a TTL of 0 while nobody is there | `ttl-held` |
//! | has ended | was taken off | a TTL while nobody is there; its pod is held, or not | `ttl-free`, `ttl-gone` |
//! | has ended | was taken off | someone, in the background | `ended-background` |
//! | has ended | was taken off | someone, without a policy | `ended-orphan` |
//! | has ended and is stored | let go | a TTL that was put off and then brought forward | `ttl-later` |
//! | runs | holds | someone, in the foreground | `running-foreground` |
//! | runs | holds | someone, in the background | `running-background` |
//! | runs | was taken off | someone, in the background | `running-free` |
//! | runs | was taken off | someone, without a policy | `running-orphan` |
//! | runs | holds | the garbage collector, with the run: background, foreground | `owner-background`, `owner-foreground` |
//! | runs | holds | the namespace | `namespace` |
//!
//! A Job of ours never belongs to a CronJob, so no history limit deletes it. That admission refuses a deletion before the
//! outcome is stored is shown in `webhook::guard`.

use agents::api::contract::metric;
use agents::api::kinds::AgentRun;
use anyhow::{Context, Result};
use http::Method;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use nix::sys::signal::Signal;
use serde_json::json;
use support::gateway::Gateway;
use support::otlp::Receiver;
use support::outcome::{Outcome, counted};
use support::{events, lab, wait};

use super::scene::{ALONE, DEADLINE, Scene, condition, phase_of};
use crate::kit::process::Process;

/// What counts runs and their Jobs.
const METRICS: [&str; 4] = [
    metric::RUNS,
    metric::RUN_DURATION,
    metric::OUTCOME_RECORD,
    metric::JOBS_MISSING,
];

/// A run at work, and what is counted about it.
struct Case {
    scene: Scene,
    receiver: Receiver,
    run: AgentRun,
    job: Job,
    pod: Pod,
}

async fn kill(controller: Process) {
    controller.signal(Signal::SIGKILL);
    controller.end().await;
}

impl Case {
    /// A run whose Job runs.
    async fn running() -> Result<(Self, Process)> {
        let (case, controller, _way) = Self::running_behind(false).await?;
        Ok((case, controller))
    }

    /// The same, where what the controller asks for can be held back.
    async fn running_behind(has_way: bool) -> Result<(Self, Process, Option<Gateway>)> {
        let receiver = Receiver::start().await?;
        let endpoint = receiver.endpoint();
        let settings = [ALONE, ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint)];
        let scene = Scene::with_agent(&settings).await?;
        let lab = lab::shared().await?;
        let way = match has_way {
            true => Some(Gateway::open(lab.kubeconfig(), None).await?),
            false => None,
        };
        let kubeconfig = way.as_ref().map_or(lab.kubeconfig(), Gateway::kubeconfig);
        let controller = scene.controller_by(kubeconfig)?;
        scene.run("x", json!({})).await?;
        let run = scene.until_phase("x", "Running").await?;
        let pod = scene.pod("x").await?;
        let job = scene.until_job("x", |_| true).await?;
        let case = Self {
            scene,
            receiver,
            run,
            job,
            pod,
        };
        Ok((case, controller, way))
    }

    /// A run whose pod has ended well while nobody was there to store it.
    async fn ended_alone(ttl: Option<u32>, is_free: bool) -> Result<Self> {
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

    fn jobs(&self) -> Api<Job> {
        self.scene.here.api()
    }

    /// Takes our finalizer off the Job.
    async fn free(&self) -> Result<()> {
        let none = Patch::Merge(json!({"metadata": {"finalizers": []}}));
        let jobs = self.jobs();
        jobs.patch("x-job", &PatchParams::default(), &none).await?;
        Ok(())
    }

    async fn set_ttl(&self, seconds: u32) -> Result<()> {
        let ttl = Patch::Merge(json!({"spec": {"ttlSecondsAfterFinished": seconds}}));
        let jobs = self.jobs();
        jobs.patch("x-job", &PatchParams::default(), &ttl).await?;
        Ok(())
    }

    async fn until_complete(&self) -> Result<()> {
        let is_complete = |job: &Job| {
            let status = job.status.as_ref();
            status.is_some_and(|status| status.completion_time.is_some())
        };
        self.scene.until_job("x", is_complete).await?;
        Ok(())
    }

    async fn delete(&self, how: DeleteParams) -> Result<()> {
        self.jobs().delete("x-job", &how).await?;
        Ok(())
    }

    async fn until_job_is_gone(&self) -> Result<()> {
        wait::until_gone(&self.jobs(), "x-job", DEADLINE).await
    }

    /// Waits until the pod is going, and only held by us.
    async fn until_pod_goes(&self) -> Result<()> {
        let is_going = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
        let pods = self.scene.here.api::<Pod>();
        wait::until(&pods, &self.pod.name_any(), DEADLINE, is_going).await?;
        Ok(())
    }

    /// Waits for the end of the run, ends the controller, and compares all that there is to see.
    async fn agrees(self, name: &str, controller: Process) -> Result<()> {
        let is_over = |run: &AgentRun| ["Succeeded", "Failed"].contains(&phase_of(run));
        self.scene.until("x", is_over).await?;
        self.scene.until_free("x").await?;
        self.compare(name, controller).await
    }

    async fn compare(self, name: &str, controller: Process) -> Result<()> {
        // What is left to tell is told before it ends.
        controller.signal(Signal::SIGTERM);
        let ended = controller.end().await;
        anyhow::ensure!(ended.code == Some(0), "{}", ended.log.join("\n"));
        let metrics = counted(&self.receiver.end().await?, &METRICS);
        let run = self.scene.here.api::<AgentRun>().get_opt("x").await?;
        let status = run.map(|run| serde_json::to_value(run.status));
        let outcome = Outcome {
            status: status.transpose()?.unwrap_or_default(),
            events: events::about(&self.scene.here.client, &self.run).await?,
            metrics,
        };
        let text = |uid: Option<String>| uid.context("a uid");
        let (run, job) = (text(self.run.uid())?, text(self.job.uid())?);
        let pod = self.pod.name_any();
        let known = [
            (&*self.scene.here.name, "the namespace"),
            (&*run, "uid of the run"),
            (&*job, "uid of the Job"),
            (&*pod, "the pod"),
        ];
        outcome.is_agreed(name, &known)
    }
}

/// The controller looks at the pods when the garbage collector has been there, not before.
fn hold_pods(way: &Gateway) {
    way.hold(|method, path| *method == Method::GET && path.ends_with("/pods"));
}

#[tokio::test]
async fn a_job_that_ends_is_stored_and_let_go() -> Result<()> {
    support::kinds!();
    for (name, code) in [("well", 0), ("badly", 3)] {
        let (case, controller) = Case::running().await?;
        case.scene.end_pod("x", code).await?;
        case.agrees(name, controller).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_job_with_a_ttl_of_0_waits_for_who_stores_its_outcome() -> Result<()> {
    support::kinds!();
    let case = Case::ended_alone(Some(0), false).await?;
    let is_going = |job: &Job| job.metadata.deletion_timestamp.is_some();
    case.scene.until_job("x", is_going).await?;
    let controller = case.scene.controller().await?;
    case.until_job_is_gone().await?;
    case.agrees("ttl-held", controller).await
}

#[tokio::test]
async fn a_job_that_nobody_holds_goes_with_its_ttl_and_its_pod_tells() -> Result<()> {
    support::kinds!();
    let case = Case::ended_alone(Some(1), true).await?;
    case.until_pod_goes().await?;
    let controller = case.scene.controller().await?;
    case.agrees("ttl-free", controller).await
}

#[tokio::test]
async fn a_job_that_goes_with_its_pod_while_nobody_is_there_is_lost() -> Result<()> {
    support::kinds!();
    let (case, controller) = Case::running().await?;
    kill(controller).await;
    case.free().await?;
    // All but ours, by which the Job counts it.
    let none = json!({"metadata": {"finalizers": ["batch.kubernetes.io/job-tracking"]}});
    let none = Patch::Merge(none);
    let (pods, pod) = (case.scene.here.api::<Pod>(), case.pod.name_any());
    pods.patch(&pod, &PatchParams::default(), &none).await?;
    case.set_ttl(1).await?;
    case.scene.end_pod("x", 0).await?;
    case.until_job_is_gone().await?;
    wait::until_gone(&pods, &pod, DEADLINE).await?;
    let controller = case.scene.controller().await?;
    case.agrees("ttl-gone", controller).await
}

#[tokio::test]
async fn a_job_that_has_ended_and_is_deleted_leaves_its_pod_to_tell() -> Result<()> {
    support::kinds!();
    for (name, how) in [
        ("ended-background", DeleteParams::background()),
        ("ended-orphan", DeleteParams::default()),
    ] {
        let case = Case::ended_alone(None, false).await?;
        case.until_complete().await?;
        case.free().await?;
        case.delete(how).await?;
        case.until_job_is_gone().await?;
        let controller = case.scene.controller().await?;
        case.agrees(name, controller).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_ttl_on_a_stored_outcome_changes_nothing_but_when_the_job_goes() -> Result<()> {
    support::kinds!();
    let (case, controller) = Case::running().await?;
    case.scene.end_pod("x", 0).await?;
    case.scene.until_phase("x", "Succeeded").await?;
    case.scene.until_free("x").await?;
    case.set_ttl(600).await?;
    case.set_ttl(1).await?;
    case.until_job_is_gone().await?;
    case.agrees("ttl-later", controller).await
}

#[tokio::test]
async fn a_running_job_that_is_deleted_in_the_foreground_is_lost_with_its_pod() -> Result<()> {
    support::kinds!();
    let (case, controller, way) = Case::running_behind(true).await?;
    let way = way.context("a way")?;
    hold_pods(&way);
    case.delete(DeleteParams::foreground()).await?;
    case.until_pod_goes().await?;
    way.release();
    case.agrees("running-foreground", controller).await
}

#[tokio::test]
async fn a_running_job_that_is_deleted_leaves_its_pod_to_tell() -> Result<()> {
    support::kinds!();
    for (name, is_free, how) in [
        ("running-background", false, DeleteParams::background()),
        ("running-orphan", true, DeleteParams::default()),
    ] {
        let (case, controller) = Case::running().await?;
        if is_free {
            case.free().await?;
        }
        case.delete(how).await?;
        let is_told = |run: &AgentRun| condition(run, "JobMissing").is_some();
        case.scene.until("x", is_told).await?;
        case.scene.end_pod("x", 0).await?;
        case.agrees(name, controller).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_running_job_that_nobody_holds_is_lost_with_its_pod() -> Result<()> {
    support::kinds!();
    let (case, controller, way) = Case::running_behind(true).await?;
    let way = way.context("a way")?;
    hold_pods(&way);
    case.free().await?;
    case.delete(DeleteParams::background()).await?;
    case.until_pod_goes().await?;
    way.release();
    case.agrees("running-free", controller).await
}

#[tokio::test]
async fn a_run_that_is_deleted_takes_its_job_along() -> Result<()> {
    support::kinds!();
    for (name, how) in [
        ("owner-background", DeleteParams::background()),
        ("owner-foreground", DeleteParams::foreground()),
    ] {
        let (case, controller) = Case::running().await?;
        let runs = case.scene.here.api::<AgentRun>();
        runs.delete("x", &how).await?;
        wait::until_gone(&runs, "x", DEADLINE).await?;
        case.until_job_is_gone().await?;
        case.scene.until_free("x").await?;
        case.compare(name, controller).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_namespace_that_is_deleted_takes_everything_along() -> Result<()> {
    support::kinds!();
    let (case, controller) = Case::running().await?;
    let namespaces: Api<Namespace> = Api::all(case.scene.here.client.clone());
    let name = &case.scene.here.name;
    namespaces.delete(name, &DeleteParams::background()).await?;
    wait::until_gone(&namespaces, name, DEADLINE).await?;
    case.compare("namespace", controller).await
}
