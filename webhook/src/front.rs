//! The program put together: settings, cluster, policies, look-ups, server and tasks. Decides nothing.

use std::net::SocketAddr;
use std::sync::Arc;

use agents::ADMIN_PATHS;
use agents::api::contract::reporter;
use agents::api::registration::rung::Rung;
use agents::api::text::sanitise;
use agents::cluster::connect;
use agents::events::{self, Emitter, Regarding, Reporter};
use agents::kit::config::Notes;
use agents::kit::http::{HttpService, Limits, Server, Transport};
use agents::kit::program::{Error, Program, listen_on};
use agents::kit::telemetry::Identity;
use agents::kit::tls;
use futures::TryFutureExt;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, oneshot};

use crate::actor::{self, Actors};
use crate::args::{Args, Cluster, Config};
use crate::certificate;
use crate::certificate::rotator::{self, Place, Rotator};
use crate::lookup::{self, Lookup};
use crate::metrics::Metrics;
use crate::notices::Notices;
use crate::own::Own;
use crate::policy::{self, Herald};
use crate::registration::{self, Warden};
use crate::service::{Admission, Room, Side, service};

/// The server behind which reviews are judged, in metrics and logs.
const SERVER: &str = "admission";

const IDENTITY: Identity = Identity {
    program: "agents-webhook",
    version: env!("CARGO_PKG_VERSION"),
    clean: sanitise::for_log,
};

/// Runs the webhook until it is told to end.
pub async fn run(args: Args) -> Result<(), Error> {
    let Some((config, notes)) = args.load()? else {
        return Ok(());
    };
    assemble(config, notes).await?.run().await
}

/// The program with all its tasks.
async fn assemble(config: Config, notes: Notes) -> Result<Program, Error> {
    let Config {
        common,
        listen,
        connections,
        reviews,
        cluster,
        stance,
        policy,
        lookup,
        own,
        events,
        registration,
        tls,
        rotator,
    } = config; // a setting left out here does not compile
    let instance = common.otlp.instance.clone().unwrap_or_default();
    let mut program = Program::start(IDENTITY, ADMIN_PATHS, common, notes).await?;
    let mut policies = load(&mut program, policy)?;
    let listener = listen_on(SERVER, listen).await?;
    let port = listener.local_addr().unwrap_or(listen);
    let own_pair = (tls.names.clone(), tls.files.clone());
    let source = certificates(&mut program, tls, port);
    let ties = match cluster {
        Cluster::Follow => {
            let settings = ClusterSettings {
                instance,
                lookup,
                own,
                events,
                registration: (registration, stance.rung),
                rotator: (rotator, own_pair),
            };
            tie(&mut program, connect().await?, settings, &source)
        }
        Cluster::Off => Ties::none(),
    };
    if let Some(herald) = ties.herald {
        policies = policies.told_by(herald);
    }
    let metrics = Metrics::register(program.metrics());
    let policy = policies.policies();
    let admission = Admission::new(policy, ties.lookup, stance, ties.side, metrics);
    program.tasks.support("policy", |shutdown| {
        policies.run(shutdown).map_err(Into::into)
    });
    let requests = program.telemetry().requests();
    let room = Room::new(reviews).behind(program.http.of(SERVER));
    let service = service(Arc::new(admission), room, requests);
    let source = (source, ties.first);
    serve(&mut program, listener, source, connections, service);
    Ok(program)
}

/// What the cluster is used for, where there is one.
#[derive(Default)]
struct Ties {
    lookup: Lookup,
    side: Side,
    herald: Option<Herald>,
    /// Says when the first certificate of our own is there, where we make them.
    first: Option<oneshot::Receiver<()>>,
}

impl Ties {
    fn none() -> Self {
        tracing::warn!("Running without a cluster: nothing is looked up, no Event is written");
        Self::default()
    }
}

/// The settings that matter only where there is a cluster.
struct ClusterSettings {
    instance: String,
    lookup: lookup::Settings,
    own: Own,
    events: events::Settings,
    /// Name of our configurations, and the rung that they should be those of.
    registration: (String, Rung),
    /// How certificates of our own are made, whom they are for, and where the server reads them.
    rotator: (rotator::Settings, (Vec<String>, tls::Files)),
}

/// Starts all that reads from the cluster and writes to it.
fn tie(
    program: &mut Program,
    client: Client,
    settings: ClusterSettings,
    source: &tls::Source,
) -> Ties {
    let ClusterSettings {
        instance,
        lookup,
        own,
        events,
        registration,
        rotator,
    } = settings;
    let lookup = follow(program, client.clone(), &lookup);
    let reporter = Reporter::new(reporter::WEBHOOK, &instance);
    let emitter = events::attach(program, client.clone(), events, reporter);
    let home = own.home(client.default_namespace());
    let own = own.regarding(&instance, client.default_namespace());
    let told = (emitter.clone(), own.clone());
    let first = rotate(
        program,
        client.clone(),
        (home, &registration.0),
        rotator,
        told,
    );
    let herald = Herald::new(emitter.clone(), own.clone());
    tell_of_certificate(program, source.notices(), emitter.clone(), own);
    watch_registration(program, client.clone(), registration, emitter.clone());
    Ties {
        lookup,
        side: attach(program, client, emitter),
        herald: Some(herald),
        first,
    }
}

/// The certificates for the port; they count once the port is seen to show them.
fn certificates(program: &mut Program, options: tls::Options, port: SocketAddr) -> tls::Source {
    let gate = program.readiness.gate("certificate");
    let metrics = tls::Metrics::register(program.metrics());
    tls::Source::new(options, gate, metrics)
        // All that API servers speak to webhooks; more would only be more to attack.
        .speaking(tls::Protocols::Http1)
        .seen_on(port)
}

/// The port, and the task that keeps its certificate up to date.
fn serve(
    program: &mut Program,
    listener: TcpListener,
    (source, first): (tls::Source, Option<oneshot::Receiver<()>>),
    connections: usize,
    service: impl HttpService,
) {
    let server = Server {
        listener,
        transport: Transport::Tls(source.tls()),
        limits: Limits {
            connections,
            ..Limits::default()
        },
        metrics: program.http.of(SERVER),
    };
    program.tasks.support("certificate", |shutdown| async move {
        if let Some(first) = first {
            // Files that we have yet to make are not missing.
            tokio::select! {
                _ = shutdown.started() => return Ok(()),
                _ = first => {}
            }
        }
        source.run(shutdown).await.map_err(Into::into)
    });
    program.tasks.work(SERVER, |shutdown| async move {
        server.serve(service, shutdown).await;
        Ok(())
    });
}

/// The policy from settings and files; a program that does not know what to allow must not answer.
fn load(program: &mut Program, settings: policy::Settings) -> Result<policy::Source, Error> {
    let gate = program.readiness.gate("policy");
    let metrics = policy::Metrics::register(program.metrics());
    let source = policy::Source::load(settings, metrics).map_err(|refused| Error::Start {
        what: "put the policy in force",
        source: refused.into(),
    })?;
    gate.open();
    Ok(source)
}

/// The copy of what decisions look up, and the task that keeps it up to date.
fn follow(program: &mut Program, client: Client, settings: &lookup::Settings) -> Lookup {
    let gate = program.readiness.gate("caches");
    let metrics = lookup::Metrics::register(program.metrics());
    let (lookup, follower) = Lookup::following(client, settings, gate, metrics);
    program.tasks.support("lookup", |shutdown| {
        follower.run(shutdown).map_err(Into::into)
    });
    lookup
}

/// What is written to the cluster beside the answers.
fn attach(program: &mut Program, client: Client, emitter: Emitter) -> Side {
    let metrics = actor::Metrics::register(program.metrics());
    let (actors, scribe) = Actors::new(client, metrics);
    program.tasks.support("actors", |shutdown| async move {
        scribe.run(shutdown.started()).await;
        Ok(())
    });
    Side {
        notices: Notices::new(emitter),
        actors,
    }
}

/// The task that looks at what the cluster was told about us.
fn watch_registration(
    program: &mut Program,
    client: Client,
    expected: (String, Rung),
    emitter: Emitter,
) {
    let metrics = registration::Metrics::register(program.metrics());
    let warden = Warden::new(client, expected, emitter, metrics);
    program
        .tasks
        .support("registration", |shutdown| async move {
            warden.run(shutdown).await;
            Ok(())
        });
}

/// The task that makes certificates, where nobody else does. Says when the first is there.
fn rotate(
    program: &mut Program,
    client: Client,
    (namespace, registration): (String, &str),
    (settings, (names, files)): (rotator::Settings, (Vec<String>, tls::Files)),
    told: (Emitter, Regarding),
) -> Option<oneshot::Receiver<()>> {
    let metrics = rotator::Metrics::register(program.metrics());
    let rotator::Settings {
        secret,
        registration: other,
        terms,
    } = settings;
    let secret = secret?;
    let place = Place {
        namespace,
        secret,
        registration: other.unwrap_or_else(|| registration.to_owned()),
        names,
        files,
    };
    let (rotator, first) = Rotator::new(client, place, terms, metrics, told);
    program.tasks.support("rotator", |shutdown| async move {
        rotator.run(shutdown).await;
        Ok(())
    });
    Some(first)
}

/// The task that tells the cluster of trouble with the certificate.
fn tell_of_certificate(
    program: &mut Program,
    notices: broadcast::Receiver<tls::Notice>,
    emitter: Emitter,
    own: Regarding,
) {
    program
        .tasks
        .support("certificate events", |shutdown| async move {
            certificate::report(notices, emitter, own, shutdown).await;
            Ok(())
        });
}
