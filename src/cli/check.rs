//! `agents check`: what the webhook would say about manifests, without a cluster.
//!
//! `source` reads the texts, `document` knows where in them everything stands, `gather` finds our objects, `judge` asks the
//! engine of the webhook, and the rest shows a `report`. Exit codes: 0 nothing as grave as `--fail-on` was found, 5 something
//! was, 2 the command line is wrong or something could not be read, 3 the API server did not answer, where it was asked.

pub(crate) mod diff;
pub(crate) mod document;
mod gather;
pub(crate) mod input;
pub(super) mod installed;
mod json;
pub(crate) mod judge;
pub(crate) mod junit;
mod metadata;
mod record;
pub(crate) mod report;
mod sarif;
pub(crate) mod source;
mod text;

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgGroup, Args as ClapArgs, ValueEnum};

use super::failure::Failure;
use super::session::{Cluster, block_on};
use super::shown::{FailOn, Paint};
use crate::admission::in_force::InForce;
use crate::api::policy::Policy;
use crate::cluster::policy::{Refused, Settings, read_file, understand};
use crate::kit::config::{ConfigError, Flags};
use crate::kit::{exit::Exit, program};
use diff::differences;
use input::Input;
use report::{Level, Report};
use source::Unread;

/// What to check, and by what.
#[derive(Clone, Debug, ClapArgs)]
#[command(group = ArgGroup::new("input").args(["files", "paths"]).required(true).multiple(true))]
pub struct Args {
    /// File or folder with manifests, YAML or JSON; - reads standard input, such as the output of kustomize or helm. Can be
    /// given several times.
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    files: Vec<PathBuf>,
    /// The same without a flag, for callers that put file names at the end.
    #[arg(value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// Policy file, as the webhook reads it; the variables of the webhook go over it. Without it the one that
    /// `AGENTS_POLICY_FILE` names.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Judge by the policy of the cluster instead: that of the webhook in this namespace.
    #[arg(long, value_name = "NAMESPACE", conflicts_with_all = ["policy", "diff"])]
    policy_of: Option<String>,
    #[command(flatten)]
    cluster: Cluster,
    /// Compare two policy files: show which objects would fare differently under the second.
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with = "policy")]
    diff: Vec<PathBuf>,
    /// File or folder with the objects that stand in the cluster, as `kubectl get -o yaml` prints them. References are
    /// looked up among them, and an object that is among them is judged as a change. Can be given several times.
    #[arg(long, value_name = "FILE|DIR")]
    known: Vec<PathBuf>,
    /// Also write what the webhook would be asked to this file, without secrets, for `agents replay`.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Namespace of objects that name none.
    #[arg(short = 'n', long, default_value = "default")]
    namespace: String,
    /// How the result is shown.
    #[arg(short = 'o', long, value_enum, default_value_t)]
    output: Output,
    /// How grave a finding must be for exit code 5. With --diff: an object that would be newly refused is an error, any
    /// other difference is a warning.
    #[arg(long, value_enum, default_value_t)]
    fail_on: FailOn,
}

/// How a result is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people: each finding with its line; coloured on a terminal.
    #[default]
    Text,
    /// For programs.
    Json,
    /// SARIF 2.1.0, for forges.
    Sarif,
    /// JUnit XML, for build servers.
    Junit,
}

impl From<FailOn> for Level {
    fn from(fail_on: FailOn) -> Self {
        match fail_on {
            FailOn::Error => Self::Error,
            FailOn::Warning => Self::Warning,
        }
    }
}

/// Why nothing was checked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Unread(#[from] Unread),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Policy(#[from] Refused),
    #[error("a comparison of policies is shown as text or json")]
    NoSuchForm,
    #[error("could not write the recording {file}")]
    Record { file: PathBuf, source: io::Error },
    #[error("could not write the result as JSON")]
    Json(#[from] serde_json::Error),
    #[error("could not print the result")]
    Print(#[source] io::Error),
    #[error("could not learn the policy of the cluster")]
    Cluster(Failure),
}

impl Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Cluster(failure) => failure.code(),
            Self::Unread(_) | Self::Config(_) | Self::Policy(_) | Self::NoSuchForm => Exit::Misused,
            Self::Record { .. } | Self::Json(_) | Self::Print(_) => Exit::Failed,
        }
    }
}

/// Checks, prints, and says how it went.
pub fn run(args: &Args) -> ExitCode {
    tell(check(args))
}

/// Prints what was found, or why nothing was.
pub(crate) fn tell(found: Result<(String, Exit), Error>) -> ExitCode {
    let told = found.and_then(|(text, exit)| print(&text).map(|()| exit));
    told.unwrap_or_else(|error| {
        match &error {
            Error::Cluster(failure) => eprint!("{}", failure.text()),
            Error::Unread(_)
            | Error::Config(_)
            | Error::Policy(_)
            | Error::NoSuchForm
            | Error::Record { .. }
            | Error::Json(_)
            | Error::Print(_) => program::explain(&error),
        }
        error.exit()
    })
    .into()
}

/// A reader that has seen enough is not an error.
fn print(text: &str) -> Result<(), Error> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Error::Print),
    }
}

fn check(args: &Args) -> Result<(String, Exit), Error> {
    let paths = [args.files.as_slice(), &args.paths].concat();
    let sources = source::read(&paths, &mut io::stdin().lock())?;
    let standing = match args.known.as_slice() {
        [] => None,
        paths => Some(source::read(paths, &mut io::empty())?),
    };
    let input = Input::new(sources, standing.as_deref(), &args.namespace);
    if let Some(file) = &args.record {
        let written = fs::write(file, input.record());
        written.map_err(|source| Error::Record {
            file: file.clone(),
            source,
        })?;
    }
    if let [old, new] = args.diff.as_slice() {
        let (old, new) = (policy(Some(old))?, policy(Some(new))?);
        return compare(args, &input.report(&old), &input.report(&new));
    }
    let in_force = match &args.policy_of {
        Some(namespace) => {
            let policy = block_on(async {
                let client = args.cluster.client().await?;
                installed::policy(&client, namespace).await
            });
            alone(policy.map_err(Error::Cluster)?)
        }
        None => policy(args.policy.as_deref())?,
    };
    let report = input.report(&in_force);
    let text = match args.output {
        Output::Text => text::text(&report, Paint::of_output()),
        Output::Json => json::json(&report)?,
        Output::Sarif => sarif::sarif(&report)?,
        Output::Junit => junit::junit(&report),
    };
    Ok((text, exit(&report, report.has(args.fail_on.into()))))
}

fn compare(args: &Args, old: &Report, new: &Report) -> Result<(String, Exit), Error> {
    let found = differences(old, new);
    let text = match args.output {
        Output::Text => diff::text(new, &found, Paint::of_output()),
        Output::Json => diff::json(old, new, &found)?,
        Output::Sarif | Output::Junit => return Err(Error::NoSuchForm),
    };
    let is_grave = diff::is_grave(&found, args.fail_on);
    Ok((text, exit(new, is_grave)))
}

/// How a command ends that found something as grave as was asked, or not.
pub(crate) fn exit(report: &Report, found: bool) -> Exit {
    match (report.faults.is_empty(), found) {
        (false, _) => Exit::Misused,
        (true, true) => Exit::Found,
        (true, false) => Exit::Done,
    }
}

/// The policy of a file, else the one that the variables name, with the variables over it.
pub(crate) fn policy(file: Option<&Path>) -> Result<InForce, Error> {
    // They would be none only if they were to be printed, which nobody can ask for here.
    let loaded = Flags::<Settings>::default().load()?;
    let settings = loaded.map(|(settings, _)| settings).unwrap_or_default();
    let file = file.or(settings.file.as_deref());
    let policy = match file {
        Some(file) => understand(file, &read_file(file), &settings.overrides)?,
        None => settings.overrides.over(Policy::default()),
    };
    Ok(alone(policy))
}

/// A policy beside which none is tried.
pub(super) fn alone(policy: Policy) -> InForce {
    InForce {
        active: policy.into(),
        candidate: None,
    }
}

#[cfg(test)]
mod tests;
