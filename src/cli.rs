//! The command line of the `agents` program.
//!
//! Parses and dispatches; what a command does is in a module of its own.

pub mod crds;

use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Control plane for AI-agent runs on Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "agents", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the CustomResourceDefinitions of all kinds, or write one file per kind.
    Crds {
        /// Folder to write to; definitions in it that no kind has any more are removed.
        #[arg(long)]
        output: Option<PathBuf>,
    },
}

/// A command that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `agents crds` failed.
    #[error(transparent)]
    Crds(#[from] crds::Error),
}

/// Carries out what the command line asks for.
pub fn run(cli: Cli) -> Result<(), Error> {
    match cli.command {
        Command::Crds { output: None } => crds::print(&mut std::io::stdout().lock())?,
        Command::Crds {
            output: Some(folder),
        } => crds::write(&folder)?,
    }
    Ok(())
}
