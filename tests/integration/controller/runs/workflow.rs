//! Runs that are done step by step.

use agents::api::contract::{annotation, label};
use agents::api::kinds::AgentRun;
use agents::api::kinds::agents::agent_run::WorkflowStepStatus;
use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use support::wait;

use crate::controller::custody::crash::{Crash, settled};
use crate::controller::scene::{DEADLINE, Scene, condition, holds, phase_of};

/// Nobody waits for the lease of a controller that was killed.
const ALONE: (&str, &str) = ("JANGAR_LEADER_ELECTION_ENABLED", "false");

async fn start(scene: &Scene, name: &str, steps: Value) -> Result<AgentRun> {
    let spec = json!({"runtime": {"type": "workflow"}, "workflow": {"steps": steps}});
    scene.run(name, spec).await
}

fn steps(run: &AgentRun) -> Vec<WorkflowStepStatus> {
    let status = run.status.clone().unwrap_or_default();
    let workflow = status.workflow.unwrap_or_default();
    workflow.steps.unwrap_or_default()
}

/// Phase and try of every step.
fn stand(run: &AgentRun) -> Vec<(String, i64)> {
    let stand = |step: WorkflowStepStatus| {
        let phase = step.phase.unwrap_or_default();
        (phase, step.attempt.unwrap_or_default())
    };
    steps(run).into_iter().map(stand).collect()
}

fn stands(expected: &[(&str, i64)]) -> Vec<(String, i64)> {
    let stands = expected.iter();
    stands
        .map(|(phase, attempt)| ((*phase).to_owned(), *attempt))
        .collect()
}

async fn jobs(scene: &Scene) -> Result<Vec<String>> {
    let jobs = scene.here.api::<Job>();
    let list = jobs.list(&ListParams::default()).await?;
    let mut names: Vec<_> = list.items.iter().map(ResourceExt::name_any).collect();
    names.sort();
    Ok(names)
}

/// Takes a Job away as someone does who strips its finalizers, and its pods with it.
async fn strip(scene: &Scene, name: &str) -> Result<()> {
    let free = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    let params = PatchParams::default();
    let pods = scene.here.api::<Pod>();
    let of_job = ListParams::default().labels(&format!("{}={name}", label::JOB_NAME));
    for pod in pods.list(&of_job).await? {
        pods.patch(&pod.name_any(), &params, &free).await?;
    }
    let jobs = scene.here.api::<Job>();
    jobs.patch(name, &params, &free).await?;
    jobs.delete(name, &DeleteParams::background()).await?;
    wait::until_gone(&jobs, name, DEADLINE).await?;
    wait::until_listed(
        &pods,
        &format!("{}={name}", label::JOB_NAME),
        DEADLINE,
        |pods: &[Pod]| pods.is_empty(),
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn steps_are_done_in_order_and_a_failed_one_is_tried_again() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    let run = start(
        &scene,
        "flow",
        json!([{"name": "plan", "parameters": {"stage": "plan"}}, {"name": "build", "retries": 1, "retryBackoffSeconds": 1}]),
    )
    .await?;
    let running = scene.until_phase("flow", "Running").await?;
    assert_eq!(stand(&running), stands(&[("Running", 1), ("Pending", 0)]));
    assert_eq!(jobs(&scene).await?, ["flow-step-1-attempt-1"]);
    let document: ConfigMap = scene.here.api().get("flow-spec-step-1-attempt-1").await?;
    let document = document.data.context("data")?["run.json"].clone();
    let document: Value = serde_json::from_str(&document)?;
    assert_eq!(document["stage"], "plan");

    scene.end_job("flow-step-1-attempt-1", 0).await?;
    scene.end_job("flow-step-2-attempt-1", 3).await?;
    let retrying = scene
        .until("flow", |run| {
            stand(run) == stands(&[("Succeeded", 1), ("Retrying", 1)])
        })
        .await?;
    let why = steps(&retrying)[1].message.clone().unwrap_or_default();
    assert!(why.contains("exit code 3"), "{why}");
    scene.end_job("flow-step-2-attempt-2", 0).await?;
    let done = scene.until_phase("flow", "Succeeded").await?;
    assert_eq!(stand(&done), stands(&[("Succeeded", 1), ("Succeeded", 2)]));
    assert_eq!(condition(&done, "Succeeded"), holds("True", "Completed"));
    let status = done.status.clone().context("a status")?;
    let workflow = status.workflow.context("a workflow")?;
    assert_eq!(workflow.phase.as_deref(), Some("Succeeded"));
    assert_eq!(status.started_at, steps(&done)[0].started_at);
    assert_eq!(status.finished_at, steps(&done)[1].finished_at);
    scene.until_free("flow").await?;
    for name in jobs(&scene).await? {
        let job: Job = scene.here.api().get(&name).await?;
        assert!(
            job.annotations().contains_key(annotation::OUTCOME_RECORDED),
            "{name}"
        );
    }
    let told = scene.told(&run, "Succeeded").await?;
    let count = |reason: &str| told.iter().filter(|said| said.reason == reason).count();
    assert_eq!((count("StepRetrying"), count("Succeeded")), (1, 1));
    Ok(())
}

#[tokio::test]
async fn a_step_whose_job_vanished_is_not_started_again() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let controller = scene.controller().await?;
    let steps = json!([{"name": "plan", "retries": 2}]);
    let run = start(&scene, "lost", steps).await?;
    scene.until_phase("lost", "Running").await?;
    scene.pod("lost").await?;
    controller.kill().await;
    strip(&scene, "lost-step-1-attempt-1").await?;
    let _controller = scene.controller().await?;
    let failed = scene.until_phase("lost", "Failed").await?;
    assert_eq!(
        condition(&failed, "Failed"),
        holds("True", "WorkflowJobMissing")
    );
    assert_eq!(
        condition(&failed, "JobMissing"),
        holds("True", "JobDeletedUnknown")
    );
    assert_eq!(stand(&failed), stands(&[("Failed", 1)]));
    let missing = self::steps(&failed)[0].job_ref.clone();
    let missing = missing.and_then(|job| job.missing).context("a record")?;
    assert_eq!(missing.class.as_deref(), Some("JobDeletedUnknown"));
    scene.told(&run, "WorkflowJobMissing").await?;
    assert_eq!(jobs(&scene).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_step_that_says_that_it_does_no_harm_is_started_again() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let controller = scene.controller().await?;
    let steps = json!([{"name": "plan", "retries": 1, "idempotent": true}]);
    start(&scene, "safe", steps).await?;
    scene.until_phase("safe", "Running").await?;
    scene.pod("safe").await?;
    controller.kill().await;
    strip(&scene, "safe-step-1-attempt-1").await?;
    let _controller = scene.controller().await?;
    scene.end_job("safe-step-1-attempt-2", 0).await?;
    let done = scene.until_phase("safe", "Succeeded").await?;
    assert_eq!(
        condition(&done, "JobMissing"),
        holds("False", "Reconciled"),
        "the Job of the second try was there"
    );
    scene.until_free("safe").await
}

#[tokio::test]
async fn a_step_that_takes_too_long_is_stopped_and_fails_the_run() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    let steps = json!([{"name": "slow", "timeoutSeconds": 1}, {"name": "never"}]);
    start(&scene, "slow", steps).await?;
    let failed = scene.until_phase("slow", "Failed").await?;
    assert_eq!(
        condition(&failed, "Failed"),
        holds("True", "WorkflowStepTimedOut")
    );
    assert_eq!(stand(&failed), stands(&[("Failed", 1), ("Skipped", 0)]));
    scene.until_free("slow").await
}

#[tokio::test]
async fn a_loop_goes_round_and_a_cancelled_one_stops() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    let steps = json!([{"name": "round", "loop": {"maxIterations": 3}}]);
    start(&scene, "loop", steps).await?;
    scene
        .end_job("loop-step-1-iteration-1-attempt-1", 0)
        .await?;
    let second = "loop-step-1-iteration-2-attempt-1";
    scene.until_job_named(second, |_| true).await?;
    let runs = scene.here.api::<AgentRun>();
    let cancel = Patch::Merge(json!({"spec": {"cancel": true}}));
    runs.patch("loop", &PatchParams::default(), &cancel).await?;
    let stopped = scene.until_phase("loop", "Cancelled").await?;
    assert_eq!(stand(&stopped), stands(&[("Cancelled", 1)]));
    wait::until_gone(&scene.here.api::<Job>(), second, DEADLINE).await?;
    scene.until_free("loop").await?;
    assert_eq!(jobs(&scene).await?, ["loop-step-1-iteration-1-attempt-1"]);
    Ok(())
}

#[tokio::test]
async fn a_controller_that_dies_between_two_steps_goes_on_where_it_was() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let controller = scene.controller().await?;
    start(&scene, "crash", json!([{"name": "a"}, {"name": "b"}])).await?;
    scene.until_phase("crash", "Running").await?;
    scene.pod("crash").await?;
    controller.kill().await;
    // The first step ends while nobody looks.
    scene.end_job("crash-step-1-attempt-1", 0).await?;
    let _controller = scene.controller().await?;
    scene.end_job("crash-step-2-attempt-1", 0).await?;
    let done = scene.until_phase("crash", "Succeeded").await?;
    assert_eq!(phase_of(&done), "Succeeded");
    scene.until_free("crash").await?;
    assert_eq!(
        jobs(&scene).await?,
        ["crash-step-1-attempt-1", "crash-step-2-attempt-1"]
    );
    Ok(())
}

/// The writes of a workflow of two steps, in their order.
const PROTOCOL: [&str; 15] = [
    "PATCH agentruns",        // hold
    "PATCH agentruns/status", // reserve the first Job
    "POST configmaps",
    "POST jobs",
    "PATCH agentruns/status", // bind
    "PATCH agentruns/status", // store
    "PATCH jobs",             // mark and release
    "PATCH pods",
    "PATCH agentruns/status", // reserve the second Job
    "POST configmaps",
    "POST jobs",
    "PATCH agentruns/status", // bind
    "PATCH agentruns/status", // store
    "PATCH jobs",             // mark and release
    "PATCH pods",
];
/// Of these, the ones before the pod of each step has ended.
const BEFORE_THE_ENDS: [usize; 2] = [5, 12];

#[tokio::test]
async fn whatever_write_of_a_workflow_a_controller_dies_after_the_next_one_goes_on() -> Result<()> {
    support::kinds!();
    let scene = settled().await?;
    for last in 1..=PROTOCOL.len() {
        dies_after(&scene, last).await?;
    }
    Ok(())
}

async fn dies_after(scene: &Scene, last: usize) -> Result<()> {
    let name = format!("dies-{last}");
    let crash = Crash::after(scene, last).await?;
    start(scene, &name, json!([{"name": "a"}, {"name": "b"}])).await?;
    let made = [1, 2].map(|step| format!("{name}-step-{step}-attempt-1"));
    for (job, before) in made.iter().zip(BEFORE_THE_ENDS) {
        if last > before {
            scene.end_job(job, 0).await?;
        }
    }
    let next = crash.follow_in(&PROTOCOL).await?;
    for (job, before) in made.iter().zip(BEFORE_THE_ENDS) {
        if last <= before {
            scene.end_job(job, 0).await?;
        }
    }
    let done = scene.until_phase(&name, "Succeeded").await?;
    assert_eq!(condition(&done, "JobMissing"), None, "after {last}");
    assert_eq!(stand(&done), stands(&[("Succeeded", 1), ("Succeeded", 1)]));
    scene.until_free(&name).await?;
    let mine = jobs(scene).await?;
    let mine: Vec<_> = mine
        .iter()
        .filter(|job| job.starts_with(&format!("{name}-")))
        .collect();
    assert_eq!(mine, made.iter().collect::<Vec<_>>(), "after {last}");
    next.kill().await;
    Ok(())
}
