//! Runs `kubectl` against a lab and keeps what it said.

use anyhow::{Context, Result, bail};
use std::{
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Output, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};

/// No command of a test takes longer. `kubectl` itself gives up on a schema after 32 s and asks again, which may be twice.
const DEADLINE: Duration = Duration::from_secs(120);

/// `kubectl` for one cluster, optionally in one namespace.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    environment: Vec<(&'static str, PathBuf)>,
    namespace: Option<String>,
}

/// What a command said and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Said {
    /// What the output of any command says.
    pub fn of(output: Output) -> Result<Self> {
        Ok(Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout)?,
            stderr: String::from_utf8(output.stderr)?,
        })
    }

    /// Standard output of a command that must have succeeded.
    pub fn ok(self) -> Result<String> {
        match self.code {
            Some(0) => Ok(self.stdout),
            Some(_) | None => bail!(
                "kubectl ended with {:?} and said: {}",
                self.code,
                self.stderr.trim()
            ),
        }
    }
}

impl Kubectl {
    /// `program`, with variables that say where the cluster is.
    pub fn new(program: &Path, environment: Vec<(&'static str, PathBuf)>) -> Self {
        Self {
            program: program.to_owned(),
            environment,
            namespace: None,
        }
    }

    /// The same, in a namespace.
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..self.clone()
        }
    }

    /// Runs a command.
    pub async fn run(&self, arguments: &[&str]) -> Result<Said> {
        self.run_with_input(arguments, "").await
    }

    /// Runs a command with text on its standard input, as for `apply -f -`.
    pub async fn run_with_input(&self, arguments: &[&str], input: &str) -> Result<Said> {
        let mut command = Command::new(&self.program);
        command
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(namespace) = &self.namespace {
            command.args(["--namespace", namespace]);
        }
        let mut child = command
            .args(arguments)
            .spawn()
            .with_context(|| format!("could not run {}", self.program.display()))?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let ended = timeout(DEADLINE, talk(&mut child, input, &mut stdout, &mut stderr)).await;
        let Ok(status) = ended else {
            let said = [stdout, stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
            bail!(
                "`kubectl {}` took over {DEADLINE:?} and had said {said:?}",
                arguments.join(" ")
            );
        };
        let output = Output {
            status: status?,
            stdout,
            stderr,
        };
        Said::of(output)
    }
}

/// Gives a command its input and keeps what it says, also of one that never ends.
async fn talk(
    child: &mut Child,
    input: &str,
    stdout: &mut Vec<u8>,
    stderr: &mut Vec<u8>,
) -> io::Result<ExitStatus> {
    let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(mut out), Some(mut err)) = streams else {
        return Err(io::Error::other("a stream of kubectl is not ours"));
    };
    let feed = async {
        // A command that does not read its input closes it, which is its right.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
    };
    let (_, out, err, status) = tokio::join!(
        feed,
        out.read_to_end(stdout),
        err.read_to_end(stderr),
        child.wait()
    );
    out?;
    err?;
    status
}
