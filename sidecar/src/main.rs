//! The `agents-sidecar` program.

use std::process::ExitCode;

use agents::kit::program;
use clap::Parser;

/// Metrics of the controller for Prometheus, and an eye on every Job.
#[derive(Debug, Parser)]
#[command(name = "agents-sidecar", version)]
struct Cli {
    #[command(flatten)]
    args: agents_sidecar::Args,
}

fn main() -> ExitCode {
    let Cli { args } = Cli::parse();
    program::block_on(agents_sidecar::run(args))
}
