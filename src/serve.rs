//! The control plane as a program: the API through which people and programs submit runs and see what becomes of them.
//!
//! The way of a request, file by file: [`service`] takes it, [`console`] has it if it is for a page, [`route`] finds its [`operation`] in the one table of them,
//! [`auth`] asks the cluster who it is and whether they may, and [`carry_out`] does it. Calls of trackers are [`inbound`]. What cannot be done is a [`fault`].
//! [`openapi`] describes it all, [`needs`] is what the program itself must be allowed to do.

mod answer;
mod args;
mod auth;
mod carry_out;
mod console;
mod fault;
pub mod grpc;
mod inbound;
mod metrics;
mod needs;
pub mod openapi;
mod operation;
mod route;
mod service;
mod state;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryFutureExt;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceBuilder;

pub use args::{Args, Config, variable};
pub use fault::Reason;

use crate::ADMIN_PATHS;
use crate::api::kind::Kind;
use crate::api::text::sanitise;
use crate::cluster::{Namespaces, Need, Scope, client, may};
use crate::controller::Checks;
use crate::kit::http::{Limits, Server, Transport, traced};
use crate::kit::program::{Error, Program, listen_narrow};
use crate::kit::shutdown::Shutdown;
use crate::kit::telemetry::Identity;
use auth::Gatekeeper;
use carry_out::leader::{Follower, Lease};
use carry_out::queue::Relay;
use carry_out::sidecar::Sidecar;
use carry_out::stream::{Board, Hub, hub};
use grpc::Grpc;
use inbound::Inbound;
use metrics::{Metrics, Readers, Review};
use service::Api;
use state::State;

const IDENTITY: Identity = Identity {
    program: "agents-serve",
    version: env!("CARGO_PKG_VERSION"),
    clean: sanitise::for_log,
};

/// Where requests are that name no namespace, if all are served.
const DEFAULT_NAMESPACE: &str = "agents";

/// Time to answer, longer than any operation takes: each has a deadline of its own.
const REQUEST: Duration = Duration::from_secs(330);

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
    let [objects, changes] = hubs(&mut program, readers);
    let (lease, follower) = Lease::new(client.clone(), (home, controllers.lease), &pods);
    let board = Arc::new(Board::new(objects, lease.clone()));
    let sidecar = Sidecar::new(client.clone(), lease.clone(), controllers.sidecar);
    let queue = Arc::new(Relay::new(changes, lease, controllers.port));
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

/// What is kept of both streams for so many readers, who are counted.
fn hubs(program: &mut Program, readers: usize) -> [Arc<Hub>; 2] {
    let [control_plane, queue] = [(); 2].map(|()| Arc::new(hub(readers)));
    let counted = Readers {
        control_plane: Arc::clone(&control_plane),
        queue: Arc::clone(&queue),
    };
    program.metrics().register_collector(Box::new(counted));
    [control_plane, queue]
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
    let server = move |listener, transport, name| Server {
        listener,
        transport,
        limits: Limits {
            connections,
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
        let http = server(listener, Transport::PlainHttp1, "api").serve(service, shutdown.clone());
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
        let grpc = server(listener, Transport::Plain, "grpc").serve(service, shutdown.clone());
        tokio::join!(http, grpc, health);
        Ok(())
    });
}
