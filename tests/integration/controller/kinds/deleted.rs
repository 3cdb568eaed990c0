//! An object of any kind can be deleted at any time, and leaves nothing behind.

use agents::api::kind::Kind;
use agents::api::kinds::AgentRun;
use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::DeleteParams;
use nix::sys::signal::Signal;
use serde_json::json;
use support::kstatus::{self, Stand};
use support::wait;

use super::every;
use crate::controller::scene::{ALONE, DEADLINE, Scene};

async fn delete(scene: &Scene, kind: Kind, name: &str) -> Result<()> {
    let how = DeleteParams::background();
    scene.any(kind).delete(name, &how).await?;
    Ok(())
}

/// Waits until everything is gone that was made for an object.
async fn until_nothing_is_left(scene: &Scene) -> Result<()> {
    let here = &scene.here;
    let runs = |runs: &[AgentRun]| runs.is_empty();
    wait::until_listed(&here.api::<AgentRun>(), "", DEADLINE, runs).await?;
    let jobs = |jobs: &[Job]| jobs.is_empty();
    wait::until_listed(&here.api::<Job>(), "", DEADLINE, jobs).await?;
    let pods = |pods: &[Pod]| pods.is_empty();
    wait::until_listed(&here.api::<Pod>(), "", DEADLINE, pods).await?;
    let claims = |claims: &[PersistentVolumeClaim]| claims.is_empty();
    let all = here.api::<PersistentVolumeClaim>();
    wait::until_listed(&all, "", DEADLINE, claims).await?;
    Ok(())
}

#[tokio::test]
async fn an_object_of_any_kind_goes_however_it_stands() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let controller = scene.controller().await?;
    every::settle(&scene).await?;
    every::keep_waiting(&scene).await?;
    every::go_wrong(&scene).await?;
    let mut all: Vec<(Kind, &str)> = Vec::new();
    for (kind, name, spec) in every::good() {
        // Nobody may have looked at this one yet.
        scene.make(kind, "new", spec).await?;
        delete(&scene, kind, "new").await?;
        all.push((kind, name));
    }
    all.extend(every::waiting().iter().map(|(kind, ..)| (*kind, "waits")));
    all.extend(every::wrong().iter().map(|(kind, _)| (*kind, "wrong")));
    for (kind, name) in &all {
        delete(&scene, *kind, name).await?;
    }
    all.extend(Kind::ALL.map(|kind| (kind, "new")));
    for (kind, name) in all {
        scene.until_gone(kind, name).await?;
    }
    until_nothing_is_left(&scene).await?;
    scene.make(Kind::Signal, "after", json!({})).await?;
    every::until(&scene, Kind::Signal, "after", "True Active").await?;
    controller.signal(Signal::SIGTERM);
    let log = controller.end().await.log.join("\n");
    assert!(!log.contains("panicked"), "{log}");
    Ok(())
}

#[tokio::test]
async fn what_is_deleted_while_nobody_is_there_goes_when_someone_is() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[ALONE]).await?;
    let first = scene.controller().await?;
    every::settle(&scene).await?;
    first.signal(Signal::SIGKILL);
    first.end().await;
    let mut held = Vec::new();
    for (kind, name, _) in every::good() {
        delete(&scene, kind, name).await?;
        if let Some(left) = scene.any(kind).get_opt(name).await? {
            assert_eq!(kstatus::of(&left), Stand::Terminating, "{kind}");
            held.push(kind);
        }
    }
    assert_eq!(held, [Kind::AgentRun, Kind::ToolRun], "until it is stopped");
    let _second = scene.controller().await?;
    for (kind, name, _) in every::good() {
        scene.until_gone(kind, name).await?;
    }
    until_nothing_is_left(&scene).await
}
