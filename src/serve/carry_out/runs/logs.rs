//! The log of a run: what its latest pod wrote, through the API server, as long as the pod is kept.

mod gone;

use bytes::Bytes;
use futures::{AsyncRead, AsyncReadExt, stream};
use http::StatusCode;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, ResourceExt};

use super::{find, typed};
use crate::api::contract::{container, label};
use crate::api::kinds::AgentRun;
use crate::api::text::names::LabelValue;
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
        let ended = run.status.as_ref().and_then(|status| status.finished_at);
        return Err(match ended {
            Some(finished) => gone::fault(&run, &seen, finished, state.keep),
            None => not_started(&seen),
        });
    };
    let how = LogParams {
        container: Some(container::AGENT_RUNNER.to_owned()),
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
