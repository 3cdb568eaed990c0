//! The release builds of the programs as processes.

use crate::{
    client::Client,
    cpu::{self, Side, beside},
    load::Target,
    pki::Identity,
};
use agents::{
    api::{contract::env as contract, registration::rung::Rung},
    kit::args::variable as common,
};
use agents_webhook::args::variable as webhook;
use anyhow::{Context, Result, bail};
use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, Read, Seek, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const DEADLINE: Duration = Duration::from_secs(20);

/// A program that is ready; ends with this value.
pub struct Program {
    child: Child,
    /// Where probes and pages are answered.
    pub admin: SocketAddr,
    /// Time from the start to the first good answer of its readiness.
    pub ready_after: Duration,
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Program {
    /// Starts the release build of a program and waits until it is ready. It has no other variables than these.
    pub fn start(name: &str, flags: &[&str], variables: &[(&str, &OsStr)]) -> Result<Self> {
        let admin = free_address()?;
        // As much as by default, since writing it is part of the work; it is shown only if the program does not start.
        let mut log = tempfile::tempfile()?;
        let started = Instant::now();
        let child = Command::new(release_build(name)?)
            .args(flags)
            .env_clear()
            .envs(variables.iter().copied())
            .env(common::ADMIN_LISTEN, admin.to_string())
            .env(contract::QUEUE_LISTEN, "127.0.0.1:0")
            .stdin(Stdio::null())
            .stderr(log.try_clone()?)
            .spawn()
            .with_context(|| format!("could not start {name}"))?;
        let mut program = Self {
            child,
            admin,
            ready_after: Duration::ZERO,
        };
        while !is_ready(admin) {
            let ended = program.child.try_wait()?;
            if ended.is_some() || started.elapsed() > DEADLINE {
                log.rewind()?;
                let said = io::read_to_string(&log)?;
                let ended = ended.map_or("still runs".to_owned(), |status| status.to_string());
                bail!(
                    "{name} is not ready after {:?} ({ended}): {said}",
                    started.elapsed()
                );
            }
            thread::sleep(Duration::from_millis(2));
        }
        program.ready_after = started.elapsed();
        Ok(program)
    }

    /// Processor time so far.
    pub fn cpu(&self) -> Result<Duration> {
        cpu::of_threads(self.child.id(), None)
    }

    /// Bytes of the release build.
    pub fn size(name: &str) -> Result<u64> {
        Ok(release_build(name)?.metadata()?.len())
    }

    /// The most that it ever had in memory, in MiB.
    pub fn peak_mib(&self) -> Result<f64> {
        Ok(support::memory::peak(self.child.id())? as f64 / f64::from(1 << 20))
    }

    /// Resident memory, in MiB.
    pub fn resident_mib(&self) -> Result<f64> {
        Ok(support::memory::resident(self.child.id())? as f64 / f64::from(1 << 20))
    }
}

/// The rung on which the webhook is measured: the highest, where it does most.
pub const RUNG: Rung = Rung::Fail;

/// A webhook that is ready, with a certificate and without a cluster.
pub struct Webhook {
    /// The program.
    pub program: Program,
    /// Where reviews are answered.
    pub address: SocketAddr,
}

impl Webhook {
    /// Starts it.
    pub fn start(identity: &Identity) -> Result<Self> {
        let address = free_address()?;
        let (certificate, key) = (identity.certificate_file(), identity.key_file());
        let listen = OsString::from(address.to_string());
        let variables = [
            (webhook::LISTEN, listen.as_os_str()),
            (webhook::LOOKUP, OsStr::new("off")),
            (webhook::RUNG, OsStr::new(RUNG.as_str())),
            (common::TLS_CERTIFICATE_FILE, certificate.as_os_str()),
            (common::TLS_KEY_FILE, key.as_os_str()),
        ];
        Ok(Self {
            program: beside(Side::Serving, || {
                Program::start("agents-webhook", &[], &variables)
            })?,
            address,
        })
    }

    /// One review; fails unless it is answered with a decision that allows.
    pub fn try_out(&self, target: &Target) -> Result<()> {
        let mut client = Client::connect(self.address, &target.tls)?;
        let answer: serde_json::Value = serde_json::from_slice(client.ask(&target.request)?)?;
        if answer["response"]["allowed"] != true {
            bail!("the bench sends reviews that are allowed, but this one was not: {answer}");
        }
        Ok(())
    }
}

fn is_ready(admin: SocketAddr) -> bool {
    let ask = || -> Result<String> {
        let mut stream = TcpStream::connect(admin)?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(64 * 1024).read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
}

/// An address that nobody uses now; whoever takes it first has it.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// A program that the Makefile has built.
pub fn release_build(name: &str) -> Result<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or(workspace.join("target"), PathBuf::from);
    let host = env::var_os("CARGO_BUILD_TARGET").unwrap_or_default();
    let program = target.join(host).join("release").join(name);
    if !program.exists() {
        bail!(
            "{} is not there: the targets of the Makefile that measure it build it",
            program.display()
        );
    }
    Ok(program)
}
