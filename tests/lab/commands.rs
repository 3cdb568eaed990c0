//! What each command of the `lab` program does; the work itself is in the library.

use crate::arguments::{Command, Named, Passed, Stage, Up};
use crate::tour;
use anyhow::{Context, Result, bail};
use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::process::CommandExt,
    path::Path,
    process,
    time::Duration,
};
use support::image;
use support::lab::{
    self, Lab,
    control_plane::admin_kubeconfig,
    down,
    node::{self, inside},
    process::{stage, supervisor},
    report::Report,
    state::{Home, LabName, Phase, Record},
    tools::{
        self,
        build::{self, python::Python},
    },
    up,
};
use support::left_out;
use tokio::time::sleep;

/// Runs a stage.
pub(crate) fn stage(stage: &Stage) -> Result<()> {
    match stage {
        Stage::Part { parent, words } => match stage::part(*parent, words)? {},
        Stage::Trial => inside::trial(),
        Stage::Namespaces { folder } => inside::namespaces(folder),
        Stage::Node { folder } => inside::node(folder),
    }
}

/// Runs any other command.
pub(crate) async fn run(command: Command) -> Result<()> {
    match command {
        Command::Up(up) if up.detach && !lab::use_existing_cluster() => detach(&up).await,
        Command::Up(up) => start(up).await,
        Command::Tour { .. } if lab::use_existing_cluster() => bail!(
            "the tour changes more of a cluster than one namespace, so it starts a lab of its own: unset LAB_USE_EXISTING_CLUSTER"
        ),
        Command::Tour { name, tier } => tour::tour(&name, tier.into()).await,
        Command::Down { lab, all } => stop(lab, all).await,
        Command::Status { json } => status(json),
        Command::Logs { lab, part, follow } => logs(&lab.name, part.as_deref(), follow).await,
        Command::Build { tools } => build_tools(&tools).await,
        Command::Images { output } => image::release::write(&output),
        Command::Kubectl(passed) => kubectl(&passed).await,
        Command::Exec(passed) => exec(&passed).await,
        Command::LeftOut { forget: true, .. } => left_out::forget(),
        Command::LeftOut { note, .. } => match note.as_deref() {
            Some([test, reason]) => left_out::note(test, reason),
            Some(_) | None => left_out::summary(),
        },
        Command::Stage(other) => stage(&other),
    }
}

async fn start(up: Up) -> Result<()> {
    if lab::use_existing_cluster() {
        let version = lab::shared()
            .await?
            .client()
            .await?
            .apiserver_version()
            .await?;
        eprintln!(
            "nothing is started: LAB_USE_EXISTING_CLUSTER=1, and the cluster of KUBECONFIG answers ({})",
            version.git_version
        );
        return Ok(());
    }
    if up.own_session {
        nix::unistd::setsid().context("could not leave the terminal's session")?;
    }
    let options = up::Options {
        name: up.lab.name,
        tier: up.tier.into(),
        dns: up.dns,
        images: up.images,
        without: up.without,
        command: up.command,
        until_stdin_closes: up.until_stdin_closes,
    };
    up::up(&options).await
}

async fn detach(up: &Up) -> Result<()> {
    let mut flags = Vec::new();
    flags.extend(up.dns.then_some("--dns"));
    flags.extend(up.images.then_some("--images"));
    for api in &up.without {
        flags.extend(["--without-api", api]);
    }
    let record = lab::detach(&up.lab.name, up.tier.into(), &flags).await?;
    show(&Home::from_env()?, &record)
}

async fn stop(lab: Named, all: bool) -> Result<()> {
    let home = Home::from_env()?;
    let names = if all { home.names()? } else { vec![lab.name] };
    for name in names {
        down::down(&home, &name).await?;
        eprintln!("lab `{name}`: nothing is left");
    }
    home.tidy();
    Ok(())
}

async fn build_tools(wanted: &[String]) -> Result<()> {
    let report = Report::start();
    if wanted.is_empty() && lab::use_existing_cluster() {
        let kubectl = build::kubectl_of_person().await?;
        report.line("nothing else is built: LAB_USE_EXISTING_CLUSTER=1");
        println!("kubectl {}", kubectl.display());
        return Ok(());
    }
    let names = if wanted.is_empty() {
        let cluster = tools::of_tier(node::usable_tier(report).await?);
        [&cluster, tools::TELEMETRY, tools::CHART].concat()
    } else {
        tools::expand(wanted)?
    };
    if wanted.is_empty() {
        // First, since it is quick. Tests that need it are left out by name where it cannot be had.
        for folder in [tools::PYTHON, tools::SCHEMATHESIS] {
            if let Err(error) = Python::with_packages(report, folder).await {
                report.line(format!("no packages for Python: {error:#}"));
            }
        }
    }
    let programs = build::programs(&names, report).await?;
    for (name, path) in programs.0 {
        println!("{name} {}", path.display());
    }
    Ok(())
}

fn status(json: bool) -> Result<()> {
    let home = Home::from_env()?;
    let names = home.names()?.into_iter();
    let records = names
        .filter_map(|name| home.record(&name).transpose())
        .collect::<Result<Vec<_>>>()?;
    if json {
        println!("{}", serde_json::to_string_pretty(&records)?);
    } else if records.is_empty() {
        println!("no labs");
    } else {
        for record in &records {
            show(&home, record)?;
        }
    }
    home.tidy();
    Ok(())
}

fn show(home: &Home, record: &Record) -> Result<()> {
    let folder = home.folder(&record.name);
    let runs = record.owner.runs()?;
    let state = match record.phase {
        Phase::Failed => "did not start; its logs are kept until `lab down`".to_owned(),
        phase @ (Phase::Building | Phase::Starting | Phase::Ready) if runs => format!("{phase:?}"),
        Phase::Building | Phase::Starting | Phase::Ready => {
            "was killed; `lab down` clears it up".to_owned()
        }
    };
    println!("lab `{}`, {}: {state}", record.name, record.tier);
    println!("  KUBECONFIG={}", admin_kubeconfig(&folder).display());
    println!(
        "  API server {}",
        record.server.as_deref().unwrap_or("not yet known")
    );
    let inside = match &record.node {
        Some(first) if first.runs()? => node::parts(&folder, first)?,
        Some(_) | None => Vec::new(),
    };
    for part in record.parts.iter().chain(&inside) {
        let state = match part.process.resident_kib() {
            Some(memory) if part.process.runs()? => format!("{} MiB", memory / 1024),
            Some(_) | None => "ended".to_owned(),
        };
        println!("  {:<24} {:>8}  {state}", part.name, part.process.pid);
    }
    Ok(())
}

async fn logs(name: &LabName, part: Option<&str>, follow: bool) -> Result<()> {
    let folder = Home::from_env()?.folder(name);
    let Some(part) = part else {
        return list_logs(&folder);
    };
    let path = supervisor::log(&folder, part);
    let mut log = File::open(&path)
        .with_context(|| format!("there is no log {}; `lab logs` lists them", path.display()))?;
    loop {
        let mut added = Vec::new();
        log.by_ref().take(1 << 20).read_to_end(&mut added)?;
        io::Write::write_all(&mut io::stdout(), &added)?;
        if added.is_empty() {
            if !follow {
                return Ok(());
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
}

fn list_logs(folder: &Path) -> Result<()> {
    let entries = fs::read_dir(folder.join("logs"))
        .with_context(|| format!("there is no lab in {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        println!("{}", path.file_stem().unwrap_or_default().display());
    }
    Ok(())
}

async fn kubectl(passed: &Passed) -> Result<()> {
    let lab = Lab::running(&passed.lab.name).await?;
    let error = process::Command::new(lab.kubectl_program())
        .args(&passed.words)
        .envs(lab.environment())
        .exec();
    bail!("could not run kubectl: {error}")
}

async fn exec(passed: &Passed) -> Result<()> {
    let lab = Lab::running(&passed.lab.name).await?;
    let environment = lab.enter_network()?;
    let Some((program, arguments)) = passed.words.split_first() else {
        bail!("no command was given");
    };
    let error = process::Command::new(program)
        .args(arguments)
        .envs(environment)
        .exec();
    Err(error).with_context(|| format!("could not run {program}"))
}
