//! `agents run`: submit, list, show, wait for, read and cancel runs.
//!
//! Everything goes through the API server with the rights of the person who asks.

mod gone;
mod list;
mod logs;
mod manifest;
mod submit;
pub(super) mod view;
mod wait;

use std::time::Duration;

use clap::Subcommand;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::failure::Failure;
use super::session::{Access, Session, ask};
use super::shown::{Format, print};
use crate::api::contract::COMMAND_LINE_MANAGER;
use crate::api::kinds::AgentRun;
use crate::api::phase::Phase;
use crate::api::text::duration::parse_duration;
use crate::kit::exit::Exit;

/// What is to be done with runs.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a run.
    Submit(Box<submit::Args>),
    /// List runs.
    List(list::Args),
    /// Show one run.
    Get(list::One),
    /// Wait for the end of a run; ends with 4 if the run failed, with 124 if it takes too long.
    Wait(WaitArgs),
    /// Print what the pods of a run wrote.
    Logs(logs::Args),
    /// Stop a run and keep its record.
    Cancel(CancelArgs),
}

/// How long a run is waited for.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Patience {
    /// Time to wait, such as 90s, 30m or 24h.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time)]
    timeout: Duration,
}

#[derive(Debug, clap::Args)]
struct WaitArgs {
    /// Name of the run.
    name: String,
    #[command(flatten)]
    patience: Patience,
    /// How the run is shown at its end; only how it ended if left out.
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

#[derive(Debug, clap::Args)]
struct CancelArgs {
    /// Name of the run.
    name: String,
    /// Wait until it has ended.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    patience: Patience,
    /// How the run is shown, at its end if that is waited for; only what becomes of it if left out.
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// A time as people write it.
fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| format!("`{text}` is no time such as 90s, 30m or 24h"))
}

/// Carries out what is asked for.
///
/// # Errors
///
/// What a person is told.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    let Args { access, command } = args;
    match command {
        Command::Submit(args) => submit::run(&access, &args).await,
        Command::List(args) => list::run(&access.connect().await?, &args).await,
        Command::Get(args) => list::one(&access.connect().await?, &args).await,
        Command::Wait(WaitArgs {
            name,
            patience,
            output,
        }) => wait::until_over(&access.connect().await?, &name, patience.timeout, output).await,
        Command::Logs(args) => logs::run(&access.connect().await?, &args).await,
        Command::Cancel(args) => cancel(&access.connect().await?, &args).await,
    }
}

/// The run of this name.
async fn read(session: &Session, name: &str) -> Result<AgentRun, Failure> {
    let what = format!("read the run {name} in namespace {}", session.namespace);
    ask(&what, session.api::<AgentRun>().get(name)).await
}

async fn cancel(session: &Session, args: &CancelArgs) -> Result<Exit, Failure> {
    let CancelArgs {
        name,
        wait,
        patience,
        output,
    } = args;
    let say = |run: &AgentRun, words: &str| match output {
        Some(format) => list::show(run, *format),
        None => print(&format!("{name} {words}.\n")),
    };
    let before = read(session, name).await?;
    match view::ended(&before) {
        Some(Phase::Cancelled) => {
            say(&before, "was cancelled before")?;
            return Ok(Exit::Done);
        }
        Some(phase) => {
            return Err(
                Failure::new(format!("{name} cannot be cancelled: it has ended {phase}"))
                    .next(format!("`agents explain {name}` says how it came to that")),
            );
        }
        None => {}
    }
    let params = PatchParams {
        field_manager: Some(COMMAND_LINE_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(json!({"spec": {"cancel": true}}));
    let runs = session.api::<AgentRun>();
    let asked = ask("cancel the run", runs.patch(name, &params, &patch)).await?;
    // One document only: the run as it is at its end.
    if !wait || output.is_none() {
        say(&asked, "is being cancelled")?;
    }
    if !wait {
        return Ok(Exit::Done);
    }
    let (run, phase) = wait::end(session, name, patience.timeout).await?;
    if let Some(format) = output {
        list::show(&run, *format)?;
    }
    match phase {
        Phase::Cancelled => Ok(Exit::Done),
        phase @ (Phase::Pending | Phase::Running | Phase::Succeeded | Phase::Failed) => Err(
            Failure::new(format!("{name} ended {phase} before it could be cancelled")),
        ),
    }
}

/// Whether a result is shown as a document, and in which form.
fn as_document(format: Format) -> Option<bool> {
    match format {
        Format::Table | Format::Wide => None,
        Format::Json => Some(false),
        Format::Yaml => Some(true),
    }
}
