//! Schedules make runs at their times, and never two for one time.

use std::collections::BTreeSet;

use agents::api::contract::label;
use agents::api::kind::Kind;
use agents::api::kinds::AgentRun;
use agents::api::text::names::ChildName;
use anyhow::Result;
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::{events, wait};

use crate::controller::scene::{ALONE, DEADLINE, Scene};

/// A schedule that is due all the time, so that no test waits for a minute to pass.
fn often(more: Value) -> Value {
    let mut spec =
        json!({"cron": "@every 1s", "targetRef": {"kind": "AgentRun", "name": "nightly"}});
    json_patch::merge(&mut spec, &more);
    spec
}

/// Waits until a schedule has made as many runs as wanted.
async fn runs(scene: &Scene, wanted: impl Fn(&[AgentRun]) -> bool) -> Result<Vec<AgentRun>> {
    let labels = format!("{}=x", label::SCHEDULE);
    wait::until_listed(&scene.here.api::<AgentRun>(), &labels, DEADLINE, wanted).await
}

/// Status, reason and message of condition `Warning`.
fn warning(schedule: &DynamicObject) -> (String, String) {
    let conditions = schedule.data["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let warning = conditions.find(|entry| entry["type"] == "Warning");
    let word = |field| warning.and_then(|warning| warning[field].as_str());
    let word = |field| word(field).unwrap_or_default();
    let is = format!("{} {}", word("status"), word("reason"));
    (is, word("message").to_owned())
}

#[tokio::test]
async fn a_schedule_waits_for_its_target_and_then_copies_it_at_each_time() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    scene.make(Kind::Schedule, "x", often(json!({}))).await?;
    scene
        .until_ready(Kind::Schedule, "x", "False MissingTarget")
        .await?;
    // A target that is stopped never runs itself.
    scene.run("nightly", json!({"cancel": true})).await?;
    let made = runs(&scene, |runs| runs.len() >= 2).await?;
    assert!(made.iter().all(|run| run.spec.cancel.is_none()));
    let keys: BTreeSet<_> = made
        .iter()
        .map(|run| run.spec.idempotency_key.clone())
        .collect();
    assert_eq!(keys.len(), made.len());
    let schedule = scene.until_any(Kind::Schedule, "x", |schedule| {
        schedule.data["status"]["lastRunTime"].is_string()
    });
    let schedule = schedule.await?;
    assert_eq!(schedule.data["status"]["phase"], "Active");
    let is_made = |said: &events::Said| said.reason == "Scheduled";
    events::until(&scene.here.client, &schedule, DEADLINE, is_made).await?;
    let schedules = scene.any(Kind::Schedule);
    schedules.delete("x", &DeleteParams::background()).await?;
    scene.until_gone(Kind::Schedule, "x").await?;
    let left = scene
        .here
        .api::<AgentRun>()
        .get(&made[0].name_any())
        .await?;
    assert_eq!(left.metadata.deletion_timestamp, None, "its runs stay");
    Ok(())
}

#[tokio::test]
async fn a_controller_that_starts_again_makes_no_run_twice_and_one_for_all_missed_times()
-> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    scene.run("nightly", json!({"cancel": true})).await?;
    let spec = often(json!({"cron": "@every 2s"}));
    scene.make(Kind::Schedule, "x", spec).await?;
    let first = scene.controller().await?;
    runs(&scene, |runs| !runs.is_empty()).await?;
    first.signal(Signal::SIGKILL);
    first.end().await;
    let before = scene.any(Kind::Schedule).get("x").await?;
    let _second = scene.controller().await?;
    let later = scene.until_any(Kind::Schedule, "x", |schedule| {
        schedule.data["status"]["lastRunTime"] != before.data["status"]["lastRunTime"]
    });
    later.await?;
    let made = runs(&scene, |runs| runs.len() >= 2).await?;
    let times: BTreeSet<_> = made
        .iter()
        .map(|run| run.spec.idempotency_key.clone())
        .collect();
    assert_eq!(times.len(), made.len(), "one run for each time");
    Ok(())
}

#[tokio::test]
async fn runs_of_a_schedule_stand_beside_each_other_only_if_they_may() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    scene.run("nightly", json!({"cancel": true})).await?;
    let alone = often(json!({"concurrencyPolicy": "Forbid"}));
    let schedule = scene.make(Kind::Schedule, "x", alone).await?;
    let is_missed = |said: &events::Said| said.reason == "ScheduleMissed";
    events::until(&scene.here.client, &schedule, DEADLINE, is_missed).await?;
    let only = runs(&scene, |runs| !runs.is_empty()).await?;
    assert_eq!(only.len(), 1);
    scene
        .merge(
            Kind::Schedule,
            "x",
            json!({"spec": {"concurrencyPolicy": "Replace"}}),
        )
        .await?;
    let name = only[0].name_any();
    scene
        .until(&name, |run| run.spec.cancel == Some(true))
        .await?;
    scene
        .merge(Kind::Schedule, "x", json!({"spec": {"suspend": true}}))
        .await?;
    scene
        .until_ready(Kind::Schedule, "x", "True Suspended")
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_run_whose_name_is_taken_is_told_of_and_made_when_the_name_is_free() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    scene.run("nightly", json!({"cancel": true})).await?;
    let spec = often(json!({"cron": "@every 4s"}));
    let schedule = scene.make(Kind::Schedule, "x", spec).await?;
    // All names of the next minute are taken before the time of the first, since the controller is not there yet.
    let made = schedule.creation_timestamp().expect("a time").0.as_second();
    let names = (1..=15).map(|turn| ChildName::derive("x", &(made + 4 * turn).to_string()));
    let names: Vec<_> = names.collect();
    for name in &names {
        scene.run(name.as_str(), json!({"cancel": true})).await?;
    }
    let _controller = scene.controller().await?;
    let warned = scene.until_any(Kind::Schedule, "x", |schedule| {
        warning(schedule).0 == "True NameConflict"
    });
    let (_, message) = warning(&warned.await?);
    let expected = "could not make the run: another object has the name x-";
    assert!(message.starts_with(expected), "{message}");
    let is_told = |said: &events::Said| said.reason == "NameConflict" && said.note == message;
    let said = events::until(&scene.here.client, &schedule, DEADLINE, is_told).await?;
    assert_eq!((&*said.kind, &*said.action), ("Warning", "Reconcile"));
    let made = runs(&scene, |_| true).await?;
    assert_eq!(made.len(), 0, "what others made is not taken for its own");
    let takers = scene.here.api::<AgentRun>();
    for name in names {
        let name = name.as_str();
        takers.delete(name, &DeleteParams::background()).await?;
    }
    runs(&scene, |runs| !runs.is_empty()).await?;
    scene
        .until_any(Kind::Schedule, "x", |schedule| {
            warning(schedule).0 == "False None"
        })
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_settled_schedule_costs_no_write_and_a_wrong_one_says_why() -> Result<()> {
    support::kinds!();
    let (scene, mut looks) = Scene::watched().await?;
    let _controller = looks.controller(&scene)?;
    scene.run("nightly", json!({"cancel": true})).await?;
    scene
        .make(Kind::Schedule, "x", often(json!({"cron": "0 0 1 1 *"})))
        .await?;
    scene
        .make(
            Kind::Schedule,
            "wrong",
            often(json!({"timezone": "Mars/Base"})),
        )
        .await?;
    scene
        .until_ready(Kind::Schedule, "x", "True Active")
        .await?;
    scene
        .until_ready(Kind::Schedule, "wrong", "False InvalidTimeZone")
        .await?;
    scene.until_phase("nightly", "Cancelled").await?;
    looks
        .hundred_looks(&[(Kind::Schedule, 2), (Kind::AgentRun, 1)])
        .await
}
