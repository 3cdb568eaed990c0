//! Runs the parts of a lab: starts them in order, notices when one ends, ends them all.
//!
//! Every part is started through the stage `part` of the `lab` program, which binds its life to the supervisor's:
//! the kernel kills it when the supervisor is gone, however it went. It also collects orphans, since inside a
//! node's namespaces the supervisor is process 1.

use super::{Identity, Part, Step, readiness};
use crate::lab::{report::Report, state::PartRecord};
use anyhow::{Context, Result, anyhow, bail};
use nix::{
    errno::Errno,
    sys::{
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::Pid,
};
use std::{
    env,
    ffi::OsStr,
    fs::{self, OpenOptions},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use tokio::{
    signal::unix::{Signal as Signals, SignalKind, signal},
    time::timeout,
};

/// How long a one-off part may take.
const RUN_DEADLINE: Duration = Duration::from_secs(60);
/// How long killed processes may take to disappear.
const STOP_DEADLINE: Duration = Duration::from_secs(15);

/// A part that ended.
#[derive(Debug)]
pub struct Exit {
    /// Its name.
    pub name: String,
    /// How, in words.
    pub how: String,
    good: bool,
}

/// The parts of one lab.
///
/// Must live on one thread that lasts as long as the program: the kernel takes the end of the thread that
/// started a part for the end of its parent.
pub struct Supervisor {
    folder: PathBuf,
    running: Vec<(Pid, PartRecord)>,
    ended: Vec<Exit>,
    children: Signals,
}

impl Supervisor {
    /// Supervises nothing yet; logs go to `folder/logs`.
    pub fn new(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder.join("logs"))?;
        Ok(Self {
            folder: folder.to_owned(),
            running: Vec::new(),
            ended: Vec::new(),
            children: signal(SignalKind::child())?,
        })
    }

    /// What runs.
    pub fn parts(&self) -> Vec<PartRecord> {
        self.running.iter().map(|(_, part)| part.clone()).collect()
    }

    /// Takes the steps one after the other. Fails when one fails and when any part ends meanwhile.
    pub async fn execute(&mut self, steps: &[Step], report: Report) -> Result<()> {
        for step in steps {
            match step {
                Step::Start(part) => self.start(part)?,
                Step::Run(part) => self.run(part).await?,
                Step::Await(what) => tokio::select! {
                    exit = self.exited() => return Err(self.complaint(&exit?)),
                    reached = readiness::reached(what) => report.milestone(reached?),
                },
            }
        }
        Ok(())
    }

    /// Starts a part that stays.
    pub fn start(&mut self, part: &Part) -> Result<()> {
        let log = log(&self.folder, &part.name);
        let log = OpenOptions::new().create(true).append(true).open(&log)?;
        let path = env::var("PATH").unwrap_or_default();
        let mut command = bound(&part.program, &part.arguments);
        command
            .env_clear() // proxies and the like are none of a cluster's business
            .env("PATH", format!("{path}:/usr/sbin:/sbin"))
            .env("HOME", &self.folder)
            .envs(part.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0); // an interrupt from the terminal is the supervisor's to handle
        self.spawn(part, command)
    }

    /// Runs a command of the person who started the lab to its end, in their folder and on their terminal.
    pub async fn run_for_person(&mut self, part: &Part) -> Result<()> {
        let mut command = bound(&part.program, &part.arguments);
        command.envs(part.environment.iter().map(|(name, value)| (name, value)));
        self.spawn(part, command)?;
        let exit = self.ended(&part.name).await?;
        if !exit.good {
            bail!("`{}` ended ({})", part.program.display(), exit.how);
        }
        Ok(())
    }

    fn spawn(&mut self, part: &Part, mut command: Command) -> Result<()> {
        let child = command.stdin(Stdio::null()).spawn();
        let child = child.with_context(|| format!("could not start {}", part.name))?;
        let pid = Pid::from_raw(i32::try_from(child.id())?);
        let record = PartRecord {
            name: part.name.clone(),
            process: Identity::of(pid)?,
        };
        self.running.push((pid, record));
        Ok(())
    }

    /// Runs a part to its end.
    async fn run(&mut self, part: &Part) -> Result<()> {
        self.start(part)?;
        let ended = timeout(RUN_DEADLINE, self.ended(&part.name)).await;
        let exit = ended
            .with_context(|| format!("{} did not end within {RUN_DEADLINE:?}", part.name))??;
        if exit.good {
            Ok(())
        } else {
            Err(self.complaint(&exit))
        }
    }

    /// Waits for the end of one part.
    async fn ended(&mut self, name: &str) -> Result<Exit> {
        loop {
            self.collect()?;
            if let Some(at) = self.ended.iter().position(|exit| exit.name == name) {
                return Ok(self.ended.remove(at));
            }
            self.children.recv().await;
        }
    }

    /// Waits for the next part that ends.
    pub async fn exited(&mut self) -> Result<Exit> {
        loop {
            self.collect()?;
            if let Some(exit) = self.ended.pop() {
                return Ok(exit);
            }
            self.children.recv().await;
        }
    }

    /// An end nobody asked for, with the last words from the log.
    pub fn complaint(&self, exit: &Exit) -> anyhow::Error {
        let said = last_words(&self.folder, &exit.name);
        anyhow!(
            "{} ended ({}); its log ends with:\n{said}",
            exit.name,
            exit.how
        )
    }

    /// Kills everything and waits until it is gone. Nothing here is worth an orderly end: the data is thrown away.
    pub async fn stop(&mut self) -> Result<()> {
        for (pid, part) in &self.running {
            // Not collected yet, so the number cannot have passed to another process.
            match kill(*pid, Signal::SIGKILL) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => bail!("could not kill {}: {error}", part.name),
            }
        }
        timeout(STOP_DEADLINE, async {
            while !self.running.is_empty() {
                self.exited().await?;
            }
            Ok(())
        })
        .await
        .context("killed processes did not disappear")?
    }

    /// Asks the kernel for all children that ended.
    fn collect(&mut self) -> Result<()> {
        loop {
            let (pid, how, good) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, format!("exit code {code}"), code == 0),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, signal.to_string(), false),
                Ok(_) | Err(Errno::ECHILD) => return Ok(()),
                Err(error) => return Err(error).context("could not collect ended processes"),
            };
            if let Some(at) = self.running.iter().position(|(known, _)| *known == pid) {
                let (_, part) = self.running.remove(at);
                self.ended.push(Exit {
                    name: part.name,
                    how,
                    good,
                });
            }
        }
    }
}

/// A command of the `lab` program that becomes another program, whose process the kernel ends when this one is gone,
/// however it goes.
pub fn bound<A: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["stage", "part", "--parent"])
        .arg(Pid::this().to_string())
        .arg("--")
        .arg(program)
        .args(arguments);
    command
}

/// The log of a part.
pub fn log(folder: &Path, part: &str) -> PathBuf {
    folder.join("logs").join(format!("{part}.log"))
}

/// The last lines of a part's log.
pub fn last_words(folder: &Path, part: &str) -> String {
    const LINES: usize = 15;
    let text = fs::read(log(folder, part)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
