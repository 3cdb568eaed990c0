//! The `agents-webhook` program.

use std::process::ExitCode;

use agents::kit::program;
use clap::Parser;

/// Admission for the agents API: decides about every object before it is stored.
#[derive(Debug, Parser)]
#[command(name = "agents-webhook", version)]
struct Cli {
    #[command(flatten)]
    args: agents_webhook::Args,
}

fn main() -> ExitCode {
    let Cli { args } = Cli::parse();
    program::block_on(agents_webhook::run(args))
}
