//! `agents run submit|list|get|wait|cancel` with a controller at work.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use support::lab;

use super::{agents, ended};
use crate::controller::scene::{ALONE, Scene};

/// `agents run ... --namespace <the scene's>`.
async fn run(scene: &Scene, arguments: &[&str]) -> Result<support::kubectl::Said> {
    let file = lab::shared().await?.kubeconfig();
    let words = [&["run", "--namespace", &scene.here.name], arguments].concat();
    agents(file, &words).await
}

fn names(list: &str) -> Result<Vec<String>> {
    let list: Value = serde_json::from_str(list)?;
    let items = list["items"].as_array().context("items")?.iter();
    Ok(items
        .filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned))
        .collect())
}

#[tokio::test]
async fn a_run_is_submitted_listed_waited_for_and_cancelled() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let _controller = scene.controller().await?;
    let submit = [
        "submit",
        "--agent",
        "coder",
        "--text",
        "Do it.",
        "--image",
        "registry.example.com/runner:1",
    ];
    let first = run(
        &scene,
        &[
            &submit[..],
            &[
                "--name", "first", "--param", "a=b", "--label", "team=x", "--cpu", "100m",
            ],
        ]
        .concat(),
    )
    .await?;
    ended(&first, 0);
    assert_eq!(first.stdout, "first\n");
    let second = run(&scene, &[&submit[..], &["-o", "json"]].concat()).await?;
    ended(&second, 0);
    let second: Value = serde_json::from_str(&second.stdout)?;
    let second = second["metadata"]["name"]
        .as_str()
        .context("a name")?
        .to_owned();
    assert!(second.starts_with("coder-"), "{second}");

    scene.until_phase("first", "Running").await?;
    scene.until_phase(&second, "Running").await?;
    let late = run(&scene, &["wait", "first", "--timeout", "1s"]).await?;
    ended(&late, 124);
    assert!(late.stderr.contains("Running"), "{}", late.stderr);
    assert!(
        late.stderr.contains("next: `agents explain first`"),
        "{}",
        late.stderr
    );

    scene.end_pod("first", 0).await?;
    let waited = run(&scene, &["wait", "first"]).await?;
    ended(&waited, 0);
    assert_eq!(waited.stdout, "first ended Succeeded.\n");
    let shown = run(&scene, &["wait", "first", "-o", "json"]).await?;
    ended(&shown, 0);
    let shown: Value = serde_json::from_str(&shown.stdout)?;
    assert_eq!(shown["status"]["phase"], "Succeeded", "{shown}");
    let cancelled = run(&scene, &["cancel", &second, "--wait", "-o", "json"]).await?;
    ended(&cancelled, 0);
    let stopped: Value = serde_json::from_str(&cancelled.stdout)?;
    assert_eq!(stopped["status"]["phase"], "Cancelled", "{stopped}");
    assert!(
        cancelled.stderr.contains("Cancelled"),
        "{}",
        cancelled.stderr
    );
    let again = run(&scene, &["cancel", &second]).await?;
    ended(&again, 0);
    assert_eq!(again.stdout, format!("{second} was cancelled before.\n"));
    let over = run(&scene, &["wait", &second]).await?;
    ended(&over, 4);
    let ended_well = run(&scene, &["cancel", "first"]).await?;
    ended(&ended_well, 1);
    assert!(
        ended_well.stderr.contains("it has ended Succeeded"),
        "{}",
        ended_well.stderr
    );
    listed(&scene, &second).await
}

async fn listed(scene: &Scene, second: &str) -> Result<()> {
    let all = run(scene, &["list", "-o", "json"]).await?;
    assert_eq!(names(&all.stdout)?, [second, "first"]);
    let labelled = run(scene, &["list", "-l", "team=x", "-o", "json"]).await?;
    assert_eq!(names(&labelled.stdout)?, ["first"]);
    let stopped = run(scene, &["list", "--phase", "cancelled", "-o", "json"]).await?;
    assert_eq!(names(&stopped.stdout)?, [second]);
    let table = run(scene, &["list"]).await?;
    let lines: Vec<Vec<&str>> = table
        .stdout
        .lines()
        .map(|line| line.split_whitespace().take(4).collect())
        .collect();
    let expected = [
        ["NAME", "PHASE", "REASON", "AGENT"],
        [second, "Cancelled", "Cancelled", "coder"],
        ["first", "Succeeded", "Completed", "coder"],
    ];
    assert_eq!(lines, expected, "{}", table.stdout);
    let wide = run(scene, &["get", "first", "-o", "wide"]).await?;
    assert!(wide.stdout.contains("first-job"), "{}", wide.stdout);
    let yaml = run(scene, &["get", "first", "-o", "yaml"]).await?;
    let object: Value = serde_saphyr::from_str(&yaml.stdout)?;
    assert_eq!(object["kind"], "AgentRun");
    assert_eq!(object["spec"]["parameters"], json!({"a": "b"}));
    assert_eq!(
        object["spec"]["workload"]["resources"]["requests"]["cpu"],
        "100m"
    );
    let nobody = run(scene, &["list", "-l", "team=nobody"]).await?;
    ended(&nobody, 0);
    assert_eq!(nobody.stdout, "");
    Ok(())
}

#[tokio::test]
async fn submit_and_wait_in_one_ends_as_the_run_does() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[ALONE]).await?;
    let _controller = scene.controller().await?;
    let submit = [
        "submit",
        "--agent",
        "coder",
        "--text",
        "Do it.",
        "--image",
        "registry.example.com/runner:1",
        "--name",
        "bad",
        "--wait",
    ];
    let fail = async {
        scene.until_phase("bad", "Running").await?;
        scene.end_pod("bad", 3).await
    };
    let (waited, failed) = tokio::join!(run(&scene, &submit), fail);
    failed?;
    let waited = waited?;
    ended(&waited, 4);
    assert_eq!(waited.stdout, "bad\nbad ended Failed.\n");
    assert!(
        waited.stderr.contains("Failed (JobFailed)"),
        "{}",
        waited.stderr
    );
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_is_said_before_anything_is_sent_and_with_a_next_step() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let wrong = run(
        &scene,
        &["submit", "--agent", "A!", "--impl", "x", "--cpu", "lots"],
    )
    .await?;
    ended(&wrong, 2);
    for words in ["spec.agentRef.name", "spec.workload.resources.requests"] {
        assert!(wrong.stderr.contains(words), "{}", wrong.stderr);
    }
    let dry = run(
        &scene,
        &["submit", "--agent", "a", "--impl", "x", "--dry-run"],
    )
    .await?;
    ended(&dry, 0);
    assert!(dry.stdout.contains("generateName: a-\n"), "{}", dry.stdout);
    let none = run(&scene, &["get", "nothing"]).await?;
    ended(&none, 3);
    assert!(
        none.stderr
            .contains("agentruns.agents.proompteng.ai \"nothing\" not found"),
        "{}",
        none.stderr
    );
    let all = run(&scene, &["list"]).await?;
    assert_eq!(all.stdout, "", "nothing was made");
    Ok(())
}
