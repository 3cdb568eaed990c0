//! `agents doctor`: is the cluster fit for an installation, is what is installed well, and what is behind an alert?
//!
//! `gather` looks at the cluster, `judge` turns what was seen into verdicts, and the rest shows a `report`. Nothing is
//! changed: the one object that is sent is a dry run. Exit codes: 0 nothing as grave as `--fail-on` was found, 5 something
//! was, 3 the API server did not answer, 2 the command line is wrong.

mod alerts;
mod check;
mod facts;
mod gather;
mod json;
mod judge;
mod junit;
pub mod page;
mod report;
mod target;
mod text;
mod values;

use std::fs;
use std::path::PathBuf;

use clap::ValueEnum;

use super::failure::Failure;
use super::session::Access;
use super::shown::{FailOn, Paint, print};
use crate::api::object::cause::not_one_of;
use crate::kit::exit::Exit;
use alerts::Alert;
use gather::Place;
use report::{Report, Wanted};
use values::Values;

/// Longest file of values, in bytes.
const VALUES: u64 = 4 * 1024 * 1024;

/// What to look at, and how to show it.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    access: Access,
    /// Look whether the cluster is fit for an installation, before it.
    #[arg(long, conflicts_with = "alert")]
    pre: bool,
    /// Look only at what may be behind this alert.
    #[arg(long, value_name = "NAME")]
    alert: Option<String>,
    /// Values of the chart, as they are given to Helm. Can be given several times; a later file wins. Without them what is
    /// installed says what is meant, and before an installation the values of the chart do.
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    values: Vec<PathBuf>,
    /// How the result is shown.
    #[arg(short = 'o', long, value_enum, default_value_t)]
    output: Output,
    /// How grave a finding must be for exit code 5. What could not be looked at is as grave as a warning.
    #[arg(long, value_enum, default_value_t)]
    fail_on: FailOn,
}

/// How a result is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people: one line per check, with a hint for each finding; coloured on a terminal.
    #[default]
    Text,
    /// For programs.
    Json,
    /// JUnit XML, for build servers.
    Junit,
}

/// Looks, and says what was found.
///
/// # Errors
///
/// When nothing could be looked at.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    let wanted = wanted(&args)?;
    let values = values(&args.values)?;
    let session = args.access.connect().await?;
    let place = Place {
        client: session.client,
        namespace: session.namespace,
    };
    let facts = gather::gather(&place, values).await;
    let report = Report::new(wanted, &facts);
    let text = match args.output {
        Output::Text => text::text(&report, Paint::of_output()),
        Output::Json => json::json(&report)?,
        Output::Junit => junit::junit(&report),
    };
    print(&text)?;
    Ok(match facts.version {
        Err(_) => Exit::Refused,
        Ok(_) => report.exit(args.fail_on == FailOn::Warning),
    })
}

fn wanted(args: &Args) -> Result<Wanted, Failure> {
    match (&args.alert, args.pre) {
        (Some(name), _) => match Alert::named(name) {
            Some(alert) => Ok(Wanted::Alert(alert)),
            None => {
                let names: Vec<&str> = Alert::ALL.iter().map(|alert| alert.name).collect();
                let failure = Failure::misused(format!("--alert: {}", not_one_of(name, &names)));
                Err(failure.next("docs/runbooks/README.md lists them"))
            }
        },
        (None, true) => Ok(Wanted::Before),
        (None, false) => Ok(Wanted::After),
    }
}

fn values(files: &[PathBuf]) -> Result<Values, Failure> {
    let mut texts = Vec::new();
    for file in files {
        let failed = || Failure::misused(format!("could not read the values {}", file.display()));
        let size = fs::metadata(file).map_err(|error| failed().because(&error))?;
        if size.len() > VALUES {
            return Err(failed().next("the file is larger than 4 MiB; is it the right one?"));
        }
        let text = fs::read_to_string(file).map_err(|error| failed().because(&error))?;
        texts.push(text);
    }
    Values::read(&texts).map_err(|why| Failure::misused(format!("the values are wrong: {why}")))
}

#[cfg(test)]
mod tests;
