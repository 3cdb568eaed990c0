//! A Job that someone deletes by hand while it works, and what becomes of its outcome.

use super::EXAMPLES;
use agents::api::{contract::label, kinds::AgentRun};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use std::{process::Stdio, time::Duration};
use support::{
    image::OwnPrograms,
    lab::{Lab, report::Report},
    wait,
};
use tokio::{process::Command, time::timeout};

const MANIFESTS: &str = include_str!("deleted.yaml");
pub(super) const RUN: &str = "outlives-its-job";
const DEADLINE: Duration = Duration::from_secs(90);

/// What was said about it.
pub(super) struct Story {
    /// By kubectl, when the Job was deleted.
    pub(super) deleted: String,
    /// By kubectl, about the run when it had ended.
    pub(super) run: String,
    /// By `agents explain`.
    pub(super) explained: String,
}

/// Starts a run, deletes its Job while it works, and asks what became of it.
pub(super) async fn lose(lab: &Lab, own: &OwnPrograms, report: Report) -> Result<Story> {
    lab.import(&own.image("probe")?).await?;
    let kubectl = lab.kubectl().in_namespace(EXAMPLES);
    let apply = ["apply", "--filename", "-"];
    kubectl.run_with_input(&apply, MANIFESTS).await?.ok()?;
    let client = lab.client().await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), EXAMPLES);
    let selector = format!("{}={RUN}", label::AGENT_RUN);
    report.line(format!("the run {RUN} is made; waiting for its pod"));
    let works = |pods: &[Pod]| pods.iter().any(is_running);
    wait::until_listed(&pods, &selector, DEADLINE, works).await?;
    let delete = ["delete", "jobs", "--selector", &selector, "--wait=false"];
    let said = kubectl.run(&delete).await?;
    ensure!(said.code == Some(0), "{}{}", said.stdout, said.stderr);
    report.line("its Job was deleted by hand while it worked; waiting for the outcome");
    let runs: Api<AgentRun> = Api::namespaced(client, EXAMPLES);
    wait::until(&runs, RUN, DEADLINE, has_ended).await?;
    let run = kubectl.run(&["get", "agentrun", RUN]).await?.ok()?;
    report.line("the outcome is recorded all the same");
    Ok(Story {
        deleted: format!("{}{}", said.stderr, said.stdout),
        run,
        explained: explain(lab, own).await?,
    })
}

async fn explain(lab: &Lab, own: &OwnPrograms) -> Result<String> {
    let asked = Command::new(own.path("agents")?)
        .args(["explain", RUN, "--namespace", EXAMPLES])
        .envs(lab.environment())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let said = timeout(DEADLINE, asked).await;
    let said = said.context("agents explain takes too long")??;
    let errors = String::from_utf8_lossy(&said.stderr);
    ensure!(said.status.success(), "agents explain: {errors}");
    Ok(String::from_utf8(said.stdout)?)
}

fn is_running(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    status.and_then(|status| status.phase.as_deref()) == Some("Running")
}

fn has_ended(run: &AgentRun) -> bool {
    let status = run.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed" | "Cancelled"))
}
