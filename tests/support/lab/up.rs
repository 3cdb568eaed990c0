//! `lab up`: from nothing to a usable cluster, then stay until told to stop, then leave nothing behind.

mod session;

use super::{
    down,
    report::Report,
    state::{Claim, Home, LabName, Tier},
};
use anyhow::{Context, Result, bail};
use session::Session;
use std::{io, os::fd::AsFd, time::Duration};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep},
};

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// The lab's name.
    pub name: LabName,
    /// What it shall consist of.
    pub tier: Tier,
    /// Whether pods can resolve the names of services (tier 2).
    pub dns: bool,
    /// Whether this workspace's programs are brought in as images (tier 2).
    pub images: bool,
    /// APIs that the API server shall not have, as group and version.
    pub without: Vec<String>,
    /// A command to run once the lab is usable; none if empty. The lab stops if it fails and stays otherwise.
    pub command: Vec<String>,
    /// End when standard input, which must be a pipe, is closed: whoever holds the other end has gone.
    pub until_stdin_closes: bool,
}

/// Starts a lab and returns when it was stopped.
pub async fn up(options: &Options) -> Result<()> {
    let report = Report::start().quiet(options.until_stdin_closes);
    let mut stop = Stop::listen(options)?;
    let home = Home::from_env()?;
    down::sweep(&home).await?;
    let mut session = Session::begin(claim(&home, &options.name).await?, options, report)?;
    let started = tokio::select! {
        started = session.start(options) => started.map(|()| true),
        () = stop.asked() => Ok(false),
    };
    let ended = match started {
        Ok(true) => tokio::select! {
            () = stop.asked() => Ok(()),
            error = session.stay(options) => Err(error),
        },
        Ok(false) => Ok(()),
        Err(error) => {
            session.fail(&error).await?;
            return Err(error);
        }
    };
    session.end().await?;
    home.tidy();
    report.line(format!(
        "lab `{}` is stopped; nothing is left",
        options.name
    ));
    ended
}

/// Takes the lab's folder; a sweep by another lab may hold it for a moment.
async fn claim(home: &Home, name: &LabName) -> Result<Claim> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(claim) = home.claim(name)? {
            return Ok(claim);
        }
        let runs = match home.record(name)? {
            Some(record) => record.owner.runs()?,
            None => false,
        };
        if runs || Instant::now() >= end {
            bail!(
                "lab `{name}` is already running; stop it with `lab down --name {name}` or choose another --name"
            );
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// The ways to tell a lab to stop.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    stdin: Option<pipe::Receiver>,
}

impl Stop {
    fn listen(options: &Options) -> Result<Self> {
        let stdin = if options.until_stdin_closes {
            let input = io::stdin().as_fd().try_clone_to_owned()?;
            let pipe = pipe::Receiver::from_owned_fd(input);
            Some(pipe.context("standard input must be a pipe to notice its end")?)
        } else {
            None
        };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            stdin,
        })
    }

    async fn asked(&mut self) {
        let mut buffer = [0; 64];
        let closed = async {
            match &mut self.stdin {
                Some(pipe) => while pipe.read(&mut buffer).await.is_ok_and(|read| read > 0) {},
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
            () = closed => {}
        }
    }
}
