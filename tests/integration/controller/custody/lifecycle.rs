//! Every way in which a Job can go, as a table: what is done to it, and all that the run then shows. Status, Events and
//! metrics are compared whole with `tests/fixtures/lifecycle`.
//!
//! | the Job | our finalizer | is deleted by | case |
//! | --- | --- | --- | --- |
//! | ends well, ends badly | holds | nobody too soon | `well`, `badly` |
//! | has ended | holds | a TTL of 0 while nobody is there | `ttl-held` |
//! | has ended | holds | a TTL of 0 that admission refuses until the outcome is stored | `ttl-guarded` |
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
//! | admission refuses a deletion until the outcome is stored | `ttl-guarded`, `webhook::guard` |
//! | a CronJob deletes what is beyond its history | none: a Job of ours never belongs to a CronJob |
//!
//! The main ones are shown again with real pods in `pods`. Every class of a missing Job comes out of some case: those that
//! none above gives are in `classes`.

use agents::api::contract::env;
use agents::api::kinds::AgentRun;
use anyhow::Result;
use http::Method;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::DeleteParams;
use support::events::{self, Said};
use support::gateway::Gateway;
use support::wait;

use super::case::Case;
use crate::controller::scene::{DEADLINE, Scene, condition};
use crate::webhook::hook::Station;

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

/// Webhook and controller together: the one refuses until the other has stored.
#[tokio::test]
async fn a_job_with_a_ttl_of_0_is_kept_by_the_guard_until_its_outcome_is_stored() -> Result<()> {
    support::own_lab!();
    let station = Station::start(&[]).await?;
    let guarded = async |settings: &[(&str, &str)]| {
        let short = [(env::RUNNER_JOB_TTL, "1"), (env::RUNNER_JOB_TTL_FLOOR, "0")];
        let settings = [settings, &short].concat();
        let here = station.registered.namespace("ttl-guarded").await?;
        let scene = Scene::at(here, &settings);
        scene.make_agent().await?;
        anyhow::Ok(scene)
    };
    let (mut case, controller, way) = Case::running_unseen(guarded).await?;
    case.set_ttl(0).await?;
    case.scene.end_pod("x", 0).await?;
    case.until_complete().await?;
    let job = case.jobs().get("x-job").await?;
    let is_refused = |said: &Said| said.reason == "JobDeleteRefused";
    // Nobody else deletes here.
    events::until(&case.scene.here.client, &job, DEADLINE, is_refused).await?;
    let job = case.jobs().get("x-job").await?;
    assert_eq!(job.metadata.deletion_timestamp, None, "it was refused");
    case.witness.until_unrecorded(1.0).await?;
    way.release();
    case.until_job_is_gone().await?;
    case.agrees("ttl-guarded", controller).await
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
    controller.kill().await;
    case.free().await?;
    case.free_pod().await?;
    case.set_ttl(1).await?;
    case.scene.end_pod("x", 0).await?;
    case.until_job_is_gone().await?;
    case.until_pod_is_gone().await?;
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
async fn a_job_that_goes_tells_with_its_last_word_how_it_ended() -> Result<()> {
    support::kinds!();
    let (mut case, controller, way) = Case::running_unseen(Scene::with_agent).await?;
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
    let (case, controller, way) = Case::running_behind().await?;
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
    let (case, controller, way) = Case::running_behind().await?;
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
