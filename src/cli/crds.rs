//! `agents crds`: the CustomResourceDefinitions printed, held against a cluster, or applied to it.
//!
//! What they say is decided in `api::crd`.

mod apply;
mod changes;
mod print;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;

use super::session::{Access, carry_out};
use super::told;
use crate::api::text::duration::parse_duration;

/// What is to be done with the definitions.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the definitions, or write one file per kind.
    Print {
        /// Folder to write to; definitions in it that no kind has any more are removed.
        #[arg(long, value_name = "FOLDER")]
        output: Option<PathBuf>,
    },
    /// Show what `apply` would change in the cluster; ends with 5 if anything.
    Diff {
        #[command(flatten)]
        access: Access,
    },
    /// Bring the cluster's definitions to those of this program, and wait until they are served.
    Apply(ApplyArgs),
}

/// How definitions are applied.
#[derive(Debug, clap::Args)]
struct ApplyArgs {
    #[command(flatten)]
    access: Access,
    /// Take over fields that someone else wrote last.
    #[arg(long)]
    force_conflicts: bool,
    /// Time until all are served, such as 60s.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    timeout: Duration,
}

/// A time as people write it.
fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| format!("`{text}` is no time such as 90s or 5m"))
}

/// Carries out what is asked for.
pub fn run(args: Args) -> ExitCode {
    match args.command {
        Command::Print { output } => told(print::run(output.as_deref())),
        Command::Diff { access } => carry_out(apply::diff(access)),
        Command::Apply(ApplyArgs {
            access,
            force_conflicts,
            timeout,
        }) => carry_out(apply::apply(access, force_conflicts, timeout)),
    }
}
