//! The `agents` program.

use agents::cli::{self, Cli};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(Cli::parse())
}
