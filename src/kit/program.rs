//! A program from start to end: telemetry, admin endpoint and tasks up, wait, drain, flush.
//!
//! What the program is for comes from its `run`; this is the frame that all of them have.

use std::{
    error::Error as StdError,
    future::Future,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    process::ExitCode,
    time::Duration,
};

use futures::{
    StreamExt,
    stream::{BoxStream, select},
};
use nix::errno::Errno;
use prometheus_client::registry::Registry;
use tokio::{
    net::{TcpListener, TcpSocket},
    runtime,
};

use super::{
    admin::{self, Admin, MakePages, Paths, Profiling},
    args::{AdminSettings, Common},
    config::{ConfigError, Notes},
    exit::Exit,
    http::{self, Server, Transport},
    readiness::{Gate, Readiness},
    shutdown::{Ender, Signal, ender, signals},
    tasks::{Ended, Grace, Tasks},
    telemetry::{Identity, Telemetry, TelemetryError},
};

/// Time to send the last telemetry.
const FLUSH: Duration = Duration::from_secs(5);

/// Why a program could not start, or why it ended other than it should.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Settings are wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Telemetry does not start.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// Signals cannot be received.
    #[error("could not listen for signals")]
    Signals(#[source] io::Error),
    /// A port cannot be opened.
    #[error("could not listen on {address} for {server}")]
    Listen {
        /// What wanted it.
        server: &'static str,
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// Something that the program cannot do without is not there.
    #[error("could not {what}")]
    Start {
        /// What it tried.
        what: &'static str,
        /// Why it could not.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// It ran, but did not end as it should.
    #[error(transparent)]
    Ended(#[from] Ended),
}

impl Error {
    /// What the shell is told.
    fn exit(&self) -> Exit {
        match self {
            Self::Config(_) => Exit::Misused,
            Self::Telemetry(_)
            | Self::Signals(_)
            | Self::Listen { .. }
            | Self::Start { .. }
            | Self::Ended(_) => Exit::Failed,
        }
    }

    fn say(&self) {
        if tracing::dispatcher::has_been_set() {
            tracing::error!(error = self as &dyn StdError, "Program ended");
            return;
        }
        explain(self);
    }
}

/// Tells a person on the terminal what went wrong, cause by cause.
pub fn explain(error: &dyn StdError) {
    eprintln!("error: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        eprintln!("  because: {error}");
        cause = error.source();
    }
}

/// Runs a program to its end on a runtime of its own.
pub fn block_on(run: impl Future<Output = Result<(), Error>>) -> ExitCode {
    let runtime = match runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the system gives no threads: {error}");
            return Exit::Failed.into();
        }
    };
    let exit = match runtime.block_on(run) {
        Ok(()) => Exit::Done,
        Err(error) => {
            error.say();
            error.exit()
        }
    };
    // Whatever still hangs has had its time; waiting for it would keep the process alive.
    runtime.shutdown_background();
    exit.into()
}

/// A program that has been started and not yet been let go.
pub struct Program {
    /// Gates of `/readyz`.
    pub readiness: Readiness,
    /// What runs.
    pub tasks: Tasks,
    /// Metrics of the HTTP servers.
    pub http: http::Metrics,
    identity: Identity,
    paths: Paths,
    registry: Registry,
    telemetry: Telemetry,
    signals: BoxStream<'static, Signal>,
    ender: Ender,
    admin: TcpListener,
    profiling: Profiling,
    pages: Option<MakePages>,
    grace: Grace,
    running: Gate,
}

impl Program {
    /// Starts telemetry and opens the admin port; from here on everything is logged.
    pub async fn start(
        identity: Identity,
        paths: Paths,
        common: Common,
        notes: Notes,
    ) -> Result<Self, Error> {
        let Common {
            log,
            otlp,
            admin: AdminSettings { listen, profiling },
            grace,
        } = common; // a setting left out here does not compile
        let mut registry = admin::registry(identity);
        let own = registry.sub_registry_with_prefix(prefix(identity));
        let telemetry = Telemetry::start(identity, log, &otlp, own)?;
        let http = http::Metrics::register(own);
        greet(identity, &notes);
        let (ender, own) = ender();
        let signals = select(signals().map_err(Error::Signals)?, own).boxed();
        let readiness = Readiness::default();
        Ok(Self {
            running: readiness.gate("running"),
            readiness,
            tasks: Tasks::default(),
            http,
            identity,
            paths,
            registry,
            telemetry,
            signals,
            ender,
            admin: listen_on("admin", listen).await?,
            profiling,
            pages: None,
            grace,
        })
    }

    /// Where the program registers its metrics; its name is their prefix.
    pub fn metrics(&mut self) -> &mut Registry {
        self.registry
            .sub_registry_with_prefix(prefix(self.identity))
    }

    /// Where the program records the metrics that it pushes.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// By which a task can ask for the end of the program.
    pub fn ender(&self) -> Ender {
        self.ender.clone()
    }

    /// Shows pages of its own on the admin port.
    pub fn show(&mut self, pages: MakePages) {
        self.pages = Some(pages);
    }

    /// Answers on the admin port and runs all tasks until the end.
    pub async fn run(self) -> Result<(), Error> {
        let Self {
            readiness,
            mut tasks,
            http,
            identity: _,
            paths,
            registry,
            telemetry,
            signals,
            ender: _,
            admin,
            profiling,
            pages,
            grace,
            running,
        } = self;
        let server = Server {
            listener: admin,
            transport: Transport::Plain,
            limits: admin::limits(),
            metrics: http.of("admin"),
        };
        running.open();
        let service = Admin::new(paths, readiness, registry, profiling, pages);
        tasks.support("admin", |shutdown| async move {
            server.serve(service, shutdown).await;
            Ok(())
        });
        let ended = tasks
            .run(signals, grace, || running.close("the program is ending"))
            .await;
        match ended {
            Err(ended @ Ended::Forced { .. }) => {
                telemetry.abandon();
                return Err(ended.into());
            }
            Err(ended) => {
                telemetry.flush(FLUSH).await;
                return Err(ended.into());
            }
            Ok(()) => telemetry.flush(FLUSH).await,
        }
        tracing::info!("Ended");
        Ok(())
    }
}

/// The port, open.
pub async fn listen_on(server: &'static str, address: SocketAddr) -> Result<TcpListener, Error> {
    let bound = match TcpListener::bind(address).await {
        // A host without IPv6 cannot give "any address" in it; then any IPv4 address is what was meant.
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && means_no_ipv6(&error) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    };
    listening(server, address, bound)
}

/// The port, open, for readers of whom some take nothing: the system keeps so many bytes for each and no more.
pub fn listen_narrow(
    server: &'static str,
    address: SocketAddr,
    send_buffer: u32,
) -> Result<TcpListener, Error> {
    let open = |address: SocketAddr| {
        let socket = match address.is_ipv4() {
            true => TcpSocket::new_v4()?,
            false => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        socket.set_send_buffer_size(send_buffer)?;
        socket.bind(address)?;
        socket.listen(1024)
    };
    let bound = match open(address) {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && means_no_ipv6(&error) => {
            open((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        bound => bound,
    };
    listening(server, address, bound)
}

/// Tells that a port is open, or why it is not.
fn listening(
    server: &'static str,
    address: SocketAddr,
    bound: io::Result<TcpListener>,
) -> Result<TcpListener, Error> {
    let listener = bound.map_err(|source| Error::Listen {
        server,
        address,
        source,
    })?;
    let address = listener.local_addr().unwrap_or(address);
    tracing::info!(server, %address, "Listening");
    Ok(listener)
}

/// Any other error, such as a port in use, would only be hidden by another address.
fn means_no_ipv6(error: &io::Error) -> bool {
    let codes = [Errno::EAFNOSUPPORT, Errno::EADDRNOTAVAIL].map(|code| code as i32);
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
}

fn prefix(identity: Identity) -> String {
    identity.program.replace('-', "_")
}

fn greet(identity: Identity, notes: &Notes) {
    let Identity {
        program,
        version,
        clean: _,
    } = identity;
    let settings = notes.report.changed().join(" ");
    tracing::info!(program, version, settings, "Starting");
    for warning in &notes.warnings {
        tracing::warn!("{warning}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_without_ipv6_is_served_over_ipv4_instead() {
        for (code, expected) in [
            (Errno::EAFNOSUPPORT, true),
            (Errno::EADDRNOTAVAIL, true),
            (Errno::EADDRINUSE, false),
            (Errno::EACCES, false),
        ] {
            let error = io::Error::from_raw_os_error(code as i32);
            assert_eq!(means_no_ipv6(&error), expected, "{code}");
        }
    }
}
