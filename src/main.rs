//! The `agents` program.

use agents::cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(cli::parse(std::env::args_os().collect()))
}
