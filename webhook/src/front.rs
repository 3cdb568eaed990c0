//! The program put together: settings, cluster, policies, look-ups, server and tasks. Decides nothing.

use std::sync::Arc;
use std::time::Duration;

use agents::ADMIN_PATHS;
use agents::api::contract::reporter;
use agents::api::rung::Rung;
use agents::events::{self, Emitter, Regarding, Reporter};
use agents::kit::http::{HttpService, Limits, Server, Transport};
use agents::kit::program::{Error, Program, listen_on};
use agents::kit::telemetry::Identity;
use agents::kit::tls;
use futures::TryFutureExt;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio::time::timeout;

use crate::actor::{self, Actors};
use crate::args::{Args, Cluster, Config};
use crate::certificate;
use crate::lookup::{self, Lookup};
use crate::metrics::Metrics;
use crate::notices::Notices;
use crate::policy::{self, Herald};
use crate::registration::{self, Warden};
use crate::service::{Admission, Room, Side, service};

const IDENTITY: Identity = Identity {
    program: "agents-webhook",
    version: env!("CARGO_PKG_VERSION"),
};

/// Time for the first call to the API server.
const FIRST_CALL: Duration = Duration::from_secs(10);

/// Runs the webhook until it is told to end.
pub async fn run(args: Args) -> Result<(), Error> {
    let Some((config, notes)) = args.load()? else {
        return Ok(());
    };
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
    } = config; // a setting left out here does not compile
    let instance = common.otlp.instance.clone().unwrap_or_default();
    let reporter = Reporter::new(reporter::WEBHOOK, &instance);
    let mut program = Program::start(IDENTITY, ADMIN_PATHS, common, notes).await?;
    let mut policies = load(&mut program, policy)?;
    let listener = listen_on("admission", listen).await?;
    let gate = program.readiness.gate("certificate");
    let source = tls::Source::new(tls, gate, tls::Metrics::register(program.metrics()))
        // All that an API server speaks to a webhook; more would only be more to attack.
        .speaking(tls::Protocols::Http1)
        .seen_on(listener.local_addr().unwrap_or(listen));
    let (lookup, side) = match cluster {
        Cluster::Follow => {
            let client = connect().await?;
            let lookup = follow(&mut program, client.clone(), &lookup);
            let emitter = tell(&mut program, client.clone(), events, reporter);
            let own = own.regarding(&instance, client.default_namespace());
            policies = policies.told_by(Herald::new(emitter.clone(), own.clone()));
            tell_of_certificate(&mut program, source.notices(), emitter.clone(), own);
            let expected = (registration, stance.rung);
            watch_registration(&mut program, client.clone(), expected, emitter.clone());
            (lookup, attach(&mut program, client, emitter))
        }
        Cluster::Off => {
            tracing::warn!("Running without a cluster: nothing is looked up, no Event is written");
            (Lookup::empty(), Side::default())
        }
    };
    let metrics = Metrics::register(program.metrics());
    let admission = Admission::new(policies.policies(), lookup, stance, side, metrics);
    program.tasks.support("policy", |shutdown| {
        policies.run(shutdown).map_err(Into::into)
    });
    serve(
        &mut program,
        listener,
        source,
        connections,
        service(Arc::new(admission), Room::new(reviews)),
    );
    program.run().await
}

/// The port, and the task that keeps its certificate up to date.
fn serve(
    program: &mut Program,
    listener: TcpListener,
    source: tls::Source,
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
        metrics: program.http.of("admission"),
    };
    program.tasks.support("certificate", |shutdown| {
        source.run(shutdown).map_err(Into::into)
    });
    program.tasks.work("admission", |shutdown| async move {
        server.serve(service, shutdown).await;
        Ok(())
    });
}

/// A client of the API server, which answered it once: a webhook that cannot see its cluster must not look healthy.
async fn connect() -> Result<Client, Error> {
    let failed = |source| Error::Start {
        what: "reach the API server",
        source,
    };
    let client = Client::try_default()
        .await
        .map_err(|error| failed(error.into()))?;
    match timeout(FIRST_CALL, client.apiserver_version()).await {
        Ok(Ok(_)) => Ok(client),
        Ok(Err(error)) => Err(failed(error.into())),
        Err(elapsed) => Err(failed(elapsed.into())),
    }
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

/// The emitter of Events, and the task that writes them.
fn tell(
    program: &mut Program,
    client: Client,
    settings: events::Settings,
    reporter: Reporter,
) -> Emitter {
    let config = events::Config::new(settings, reporter);
    let metrics = events::Metrics::register(program.metrics());
    let (emitter, writer) = events::new(client, config, metrics);
    program.tasks.support("events", |shutdown| async move {
        writer.run(shutdown.started()).await;
        Ok(())
    });
    emitter
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
