//! The cases that a controller would record at once if it were not busy, each with the controller there and away: what the
//! sidecar tells meanwhile is what the controller stores when it comes to it, and it is told once.

use agents::api::contract::env;
use agents::api::kinds::AgentRun;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use nix::sys::signal::Signal;
use serde_json::json;
use support::{events, gateway::Gateway, lab, wait};

use super::eye::{Eye, begin, change, delete, is_complete, left_alone, reasons, strip, told};
use crate::controller::scene::{ALONE, DEADLINE, Scene};
use crate::events::within_the_hour;
use crate::kit::process::Process;
use crate::webhook::hook::Station;

/// One worker, which one run can keep busy.
const NARROW: [(&str, &str); 2] = [ALONE, (env::WORKERS, "1")];
/// Who deletes Jobs here.
const JANE: &str = "jane@example.com";

/// Runs at work, and a controller that is there.
async fn watched(scene: &Scene, runs: &[&str]) -> Result<(Process, Gateway)> {
    let way = Gateway::open(lab::shared().await?.kubeconfig(), None).await?;
    let controller = scene.controller_by(way.kubeconfig())?;
    begin(scene, runs).await?;
    Ok((controller, way))
}

/// Ends the pod of a run, and waits until its Job says so.
async fn end(scene: &Scene, run: &str) -> Result<()> {
    scene.end_pod(run, 0).await?;
    scene.until_job(run, is_complete).await?;
    Ok(())
}

/// How often a run was told this in all.
async fn times(scene: &Scene, run: &str, reason: &str) -> Result<usize> {
    let told = reasons(scene, run).await?;
    Ok(told.iter().filter(|told| *told == reason).count())
}

/// The class that the controller stored, and who deleted the Job.
fn missing(run: &AgentRun) -> Option<(String, Option<String>)> {
    let missing = run.status.as_ref()?.job_ref.as_ref()?.missing.as_ref()?;
    Some((missing.class.clone()?, missing.actor.clone()))
}

async fn loses_its_finalizer(scene: &Scene, eye: &Eye) -> Result<()> {
    strip(scene, "bare").await?;
    ensure!(told(scene, "bare", "JobFinalizerRemoved").await? == [1]);
    let hazard = [("hazard", "finalizer_removed")];
    eye.until("job_hazards_total", &hazard, 1.0).await
}

async fn leaves_its_pods(scene: &Scene, eye: &Eye) -> Result<()> {
    end(scene, "left").await?;
    // Without a policy the API server leaves pods to themselves.
    delete(scene, "left", &DeleteParams::default()).await?;
    eye.until_premature("JobDeletedOrphaned", "asked").await?;
    eye.until("job_orphaned_pods", &[], 1.0).await?;
    strip(scene, "left").await?;
    ensure!(told(scene, "left", "JobDeletedOrphaned").await? == [1]);
    eye.until_premature("JobDeletedOrphaned", "gone").await
}

async fn goes_after_its_end(scene: &Scene, eye: &Eye) -> Result<()> {
    end(scene, "ended").await?;
    eye.until("job_unrecorded", &[], 1.0).await?;
    delete(scene, "ended", &DeleteParams::background()).await?;
    eye.until_premature("JobDeletedUnknown", "asked").await?;
    ensure!(
        times(scene, "ended", "JobDeletedUnknown").await? == 0,
        "it is held"
    );
    strip(scene, "ended").await?;
    ensure!(told(scene, "ended", "JobDeletedUnknown").await? == [1]);
    eye.until_premature("JobDeletedUnknown", "gone").await
}

async fn outlives_its_time(scene: &Scene, eye: &Eye) -> Result<()> {
    let ttl = json!({"spec": {"ttlSecondsAfterFinished": 0}});
    change(scene, "ttl", ttl).await?;
    ensure!(told(scene, "ttl", "JobTtlInjected").await? == [1]);
    scene.end_pod("ttl", 0).await?;
    eye.until_premature("JobTtlExpired", "asked").await?;
    strip(scene, "ttl").await?;
    ensure!(told(scene, "ttl", "JobTtlExpired").await? == [1]);
    eye.until_premature("JobTtlExpired", "gone").await
}

#[tokio::test]
async fn what_goes_while_the_controller_is_busy_is_told_at_once_and_stored_when_it_comes_to_it()
-> Result<()> {
    support::kinds!();
    within_the_hour(async || {
        let scene = Scene::with_agent(&NARROW).await?;
        let (_controller, way) = watched(&scene, &["bare", "left", "ended", "ttl"]).await?;
        let eye = Eye::at(&scene, "sidecar-0").await?;
        scene.keep_busy(&way).await?;
        loses_its_finalizer(&scene, &eye).await?;
        leaves_its_pods(&scene, &eye).await?;
        goes_after_its_end(&scene, &eye).await?;
        outlives_its_time(&scene, &eye).await?;
        way.release();
        for (run, class) in [
            ("left", "JobDeletedOrphaned"),
            ("ended", "JobDeletedUnknown"),
            ("ttl", "JobTtlExpired"),
        ] {
            let done = scene.until_phase(run, "Succeeded").await?;
            ensure!(missing(&done) == Some((class.to_owned(), None)), "{run}");
            scene.told(&done, "OutcomeRecovered").await?;
            ensure!(times(&scene, run, class).await? == 1, "{run}");
        }
        scene.until_phase("bare", "Running").await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_that_goes_after_its_end_is_told_while_the_controller_is_away() -> Result<()> {
    support::kinds!();
    within_the_hour(async || {
        let scene = left_alone(&["ended"]).await?;
        let eye = Eye::at(&scene, "sidecar-0").await?;
        goes_after_its_end(&scene, &eye).await
    })
    .await
}

/// Webhook and sidecar, with the controller away and with it there.
#[tokio::test]
async fn who_deleted_a_job_is_named() -> Result<()> {
    support::own_lab!();
    let (station, _policy) = Station::lenient().await?;
    within_the_hour(async || {
        for is_there in [false, true] {
            let here = station.registered.namespace("named").await?;
            let scene = Scene::at(here, &NARROW);
            scene.make_agent().await?;
            let (controller, way) = watched(&scene, &["ended"]).await?;
            let eye = Eye::at(&scene, "sidecar-0").await?;
            let controller = match is_there {
                true => {
                    scene.keep_busy(&way).await?;
                    Some(controller)
                }
                false => {
                    controller.signal(Signal::SIGKILL);
                    controller.end().await;
                    None
                }
            };
            end(&scene, "ended").await?;
            scene.delete_job_as("ended", JANE).await?;
            strip(&scene, "ended").await?;
            let run = scene.here.api::<AgentRun>().get("ended").await?;
            let is_it = |said: &events::Said| said.reason == "JobDeletedByActor";
            let said = events::until(&scene.here.client, &run, DEADLINE, is_it).await?;
            ensure!(said.note.contains(&format!("by {JANE}")), "{}", said.note);
            eye.until_premature("JobDeletedByActor", "gone").await?;
            way.release();
            if controller.is_none() {
                continue;
            }
            let done = scene.until_phase("ended", "Succeeded").await?;
            let named = ("JobDeletedByActor".to_owned(), Some(JANE.to_owned()));
            ensure!(missing(&done) == Some(named), "{:?}", missing(&done));
            scene.told(&done, "OutcomeRecovered").await?;
            ensure!(times(&scene, "ended", "JobDeletedByActor").await? == 1);
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_goes_with_its_run_or_its_namespace_is_counted_and_not_told() -> Result<()> {
    support::kinds!();
    let scene = left_alone(&["owned", "here"]).await?;
    let eye = Eye::at(&scene, "sidecar-0").await?;
    let runs = scene.here.api::<AgentRun>();
    let free = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    let owned = runs.patch("owned", &PatchParams::default(), &free).await?;
    runs.delete("owned", &DeleteParams::background()).await?;
    eye.until_premature("OwnerDeleted", "asked").await?;
    let said = events::about(&scene.here.client, &owned).await?;
    let told = said.iter().any(|said| said.reason == "OwnerDeleted");
    ensure!(!told, "{said:?}");
    let namespaces: Api<Namespace> = Api::all(scene.here.client.clone());
    let name = &scene.here.name;
    namespaces.delete(name, &DeleteParams::background()).await?;
    // Pods go first, and a namespace asks for nothing else while one of them is held by a controller that is away.
    for run in ["owned", "here"] {
        let pod = scene.pod(run).await?.name_any();
        let pods = scene.here.api::<Pod>();
        pods.patch(&pod, &PatchParams::default(), &free).await?;
    }
    eye.until_premature("NamespaceTerminating", "asked").await?;
    // Who holds the rest is away, so it is let go here.
    let _controller = scene.controller().await?;
    wait::until_gone(&namespaces, name, DEADLINE)
        .await
        .context("the namespace stays")
}

#[tokio::test]
async fn what_goes_is_told_as_the_operator_wishes() -> Result<()> {
    support::kinds!();
    for (setting, expected) in [
        ((env::EVENTS_ENABLED, "true"), 2),
        ((env::EVENTS_ENABLED, "false"), 0),
        ((env::EVENTS_RATE_LIMIT_PER_MIN, "1"), 1),
    ] {
        let scene = left_alone(&["lost"]).await?;
        let eye = Eye::with(&scene, "sidecar-0", &[setting]).await?;
        strip(&scene, "lost").await?;
        let hazard = [("hazard", "finalizer_removed")];
        eye.until("job_hazards_total", &hazard, 1.0).await?;
        delete(&scene, "lost", &DeleteParams::background()).await?;
        eye.until_premature("JobDeletedWhileRunning", "gone")
            .await?;
        // What is left to tell is told before it ends.
        eye.process.signal(Signal::SIGTERM);
        eye.process.end().await;
        let told = reasons(&scene, "lost").await?;
        let own = ["JobFinalizerRemoved", "JobDeletedWhileRunning"];
        let told = told.iter().filter(|told| own.contains(&told.as_str()));
        ensure!(told.count() == expected, "{setting:?}");
    }
    Ok(())
}
