//! `lab up`: from nothing to a usable cluster, then stay until told to stop, then leave nothing behind.

use super::{
    build,
    control_plane::{self, Layout},
    down,
    process::Identity,
    report::{Report, spoken},
    state::{Claim, Home, LabName, Phase, Record, Tier},
    supervisor::{self, Supervisor},
    tools,
};
use anyhow::{Context, Result, bail};
use std::{fs, io, os::fd::AsFd};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    signal::unix::{Signal, SignalKind, signal},
};

/// How often a start is tried again when another program took a port that was free a moment before.
const ATTEMPTS: usize = 3;

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// The lab's name.
    pub name: LabName,
    /// What it shall consist of.
    pub tier: Tier,
    /// Whether pods can resolve the names of services (tier 2).
    pub dns: bool,
    /// End when standard input, which must be a pipe, is closed: whoever holds the other end has gone.
    pub until_stdin_closes: bool,
}

/// Starts a lab and returns when it was stopped.
pub async fn up(options: &Options) -> Result<()> {
    let report = Report::start();
    let mut stop = Stop::listen(options)?;
    let home = Home::from_env()?;
    down::sweep(&home).await?;
    let Some(claim) = home.claim(&options.name)? else {
        bail!(
            "lab `{0}` is already running; stop it with `lab down --name {0}` or choose another --name",
            options.name
        );
    };
    let mut session = Session::begin(claim, options, report)?;
    let started = tokio::select! {
        started = session.start(options) => started,
        asked = stop.asked() => asked.map(|()| session.report.line("stopping before it was ready")),
    };
    if let Err(error) = started {
        session.fail(&error).await?;
        return Err(error);
    }
    let ended = if session.record.phase == Phase::Ready {
        session.stay(&mut stop).await
    } else {
        Ok(())
    };
    let report = session.report;
    session.end().await?;
    home.tidy();
    report.line("stopped; nothing is left");
    ended
}

/// One run of a lab, from claim to removal.
struct Session {
    claim: Claim,
    record: Record,
    supervisor: Supervisor,
    report: Report,
}

impl Session {
    fn begin(claim: Claim, options: &Options, report: Report) -> Result<Self> {
        let record = Record {
            name: options.name.clone(),
            tier: options.tier,
            phase: Phase::Building,
            owner: Identity::of_this_process()?,
            parts: Vec::new(),
            node: None,
            server: None,
        };
        claim.write(&record)?;
        let supervisor = Supervisor::new(claim.folder())?;
        Ok(Self {
            claim,
            record,
            supervisor,
            report,
        })
    }

    async fn start(&mut self, options: &Options) -> Result<()> {
        let programs = build::programs(tools::CONTROL_PLANE, self.report).await?;
        let clock = Report::start();
        for attempt in 1.. {
            let (etcd_port, api_port) = control_plane::free_ports()?;
            let folder = self.claim.folder().to_owned();
            let layout = Layout {
                folder: &folder,
                programs: &programs,
                etcd_port,
                api_port,
            };
            self.enter(Phase::Starting)?;
            match self.start_control_plane(&layout).await {
                Ok(()) => break,
                Err(error) if attempt < ATTEMPTS && took_port(&error) => {
                    self.report
                        .line("another program took a port; trying again");
                    self.supervisor.stop().await?;
                    self.claim.empty()?;
                    self.supervisor = Supervisor::new(&folder)?;
                }
                Err(error) => return Err(error),
            }
        }
        self.enter(Phase::Ready)?;
        self.announce(options, clock);
        Ok(())
    }

    async fn start_control_plane(&mut self, layout: &Layout<'_>) -> Result<()> {
        control_plane::write_files(layout, None)?;
        self.record.server = Some(layout.server());
        self.supervisor
            .execute(&control_plane::steps(layout)?, self.report)
            .await
    }

    fn announce(&self, options: &Options, clock: Report) {
        let Record {
            name, tier, server, ..
        } = &self.record;
        let server = server.as_deref().unwrap_or_default();
        let kubeconfig = control_plane::admin_kubeconfig(self.claim.folder());
        self.report.line(format!(
            "lab `{name}`, {tier}, usable after {}",
            spoken(clock.elapsed())
        ));
        println!("KUBECONFIG={}", kubeconfig.display());
        println!("API server  {server}");
        println!("logs        {}/logs", self.claim.folder().display());
        if !options.until_stdin_closes {
            println!("stop        Ctrl-C, or `lab down --name {name}`");
        }
    }

    /// Writes down how far it is and what runs.
    fn enter(&mut self, phase: Phase) -> Result<()> {
        self.record.phase = phase;
        self.record.parts = self.supervisor.parts();
        self.claim.write(&self.record)
    }

    /// Waits for the order to stop or for a part that ends without one.
    async fn stay(&mut self, stop: &mut Stop) -> Result<()> {
        tokio::select! {
            asked = stop.asked() => asked,
            exit = self.supervisor.exited() => Err(self.supervisor.complaint(&exit?)),
        }
    }

    /// Ends all processes after a failed start but keeps the logs.
    async fn fail(mut self, error: &anyhow::Error) -> Result<()> {
        self.supervisor.stop().await?;
        self.enter(Phase::Failed)?;
        let logs = self.claim.folder().join("logs");
        fs::write(
            supervisor::log(self.claim.folder(), "lab"),
            format!("{error:#}\n"),
        )?;
        self.report.line(format!(
            "the start failed; logs are kept in {}",
            logs.display()
        ));
        Ok(())
    }

    /// Ends everything and removes every trace.
    async fn end(mut self) -> Result<()> {
        self.supervisor.stop().await?;
        self.claim.remove()
    }
}

/// Whether a start failed because a port was in use.
fn took_port(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("address already in use")
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

    async fn asked(&mut self) -> Result<()> {
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
        Ok(())
    }
}
