//! The `lab` program: a real Kubernetes on this machine for tests and for trying things out.

mod arguments;
mod commands;
mod tour;

use anyhow::Result;
use arguments::{Arguments, Command};
use clap::Parser;
use std::{io::Write, process::ExitCode};

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody may listen any more.
            let _ = writeln!(std::io::stderr(), "lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    if let Command::Stage(stage) = &command {
        // A stage changes what its process is, which must happen before there are threads.
        return commands::stage(stage);
    }
    // One thread: the kernel takes the end of the thread that started a process for the end of its parent.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(commands::run(command))
}
