//! The command line of the `agents` program.
//!
//! Parses and dispatches; what a command does is in a module of its own.

pub mod crds;
pub mod explain;
pub mod failure;
pub mod release;
pub mod run;
pub mod session;
pub mod shown;
pub mod webhook_configuration;

use crate::controller;
use crate::kit::{exit::Exit, program};
use clap::{Parser, Subcommand};
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
    /// Print the CustomResourceDefinitions of all kinds, hold them against a cluster, or apply them.
    Crds(crds::Args),
    /// Say why a run is in the state that it is in.
    Explain(explain::Args),
    /// Take the finalizers of custody from Jobs and pods by hand, where no controller is left to do it.
    Release(release::Args),
    /// Submit, list, show, wait for, read and cancel runs.
    Run(run::Args),
    /// Print the webhook configurations of a rung, to look at or to apply.
    WebhookConfiguration(webhook_configuration::Args),
}

/// Carries out what the command line asks for.
pub fn run(cli: Cli) -> ExitCode {
    match cli.command {
        Command::Controller(args) => program::block_on(controller::run(args)),
        Command::Crds(args) => crds::run(args),
        Command::Explain(args) => session::carry_out(explain::run(args)),
        Command::Release(args) => session::carry_out(release::run(args)),
        Command::Run(args) => session::carry_out(run::run(args)),
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
