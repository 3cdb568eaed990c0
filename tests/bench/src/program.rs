//! The release build of the webhook as a process, with a certificate and without a cluster.

use crate::{client::Client, cpu, load::Target, pki::Identity};
use agents::kit::args::variable as common;
use agents_webhook::args::variable as webhook;
use anyhow::{Context, Result, bail};
use std::{
    env,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const DEADLINE: Duration = Duration::from_secs(20);

/// A webhook that is ready; ends with this value.
pub struct Webhook {
    child: Child,
    /// Where reviews are answered.
    pub address: SocketAddr,
    /// Time from the start to the first good answer of its readiness.
    pub ready_after: Duration,
}

impl Drop for Webhook {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Webhook {
    /// Starts the release build and waits until it is ready.
    pub fn start(identity: &Identity) -> Result<Self> {
        let (address, admin) = (free_address()?, free_address()?);
        let started = Instant::now();
        let child = Command::new(release_build("agents-webhook")?)
            .env(webhook::LISTEN, address.to_string())
            .env(common::ADMIN_LISTEN, admin.to_string())
            .env(webhook::LOOKUP, "off")
            .env("AGENTS_LOG_FILTER", "warn")
            .env(common::TLS_CERTIFICATE_FILE, identity.certificate_file())
            .env(common::TLS_KEY_FILE, identity.key_file())
            .stdin(Stdio::null())
            .spawn()
            .context("could not start agents-webhook")?;
        let mut webhook = Self {
            child,
            address,
            ready_after: Duration::ZERO,
        };
        while !is_ready(admin) {
            if let Some(status) = webhook.child.try_wait()? {
                bail!("agents-webhook ended with {status}");
            }
            if started.elapsed() > DEADLINE {
                bail!("agents-webhook is not ready after {DEADLINE:?}");
            }
            thread::sleep(Duration::from_millis(2));
        }
        webhook.ready_after = started.elapsed();
        Ok(webhook)
    }

    /// Processor time so far.
    pub fn cpu(&self) -> Result<Duration> {
        cpu::of_threads(self.child.id(), None)
    }

    /// Resident memory, in MiB.
    pub fn resident_mib(&self) -> Result<f64> {
        Ok(cpu::resident_kib(self.child.id())? as f64 / 1024.0)
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
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// The program that `make bench-webhook` has built.
fn release_build(name: &str) -> Result<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or(workspace.join("target"), PathBuf::from);
    let host = env::var_os("CARGO_BUILD_TARGET").unwrap_or_default();
    let program = target.join(host).join("release").join(name);
    if !program.exists() {
        bail!(
            "{} is not there: run `make bench-webhook`",
            program.display()
        );
    }
    Ok(program)
}
