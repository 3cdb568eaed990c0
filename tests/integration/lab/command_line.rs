//! The `lab` program as a person uses it.

use super::life::ONE_AT_A_TIME;
use anyhow::{Context, Result};
use std::{process::Stdio, time::Duration};
use support::{kubectl::Said, lab::own_name};
use tokio::{process::Command, time::timeout};

const DEADLINE: Duration = Duration::from_secs(180);

async fn lab(words: &[&str]) -> Result<Said> {
    let output = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(words)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(DEADLINE, output)
        .await
        .with_context(|| format!("`lab {}` hangs", words.join(" ")))??;
    Said::of(output)
}

#[tokio::test]
async fn a_lab_in_the_background_is_shown_used_and_stopped_by_name() -> Result<()> {
    support::starts_labs!();
    let _turn = ONE_AT_A_TIME.lock().await;
    let name = &own_name("command-line")?.to_string();
    let up = lab(&["up", "--detach", "--tier", "1", "--name", name]).await?;
    assert!(
        up.code == Some(0) && up.stdout.contains("KUBECONFIG="),
        "{}{}",
        up.stdout,
        up.stderr
    );
    let again = lab(&["up", "--tier", "1", "--name", name]).await?;
    let complaint = format!("lab: lab `{name}` is already running");
    assert!(
        again.code == Some(1) && again.stderr.contains(&complaint),
        "{}",
        again.stderr
    );
    let status = lab(&["status"]).await?.stdout;
    assert!(
        status.contains(&format!("lab `{name}`, tier 1 (control plane): Ready")),
        "{status}"
    );
    let namespaces = lab(&[
        "kubectl",
        "--name",
        name,
        "--",
        "get",
        "namespace",
        "default",
        "--output=name",
    ])
    .await?;
    assert_eq!(namespaces.stdout, "namespace/default\n");
    let mut logs: Vec<String> = lab(&["logs", "--name", name])
        .await?
        .stdout
        .lines()
        .map(str::to_owned)
        .collect();
    logs.sort();
    assert_eq!(logs, ["etcd", "kube-apiserver", "kube-controller-manager"]);
    let log = lab(&["logs", "--name", name, "kube-apiserver"]).await?;
    assert!(log.code == Some(0) && !log.stdout.is_empty());
    let down = lab(&["down", "--name", name]).await?;
    assert_eq!(down.code, Some(0), "{}", down.stderr);
    let status = lab(&["status"]).await?.stdout;
    assert!(!status.contains(name), "{status}");
    Ok(())
}

#[tokio::test]
async fn a_command_runs_in_a_fresh_lab_which_stops_when_it_fails() -> Result<()> {
    support::starts_labs!();
    let _turn = ONE_AT_A_TIME.lock().await;
    let name = &own_name("command")?.to_string();
    let script =
        "kubectl get namespace default --output=name && echo tier $LAB_TIER of $LAB_NAME && exit 3";
    let up = lab(&[
        "up", "--tier", "1", "--name", name, "--", "sh", "-c", script,
    ])
    .await?;
    assert_eq!(up.code, Some(1));
    assert!(
        up.stdout
            .contains(&format!("namespace/default\ntier 1 of {name}\n")),
        "{}",
        up.stdout
    );
    assert!(
        up.stderr.contains("lab: `sh` ended (exit code 3)"),
        "{}",
        up.stderr
    );
    Ok(())
}
