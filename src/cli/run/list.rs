//! `agents run list` and `agents run get`.

use jiff::Timestamp;
use kube::Api;
use kube::api::{ListParams, TypeMeta};
use serde_json::{Value, json};

use super::view::{self, Columns};
use super::{as_document, read};
use crate::api::kinds::AgentRun;
use crate::api::phase::Phase;
use crate::cli::failure::Failure;
use crate::cli::session::{Session, list_all};
use crate::cli::shown::{Format, Paint, document, print, table};
use crate::kit::exit::Exit;

/// Which runs are listed, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Runs of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only runs with these labels, such as team=a,tier!=b.
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Only runs in this phase: Pending, Running, Succeeded, Failed or Cancelled.
    #[arg(long, value_name = "PHASE", value_parser = phase)]
    phase: Option<Phase>,
    /// How the runs are shown.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Which run is shown, and how.
#[derive(Debug, clap::Args)]
pub(super) struct One {
    /// Name of the run.
    name: String,
    /// How the run is shown.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

fn phase(text: &str) -> Result<Phase, String> {
    let all = Phase::ALL.iter().copied();
    let found = all
        .clone()
        .find(|phase| phase.as_str().eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let words: Vec<_> = all.map(Phase::as_str).collect();
        format!("`{text}` is not {}", words.join(", "))
    })
}

pub(super) async fn run(session: &Session, args: &Args) -> Result<Exit, Failure> {
    let runs: Api<AgentRun> = match args.all_namespaces {
        true => Api::all(session.client.clone()),
        false => session.api(),
    };
    let params = ListParams {
        label_selector: args.selector.clone(),
        ..ListParams::default()
    };
    let mut found = list_all("list the runs", &runs, &params).await?;
    found.retain(|run| {
        args.phase
            .is_none_or(|phase| view::phase(run) == phase.as_str())
    });
    if let Some(as_yaml) = as_document(args.output) {
        let items: Vec<Value> = found.iter().map(typed).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        print(&document(&list, as_yaml)?)?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        let place = match args.all_namespaces {
            true => "in any namespace".to_owned(),
            false => format!("in namespace {}", session.namespace),
        };
        eprintln!("There are no such runs {place}.");
        return Ok(Exit::Done);
    }
    let columns = Columns {
        namespace: args.all_namespaces,
        wide: args.output == Format::Wide,
    };
    print(&rows(&found, columns))?;
    Ok(Exit::Done)
}

pub(super) async fn one(session: &Session, args: &One) -> Result<Exit, Failure> {
    let run = read(session, &args.name).await?;
    show(&run, args.output)?;
    Ok(Exit::Done)
}

/// Shows one run.
pub(super) fn show(run: &AgentRun, format: Format) -> Result<(), Failure> {
    match as_document(format) {
        Some(as_yaml) => print(&document(&typed(run), as_yaml)?),
        None => {
            let wide = format == Format::Wide;
            print(&rows(
                std::slice::from_ref(run),
                Columns {
                    namespace: false,
                    wide,
                },
            ))
        }
    }
}

fn rows(runs: &[AgentRun], columns: Columns) -> String {
    let now = Timestamp::now();
    let rows: Vec<_> = runs
        .iter()
        .map(|run| view::row(run, columns, now))
        .collect();
    table(&view::head(columns), &rows, Paint::of_output())
}

/// A run as others write it: with its kind, which lists leave out, and without the bookkeeping of field managers.
fn typed(run: &AgentRun) -> Value {
    let mut run = run.clone();
    run.metadata.managed_fields = None;
    let mut value = serde_json::to_value(&run).unwrap_or_default();
    let TypeMeta { api_version, kind } = TypeMeta::resource::<AgentRun>();
    value["apiVersion"] = json!(api_version);
    value["kind"] = json!(kind);
    value
}
