//! A program as a process: started, watched through its log, signalled, and waited for.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
    sync::OnceLock,
};

use agents_sidecar::args::variable;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, Command},
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::JoinSet,
    time::timeout,
};

use super::client::DEADLINE;

/// A running process and what it has logged.
pub(crate) struct Process {
    child: Child,
    lines: UnboundedReceiver<String>,
    _reading: JoinSet<()>,
    seen: Vec<String>,
}

/// A process that has ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) log: Vec<String>,
}

/// Many sidecars run at once here, so each lets the system choose where OTLP comes in.
fn any_port(program: &Path) -> impl Iterator<Item = (&'static str, &'static str)> {
    let listens = [variable::OTLP_GRPC_LISTEN, variable::OTLP_HTTP_LISTEN];
    let listens = listens.map(|listen| (listen, "127.0.0.1:0"));
    listens
        .into_iter()
        .filter(|_| program.ends_with("agents-sidecar"))
}

impl Process {
    /// Starts a program with nothing in its environment but what is given.
    pub(crate) fn start(program: &Path, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(program)
            .args(flags)
            .env_clear()
            .envs(any_port(program))
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()));
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        // Read whether anybody asks or not: who cannot log any more stands still.
        let (sender, lines) = unbounded_channel();
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            while let Ok(Some(line)) = stderr.next_line().await {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            lines,
            _reading: reading,
            seen: Vec::new(),
        }
    }

    /// The first log line that fits, past or future.
    pub(crate) async fn line(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut looked_at = 0;
        loop {
            for line in &self.seen[looked_at..] {
                if let Some(value) = serde_json::from_str(line).ok().filter(&fits) {
                    return value;
                }
            }
            looked_at = self.seen.len();
            match timeout(DEADLINE, self.lines.recv()).await {
                Ok(Some(line)) => self.seen.push(line),
                _ => panic!("no line about {what}, but:\n{}", self.seen.join("\n")),
            }
        }
    }

    /// Where a server of the process listens, on this host.
    pub(crate) async fn address(&mut self, server: &str) -> SocketAddr {
        let listening = |line: &Value| line["message"] == "Listening" && line["server"] == server;
        let line = self.line(server, listening).await;
        let address = line["address"].as_str().and_then(|text| text.parse().ok());
        let address: SocketAddr = address.expect("an address");
        (Ipv4Addr::LOCALHOST, address.port()).into()
    }

    /// Its number in the system.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().expect("a process that runs")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.id();
        kill(Pid::from_raw(id.try_into().expect("a process id")), signal).expect("a signal sent");
    }

    /// Ends it at once, as a crash would.
    pub(crate) async fn kill(self) {
        self.signal(Signal::SIGKILL);
        self.end().await;
    }

    /// Waits for the end.
    pub(crate) async fn end(mut self) -> Ended {
        let ending = async {
            while let Some(line) = self.lines.recv().await {
                self.seen.push(line);
            }
            let mut stdout = String::new();
            let mut pipe = self.child.stdout.take().expect("a pipe");
            pipe.read_to_string(&mut stdout).await.expect("a text");
            let status = self.child.wait().await.expect("an end");
            (status.code(), stdout)
        };
        let ended = timeout(DEADLINE, ending).await;
        let (code, stdout) = ended.expect("the process should have ended by now");
        Ended {
            code,
            stdout,
            log: self.seen,
        }
    }
}

/// The program that consists of the kit alone.
pub(crate) fn kit_program() -> PathBuf {
    env!("CARGO_BIN_EXE_kit-program").into()
}

/// One of the three programs, built if need be.
pub(crate) fn product(name: &str) -> PathBuf {
    static BUILT: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    BUILT.get_or_init(build)[name].clone()
}

/// Cargo builds no programs of other packages for a test, so it is asked here, and says where they are.
fn build() -> BTreeMap<String, PathBuf> {
    let mut command = support::cargo::command();
    let output = command
        .args(["build", "--workspace", "--bins", "--message-format=json"])
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo");
    assert!(
        output.status.success(),
        "cargo could not build the programs"
    );
    let messages = String::from_utf8(output.stdout).expect("a text");
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let name = message["target"]["name"].as_str()?.to_owned();
        Some((name, message["executable"].as_str()?.into()))
    };
    messages.lines().filter_map(executable).collect()
}
