//! The `agents-sidecar` program.

use std::process::ExitCode;

use agents::kit::program;
use clap::Parser;

/// The sidecar of the controllers: takes OTLP and streams of server-sent events, shows them to Prometheus, and looks after Jobs.
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
