//! The `agents` program.

use std::process::ExitCode;

use agents::{controller, kit::program};
use clap::Parser;

/// Control plane for AI-agent runs on Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "agents", version)]
enum Cli {
    /// Reconcile the kinds until told to end.
    Controller(controller::Args),
}

fn main() -> ExitCode {
    match Cli::parse() {
        Cli::Controller(args) => program::block_on(controller::run(args)),
    }
}
