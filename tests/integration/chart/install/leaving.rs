//! Leaving a namespace: in the documented order it goes by itself; else one command says what it waits for, and ends that.

use agents::api::contract::finalizer;
use anyhow::{Result, bail};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::EvictParams;
use serde_json::json;
use support::wait;

use super::stage::{DEADLINE, Stage, works};
use crate::operate::{agents, ended};

fn namespaces(stage: &Stage) -> Api<Namespace> {
    Api::all(stage.here.client.clone())
}

async fn delete_namespace(stage: &Stage) -> Result<()> {
    let delete = ["delete", "namespace", &stage.here.name, "--wait=false"];
    stage.lab.kubectl().run(&delete).await?.ok().map(drop)
}

async fn is_gone(stage: &Stage) -> Result<()> {
    wait::until_gone(&namespaces(stage), &stage.here.name, DEADLINE).await
}

/// Lets go of everything by hand.
async fn release(stage: &Stage) -> Result<()> {
    let words = ["release", "--namespace", &stage.here.name, "--yes"];
    let said = agents(stage.lab.kubeconfig(), &words).await?;
    ended(&said, 0);
    Ok(())
}

/// What holds the namespace, as the same command tells it without doing anything; none if nothing does.
async fn holds(stage: &Stage) -> Result<Option<String>> {
    let words = ["release", "--namespace", &stage.here.name, "--dry-run"];
    let said = agents(stage.lab.kubeconfig(), &words).await?;
    ended(&said, 0);
    let is_held = !said.stdout.starts_with("Nothing of ours is held");
    Ok(is_held.then_some(said.stdout))
}

fn is_held(pod: &Pod) -> bool {
    let metadata = &pod.metadata;
    let ours = |names: &Vec<String>| names.iter().any(|name| name == finalizer::EVIDENCE);
    metadata.deletion_timestamp.is_some() && metadata.finalizers.as_ref().is_some_and(ours)
}

/// A release was removed while one Job works, and another ends with nobody there to record it.
pub(super) async fn after_an_uninstall(stage: &Stage) -> Result<()> {
    let pods = stage.here.api::<Pod>();
    let pod = works(&pods, "unrecorded").await?;
    pods.evict(&pod, &EvictParams::default()).await?;
    let has_failed = |job: &Job| job.status.as_ref().and_then(|status| status.failed) == Some(1);
    wait::until(&stage.here.api(), "unrecorded-job", DEADLINE, has_failed).await?;
    delete_namespace(stage).await?;
    let both = |pods: &[Pod]| pods.iter().filter(|pod| is_held(pod)).count() == 2;
    wait::until_listed(&pods, "", DEADLINE, both).await?;
    let words = ["release", "--namespace", &stage.here.name];
    let refused = agents(stage.lab.kubeconfig(), &words).await?;
    ended(&refused, 1);
    let lost = "would be lost: AgentRun/at-work, AgentRun/unrecorded.";
    assert!(refused.stdout.contains(lost), "{}", refused.stdout);
    release(stage).await?;
    is_gone(stage).await
}

/// A release without a control plane, and a run of it that works.
async fn at_work() -> Result<Stage> {
    let stage = Stage::enter().await?;
    let values = json!({"controlPlane": {"enabled": false}});
    stage.put("install", &values).await?;
    stage.make_agent(&stage.here).await?;
    stage.start_run(&stage.here, "at-work").await?;
    Ok(stage)
}

/// As docs/install.md says: runs first, then the release, then the namespace.
#[tokio::test]
async fn in_the_documented_order_a_namespace_goes_by_itself() -> Result<()> {
    support::node_lab!();
    let stage = at_work().await?;
    let delete = [
        "delete",
        "agentruns,toolruns,orchestrationruns",
        "--all",
        "--timeout=60s",
    ];
    stage.here.kubectl.run(&delete).await?.ok()?;
    stage.uninstall().await?;
    delete_namespace(&stage).await?;
    is_gone(&stage).await
}

/// The controllers die in the namespace that they are to let go, so nobody can say how far they come. Whatever they leave, the
/// command names and ends.
#[tokio::test]
async fn a_namespace_that_takes_its_controllers_along_ends_with_one_command() -> Result<()> {
    support::node_lab!();
    let stage = at_work().await?;
    stage.start_run(&stage.here, "unrecorded").await?;
    let pods = stage.here.api::<Pod>();
    let pod = works(&pods, "unrecorded").await?;
    delete_namespace(&stage).await?;
    // Ends while those go who would record it. It may be on its way already.
    drop(pods.evict(&pod, &EvictParams::default()).await);
    let controllers = "app.kubernetes.io/component=controllers";
    wait::until_listed(&pods, controllers, DEADLINE, |pods: &[Pod]| pods.is_empty()).await?;
    let held = wait::retry("an end, or what it waits for", DEADLINE, || async {
        let left = namespaces(&stage).get_opt(&stage.here.name).await?;
        match (left, holds(&stage).await?) {
            (None, _) => Ok(None),
            (Some(_), Some(held)) => Ok(Some(held)),
            (Some(_), None) => bail!("it goes, and nothing of ours holds it"),
        }
    })
    .await?;
    if held.is_some() {
        release(&stage).await?;
    }
    is_gone(&stage).await
}
