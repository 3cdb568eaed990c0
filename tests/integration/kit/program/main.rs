//! A program made of the kit and nothing else, so that tests can watch one live, drain and die as a real process.

use std::{convert::Infallible, net::SocketAddr, process::ExitCode, sync::Arc};

use agents::{
    ADMIN_PATHS,
    api::text::sanitise,
    kit::{
        args::{Common, Defaults},
        config::{Flags, Invalid, Reader, Setting, Settings},
        http::{HttpService, Limits, Server, TextBody, Transport, read_body, text, traced},
        program::{self, Error, Program, listen_on},
        telemetry::{Identity, Requests},
    },
};
use clap::Parser;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use opentelemetry::metrics::Counter;
use tokio::sync::Notify;
use tower::ServiceBuilder;

const IDENTITY: Identity = Identity {
    program: "kit-program",
    version: "0.0.0",
    clean: sanitise::for_log,
};

const BODY_LIMIT: usize = 64 * 1024;

/// Does what the path of a request says.
#[derive(Debug, Parser)]
#[command(name = "kit-program", version)]
struct Cli {
    #[command(flatten)]
    args: Flags<Config>,
}

struct Config {
    common: Common,
    listen: SocketAddr,
}

impl Settings for Config {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let listen = reader
            .value(Setting::new("AGENTS_PROGRAM_LISTEN", "Where to listen").or("127.0.0.1:0"));
        let common = Common::read(
            reader,
            Defaults {
                admin_port: 0,
                linger: "0s",
            },
        );
        Ok(Self {
            common: common?,
            listen: listen?,
        })
    }
}

fn main() -> ExitCode {
    let Cli { args } = Cli::parse();
    program::block_on(run(args))
}

async fn run(args: Flags<Config>) -> Result<(), Error> {
    let Some((Config { common, listen }, notes)) = args.load()? else {
        return Ok(());
    };
    let mut program = Program::start(IDENTITY, ADMIN_PATHS, common, notes).await?;
    let gate = program.readiness.gate("button");
    let server = Server {
        listener: listen_on("work", listen).await?,
        transport: Transport::Plain,
        limits: Limits::default(),
        metrics: program.http.of("work"),
    };
    let meter = program.telemetry().meter();
    let buttons = Arc::new(Buttons {
        requests: meter.u64_counter("kit.requests").build(),
        release: Notify::new(),
        die: Notify::new(),
        ready: Notify::new(),
    });
    let service = service(Arc::clone(&buttons), program.telemetry().requests());
    program.tasks.work("work", |shutdown| async move {
        server.serve(service, shutdown).await;
        Ok(())
    });
    program.tasks.support("button", |shutdown| async move {
        loop {
            tokio::select! {
                _ = shutdown.started() => return Ok(()),
                () = buttons.ready.notified() => gate.open(),
                () = buttons.die.notified() => explode(),
            }
        }
    });
    program.run().await
}

/// What requests can set off.
struct Buttons {
    requests: Counter<u64>,
    release: Notify,
    die: Notify,
    ready: Notify,
}

fn service(buttons: Arc<Buttons>, requests: Requests) -> impl HttpService {
    ServiceBuilder::new()
        .layer(traced(requests))
        .service_fn(move |request| press(Arc::clone(&buttons), request))
}

async fn press(
    buttons: Arc<Buttons>,
    request: Request<Incoming>,
) -> Result<Response<TextBody>, Infallible> {
    buttons.requests.add(1, &[]);
    // Made before anyone can know of the request, so that no release is missed.
    let released = buttons.release.notified();
    tracing::info!("Button pressed");
    let done = Ok(text(StatusCode::OK, "done\n"));
    match request.uri().path() {
        "/work" => done,
        "/hold" => {
            released.await;
            done
        }
        "/release" => {
            buttons.release.notify_waiters();
            done
        }
        "/ready" => {
            buttons.ready.notify_one();
            done
        }
        "/die" => {
            buttons.die.notify_one();
            done
        }
        "/panic" => {
            explode();
            done
        }
        "/echo" => match read_body(request.into_body(), BODY_LIMIT).await {
            Ok(body) => Ok(text(StatusCode::OK, body)),
            Err(error) => Ok(error.response()),
        },
        _ => Ok(text(StatusCode::NOT_FOUND, "no such button\n")),
    }
}

#[expect(clippy::panic, reason = "this is the button for it")]
fn explode() {
    panic!("the panic button was pressed")
}
