//! Waits for the end of a run, by a watch.

use std::time::Duration;

use futures::{StreamExt, pin_mut};
use http::StatusCode;
use kube::runtime::watcher::watch_object;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use super::view::Summary;
use super::{find, no_such_run};
use crate::api::kind::Kind;
use crate::serve::answer::{self, Answer};
use crate::serve::fault::{Fault, Reason};
use crate::serve::service::Call;
use crate::serve::state::State;

/// Longest time that someone may wait, in seconds. Who wants more asks again.
pub(in crate::serve) const LONGEST_WAIT: u32 = 300;

/// How long is waited if nobody says.
const WAIT: Duration = Duration::from_secs(30);

/// How a wait went.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct Waited {
    /// Whether the run has ended; else the time was over.
    ended: bool,
    /// The run as it was then.
    run: Summary,
}

/// Waits for the end of a run.
pub(in crate::serve) async fn wait(state: &State, call: &Call) -> Result<Answer, Fault> {
    let until = Instant::now() + call.route.time("timeout").unwrap_or(WAIT);
    let first = find(state, call).await?;
    let mut seen = Summary::of(&first);
    let uid = first.metadata.uid;
    let runs = state.api(Kind::AgentRun, Some(call.namespace()));
    let changes = watch_object(runs, call.name());
    pin_mut!(changes);
    while !seen.has_ended() {
        let Ok(change) = timeout_at(until, changes.next()).await else {
            break;
        };
        match change {
            Some(Ok(Some(run))) if run.metadata.uid == uid => seen = Summary::of(&run),
            Some(Ok(_)) => return Err(gone(call)),
            // The watch begins anew by itself; the pause keeps it from doing so in a hurry.
            Some(Err(error)) => {
                tracing::debug!(%error, "Watch of a run broke");
                drop(timeout_at(until, tokio::time::sleep(Duration::from_secs(1))).await);
            }
            None => return Err(no_such_run(call)),
        }
    }
    let waited = Waited {
        ended: seen.has_ended(),
        run: seen,
    };
    Ok(answer::json(StatusCode::OK, &waited))
}

fn gone(call: &Call) -> Fault {
    let message = format!("the run {} was deleted before it ended", call.name());
    Fault::new(StatusCode::GONE, Reason::Gone, message).next("submit it anew if it is still wanted")
}
