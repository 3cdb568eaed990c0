//! The metrics sidecar: what controllers push and tell comes in, what Prometheus scrapes goes out, and every Job is looked
//! after.
//!
//! [`otlp`] takes points and [`store`] keeps them under the names that [`names`] makes; [`expose`] writes the page; [`sse`]
//! follows streams; [`jobs`] watches Jobs; [`forward`] sends on what came; [`memory`] sees to it that there is room. Each is started here, and none brings another down.

pub mod args;
pub mod expose;
pub mod forward;
pub mod jobs;
mod lock;
pub mod memory;
pub mod model;
pub mod names;
pub mod otlp;
mod pages;
pub mod sse;
pub mod store;

use agents::{
    ADMIN_PATHS,
    api::text::sanitise,
    kit::{
        program::{Error, Program},
        telemetry::Identity,
    },
};

pub use args::{Args, Config};

const IDENTITY: Identity = Identity {
    program: "agents-sidecar",
    version: env!("CARGO_PKG_VERSION"),
    clean: sanitise::for_log,
};

/// Runs the sidecar until it is told to end.
pub async fn run(args: Args) -> Result<(), Error> {
    let Some((config, notes)) = args.load()? else {
        return Ok(());
    };
    let Config {
        common,
        otlp,
        streams,
        jobs,
        events,
        memory,
        forward,
    } = config; // a setting left out here does not compile
    let instance = common.otlp.instance.clone().unwrap_or_default();
    let mut program = Program::start(IDENTITY, ADMIN_PATHS, common, notes).await?;
    let memory = memory::Watch::start(memory, program.metrics());
    let forward = forward::Forward::start(&mut program, forward)?;
    let store = otlp::start(&mut program, &otlp, memory, forward).await?;
    pages::show(&mut program, store, &otlp);
    sse::start(&mut program, &streams)?;
    jobs::attach(&mut program, jobs, events, &instance).await;
    program.run().await
}
