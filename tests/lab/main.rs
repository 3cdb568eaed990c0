//! The `lab` program: a real Kubernetes on this machine for tests and for trying things out.

mod arguments;
mod commands;

use anyhow::Result;
use arguments::{Arguments, Command};
use clap::Parser;

fn main() -> Result<()> {
    let command = Arguments::parse().command;
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
