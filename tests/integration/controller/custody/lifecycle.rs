//! Every way in which a Job can go, as a table: what is done to it, and all that the run then shows. Status, Events and
//! metrics are compared whole with `tests/fixtures/lifecycle`.
//!
//! | the Job | our finalizer | is deleted by | case |
//! | --- | --- | --- | --- |
//! | ends well, ends badly | holds | nobody too soon | `well`, `badly` |
//! | has ended | holds | a TTL of 0 while nobody is there | `ttl-held` |
//! | has ended | was taken off | a TTL while nobody is there; its pod is held, or not | `ttl-free`, `ttl-gone` |
//! | has ended | was taken off | someone, in the background, while nobody is there | `ended-background` |
//! | has ended | was taken off | someone, without a policy, while nobody is there | `ended-orphan` |
//! | has ended | is taken off when it goes | someone, in the background, and the controller hears of it | `ended-heard` |
//! | has ended | holds | the garbage collector, with the run, while nobody is there | `ended-owner` |
//! | has ended and is stored | let go | a TTL that was put off and then brought forward | `ttl-later` |
//! | runs | holds | someone, in the foreground | `running-foreground` |
//! | runs | holds | someone, in the background | `running-background` |
//! | runs | was taken off | someone, in the background | `running-free` |
//! | runs | was taken off | someone, without a policy | `running-orphan` |
//! | runs | holds | the garbage collector, with the run: background, foreground | `owner-background`, `owner-foreground` |
//! | runs | holds | the namespace | `namespace` |
//!
//! What a delete leaves behind, and where it is shown that nothing is lost by it:
//!
//! | what the cluster does | shown by |
//! | --- | --- |
//! | a TTL deletes in the foreground: the finalizer `foregroundDeletion`, then everything is gone | `ttl-free`, `ttl-gone` |
//! | a TTL of 0 with our finalizer: the pods would go at once, the Job stays until it is let go | `ttl-held` |
//! | a deletion in the background is one last word without a warning | `ended-background`, `running-free` |
//! | a deletion without a policy leaves pods that belong to nobody | `ended-orphan`, `running-orphan` |
//! | the last word of the watch holds the whole last status | `ended-heard` |
//! | the owner goes, in the background or the foreground | `ended-owner`, `owner-background`, `owner-foreground` |
//! | the namespace goes | `namespace` |
//! | a running Job that we hold, deleted in the foreground, never says how it ended | `running-foreground`, with a real pod `pod-foreground` |
//! | a running Job that we hold, deleted in the background: its pod works on and nobody counts it | `running-background` |
//! | our finalizer in the template of the pods: they stay with their Job, or alone, until they are read | `ttl-held`, `ended-background` |
//! | a TTL counts from the end of the Job, also if it is set later | `ttl-later` |
//! | admission refuses a deletion until the outcome is stored | `webhook::guard` |
//! | a CronJob deletes what is beyond its history | none: a Job of ours never belongs to a CronJob |
//!
//! The main ones are shown again with real pods in `pods`.

use agents::api::contract::env;
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
use support::{lab, wait};

use super::witness::{Known, Witness};
use crate::controller::scene::{ALONE, DEADLINE, Scene, condition, phase_of};
use crate::kit::process::Process;

/// A run at work, and what is counted about it.
struct Case {
    scene: Scene,
    witness: Witness,
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
        let (scene, witness) = Self::scene(&[]).await?;
        let controller = scene.controller().await?;
        let case = Self::run(scene, witness).await?;
        Ok((case, controller))
    }

    /// The same, where what the controller asks for can be held back.
    async fn running_behind(settings: &[(&str, &str)]) -> Result<(Self, Process, Gateway)> {
        let (scene, witness) = Self::scene(settings).await?;
        let way = Gateway::open(lab::shared().await?.kubeconfig(), None).await?;
        let controller = scene.controller_by(way.kubeconfig())?;
        let case = Self::run(scene, witness).await?;
        Ok((case, controller, way))
    }

    async fn scene(settings: &[(&str, &str)]) -> Result<(Scene, Witness)> {
        let witness = Witness::start().await?;
        let endpoint = witness.endpoint();
        let own = [ALONE, ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint)];
        let scene = Scene::with_agent(&[&own[..], settings].concat()).await?;
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

/// The controller looks at the pods when the garbage collector has been there, not before.
pub(super) fn hold_pods(way: &Gateway) {
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

/// The one who works on runs is kept busy with another one meanwhile.
#[tokio::test]
async fn a_job_that_goes_tells_with_its_last_word_how_it_ended() -> Result<()> {
    support::kinds!();
    let narrow = [(env::WORKERS, "1"), ("OTEL_METRIC_EXPORT_INTERVAL", "1000")];
    let (mut case, controller, way) = Case::running_behind(&narrow).await?;
    way.hold(|method, path| *method == Method::PATCH && path.contains("/agentruns/busy"));
    let nobody = json!({"agentRef": {"name": "nobody"}});
    case.scene.run("busy", nobody).await?;
    way.until_holding(DEADLINE).await?;
    case.scene.end_pod("x", 0).await?;
    case.witness.until_unrecorded(1.0).await?;
    case.delete(DeleteParams::background()).await?;
    case.free().await?;
    case.witness.until_unrecorded(0.0).await?;
    way.release();
    case.agrees("ended-heard", controller).await
}

#[tokio::test]
async fn a_run_that_is_deleted_after_its_job_has_ended_goes_with_it() -> Result<()> {
    support::kinds!();
    let case = Case::ended_alone(None, false).await?;
    case.until_complete().await?;
    let runs = case.scene.here.api::<AgentRun>();
    runs.delete("x", &DeleteParams::background()).await?;
    let controller = case.scene.controller().await?;
    wait::until_gone(&runs, "x", DEADLINE).await?;
    case.until_job_is_gone().await?;
    case.scene.until_free("x").await?;
    case.compare("ended-owner", controller).await
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
    let (case, controller, way) = Case::running_behind(&[]).await?;
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
    let (case, controller, way) = Case::running_behind(&[]).await?;
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
