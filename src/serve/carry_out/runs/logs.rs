//! The log of a run: what its latest pod wrote, through the API server, as long as the pod is kept.

use bytes::Bytes;
use futures::{AsyncRead, AsyncReadExt, stream};
use http::StatusCode;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, ResourceExt};

use super::{find, typed};
use crate::api::contract::{env, label};
use crate::api::custody::Outcome;
use crate::api::kinds::AgentRun;
use crate::api::phase::Phase;
use crate::api::text::names::LabelValue;
use crate::controller::{Keep, keep_for};
use crate::kit::http::BoxError;
use crate::serve::answer::{self, Answer};
use crate::serve::carry_out::runs::view::Summary;
use crate::serve::fault::{Fault, Reason};
use crate::serve::service::Call;
use crate::serve::state::State;

/// Lines that are sent if nobody says.
const TAIL: u32 = 1000;

/// Bytes that are read at a time.
const PIECE: usize = 8 * 1024;

/// The container whose log it is.
const CONTAINER: &str = "agent-runner";

/// The log of a run.
pub(in crate::serve) async fn logs(state: &State, call: &Call) -> Result<Answer, Fault> {
    let object = find(state, call).await?;
    let seen = Summary::of(&object);
    let run = typed(object)?;
    let pods: Api<Pod> = Api::namespaced(state.client.clone(), call.namespace());
    let found = pods.list(&of(&run, call.route.text("step"))).await?;
    let latest = found
        .items
        .iter()
        .max_by_key(|pod| pod.creation_timestamp());
    let Some(pod) = latest else {
        return Err(nothing_left(&run, &seen, state.keep));
    };
    let how = LogParams {
        container: Some(CONTAINER.to_owned()),
        follow: call.route.switch("follow").unwrap_or(false),
        tail_lines: Some(call.route.number("tail").unwrap_or(TAIL).into()),
        ..LogParams::default()
    };
    let log = pods.log_stream(&pod.name_any(), &how).await;
    let log = log.map_err(|error| unreadable(error, &seen))?;
    let pieces = answer::pieces("text/plain; charset=utf-8", pieces(log));
    Ok(pieces)
}

/// The pods of a run, or of one of its steps.
fn of(run: &AgentRun, step: Option<&str>) -> ListParams {
    let uid = run.uid().unwrap_or_default();
    let mut labels = format!("{}={uid}", label::RUN_UID);
    if let Some(step) = step {
        labels += &format!(",{}={}", label::STEP, LabelValue::normalise(step));
    }
    ListParams::default().labels(&labels)
}

/// A log piece by piece, as it is asked for.
fn pieces(
    log: impl AsyncRead + Send + 'static,
) -> impl futures::Stream<Item = Result<Bytes, BoxError>> + Send {
    stream::try_unfold(Box::pin(log), |mut log| async move {
        let mut piece = vec![0; PIECE];
        let read = log.read(&mut piece).await?;
        piece.truncate(read);
        Ok((read > 0).then(|| (Bytes::from(piece), log)))
    })
}

/// Why there is no pod.
fn nothing_left(run: &AgentRun, seen: &Summary, keep: Keep) -> Fault {
    let Some(finished) = run.status.as_ref().and_then(|status| status.finished_at) else {
        return not_started(seen);
    };
    let outcome = match Phase::parse(seen.phase()) {
        Some(Phase::Succeeded) => Outcome::Succeeded,
        _ => Outcome::Failed,
    };
    let kept = keep_for(None, outcome, keep);
    let since = kept.map(|seconds| since(finished, seconds));
    let since = since.map_or(String::new(), |since| format!(", about {since}"));
    let message = format!(
        "the log is gone: the run ended at {finished}, and its pod was kept until its Job went{since}"
    );
    Fault::new(StatusCode::GONE, Reason::LogsGone, message).next(format!(
        "to keep logs of later runs longer, set {} of the controllers (here it is {} s; Jobs are kept for {} s by {})",
        env::RUNNER_JOB_LOG_RETENTION,
        keep.logs.as_secs(),
        keep.succeeded.as_secs(),
        env::RUNNER_JOB_TTL,
    ))
}

fn since(finished: Timestamp, seconds: i32) -> Timestamp {
    let kept = jiff::SignedDuration::from_secs(seconds.into());
    finished.checked_add(kept).unwrap_or(finished)
}

fn not_started(seen: &Summary) -> Fault {
    let message = format!("there is no log yet: the run is {}", seen.standing());
    Fault::new(StatusCode::CONFLICT, Reason::NotStarted, message)
        .next("wait until it runs, and look at its events if it does not")
        .again_after(2)
}

/// Why the log of a pod cannot be read. Before its container has begun, the API server calls the request bad.
fn unreadable(error: kube::Error, seen: &Summary) -> Fault {
    let bad = matches!(&error, kube::Error::Api(status) if status.code == 400);
    if bad { not_started(seen) } else { error.into() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use serde_json::json;

    #[test]
    fn who_comes_too_late_is_told_since_when_and_by_which_setting() {
        let object = json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "metadata": {"name": "r"},
            "spec": {"agentRef": {"name": "a"}, "runtime": {"type": "job"}},
            "status": {"phase": "Succeeded", "finishedAt": "2026-01-01T00:00:00Z"},
        });
        let run: AgentRun = serde_json::from_value(object.clone()).unwrap();
        let seen = Summary::of(&serde_json::from_value(object).unwrap());
        let keep = Keep {
            succeeded: Duration::from_secs(600),
            logs: Duration::from_secs(3600),
            ..Keep::default()
        };
        let told = format!("{:?}", nothing_left(&run, &seen, keep));
        for expected in [
            "LogsGone",
            "ended at 2026-01-01T00:00:00Z",
            "about 2026-01-01T01:00:00Z",
            "AGENTS_RUNNER_JOB_LOG_RETENTION_SECONDS",
            "3600 s",
        ] {
            assert!(told.contains(expected), "{expected}: {told}");
        }
    }
}
