//! The admission webhook: a TLS port that follows its certificate, an admin endpoint, and an orderly end.
//!
//! Admission itself is the business of [`service`]; [`args`] is what operators can set.

pub mod args;
pub mod certificate;
pub mod lookup;
pub mod policy;
pub mod registration;
pub mod service;

use agents::{
    ADMIN_PATHS,
    kit::{
        http::{Limits, Server, Transport},
        program::{Error, Program, listen_on},
        telemetry::Identity,
        tls,
    },
};
use futures::TryFutureExt;

pub use args::{Args, Config};

const IDENTITY: Identity = Identity {
    program: "agents-webhook",
    version: env!("CARGO_PKG_VERSION"),
};

/// Runs the webhook until it is told to end.
pub async fn run(args: Args) -> Result<(), Error> {
    let Some((config, notes)) = args.load()? else {
        return Ok(());
    };
    let Config {
        common,
        listen,
        connections,
        tls,
    } = config; // a setting left out here does not compile
    let mut program = Program::start(IDENTITY, ADMIN_PATHS, common, notes).await?;
    let certificate = program.readiness.gate("certificate");
    let listener = listen_on("admission", listen).await?;
    let port = listener.local_addr().unwrap_or(listen);
    let source =
        tls::Source::new(tls, certificate, tls::Metrics::register(program.metrics())).seen_on(port);
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
        server.serve(service::service(), shutdown).await;
        Ok(())
    });
    program.run().await
}
