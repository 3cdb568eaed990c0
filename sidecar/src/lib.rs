//! The metrics sidecar: an admin endpoint and an orderly end.

pub mod args;
pub mod expose;
pub mod model;
pub mod names;
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
    let Config { common } = config; // a setting left out here does not compile
    let program = Program::start(IDENTITY, ADMIN_PATHS, common, notes).await?;
    program.run().await
}
