//! What each command of the `lab` program does; the work itself is in the library.

use crate::arguments::{Command, Named, Passed, Stage, Up};
use anyhow::{Context, Result, bail};
use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::process::CommandExt,
    path::Path,
    process,
    time::Duration,
};
use support::lab::{
    self, Lab, build,
    control_plane::admin_kubeconfig,
    down,
    report::Report,
    stage,
    state::{Home, LabName, Record, Tier},
    supervisor, tools, up,
};
use tokio::time::sleep;

/// Runs a stage.
pub(crate) fn stage(stage: &Stage) -> Result<()> {
    match stage {
        Stage::Part { parent, words } => match stage::part(*parent, words)? {},
    }
}

/// Runs any other command.
pub(crate) async fn run(command: Command) -> Result<()> {
    match command {
        Command::Up(up) if up.detach => detach(&up).await,
        Command::Up(up) => start(up).await,
        Command::Down { lab, all } => stop(lab, all).await,
        Command::Status => status(),
        Command::Logs { lab, part, follow } => logs(&lab.name, part.as_deref(), follow).await,
        Command::Build { tools } => build_tools(&tools).await,
        Command::Kubectl(passed) => kubectl(&passed).await,
        Command::Stage(other) => stage(&other),
    }
}

async fn start(up: Up) -> Result<()> {
    if up.own_session {
        nix::unistd::setsid().context("could not leave the terminal's session")?;
    }
    let options = up::Options {
        name: up.lab.name,
        tier: up.tier.into(),
        dns: up.dns,
        until_stdin_closes: up.until_stdin_closes,
    };
    up::up(&options).await
}

async fn detach(up: &Up) -> Result<()> {
    let wanted: &[&[&str]] = match up.tier.into() {
        Tier::ControlPlane => &[tools::CONTROL_PLANE],
        Tier::Node => &[tools::CONTROL_PLANE, tools::NODE],
    };
    // Here the person sees how far the build is.
    build::programs(&wanted.concat(), Report::start()).await?;
    let record = lab::detach(&up.lab.name, up.tier.into(), up.dns).await?;
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
    let names = if wanted.is_empty() {
        [tools::CONTROL_PLANE, tools::NODE].concat()
    } else {
        tools::expand(wanted)?
    };
    let programs = build::programs(&names, Report::start()).await?;
    for (name, path) in programs.0 {
        println!("{name} {}", path.display());
    }
    Ok(())
}

fn status() -> Result<()> {
    let home = Home::from_env()?;
    let names = home.names()?;
    if names.is_empty() {
        println!("no labs");
    }
    for name in names {
        match home.record(&name)? {
            Some(record) => show(&home, &record)?,
            None => {
                println!("lab `{name}`: just being started, or left by a crash (see `lab down`)")
            }
        }
    }
    home.tidy();
    Ok(())
}

fn show(home: &Home, record: &Record) -> Result<()> {
    let folder = home.folder(&record.name);
    let state = if record.owner.runs()? {
        format!("{:?}", record.phase)
    } else {
        "not running, to be cleared by `lab down`".to_owned()
    };
    println!("lab `{}`, {}: {state}", record.name, record.tier);
    println!("  KUBECONFIG={}", admin_kubeconfig(&folder).display());
    println!(
        "  API server {}",
        record.server.as_deref().unwrap_or("not yet known")
    );
    for part in &record.parts {
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
        .env("KUBECONFIG", lab.kubeconfig())
        .env("NO_PROXY", "127.0.0.1")
        .exec();
    bail!("could not run kubectl: {error}")
}
