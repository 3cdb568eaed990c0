//! Whoever restores a backup writes statuses as they were, through the real API server.

use agents::api::kind::Kind;
use agents_webhook::args::variable as own;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use support::{Namespace, builders::smallest, kubectl::Said};

use super::hook::Station;

/// A status that no one but a restore writes at once: ended, with times of long ago and an odd condition.
fn from_backup() -> Value {
    json!({
        "phase": "Succeeded", "startedAt": "2020-01-01T10:00:00Z", "updatedAt": "2020-01-01T11:00:00Z",
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Odd", "message": "",
            "lastTransitionTime": "2020-01-01T10:00:00Z",
        }],
    })
}

async fn write(here: &Namespace, run: &str, status: &Value) -> Result<Said> {
    let patch = json!({"status": status}).to_string();
    let patch = [
        "patch",
        &format!("agentruns.agents.proompteng.ai/{run}"),
        "--subresource=status",
        "--type=merge",
        "--patch",
        &patch,
    ];
    here.kubectl.run(&patch).await
}

async fn create(here: &Namespace, run: &str) -> Result<()> {
    let input = smallest(Kind::AgentRun, run).to_string();
    let create = ["create", "--filename", "-"];
    here.kubectl.run_with_input(&create, &input).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn a_restore_writes_what_was_and_nobody_else_may() -> Result<()> {
    support::own_lab!();
    // A group, as operators would name one; kubectl is in it here.
    let station = Station::start(&[(own::RESTORE_USERS, "[\"system:masters\"]")]).await?;
    let here = station.registered.namespace("restore").await?;
    create(&here, "restored").await?;
    write(&here, "restored", &from_backup()).await?.ok()?;
    let get = [
        "get",
        "agentruns.agents.proompteng.ai/restored",
        "--output=jsonpath={.status}",
    ];
    let stored: Value =
        serde_json::from_str(&here.kubectl.run(&get).await?.ok()?).context("the status as JSON")?;
    assert_eq!(stored, from_backup(), "nothing was filled in");

    let strict = super::hook::calm_namespace("restore-not").await?;
    create(&strict, "bound").await?;
    let said = write(&strict, "bound", &from_backup()).await?;
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(said.stderr.contains("status.conditions"), "{}", said.stderr);
    Ok(())
}
