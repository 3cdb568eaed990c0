//! The metrics sidecar: an admin endpoint and an orderly end.

pub mod args;
pub mod jobs;
pub mod model;
pub mod store;

use agents::{
    ADMIN_PATHS,
    kit::{
        program::{Error, Program},
        telemetry::Identity,
    },
};

pub use args::{Args, Config};

const IDENTITY: Identity = Identity {
    program: "agents-sidecar",
    version: env!("CARGO_PKG_VERSION"),
};

/// Runs the sidecar until it is told to end.
pub async fn run(args: Args) -> Result<(), Error> {
    let Some((config, notes)) = args.load()? else {
        return Ok(());
    };
    let Config {
        common,
        jobs,
        events,
    } = config; // a setting left out here does not compile
    let instance = common.otlp.instance.clone().unwrap_or_default();
    let mut program = Program::start(IDENTITY, ADMIN_PATHS, common, notes).await?;
    jobs::attach(&mut program, jobs, events, &instance).await;
    program.run().await
}
