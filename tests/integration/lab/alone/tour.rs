//! What `make run` starts, from the first line to the last: with our programs as processes, then as pods where they can run.

use crate::lab::traces::{Suspect, interfaces};
use agents::api::contract::path;
use anyhow::{Context, Result, bail, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use support::{
    http,
    kubectl::Said,
    lab::{
        Lab,
        down::down,
        own_name,
        report::{in_time, measured},
        state::{Home, LabName, Record, Tier},
    },
    metrics::Page,
    wait::retry,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// Everything is built by now; what remains is a start. How long that may take is [`PROMISED`]; this only ends what hangs.
const DEADLINE: Duration = Duration::from_secs(300);
/// What is promised of every start but the first.
const PROMISED: Duration = Duration::from_secs(30);
const LAST_LINE: &str = "Ctrl-C ends it and leaves nothing behind.";

/// A tour that goes on until it is told to end.
struct Tour {
    name: LabName,
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    /// What it says while it works.
    log: PathBuf,
    /// Network interfaces before the start.
    before: BTreeSet<String>,
}

impl Tour {
    fn start(folder: &Path, tier: Tier) -> Result<Self> {
        let before = interfaces()?;
        let name = own_name(&format!("tour-{}", tier.number()))?;
        let log = folder.join(name.to_string());
        let mut child = Command::new(env!("CARGO_BIN_EXE_lab"))
            .args(["tour", "--tier", tier.number(), "--name", &name.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().context("a pipe")?;
        Ok(Self {
            name,
            child,
            stdout: BufReader::new(stdout).lines(),
            log,
            before,
        })
    }

    fn said(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.log)?)
    }

    /// The text that says what is where.
    async fn guide(&mut self) -> Result<String> {
        let mut guide = String::new();
        let reading = async {
            while let Some(line) = self.stdout.next_line().await? {
                guide += &line;
                guide.push('\n');
                if line == LAST_LINE {
                    return anyhow::Ok(());
                }
            }
            bail!("it ended")
        };
        let read = timeout(DEADLINE, reading).await;
        read.context("it takes too long")
            .flatten()
            .with_context(|| format!("{guide}{}", self.said().unwrap_or_default()))?;
        Ok(guide)
    }

    fn record(&self) -> Result<Record> {
        let record = Home::from_env()?.record(&self.name)?;
        record.context("a lab that runs has a record")
    }

    /// Presses Ctrl-C and waits for the end.
    async fn interrupt(&mut self) -> Result<()> {
        let id = self.child.id().context("a process that runs")?;
        kill(Pid::from_raw(id.try_into()?), Signal::SIGINT)?;
        let status = timeout(DEADLINE, self.child.wait()).await??;
        ensure!(status.success(), "{status}: {}", self.said()?);
        Ok(())
    }
}

/// Where the programs answer, as the guide tells it.
fn admin_addresses(guide: &str) -> Vec<(String, String)> {
    let lines = guide.lines().map(str::trim);
    let told = lines.filter_map(|line| {
        let (address, rest) = line.strip_prefix("http://")?.split_once('/')?;
        let (_, rest) = rest.split_once("  ")?;
        let name = rest.split(';').next().unwrap_or_default();
        Some((name.to_owned(), address.to_owned()))
    });
    told.collect()
}

/// How long it took, as it is told in words.
fn told_time(said: &str) -> Result<Duration> {
    let words = said.split("lab and programs were ready after ").nth(1);
    let words = words
        .and_then(|rest| rest.lines().next())
        .context(said.to_owned())?;
    let seconds = words
        .strip_suffix(" s")
        .and_then(|number| number.parse().ok());
    let seconds = seconds.with_context(|| format!("`{words}` is no short time"))?;
    Ok(Duration::from_secs_f64(seconds))
}

/// Waits until what the controllers count is on the page of the sidecar: their first export may still be on its way.
async fn until_told(sidecar: &str) -> Result<()> {
    retry("what the controllers count", DEADLINE, || async {
        let page = Page::scrape(sidecar).await?;
        let told = !page.series("agents_reconciles_total").is_empty();
        ensure!(
            told,
            "the page of the sidecar has no agents_reconciles_total"
        );
        Ok(())
    })
    .await
}

/// Goes to the console as the guide says, with the token that it says how to get.
async fn look_at_console(tour: &Tour, guide: &str) -> Result<()> {
    let told = guide.split("The console is at http://").nth(1);
    let address = told.and_then(|rest| rest.split('/').next());
    let address = address.with_context(|| format!("no console: {guide}"))?;
    let page = http::get(address, "/console/").await?;
    ensure!(page.contains("<html"), "{page}");
    let lab = Lab::running(&tour.name).await?;
    let kubectl = lab.kubectl().in_namespace("agents");
    let token = kubectl.run(&["create", "token", "visitor"]).await?.ok()?;
    let runs = "/v1/agent-runs?namespace=agents";
    let shown = http::get_by(address, runs, token.trim()).await?;
    ensure!(shown.contains("add-health-endpoint"), "{shown}");
    Ok(())
}

/// Does with `agents` what the guide says, as it says it.
async fn try_commands(guide: &str) -> Result<()> {
    let lines = guide.lines().map(str::trim);
    let lines = lines.filter(|line| line.starts_with("export "));
    let exports = lines.collect::<Vec<_>>().join("\n");
    for (words, code, told) in [
        ("agents explain ", [0, 0], "add-health-endpoint is "),
        ("agents queue ", [0, 0], ""),
        ("agents doctor ", [0, 5], "the API server answers"),
        ("agents check ", [5, 5], "spec.workload.image"),
    ] {
        let mut lines = guide.lines().map(str::trim);
        let line = lines.find(|line| line.starts_with(words));
        let line = line.with_context(|| format!("{words}: {guide}"))?;
        // What a command does stands behind it, after a gap.
        let command = line.split("   ").next().unwrap_or(line);
        let shell = Command::new("sh")
            .args(["-c", &format!("{exports}\n{command}")])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let said = Said::of(timeout(DEADLINE, shell).await??)?;
        let ended = said.code.is_some_and(|ended| code.contains(&ended));
        ensure!(ended && said.stdout.contains(told), "{command}: {said:?}");
    }
    Ok(())
}

/// Starts a tour, looks at everything it shows, ends it, and looks for what is left.
async fn take(mut tour: Tour) -> Result<(Tier, Duration)> {
    let guide = tour.guide().await?;
    ensure!(guide.contains("Everything is up."), "{guide}");
    ensure!(guide.contains("spec.workload.image"), "no refusal: {guide}");
    let scraped = guide.lines().any(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        matches!(words[..], ["AgentRun", _, number] if number.parse::<u64>().is_ok())
    });
    ensure!(scraped, "Prometheus told nothing about runs: {guide}");
    if tour.record()?.node.is_some() {
        // Those that an orchestration makes may be done as well by then.
        for run in ["add-health-endpoint ", "review-dependencies "] {
            let of_run = |line: &&str| line.trim_start().starts_with(run);
            let line = guide.lines().find(of_run).context(run)?;
            ensure!(line.contains(" Succeeded "), "{guide}");
        }
        // Its Job was deleted while it worked. The pod worked on, ended well, and that is stored and explained.
        let of_run = |line: &&str| line.trim_start().starts_with("outlives-its-job ");
        let line = guide.lines().find(of_run).context(guide.clone())?;
        ensure!(line.contains(" Succeeded "), "{guide}");
        for told in [
            "`agents explain outlives-its-job` says\n      outlives-its-job is Succeeded since ",
            "Its Job outlives-its-job-job is missing: it was deleted before it had ended (JobDeletedWhileRunning, certain).",
            "How it ended is known all the same, from its pod.",
        ] {
            ensure!(guide.contains(told), "{told}: {guide}");
        }
    } else {
        ensure!(guide.contains("Not shown here: "), "{guide}");
    }
    look_at_console(&tour, &guide).await?;
    try_commands(&guide).await?;
    let programs = admin_addresses(&guide);
    let names: Vec<_> = programs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["agents", "agents-sidecar", "agents-webhook", "agents serve"],
        "{guide}"
    );
    for (name, address) in &programs {
        http::get(address, path::LIVEZ)
            .await
            .with_context(|| name.clone())?;
        if name == "agents" {
            let page = Page::scrape(address).await;
            ensure!(page.is_err(), "the metrics of {name} go out over OTLP only");
            continue;
        }
        let page = Page::scrape(address).await.with_context(|| name.clone())?;
        let unnamed = page.series("agents_build_info").is_empty();
        ensure!(!unnamed, "{name} at {address} has no agents_build_info");
        if name == "agents-sidecar" {
            until_told(address).await?;
        }
    }
    let record = tour.record()?;
    let folder = Home::from_env()?.folder(&tour.name);
    let suspect = Suspect::new(&folder, &record, tour.before.clone());
    let took = told_time(&tour.said()?)?;
    tour.interrupt().await?;
    assert_eq!(suspect.traces()?, Vec::<String>::new());
    for (name, address) in &programs {
        let answered = http::get(address, path::LIVEZ).await.is_ok();
        ensure!(!answered, "{name} still answers at {address}");
    }
    Ok((record.tier, took))
}

#[tokio::test]
async fn everything_is_up_in_under_30_seconds_and_ctrl_c_leaves_nothing_behind() -> Result<()> {
    support::starts_labs!();
    let folder = TempDir::new()?;
    let (_, first) = take(Tour::start(folder.path(), Tier::ControlPlane)?).await?;
    in_time(PROMISED, async || {
        let (tier, second) = take(Tour::start(folder.path(), Tier::Node)?).await?;
        measured(format!(
            "tour: ready after {first:.1?} with processes; a second one, {tier}, after {second:.1?}"
        ));
        Ok(second)
    })
    .await
}

#[tokio::test]
async fn a_tour_that_is_killed_leaves_nothing_that_down_does_not_remove() -> Result<()> {
    support::starts_labs!();
    let folder = TempDir::new()?;
    let mut tour = Tour::start(folder.path(), Tier::ControlPlane)?;
    tour.guide().await?;
    let home = Home::from_env()?;
    let suspect = Suspect::new(
        &home.folder(&tour.name),
        &tour.record()?,
        tour.before.clone(),
    );
    let traces = suspect.traces()?;
    let is_scraper = |trace: &String| trace.contains("--storage.tsdb.path");
    ensure!(traces.iter().any(is_scraper), "no Prometheus: {traces:#?}");
    tour.child.kill().await?;
    down(&home, &tour.name).await?;
    // The kernel ends what is bound to the tour, but not before its end is seen.
    retry("nothing that is left", DEADLINE, || async {
        let traces = suspect.traces()?;
        ensure!(traces.is_empty(), "{traces:#?}");
        Ok(())
    })
    .await
}

#[test]
fn times_and_addresses_are_read_as_they_are_told() {
    let said =
        "[ 1.0s] the examples are applied; lab and programs were ready after 9.5 s\n[ 2.0s] more";
    assert_eq!(told_time(said).unwrap(), Duration::from_millis(9500));
    assert!(told_time("lab and programs were ready after 2 min 3 s").is_err());
    let guide = "The programs answer at\n  http://127.0.0.1:1/livez  agents; also /readyz\n\nMore";
    let expected = [("agents".to_owned(), "127.0.0.1:1".to_owned())];
    assert_eq!(admin_addresses(guide), expected);
}
