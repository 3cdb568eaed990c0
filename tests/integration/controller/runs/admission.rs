//! Whether a run may begin: limits, order, and keys.

use agents::api::contract::env;
use agents::api::kinds::AgentRun;
use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use kube::api::ListParams;
use nix::sys::signal::Signal;
use serde_json::json;

use crate::controller::scene::{Scene, condition, holds, phase_of};

/// Nobody is looked at without a cause, so whoever waits must be woken.
const NO_SWEEP: (&str, &str) = (env::SWEEP, "1h");

/// Waits until a run is held back for this reason.
async fn until_blocked(scene: &Scene, name: &str, reason: &str) -> Result<AgentRun> {
    let blocked = |run: &AgentRun| condition(run, "Blocked") == holds("True", reason);
    scene.until(name, blocked).await
}

/// Makes runs that wait for a controller, in this order.
async fn make(scene: &Scene, names: &[&str]) -> Result<()> {
    for name in names {
        let spec = json!({"parameters": {"repository": "o/r"}});
        scene.run(name, spec).await?;
    }
    Ok(())
}

#[tokio::test]
async fn runs_wait_for_their_turn_and_are_woken_when_a_slot_frees() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[NO_SWEEP, (env::CONCURRENCY_AGENT, "1")]).await?;
    make(&scene, &["a", "b", "c"]).await?;
    let _controller = scene.controller().await?;
    scene.until_phase("a", "Running").await?;
    let waits = until_blocked(&scene, "b", "ConcurrencyLimit").await?;
    assert_eq!(phase_of(&waits), "Pending");
    until_blocked(&scene, "c", "ConcurrencyLimit").await?;
    let told = scene.told(&waits, "Blocked").await?;
    let notes: Vec<_> = told.iter().map(|said| said.note.as_str()).collect();
    assert_eq!(
        notes,
        ["1 run of agent coder is under way, which is the limit"]
    );
    scene.end_pod("a", 0).await?;
    let begun = scene.until_phase("b", "Running").await?;
    assert_eq!(condition(&begun, "Blocked"), holds("False", "Reconciled"));
    let third: AgentRun = scene.here.api().get("c").await?;
    assert_eq!(phase_of(&third), "Pending", "who came first goes first");
    scene.end_pod("b", 3).await?;
    scene.until_phase("c", "Running").await?;
    Ok(())
}

#[tokio::test]
async fn a_run_that_cannot_begin_holds_nobody_back() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[NO_SWEEP, (env::CONCURRENCY_NAMESPACE, "1")]).await?;
    let nobody = json!({"agentRef": {"name": "nobody"}});
    scene.run("a-waits", nobody).await?;
    scene.run("b-wrong", json!({"secrets": [""]})).await?;
    make(&scene, &["c-goes"]).await?;
    let _controller = scene.controller().await?;
    scene.until_phase("c-goes", "Running").await?;
    until_blocked(&scene, "a-waits", "MissingAgent").await?;
    scene.until_phase("b-wrong", "Failed").await?;
    Ok(())
}

#[tokio::test]
async fn limits_hold_when_another_controller_takes_over() -> Result<()> {
    support::kinds!();
    let alone = ("JANGAR_LEADER_ELECTION_ENABLED", "false");
    let scene = Scene::with_agent(&[alone, (env::CONCURRENCY_CLUSTER, "1")]).await?;
    make(&scene, &["a", "b"]).await?;
    let controller = scene.controller().await?;
    scene.until_phase("a", "Running").await?;
    until_blocked(&scene, "b", "ConcurrencyLimit").await?;
    controller.signal(Signal::SIGKILL);
    controller.end().await;
    make(&scene, &["c"]).await?;
    let _controller = scene.controller().await?;
    until_blocked(&scene, "c", "ConcurrencyLimit").await?;
    let jobs = scene.here.api::<Job>();
    let all = jobs.list(&ListParams::default()).await?;
    assert_eq!(all.items.len(), 1);
    scene.end_pod("a", 0).await?;
    scene.until_phase("b", "Running").await?;
    Ok(())
}

#[tokio::test]
async fn a_run_that_came_too_fast_begins_when_its_time_has_come() -> Result<()> {
    support::kinds!();
    let window = (env::RATE_WINDOW, "5");
    let scene = Scene::with_agent(&[NO_SWEEP, window, (env::RATE_NAMESPACE, "1")]).await?;
    make(&scene, &["a", "b"]).await?;
    let _controller = scene.controller().await?;
    scene.until_phase("a", "Running").await?;
    until_blocked(&scene, "b", "RateLimit").await?;
    let second = scene.until_phase("b", "Running").await?;
    let first: AgentRun = scene.here.api().get("a").await?;
    let started = |run: &AgentRun| run.status.as_ref().and_then(|status| status.started_at);
    assert!(started(&second) > started(&first));
    Ok(())
}

#[tokio::test]
async fn every_limit_holds_back() -> Result<()> {
    support::kinds!();
    let one_agent = (env::CONCURRENCY_AGENT, "1");
    let by_repository = (env::REPO_CONCURRENCY_ENABLED, "true");
    let hour = (env::RATE_WINDOW, "3600");
    let busy = ["ConcurrencyLimit", "ConcurrencyLimit"];
    let full = ["ConcurrencyLimit", "QueueLimit"];
    let fast = ["RateLimit", "RateLimit"];
    for (settings, expected) in [
        (vec![(env::CONCURRENCY_AGENT, "1")], busy),
        (vec![(env::CONCURRENCY_NAMESPACE, "1")], busy),
        (vec![(env::CONCURRENCY_CLUSTER, "1")], busy),
        (
            vec![by_repository, (env::REPO_CONCURRENCY_DEFAULT, "1")],
            busy,
        ),
        (
            vec![
                by_repository,
                (env::REPO_CONCURRENCY_OVERRIDES, r#"{"O/R": 1}"#),
            ],
            busy,
        ),
        (vec![one_agent, (env::QUEUE_NAMESPACE, "1")], full),
        (vec![one_agent, (env::QUEUE_REPO, "1")], full),
        (vec![one_agent, (env::QUEUE_CLUSTER, "1")], full),
        (vec![hour, (env::RATE_NAMESPACE, "1")], fast),
        (vec![hour, (env::RATE_REPO, "1")], fast),
        (vec![hour, (env::RATE_CLUSTER, "1")], fast),
    ] {
        let scene = Scene::with_agent(&settings).await?;
        make(&scene, &["a", "b", "c"]).await?;
        let controller = scene.controller().await?;
        scene.until_phase("a", "Running").await?;
        for (name, reason) in ["b", "c"].into_iter().zip(expected) {
            until_blocked(&scene, name, reason).await?;
        }
        controller.signal(Signal::SIGKILL);
        controller.end().await;
    }
    Ok(())
}

#[tokio::test]
async fn a_key_is_good_for_one_run() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    let keyed = || json!({"idempotencyKey": "order-7"});
    scene.run("first", keyed()).await?;
    scene.until_phase("first", "Running").await?;
    let second = scene.run("second", keyed()).await?;
    let refused = scene.until_phase("second", "Failed").await?;
    let in_use = holds("True", "IdempotencyKeyInUse");
    assert_eq!(condition(&refused, "Duplicate"), in_use);
    assert_eq!(condition(&refused, "Failed"), in_use);
    let told = scene.told(&second, "Duplicate").await?;
    assert_eq!(told[0].note, "run first with this key is under way");
    scene.end_pod("first", 0).await?;
    scene.until_phase("first", "Succeeded").await?;
    scene.run("third", keyed()).await?;
    let refused = scene.until_phase("third", "Failed").await?;
    assert_eq!(
        condition(&refused, "Duplicate"),
        holds("True", "IdempotencyKeyCompleted")
    );
    let jobs = scene.here.api::<Job>();
    let all = jobs.list(&ListParams::default()).await?;
    assert_eq!(all.items.len(), 1);
    Ok(())
}

#[tokio::test]
async fn keys_mean_nothing_where_they_are_switched_off() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[(env::IDEMPOTENCY_ENABLED, "false")]).await?;
    let _controller = scene.controller().await?;
    for name in ["first", "second"] {
        scene.run(name, json!({"idempotencyKey": "k"})).await?;
        scene.until_phase(name, "Running").await?;
    }
    Ok(())
}
