//! `agents replay`: recorded reviews once more, under two policies, and what the second would decide otherwise.
//!
//! A recording has one AdmissionReview per line (`docs/cli.md`). Judged by the engine of the webhook, as `agents check`
//! does; shown as `agents check --diff` does. Exit codes are those of `agents check`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args as ClapArgs;
use jiff::Timestamp;
use serde_json::Value;

use super::check::diff::{self, differences};
use super::check::document::Place;
use super::check::input::{stance, standing, told};
use super::check::judge::{Law, pass};
use super::check::report::{Fault, Judged, Report, Whose};
use super::check::source::{self, Source};
use super::check::{Error, exit, policy, tell};
use super::shown::{FailOn, Output, Paint};
use crate::admission::in_force::InForce;
use crate::admission::known::Known;
use crate::kit::exit::Exit;

/// What to replay, and under which policies.
#[derive(Clone, Debug, ClapArgs)]
pub struct Args {
    /// Recording with one AdmissionReview per line; - reads standard input. Can be given several times.
    #[arg(short = 'f', long = "filename", value_name = "FILE|-", required = true)]
    files: Vec<PathBuf>,
    /// The two policy files to compare.
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], required = true)]
    diff: Vec<PathBuf>,
    /// File or folder with the objects that stand in the cluster, for references. Can be given several times.
    #[arg(long, value_name = "FILE|DIR")]
    known: Vec<PathBuf>,
    /// How the result is shown.
    #[arg(short = 'o', long, value_enum, default_value_t)]
    output: Output,
    /// Which difference makes exit code 5: error is a review that would be newly refused, warning is any.
    #[arg(long, value_enum, default_value_t)]
    fail_on: FailOn,
}

/// Replays, prints, and says how it went.
pub fn run(args: &Args) -> ExitCode {
    tell(replay(args))
}

fn replay(args: &Args) -> Result<(String, Exit), Error> {
    let sources = source::read(&args.files, &mut std::io::stdin().lock())?;
    let known = standing(&args.known, "default")?;
    let file = |file: Option<&PathBuf>| policy(file.map(PathBuf::as_path));
    let (old, new) = (file(args.diff.first())?, file(args.diff.last())?);
    let now = Timestamp::now();
    let old = report(&sources, &known, &old, now);
    let new = report(&sources, &known, &new, now);
    let found = differences(&old, &new);
    let mut text = match args.output {
        Output::Text => diff::text(&new, &found, Paint::of_output()),
        Output::Json => diff::json(&old, &new, &found)?,
    };
    if args.output == Output::Text {
        for fault in &new.faults {
            let (file, line) = (new.source_name(fault.source), fault.place.line);
            text += &format!("{file}:{line}: {}\n", fault.message);
        }
    }
    let is_grave = diff::is_grave(&found, args.fail_on);
    Ok((text, exit(&new, is_grave)))
}

/// What one policy says to each line.
fn report(sources: &[Source], known: &Known, in_force: &InForce, now: Timestamp) -> Report {
    let mut report = Report {
        sources: sources.to_vec(),
        judged: Vec::new(),
        faults: Vec::new(),
        others: 0,
        policy: in_force.active.hash.clone(),
    };
    let stance = stance();
    let law = Law {
        in_force,
        known,
        stance: &stance,
        now,
    };
    for (index, source) in sources.iter().enumerate() {
        let lines = source.text.lines().enumerate();
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let place = Place {
                line: number + 1,
                column: 1,
                width: 0,
            };
            match judged(law, index, place, line) {
                Ok(judged) => report.judged.push(judged),
                Err(why) => report.faults.push(not_a_review(index, place, &why)),
            }
        }
    }
    report
}

fn judged(law: Law<'_>, source: usize, place: Place, line: &str) -> Result<Judged, String> {
    let review: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let whose = whose(&review);
    let decision = pass(law, review).map_err(|malformed| malformed.to_string())?;
    Ok(Judged {
        source,
        whose,
        place,
        findings: told(&decision, |_| place),
    })
}

fn whose(review: &Value) -> Whose {
    let text = |at: &str| review.pointer(at).and_then(Value::as_str);
    let part = text("/request/subResource").filter(|part| !part.is_empty());
    let kind = text("/request/kind/kind").unwrap_or_default();
    let operation = text("/request/operation").unwrap_or_default();
    let kind = match part {
        Some(part) => format!("{operation} {kind}/{part}"),
        None => format!("{operation} {kind}"),
    };
    let names = ["/request/name", "/request/object/metadata/generateName"];
    let mut names = names.into_iter().filter_map(text);
    Whose {
        kind,
        namespace: text("/request/namespace").unwrap_or_default().to_owned(),
        name: names.find(|name| !name.is_empty()).map(str::to_owned),
    }
}

fn not_a_review(source: usize, place: Place, why: &str) -> Fault {
    Fault {
        source,
        whose: None,
        place,
        reason: "Unreadable",
        message: format!("cannot be read: {why}"),
    }
}

#[cfg(test)]
mod tests;
