//! The `agents` program.

use agents::cli::{self, Cli};
use clap::Parser;

fn main() -> anyhow::Result<()> {
    cli::run(Cli::parse())?;
    Ok(())
}
