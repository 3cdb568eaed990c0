//! `agents` among other programs: behind `kustomize` and `helm`, as a plug-in of `kubectl`, in a shell and in `man`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use support::fixtures::repository;
use support::helm::Helm;
use support::kubectl::Said;
use support::lab;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use super::{DEADLINE, agents, ended};
use crate::controller::scene::Scene;
use crate::kit::process::product;

const RIGHT: &str = "examples/08-agent-run-job.yaml";
const WRONG: &str = "examples/refused/agent-run.yaml";

/// What `agents check` says to what another program printed.
async fn checked(printed: &str) -> Result<Said> {
    let mut child = Command::new(product("agents"))
        .args(["check", "--filename", "-"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdin = child.stdin.take().context("the input is not ours")?;
    stdin.write_all(printed.as_bytes()).await?;
    drop(stdin);
    Said::of(timeout(DEADLINE, child.wait_with_output()).await??)
}

/// That the wrong one of the two runs is told with its faults, under the name that it has by now.
fn tells(said: &Said, name: &str) -> Result<()> {
    ended(said, 5);
    for told in [name, "spec.runtime.type", "spec.workload.image"] {
        ensure!(said.stdout.contains(told), "{told}: {}", said.stdout);
    }
    ensure!(!said.stdout.contains("health-endpoint"), "{}", said.stdout);
    Ok(())
}

#[tokio::test]
async fn what_kustomize_and_helm_print_is_checked_as_it_comes() -> Result<()> {
    let kubectl = lab::shared().await?.kubectl_program();
    let folder = TempDir::new()?;
    let [layer, chart] = ["layer", "chart"].map(|name| folder.path().join(name));
    fs::create_dir_all(&layer)?;
    fs::create_dir_all(chart.join("templates"))?;
    for (file, name) in [(RIGHT, "right.yaml"), (WRONG, "wrong.yaml")] {
        let text = fs::read_to_string(repository().join(file))?;
        fs::write(layer.join(name), &text)?;
        let named = text.replace("  name: three-faults", "  name: {{ .Release.Name }}-faults");
        fs::write(chart.join("templates").join(name), named)?;
    }
    let layers = "resources: [right.yaml, wrong.yaml]\nnamePrefix: team-\nnamespace: team\n";
    fs::write(layer.join("kustomization.yaml"), layers)?;
    let about = "apiVersion: v2\nname: runs\nversion: 0.1.0\n";
    fs::write(chart.join("Chart.yaml"), about)?;

    let layered = Command::new(kubectl)
        .arg("kustomize")
        .arg(&layer)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let layered = Said::of(timeout(DEADLINE, layered).await??)?.ok()?;
    tells(&checked(&layered).await?, "team-three-faults")?;

    let chart = chart.to_str().context("UTF-8")?;
    let words = ["template", "team", chart, "--namespace", "team"];
    let rendered = Helm::new().await?.run(&words, "").await?.ok()?;
    ensure!(rendered.contains("# Source: runs/"), "{rendered}");
    tells(&checked(&rendered).await?, "team-faults")
}

#[tokio::test]
async fn kubectl_finds_the_program_as_a_plug_in() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    scene.run("fix", serde_json::json!({})).await?;
    let shared = lab::shared().await?;
    let folder = TempDir::new()?;
    symlink(product("agents"), folder.path().join("kubectl-agents"))?;
    let kubectl = async |words: &[&str]| {
        let asked = Command::new(shared.kubectl_program())
            .args(words)
            .env_clear()
            .env("PATH", folder.path())
            .env("HOME", folder.path())
            .env("KUBECONFIG", shared.kubeconfig())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        Said::of(timeout(DEADLINE, asked).await??)
    };
    let listed = kubectl(&["agents", "run", "list", "--namespace", &scene.here.name]).await?;
    ended(&listed, 0);
    ensure!(listed.stdout.contains("fix"), "{}", listed.stdout);
    let wrong = kubectl(&["agents", "run", "lst"]).await?;
    ended(&wrong, 2);
    ensure!(
        wrong.stderr.contains("kubectl agents run"),
        "{}",
        wrong.stderr
    );
    let plugins = kubectl(&["plugin", "list"]).await?;
    ended(&plugins, 0);
    ensure!(
        plugins.stdout.contains("kubectl-agents"),
        "{}",
        plugins.stdout
    );
    Ok(())
}

#[tokio::test]
async fn shells_take_the_completions_and_man_gets_a_page_for_each_command() -> Result<()> {
    let nowhere = Path::new("/dev/null");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = agents(nowhere, &["completions", shell]).await?;
        ended(&said, 0);
        ensure!(said.stdout.contains("explain"), "{shell}: {}", said.stdout);
    }
    // Of the shells, bash is everywhere: it defines what completes the command, and offers the commands.
    let completions = agents(nowhere, &["completions", "bash"]).await?.stdout;
    let asked = "\nCOMP_WORDS=(agents exp); COMP_CWORD=1; _agents agents exp agents; echo \"${COMPREPLY[@]}\"";
    let asked = Command::new("bash")
        .args(["--norc", "-c", &format!("{completions}{asked}")])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let offered = Said::of(timeout(DEADLINE, asked).await??)?.ok()?;
    assert_eq!(offered.trim(), "explain");
    let folder = TempDir::new()?;
    let pages = folder.path().join("pages");
    let output = pages.to_str().context("UTF-8")?;
    ended(&agents(nowhere, &["man", "--output", output]).await?, 0);
    for page in ["agents.1", "agents-explain.1", "agents-run-submit.1"] {
        let text = fs::read_to_string(pages.join(page)).with_context(|| page.to_owned())?;
        ensure!(text.contains(".TH agents"), "{page}: {text}");
    }
    Ok(())
}
