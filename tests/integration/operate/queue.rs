//! `agents queue`: counted from the runs where nobody leads, and live. What a leader says is asked for in
//! `chart::install::doctor`.

use std::process::Stdio;

use agents::api::kinds::AgentRun;
use anyhow::{Context, Result, ensure};
use kube::api::PostParams;
use serde_json::{Value, json};
use support::{Namespace, crds, lab, namespace};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{ChildStdout, Command};
use tokio::time::timeout;

use super::doctor::with_token;
use super::{DEADLINE, agents, ended};
use crate::kit::process::product;
use crate::serve::scene::{ALL, person};

async fn make(here: &Namespace, name: &str) -> Result<()> {
    let run: AgentRun = serde_json::from_value(json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "metadata": {"name": name},
        "spec": {"agentRef": {"name": "coder"}, "implementation": {"inline": {"text": "Do it."}},
            "runtime": {"type": "job"}, "workload": {"image": "localhost/none"}},
    }))?;
    here.api::<AgentRun>()
        .create(&PostParams::default(), &run)
        .await?;
    Ok(())
}

/// Reads documents until one says that so many wait.
async fn until_waiting(lines: &mut Lines<BufReader<ChildStdout>>, number: u64) -> Result<()> {
    let mut document = String::new();
    let reading = async {
        while let Some(line) = lines.next_line().await? {
            document += &line;
            if line == "}" {
                let told: Value = serde_json::from_str(&document)?;
                document.clear();
                if told["queue"]["cluster"]["waiting"] == number {
                    return anyhow::Ok(());
                }
            }
        }
        anyhow::bail!("it ended")
    };
    timeout(DEADLINE, reading).await.context("no such change")?
}

#[tokio::test]
async fn runs_in_line_are_counted_once_and_live() -> Result<()> {
    crds::install_once().await?;
    let here = namespace("queue").await?;
    let token = person(&here, "reader", ALL).await?;
    let folder = TempDir::new()?;
    let file = with_token(lab::shared().await?, folder.path(), &token)?;
    make(&here, "one").await?;
    make(&here, "two").await?;
    let words = ["queue", "--namespace", &here.name];
    let said = agents(&file, &[&words[..], &["--output", "json"]].concat()).await?;
    ended(&said, 0);
    let told: Value = serde_json::from_str(&said.stdout)?;
    assert_eq!(told["source"], "runs", "{told:#}");
    assert_eq!(told["queue"]["cluster"]["waiting"], 2, "{told:#}");
    let agent = &told["queue"]["agents"]["top"][0];
    assert_eq!(
        (&agent["name"], &agent["waiting"]),
        (&json!("coder"), &json!(2))
    );
    assert!(
        said.stderr.contains("the runs themselves are counted"),
        "{}",
        said.stderr
    );
    let table = agents(&file, &words).await?;
    ended(&table, 0);
    let row = format!("agent       {}/coder   2", here.name);
    ensure!(table.stdout.contains(&row), "{}", table.stdout);

    let mut live = Command::new(product("agents"))
        .args(words)
        .args(["--watch", "--interval", "200ms", "--output", "json"])
        .env_clear()
        .env("KUBECONFIG", &file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = live.stdout.take().context("a pipe")?;
    let mut lines = BufReader::new(stdout).lines();
    until_waiting(&mut lines, 2).await?;
    make(&here, "three").await?;
    until_waiting(&mut lines, 3).await?;
    live.kill().await?;
    Ok(())
}
