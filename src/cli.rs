//! The command line of the `agents` program.
//!
//! Parses and dispatches; what a command does is in a module of its own.

pub mod check;
pub mod crds;
pub mod doctor;
pub mod explain;
pub mod failure;
pub mod pages;
pub mod queue;
pub mod release;
pub mod replay;
pub mod run;
pub mod session;
pub mod shown;
pub mod version;
pub mod webhook_configuration;

use crate::controller;
use crate::kit::{exit::Exit, program};
use crate::serve;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::{OsStr, OsString};
use std::path::Path;
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
    /// Print the CustomResourceDefinitions of all kinds, hold them against a cluster, or apply them.
    Crds(crds::Args),
    /// Look whether the cluster is fit, what is installed is well, and what is behind an alert.
    Doctor(doctor::Args),
    /// Say why a run is in the state that it is in.
    Explain(explain::Args),
    /// Show who is in line, who runs and what is held back, once or live.
    Queue(queue::Args),
    /// Take the finalizers of custody from Jobs, pods and runs by hand, where no controller is left to do it.
    Release(release::Args),
    /// Submit, list, show, wait for, read and cancel runs.
    Run(run::Args),
    /// Say what the webhook would say about manifests, without a cluster: every fault with file, line and column.
    Check(check::Args),
    /// Print what completes commands in a shell.
    Completions(pages::CompletionsArgs),
    /// Write the manual pages of all commands.
    Man(pages::ManArgs),
    /// Say what another policy would have decided about recorded reviews.
    Replay(replay::Args),
    /// Say which build this is, and which Kubernetes it talks to.
    Version(version::Args),
    /// Print the webhook configurations of a rung, to look at or to apply.
    WebhookConfiguration(webhook_configuration::Args),
}

/// The file name under which `kubectl` finds the program as a plug-in of its own.
const PLUGIN: &str = "kubectl-agents";

/// The whole command line, under the name that people type: `kubectl agents` if the program was called as a plug-in.
pub fn command(program: Option<&OsStr>) -> clap::Command {
    let stem = program.and_then(|program| Path::new(program).file_stem());
    let name = match stem.is_some_and(|stem| stem == PLUGIN) {
        true => "kubectl agents",
        false => "agents",
    };
    Cli::command().bin_name(name)
}

/// Reads the command line; ends the program where it is wrong or asks for help.
pub fn parse(arguments: Vec<OsString>) -> Cli {
    let command = command(arguments.first().map(OsString::as_os_str));
    let matches = command.get_matches_from(arguments);
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Carries out what the command line asks for.
pub fn run(cli: Cli) -> ExitCode {
    match cli.command {
        Command::Controller(args) => program::block_on(controller::run(args)),
        Command::Serve(args) => program::block_on(serve::run(args)),
        Command::Crds(args) => crds::run(args),
        Command::Doctor(args) => session::carry_out(doctor::run(args)),
        Command::Explain(args) => session::carry_out(explain::run(args)),
        Command::Queue(args) => session::carry_out(queue::run(args)),
        Command::Release(args) => session::carry_out(release::run(args)),
        Command::Run(args) => session::carry_out(run::run(args)),
        Command::Check(args) => check::run(&args),
        Command::Completions(args) => told(pages::completions(&args)),
        Command::Man(args) => told(pages::man(&args)),
        Command::Replay(args) => replay::run(&args),
        Command::Version(args) => version::run(&args),
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
