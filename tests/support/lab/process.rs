//! Processes as values: what a part of the lab runs, and who a running process is.
//!
//! Runs nothing itself; [`supervisor`] does.

mod readiness;
pub mod stage;
pub mod supervisor;

use crate::memory;
use anyhow::{Context, Result, anyhow};
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde::{Deserialize, Serialize};
use std::{fs, io, path::PathBuf};

/// A program of the lab with everything needed to start it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its name, which is also the name of its log.
    pub name: String,
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables it gets besides `PATH` and `HOME`.
    pub environment: Vec<(String, String)>,
}

impl Part {
    /// A part without arguments.
    pub fn new(name: &str, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// Adds `--name=value`.
    pub fn flag(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.arguments.push(format!("--{name}={value}"));
        self
    }

    /// Adds `--name=path`.
    pub fn file(self, name: &str, path: impl AsRef<std::path::Path>) -> Self {
        let path = path.as_ref().display().to_string();
        self.flag(name, path)
    }

    /// Adds words as they are.
    pub fn words<I: IntoIterator<Item: Into<String>>>(mut self, words: I) -> Self {
        self.arguments.extend(words.into_iter().map(Into::into));
        self
    }

    /// Adds a variable.
    pub fn variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }
}

/// One step of a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Start a part that stays.
    Start(Part),
    /// Run a part to its end, which must be a good one.
    Run(Part),
    /// Wait until something is true.
    Await(Readiness),
}

/// What a start waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Readiness {
    /// Someone listens on this Unix socket.
    Socket(PathBuf),
    /// The API server of this kubeconfig says it is ready.
    ApiServer(PathBuf),
    /// Pods can be made: the default namespace has its service account.
    Usable(PathBuf),
    /// The node is ready and takes pods.
    Node(PathBuf),
}

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number in this machine's namespace.
    pub pid: i32,
    /// When it was started, in the kernel's ticks since boot.
    pub started: u64,
    /// Which boot that was.
    pub boot: String,
}

impl Identity {
    /// The process that calls.
    pub fn of_this_process() -> Result<Self> {
        Self::of(Pid::this())
    }

    /// A living process.
    pub fn of(pid: Pid) -> Result<Self> {
        let seen = Seen::look(pid)?.ok_or_else(|| anyhow!("there is no process {pid}"))?;
        Ok(Self {
            pid: pid.as_raw(),
            started: seen.started,
            boot: boot_id()?,
        })
    }

    /// Its number.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.pid)
    }

    /// Whether this very process still runs; one that ended and was not yet collected does not.
    pub fn runs(&self) -> Result<bool> {
        Ok(boot_id()? == self.boot
            && Seen::look(self.pid())?
                .is_some_and(|seen| seen.started == self.started && !seen.ended))
    }

    /// Sends a signal to this very process; a process that is gone already is no error.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        if !self.runs()? {
            return Ok(());
        }
        match kill(self.pid(), signal) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(error) => Err(error).context(format!("could not signal process {}", self.pid)),
        }
    }

    /// Memory it occupies, in KiB.
    pub fn resident_kib(&self) -> Option<u64> {
        let process = u32::try_from(self.pid).ok()?;
        Some(memory::resident(process).ok()? / 1024)
    }
}

/// What the kernel says about a process.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    started: u64,
    /// Ended, but its parent has not asked yet (a zombie answers to signal 0).
    ended: bool,
}

impl Seen {
    fn look(pid: Pid) -> Result<Option<Self>> {
        match fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => Self::parse(&stat)
                .map(Some)
                .ok_or_else(|| anyhow!("/proc/{pid}/stat is not as expected: {stat}")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // The process ended between opening and reading.
            Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => Ok(None),
            Err(error) => Err(error).context(format!("could not read /proc/{pid}/stat")),
        }
    }

    /// The name in parentheses may itself hold parentheses and blanks, so the fields count from the last one.
    fn parse(stat: &str) -> Option<Self> {
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?;
        Some(Self {
            started: fields.nth(18)?.parse().ok()?,
            ended: matches!(state, "Z" | "X"),
        })
    }
}

fn boot_id() -> Result<String> {
    let path = "/proc/sys/kernel/random/boot_id";
    let id = fs::read_to_string(path).with_context(|| format!("could not read {path}"))?;
    Ok(id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_name_with_parentheses_does_not_confuse() {
        let stat = "42 (a) b) Z 1 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987654 0 0";
        assert_eq!(
            Seen::parse(stat),
            Some(Seen {
                started: 987_654,
                ended: true
            })
        );
    }

    #[test]
    fn this_process_runs_and_one_of_another_time_with_its_number_does_not() {
        let this = Identity::of_this_process().unwrap();
        assert!(this.runs().unwrap());
        let other_start = Identity {
            started: this.started + 1,
            ..this.clone()
        };
        let other_boot = Identity {
            boot: "another".to_owned(),
            ..this
        };
        assert!(!other_start.runs().unwrap());
        assert!(!other_boot.runs().unwrap());
    }

    #[test]
    fn a_process_that_ended_but_was_not_collected_does_not_run() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let identity = Identity::of(Pid::from_raw(child.id() as i32)).unwrap();
        assert!(identity.runs().unwrap());
        identity.signal(Signal::SIGKILL).unwrap();
        // The end is visible in /proc before it is collected; waitid would need it collected.
        while identity.runs().unwrap() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        identity.signal(Signal::SIGKILL).unwrap();
    }
}
