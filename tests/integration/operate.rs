//! The commands of `agents` that talk to a cluster, as a person runs them, against the real API server.

mod check;
mod crds;
pub(crate) mod doctor;
mod explain;
mod logs;
mod pipes;
mod queue;
mod release;
mod runs;
mod upgrade;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use support::kubectl::Said;
use tokio::process::Command;
use tokio::time::timeout;

use crate::kit::process::product;

/// No command takes longer.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs `agents` with nothing in its environment but the cluster, and with nobody at the keyboard.
pub(crate) async fn agents(kubeconfig: &Path, arguments: &[&str]) -> Result<Said> {
    let command = Command::new(product("agents"))
        .args(arguments)
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(DEADLINE, command).await;
    Said::of(output.with_context(|| format!("{arguments:?} takes too long"))??)
}

/// What a command must have ended with; else all that it said.
#[track_caller]
pub(crate) fn ended(said: &Said, code: i32) {
    assert_eq!(said.code, Some(code), "{}\n{}", said.stdout, said.stderr);
}
