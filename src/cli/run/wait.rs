//! `agents run wait`: follows a run to its end and tells each change.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::time::{Instant, timeout_at};

use super::{list, read, view};
use crate::api::kinds::AgentRun;
use crate::api::phase::Phase;
use crate::cli::failure::Failure;
use crate::cli::session::Session;
use crate::cli::shown::{Format, age, plain, print};
use crate::kit::exit::Exit;

/// Waits for the end and says how it was, or shows the run as it is then.
pub(super) async fn until_over(
    session: &Session,
    name: &str,
    time: Duration,
    output: Option<Format>,
) -> Result<Exit, Failure> {
    let (run, phase) = end(session, name, time).await?;
    match output {
        Some(format) => list::show(&run, format)?,
        None => print(&format!("{name} ended {phase}.\n"))?,
    }
    Ok(exit(phase))
}

/// What the shell is told about a run that was waited for.
fn exit(phase: Phase) -> Exit {
    match phase {
        Phase::Succeeded => Exit::Done,
        Phase::Pending | Phase::Running | Phase::Failed | Phase::Cancelled => Exit::RunFailed,
    }
}

/// The run at its end, and the phase it ends in. Each change is told on standard error meanwhile.
pub(super) async fn end(
    session: &Session,
    name: &str,
    time: Duration,
) -> Result<(AgentRun, Phase), Failure> {
    // A run that is not there would be waited for in vain, and a watch does not say why it sees nothing.
    let first = read(session, name).await?;
    let (start, uid) = (Instant::now(), first.metadata.uid.clone());
    let end = start + time;
    let mut said = String::new();
    let mut tell = |run: &AgentRun| {
        let line = plain(&view::line(run));
        if line != said {
            eprintln!("{:>5}  {line}", age(start.elapsed()));
            said = line;
        }
    };
    tell(&first);
    if let Some(phase) = view::ended(&first) {
        return Ok((first, phase));
    }
    let runs = session.api::<AgentRun>();
    let mut states = pin!(watcher::watch_object(runs, name).default_backoff());
    loop {
        match timeout_at(end, states.next()).await {
            Ok(Some(Ok(Some(run)))) if run.metadata.uid == uid => {
                tell(&run);
                if let Some(phase) = view::ended(&run) {
                    return Ok((run, phase));
                }
            }
            Ok(Some(Ok(_))) => {
                return Err(Failure::new(format!(
                    "the run {name} was deleted before its end"
                )));
            }
            // The watch begins anew by itself.
            Ok(Some(Err(_))) => {}
            Ok(None) | Err(_) => {
                return Err(
                    Failure::new(format!("{name} has not ended after {}", age(time)))
                        .exit(Exit::TimedOut)
                        .next(format!("`agents explain {name}` says what it waits for")),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_success_is_success() {
        for phase in Phase::ALL {
            let expected = match phase.as_str() {
                "Succeeded" => 0,
                _ => 4,
            };
            assert_eq!(exit(*phase).code(), expected, "{phase}");
        }
    }
}
