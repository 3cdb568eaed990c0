//! The control plane as a program: the API through which people and programs submit runs and see what becomes of them.
//!
//! The way of a request, file by file: [`service`] takes it, [`console`] has it if it is for a page, [`route`] finds its [`operation`] in the one table of them,
//! [`auth`] asks the cluster who it is and whether they may, and a file for each sort of thing carries it out: [`runs`],
//! [`events`], [`approvals`], [`signals`], [`stream`], [`queue`] and [`sidecar`] from whoever [`leader`] says. Calls of trackers are [`inbound`]. What cannot be done is a [`fault`]. [`redact`] sees to it that no secret leaves,
//! [`openapi`] describes it all, [`needs`] is what the program itself must be allowed to do.

mod answer;
mod approvals;
mod args;
mod auth;
mod console;
mod events;
mod fault;
pub mod grpc;
mod health;
mod inbound;
mod leader;
mod metrics;
mod needs;
pub mod openapi;
mod operation;
mod queue;
mod redact;
mod route;
mod runs;
mod service;
mod sidecar;
mod signals;
mod state;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryFutureExt;
use http::StatusCode;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceBuilder;

pub use args::{Args, Config, variable};
pub use fault::Reason;

use crate::ADMIN_PATHS;
use crate::api::kind::Kind;
use crate::api::sanitise;
use crate::cluster::{Namespaces, Need, Scope, client, may};
use crate::controller::Checks;
use crate::kit::http::{Limits, Server, Transport, traced};
use crate::kit::program::{Error, Program, listen_narrow};
use crate::kit::shutdown::Shutdown;
use crate::kit::telemetry::Identity;
use answer::Answer;
use auth::Gatekeeper;
use fault::Fault;
use grpc::Grpc;
use inbound::Inbound;
use leader::{Follower, Lease};
use metrics::{Metrics, Review, Stream};
use operation::Id;
use queue::Relay;
use service::{Api, Call};
use sidecar::Sidecar;
use state::State;
use stream::{Board, Hub};

const IDENTITY: Identity = Identity {
    program: "agents-serve",
    version: env!("CARGO_PKG_VERSION"),
    clean: sanitise::for_log,
};

/// Where requests are that name no namespace, if all are served.
const DEFAULT_NAMESPACE: &str = "agents";

/// Time to answer, longer than any operation takes: each has a deadline of its own.
const REQUEST: Duration = Duration::from_secs(330);

/// Time after which a connection without a request, or one whose reader takes nothing, is closed. A log that is followed may
/// be silent for a while.
const IDLE: Duration = Duration::from_secs(300);

/// Bytes that the system keeps for a reader who does not take them.
const SEND_BUFFER: u32 = 64 * 1024;

/// Serves the API until told to end.
pub async fn run(args: Args) -> Result<(), Error> {
    let Some((config, notes)) = args.load()? else {
        return Ok(());
    };
    let Config {
        common,
        listen,
        grpc,
        connections,
        requests,
        namespaces,
        default_namespace,
        audiences,
        reviews_kept,
        keep,
        readers,
        controllers,
        deliveries,
    } = config; // a setting left out here does not compile
    let mut program = Program::start(IDENTITY, ADMIN_PATHS, common, notes).await?;
    let open = |name, address| listen_narrow(name, address, SEND_BUFFER);
    let listener = open("api", listen)?;
    let grpc = grpc.map(|address| open("grpc", address)).transpose()?;
    let client = client().await?;
    let metrics = Metrics::register(program.metrics());
    let own = || client.default_namespace().to_owned();
    let home = controllers.namespace.clone().unwrap_or_else(own);
    let pods = controllers.pods.clone().unwrap_or_else(|| home.clone());
    let needed = needs::all(&namespaces, (&home, &pods), deliveries.is_some());
    check(&mut program, &client, needed);
    let readiness = program.readiness.clone();
    let hub = |stream| Arc::new(Hub::new(stream, readers, metrics.streams.clone()));
    let (lease, follower) = Lease::new(client.clone(), (home, controllers.lease), &pods);
    let board = Arc::new(Board::new(hub(Stream::ControlPlane), lease.clone()));
    let sidecar = Sidecar::new(client.clone(), lease.clone(), controllers.sidecar);
    let queue = Arc::new(Relay::new(hub(Stream::Queue), lease, controllers.port));
    follow(&mut program, &client, &namespaces, &board);
    relay(&mut program, client.clone(), follower, &queue);
    let place = (client.clone(), namespaces.clone());
    let inbound = deliveries.map(|most| take_calls(&mut program, place, most, &metrics));
    let state = move |shutdown| State {
        shutdown,
        gatekeeper: Gatekeeper::new(client.clone(), audiences, reviews_kept, metrics.clone()),
        client,
        default_namespace: default_namespace.unwrap_or_else(|| first(&namespaces)),
        namespaces,
        keep,
        readiness,
        metrics,
        room: Semaphore::new(requests),
        waiting: Semaphore::new(requests),
        board,
        queue,
        sidecar,
        inbound,
        document: Bytes::from(openapi::document().to_string()),
    };
    serve(&mut program, (listener, grpc), connections, state);
    program.run().await
}

/// What the control plane must be able to do in the cluster with these settings, for whoever grants it. None without a
/// namespace in which the lease is.
pub fn needs(config: &Config) -> Option<Vec<Need>> {
    let home = config.controllers.namespace.as_deref()?;
    let pods = config.controllers.pods.as_deref().unwrap_or(home);
    let takes_calls = config.deliveries.is_some();
    Some(needs::all(&config.namespaces, (home, pods), takes_calls))
}

/// Follows every kind wherever it is served.
fn follow(program: &mut Program, client: &Client, namespaces: &Namespaces, board: &Arc<Board>) {
    for kind in Kind::ALL {
        for scope in namespaces.scopes() {
            let (client, board) = (client.clone(), Arc::clone(board));
            program.tasks.support("watch", |shutdown| async move {
                tokio::select! {
                    _ = shutdown.started() => {}
                    () = board.follow(&client, kind, &scope) => {}
                }
                Ok(())
            });
        }
    }
    let board = Arc::clone(board);
    program.tasks.support("status", |shutdown| async move {
        tokio::select! {
            _ = shutdown.started() => {}
            () = board.tell_status() => {}
        }
        Ok(())
    });
}

/// Follows the lease of the controllers, and reads from whoever holds it.
fn relay(program: &mut Program, client: Client, follower: Follower, queue: &Arc<Relay>) {
    let queue = Arc::clone(queue);
    program.tasks.support("lease", |shutdown| async move {
        tokio::select! {
            _ = shutdown.started() => {}
            () = follower.run() => {}
        }
        Ok(())
    });
    program.tasks.support("queue", |shutdown| async move {
        tokio::select! {
            _ = shutdown.started() => {}
            () = queue.run(&client) => {}
        }
        Ok(())
    });
}

/// Takes calls of trackers, of which so many may wait, and keeps up with the secrets that they are checked with.
fn take_calls(
    program: &mut Program,
    (client, namespaces): (Client, Namespaces),
    most: usize,
    metrics: &Metrics,
) -> Arc<Inbound> {
    let counted = metrics.deliveries.clone();
    let inbound = Arc::new(Inbound::new(client, namespaces, most, counted));
    let kept = Arc::clone(&inbound);
    program.tasks.support("sources", |shutdown| async move {
        tokio::select! {
            _ = shutdown.started() => {}
            () = kept.run() => {}
        }
        Ok(())
    });
    inbound
}

/// Looks whether the cluster is fit, and says if nobody could be let in.
fn check(program: &mut Program, client: &Client, needs: Vec<Need>) {
    let gate = program.readiness.gate("cluster");
    let client = client.clone();
    let (checks, fit) = Checks::new(client.clone(), needs, gate);
    program.tasks.support("start checks", |shutdown| {
        checks.run(shutdown).map_err(Into::into)
    });
    program.tasks.support("reviews", |shutdown| async move {
        tokio::select! {
            _ = shutdown.started() => return Ok(()),
            () = fit.found() => {}
        }
        for &review in Review::ALL {
            warn_if_closed(&client, review).await;
        }
        shutdown.started().await;
        Ok(())
    });
}

/// The API stays closed without the reviews; every request says so, and the log does once.
async fn warn_if_closed(client: &Client, review: Review) {
    let (resource, group) = match review.resource().split_once('.') {
        Some(parts) => parts,
        None => return,
    };
    if let Ok(false) = may(client, group, resource, "create", &Scope::Cluster).await {
        tracing::warn!(
            right = format!("create {}", review.resource()),
            "Nobody can be let in; bind the ClusterRole system:auth-delegator to the service account of this program"
        );
    }
}

fn first(namespaces: &Namespaces) -> String {
    let first = match namespaces {
        Namespaces::All => None,
        Namespaces::Some(names) => names.first().cloned(),
    };
    first.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())
}

/// Answers over HTTP, and over gRPC where that is switched on.
fn serve(
    program: &mut Program,
    (listener, grpc): (TcpListener, Option<TcpListener>),
    connections: usize,
    state: impl FnOnce(Shutdown) -> State + Send + 'static,
) {
    let metrics = program.http.clone();
    let server = move |listener, name| Server {
        listener,
        transport: Transport::Plain,
        limits: Limits {
            connections,
            idle: IDLE,
            request: REQUEST,
            ..Limits::default()
        },
        metrics: metrics.of(name),
    };
    let requests = program.telemetry().requests();
    program.tasks.work("api", |shutdown| async move {
        let state = Arc::new(state(shutdown.clone()));
        let service = ServiceBuilder::new()
            .layer(traced(requests))
            .service(Api::new(Arc::clone(&state)));
        let http = server(listener, "api").serve(service, shutdown.clone());
        let Some(listener) = grpc else {
            http.await;
            return Ok(());
        };
        let readiness = state.readiness.clone();
        let (service, reporter) = Grpc::new(state)?;
        let service = ServiceBuilder::new()
            .layer(traced(requests))
            .service(service);
        let health = async {
            tokio::select! {
                _ = shutdown.started() => {}
                () = grpc::tell_health(reporter, readiness) => {}
            }
        };
        let grpc = server(listener, "grpc").serve(service, shutdown.clone());
        tokio::join!(http, grpc, health);
        Ok(())
    });
}

/// Carries out what was let in.
async fn carry_out(state: &Arc<State>, call: Call) -> Result<Answer, Fault> {
    match call.route.operation.id {
        Id::Livez => Ok(health::live()),
        Id::Readyz => Ok(health::ready(&state.readiness)),
        Id::OpenApi => {
            let document = state.document.clone();
            Ok(answer::whole(StatusCode::OK, "application/json", document))
        }
        Id::WhoAmI => {
            let (default, served) = (&state.default_namespace, &state.namespaces);
            Ok(health::who_am_i(&call.caller, default, served))
        }
        Id::SubmitRun => runs::submit(state, &call).await,
        Id::ListRuns => runs::list(state, &call).await,
        Id::GetRun => runs::get(state, &call).await,
        Id::CancelRun => runs::cancel(state, &call).await,
        Id::WaitForRun => runs::wait(state, &call).await,
        Id::RunEvents => events::of_run(state, &call).await,
        Id::RunLogs => runs::logs(state, &call).await,
        Id::ListEvents => events::of_any(state, &call).await,
        Id::ListApprovals => approvals::list(state, &call).await,
        Id::Decide => approvals::decide(state, &call).await,
        Id::CreateSignal => signals::create(state, &call).await,
        Id::DeliverSignal => signals::deliver(state, &call).await,
        Id::ControlPlaneStream => stream::control_plane(state, &call).await,
        Id::Queue => queue::snapshot(state),
        Id::QueueStream => queue::stream(state, &call),
        Id::Sidecar => sidecar::seen(state).await,
        Id::GithubDelivery | Id::LinearDelivery | Id::SourceDelivery | Id::Console | Id::None => {
            Err(Fault::bad_request("there is no such operation"))
        }
    }
}
