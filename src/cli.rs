//! The command line of the `agents` program.
//!
//! Parses and dispatches; what a command does is in a module of its own.

pub mod crds;
pub mod webhook_configuration;

use crate::controller;
use crate::kit::{exit::Exit, program};
use crate::serve;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Control plane for AI-agent runs on Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "agents", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Reconcile the kinds until told to end.
    Controller(controller::Args),
    /// Serve the API of the control plane until told to end.
    Serve(serve::Args),
    /// Print the CustomResourceDefinitions of all kinds, or write one file per kind.
    Crds {
        /// Folder to write to; definitions in it that no kind has any more are removed.
        #[arg(long)]
        output: Option<PathBuf>,
    },
    /// Print the webhook configurations of a rung, to look at or to apply.
    WebhookConfiguration(webhook_configuration::Args),
}

/// Carries out what the command line asks for.
pub fn run(cli: Cli) -> ExitCode {
    match cli.command {
        Command::Controller(args) => program::block_on(controller::run(args)),
        Command::Serve(args) => program::block_on(serve::run(args)),
        Command::Crds { output } => told(crds::run(output.as_deref())),
        Command::WebhookConfiguration(args) => told(webhook_configuration::run(args)),
    }
}

/// What the shell is told about a command that did its work or says why not.
fn told<E: std::error::Error>(result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => Exit::Done.into(),
        Err(error) => {
            program::explain(&error);
            Exit::Failed.into()
        }
    }
}
