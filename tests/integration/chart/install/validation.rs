//! How operators look whether an installation works: by the commands of kubectl that the designs of its features name.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;

use super::stage::Stage;

/// What a run that has succeeded shows.
pub(super) async fn as_operators_look(stage: &Stage, run: &str) -> Result<()> {
    let kubectl = &stage.here.kubectl;
    let pods = kubectl.run(&["get", "pods"]).await?.ok()?;
    for workload in ["agents-", "agents-controllers-", "agents-webhook-"] {
        ensure!(pods.contains(workload), "{pods}");
    }
    let deployments = kubectl.run(&["get", "deploy"]).await?.ok()?;
    for workload in ["agents", "agents-controllers"] {
        ensure!(deployments.contains(workload), "{deployments}");
        let status = ["rollout", "status", &format!("deploy/{workload}")];
        let told = kubectl.run(&status).await?.ok()?;
        ensure!(told.contains("successfully rolled out"), "{told}");
    }
    let kinds = kubectl.run(&["get", "crd"]).await?.ok()?;
    ensure!(kinds.contains("agentruns.agents.proompteng.ai "), "{kinds}");
    let logs = ["logs", "deploy/agents-controllers", "--tail=200"];
    let logged = kubectl.run(&logs).await?.ok()?;
    ensure!(logged.contains("\"message\":"), "{logged}");

    let events = ["get", "events", "--sort-by=.metadata.creationTimestamp"];
    let events = kubectl.run(&events).await?.ok()?;
    let told = format!("agentrun/{run}");
    ensure!(events.contains(&told), "{events}");
    let described = kubectl.run(&["describe", "agentrun", run]).await?.ok()?;
    let (_, events) = described.split_once("Events:").context("Events")?;
    ensure!(events.contains("Submitted"), "{described}");

    let times = "--output=jsonpath={.metadata.generation} {.status.observedGeneration} {.status.startedAt} {.status.finishedAt} {.status.updatedAt}";
    let told = kubectl.run(&["get", "agentrun", run, times]).await?.ok()?;
    let words: Vec<_> = told.split_whitespace().collect();
    let [generation, observed, started, finished, updated] = words[..] else {
        anyhow::bail!("{told}")
    };
    ensure!(generation == observed, "{told}");
    let time = |word: &str| word.parse::<Timestamp>().context("a time");
    let (started, finished, updated) = (time(started)?, time(finished)?, time(updated)?);
    ensure!(started <= finished && finished <= updated, "{told}");
    Ok(())
}
