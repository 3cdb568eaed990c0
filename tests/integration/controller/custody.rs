//! No outcome is lost: the cases of a Job that goes before its time, with the controller there or away.

mod case;
mod classes;
pub(super) mod crash;
mod lifecycle;
pub(crate) mod pods;
mod report;
mod witness;

use agents::api::contract::{finalizer, label};
use agents::api::kinds::AgentRun;
use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use nix::sys::signal::Signal;
use serde_json::json;
use support::wait;

use super::scene::{ALONE, DEADLINE, Scene, condition, holds, job_name};

/// What the status says about a missing Job.
fn missing(run: &AgentRun) -> Option<(String, String, String)> {
    let missing = run.status.as_ref()?.job_ref.as_ref()?.missing.clone()?;
    Some((missing.class?, missing.certainty?, missing.recovered?))
}

fn finding(class: &str, certainty: &str, recovered: &str) -> Option<(String, String, String)> {
    Some((class.to_owned(), certainty.to_owned(), recovered.to_owned()))
}

#[tokio::test]
async fn an_outcome_is_recorded_after_a_restart_although_a_ttl_of_0_was_injected() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let controller = scene.controller().await?;
    scene.run("ttl", json!({})).await?;
    scene.until_phase("ttl", "Running").await?;
    scene.pod("ttl").await?;
    controller.signal(Signal::SIGKILL);
    controller.end().await;
    let jobs = scene.here.api::<Job>();
    let ttl = Patch::Merge(json!({"spec": {"ttlSecondsAfterFinished": 0}}));
    jobs.patch("ttl-job", &PatchParams::default(), &ttl).await?;
    scene.end_pod("ttl", 0).await?;
    scene
        .until_job("ttl", |job| job.metadata.deletion_timestamp.is_some())
        .await?;
    let _controller = scene.controller().await?;
    let done = scene.until_phase("ttl", "Succeeded").await?;
    assert_eq!(condition(&done, "Succeeded"), holds("True", "Completed"));
    assert_eq!(condition(&done, "JobMissing"), None);
    wait::until_gone(&jobs, "ttl-job", DEADLINE).await?;
    scene.until_free("ttl").await
}

#[tokio::test]
async fn a_job_that_is_deleted_while_it_runs_is_told_and_its_pod_still_counts() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let _controller = scene.controller().await?;
    let run = scene.run("cut", json!({})).await?;
    scene.until_phase("cut", "Running").await?;
    scene.pod("cut").await?;
    let jobs = scene.here.api::<Job>();
    jobs.delete("cut-job", &DeleteParams::background()).await?;
    let orphaned = scene
        .until("cut", |run| condition(run, "JobMissing").is_some())
        .await?;
    assert_eq!(
        condition(&orphaned, "JobMissing"),
        holds("True", "JobDeletedWhileRunning")
    );
    scene.end_pod("cut", 0).await?;
    let done = scene.until_phase("cut", "Succeeded").await?;
    assert_eq!(
        missing(&done),
        finding("JobDeletedWhileRunning", "certain", "fromPod")
    );
    wait::until_gone(&jobs, "cut-job", DEADLINE).await?;
    scene.until_free("cut").await?;
    let told = scene.told(&run, "OutcomeRecovered").await?;
    let mut reasons: Vec<_> = told.iter().map(|said| said.reason.as_str()).collect();
    reasons.sort_unstable();
    assert_eq!(
        reasons,
        [
            "JobDeletedWhileRunning",
            "OutcomeRecovered",
            "Submitted",
            "Succeeded"
        ]
    );
    Ok(())
}

#[tokio::test]
async fn a_job_that_is_stripped_and_deleted_is_lost_once_and_never_made_again() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[("AGENTS_CONTROLLER_SWEEP_SECONDS", "1")]).await?;
    let _controller = scene.controller().await?;
    scene.run("lost", json!({})).await?;
    scene.until_phase("lost", "Running").await?;
    let pod = scene.pod("lost").await?;
    let jobs = scene.here.api::<Job>();
    let strip = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    jobs.patch("lost-job", &PatchParams::default(), &strip)
        .await?;
    jobs.delete("lost-job", &DeleteParams::background()).await?;
    let failed = scene.until_phase("lost", "Failed").await?;
    assert_eq!(
        missing(&failed),
        finding("JobDeletedWhileRunning", "certain", "none")
    );
    assert_eq!(
        condition(&failed, "Failed"),
        holds("True", "JobDeletedWhileRunning")
    );
    // The garbage collector has its way with the pod, which shows that we let it go.
    let name = pod.metadata.name.context("a name")?;
    wait::until_gone(&scene.here.api::<Pod>(), &name, DEADLINE).await?;
    let all = jobs.list(&ListParams::default()).await?;
    assert_eq!(all.items.len(), 0, "a run is never started twice");
    Ok(())
}

#[tokio::test]
async fn a_job_that_is_replaced_is_noticed_by_its_uid() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let controller = scene.controller().await?;
    scene.run("swap", json!({})).await?;
    scene.until_phase("swap", "Running").await?;
    controller.signal(Signal::SIGKILL);
    controller.end().await;
    let jobs = scene.here.api::<Job>();
    let mut job = jobs.get("swap-job").await?;
    let strip = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    jobs.patch("swap-job", &PatchParams::default(), &strip)
        .await?;
    jobs.delete("swap-job", &DeleteParams::background()).await?;
    wait::until_gone(&jobs, "swap-job", DEADLINE).await?;
    let (name, namespace) = (job.metadata.name.take(), job.metadata.namespace.take());
    let other: Job = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x"}]}}},
    }))?;
    jobs.create(&PostParams::default(), &other).await?;
    let _controller = scene.controller().await?;
    let failed = scene.until_phase("swap", "Failed").await?;
    let (class, certainty, _) = missing(&failed).context("a missing Job")?;
    assert_eq!((&*class, &*certainty), ("JobReplaced", "certain"));
    assert!(
        jobs.get_opt(&job_name("swap")).await?.is_some(),
        "it is not ours to touch"
    );
    Ok(())
}

#[tokio::test]
async fn a_job_that_was_made_before_a_crash_is_taken_over_and_not_made_twice() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let controller = scene.controller().await?;
    scene.run("pattern", json!({})).await?;
    scene.until_phase("pattern", "Running").await?;
    controller.signal(Signal::SIGKILL);
    controller.end().await;
    // As if the crash had come after the Job was made and before its uid was kept.
    let run = scene.run("half", json!({})).await?;
    let reserved = json!({"status": {"phase": "Pending", "jobRef": {"name": "half-job", "namespace": scene.here.name}}});
    let runs = scene.here.api::<AgentRun>();
    runs.patch_status("half", &PatchParams::default(), &Patch::Merge(reserved))
        .await?;
    let jobs = scene.here.api::<Job>();
    let uid = run.metadata.uid.context("a uid")?;
    let half = made_for(&jobs.get("pattern-job").await?, "half", &uid)?;
    let half = jobs.create(&PostParams::default(), &half).await?;
    let _controller = scene.controller().await?;
    let running = scene.until_phase("half", "Running").await?;
    let job = running
        .status
        .and_then(|status| status.job_ref)
        .context("a Job")?;
    assert_eq!(job.uid, half.metadata.uid);
    scene.end_pod("half", 0).await?;
    scene.until_phase("half", "Succeeded").await?;
    scene.until_free("half").await
}

/// A Job like another one, for another run.
fn made_for(pattern: &Job, run: &str, uid: &str) -> Result<Job> {
    let labels = json!({label::AGENT_RUN: run, label::RUN_UID: uid});
    let template = pattern.spec.as_ref().map(|spec| spec.template.spec.clone());
    Ok(serde_json::from_value(json!({
        "metadata": {"name": job_name(run), "labels": labels, "finalizers": [finalizer::OUTCOME], "ownerReferences": [
            {"apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "name": run, "uid": uid, "controller": true},
        ]},
        "spec": {"backoffLimit": 0, "template": {
            "metadata": {"labels": labels, "finalizers": [finalizer::EVIDENCE]}, "spec": template,
        }},
    }))?)
}

#[tokio::test]
async fn a_job_whose_run_is_gone_is_let_go() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let controller = scene.controller().await?;
    scene.run("stray", json!({})).await?;
    scene.until_phase("stray", "Running").await?;
    scene.pod("stray").await?;
    controller.signal(Signal::SIGKILL);
    controller.end().await;
    let runs = scene.here.api::<AgentRun>();
    let strip = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    runs.patch("stray", &PatchParams::default(), &strip).await?;
    runs.delete("stray", &DeleteParams::background()).await?;
    wait::until_gone(&runs, "stray", DEADLINE).await?;
    let _controller = scene.controller().await?;
    wait::until_gone(&scene.here.api::<Job>(), "stray-job", DEADLINE).await?;
    let pods = scene.here.api::<Pod>();
    wait::until_listed(&pods, "", DEADLINE, |pods: &[Pod]| pods.is_empty()).await?;
    Ok(())
}

/// The right name and the right labels, and nobody that it belongs to.
#[tokio::test]
async fn a_job_that_only_says_that_it_is_ours_is_not_taken_over() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let controller = scene.controller().await?;
    scene.run("pattern", json!({})).await?;
    scene.until_phase("pattern", "Running").await?;
    controller.signal(Signal::SIGKILL);
    controller.end().await;
    let run = scene.run("forged", json!({})).await?;
    let reserved = json!({"status": {"phase": "Pending", "jobRef": {"name": "forged-job", "namespace": scene.here.name}}});
    let runs = scene.here.api::<AgentRun>();
    runs.patch_status("forged", &PatchParams::default(), &Patch::Merge(reserved))
        .await?;
    let jobs = scene.here.api::<Job>();
    let uid = run.metadata.uid.context("a uid")?;
    let mut forged = made_for(&jobs.get("pattern-job").await?, "forged", &uid)?;
    forged.metadata.owner_references = None;
    forged.metadata.finalizers = None;
    let template = forged
        .spec
        .as_mut()
        .and_then(|spec| spec.template.metadata.as_mut());
    template.context("a template")?.finalizers = None;
    jobs.create(&PostParams::default(), &forged).await?;
    let _controller = scene.controller().await?;
    let waits = scene
        .until("forged", |run| condition(run, "Blocked").is_some())
        .await?;
    assert_eq!(
        condition(&waits, "Blocked"),
        holds("True", "JobNameConflict")
    );
    let job = waits.status.and_then(|status| status.job_ref);
    assert_eq!(job.and_then(|job| job.uid), None);
    jobs.delete("forged-job", &DeleteParams::background())
        .await?;
    scene.until_phase("forged", "Running").await?;
    Ok(())
}

/// What is left when someone strips a Job before its uid is kept, deletes it without its pod, and strips that too. It may be
/// its work, so nothing is started beside it.
#[tokio::test]
async fn nothing_is_started_beside_a_pod_that_was_cut_off_by_hand() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let run = scene.run("cut", json!({})).await?;
    let reserved = json!({"status": {"phase": "Pending", "jobRef": {"name": "cut-job", "namespace": scene.here.name}}});
    let runs = scene.here.api::<AgentRun>();
    runs.patch_status("cut", &PatchParams::default(), &Patch::Merge(reserved))
        .await?;
    let left: Pod = serde_json::from_value(json!({
        "metadata": {"name": "cut-job-x", "labels": {
            label::AGENT_RUN: "cut", label::RUN_UID: run.metadata.uid, label::JOB_NAME: "cut-job",
        }},
        "spec": {"containers": [{"name": "agent-runner", "image": "registry.example.com/runner:1"}]},
    }))?;
    let pods = scene.here.api::<Pod>();
    pods.create(&PostParams::default(), &left).await?;
    let _controller = scene.controller().await?;
    let waits = scene
        .until("cut", |run| condition(run, "Blocked").is_some())
        .await?;
    assert_eq!(
        condition(&waits, "Blocked"),
        holds("True", "JobNameConflict")
    );
    let jobs = scene.here.api::<Job>();
    assert!(jobs.get_opt("cut-job").await?.is_none());
    pods.delete("cut-job-x", &DeleteParams::default().grace_period(0))
        .await?;
    scene.until_phase("cut", "Running").await?;
    Ok(())
}

#[tokio::test]
async fn a_config_map_of_someone_else_is_not_read_by_a_job_of_ours() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let config_maps = scene.here.api::<ConfigMap>();
    let other: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "read-spec"}, "data": {"run.json": "{}"},
    }))?;
    config_maps.create(&PostParams::default(), &other).await?;
    let _controller = scene.controller().await?;
    scene.run("read", json!({})).await?;
    let waits = scene
        .until("read", |run| condition(run, "Blocked").is_some())
        .await?;
    assert_eq!(
        condition(&waits, "Blocked"),
        holds("True", "JobNameConflict")
    );
    let none = scene.here.api::<Job>().list(&ListParams::default()).await?;
    assert_eq!(none.items.len(), 0);
    config_maps
        .delete("read-spec", &DeleteParams::background())
        .await?;
    scene.until_phase("read", "Running").await?;
    let ours = config_maps.get("read-spec").await?;
    assert!(ours.data.context("data")?["run.json"].contains("Do it."));
    Ok(())
}

/// One run at work, one whose Job has ended without anyone having stored that.
#[tokio::test]
async fn a_namespace_can_be_deleted_with_what_runs_in_it() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let controller = scene.controller().await?;
    for name in ["works", "ended"] {
        scene.run(name, json!({})).await?;
        scene.until_phase(name, "Running").await?;
        scene.pod(name).await?;
    }
    controller.signal(Signal::SIGKILL);
    controller.end().await;
    scene.end_pod("ended", 0).await?;
    let is_complete = |job: &Job| {
        let status = job.status.as_ref();
        status.is_some_and(|status| status.completion_time.is_some())
    };
    scene.until_job("ended", is_complete).await?;
    let namespaces: Api<Namespace> = Api::all(scene.here.client.clone());
    let name = &scene.here.name;
    namespaces.delete(name, &DeleteParams::background()).await?;
    // Pods go first, and what we hold of them keeps the namespace until we are back.
    let pods = scene.here.api::<Pod>();
    let is_going = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    let all_going = |pods: &[Pod]| pods.len() == 2 && pods.iter().all(is_going);
    wait::until_listed(&pods, "", DEADLINE, all_going).await?;
    let _controller = scene.controller().await?;
    wait::until_gone(&namespaces, name, DEADLINE).await
}
