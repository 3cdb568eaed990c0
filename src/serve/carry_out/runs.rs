//! What can be done with runs. [`view`] is how a run is shown, [`submit`] makes one, [`list`] finds some, [`wait`] waits
//! for the end of one, [`logs`] reads what its pod wrote.

mod list;
mod logs;
mod policy;
mod submit;
mod view;
mod wait;

use http::StatusCode;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;

pub(in crate::serve) use list::{PAGE, Page, asked, list};
pub(in crate::serve) use logs::logs;
pub(in crate::serve) use submit::{Once, Receipt, Submission, body, create_once, submit};
pub(in crate::serve) use view::{Detail, Summary};
pub(in crate::serve) use wait::{LONGEST_WAIT, Waited, wait};

use crate::api::contract::FIELD_MANAGER;
use crate::api::kind::Kind;
use crate::api::kinds::AgentRun;
use crate::serve::answer::{self, Answer};
use crate::serve::fault::{Fault, Reason};
use crate::serve::service::Call;
use crate::serve::state::State;

/// One run.
pub(in crate::serve) async fn get(state: &State, call: &Call) -> Result<Answer, Fault> {
    let run = find(state, call).await?;
    Ok(answer::json(StatusCode::OK, &Detail::of(run)))
}

/// The run that a call is about.
async fn find(state: &State, call: &Call) -> Result<DynamicObject, Fault> {
    let runs = state.api(Kind::AgentRun, Some(call.namespace()));
    let found = runs.get_opt(call.name()).await?;
    found.ok_or_else(|| no_such_run(call))
}

fn no_such_run(call: &Call) -> Fault {
    Fault::not_found("AgentRun", call.namespace(), call.name())
}

/// A run of the cluster as its type; what others stored may not be one.
fn typed(object: DynamicObject) -> Result<AgentRun, Fault> {
    object.try_parse().map_err(|_| {
        let message = "the run is stored in a form that cannot be read";
        Fault::new(StatusCode::BAD_GATEWAY, Reason::Internal, message)
    })
}

/// Asks for the end of a run. Asking again changes nothing.
pub(in crate::serve) async fn cancel(state: &State, call: &Call) -> Result<Answer, Fault> {
    let run = find(state, call).await?;
    let seen = Summary::of(&run);
    if seen.is_cancelling() {
        return Ok(answer::json(StatusCode::OK, &seen));
    }
    if seen.has_ended() {
        return Err(ended(&seen));
    }
    let runs = state.api(Kind::AgentRun, Some(call.namespace()));
    // By its uid, so that a later run of the same name is not meant.
    let patch = json!({"metadata": {"uid": run.metadata.uid}, "spec": {"cancel": true}});
    let how = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patched = runs.patch(call.name(), &how, &Patch::Merge(patch)).await;
    match patched {
        Ok(run) => Ok(answer::json(StatusCode::OK, &Summary::of(&run))),
        Err(kube::Error::Api(status)) if status.code == 404 => Err(no_such_run(call)),
        Err(error) => Err(error.into()),
    }
}

fn ended(run: &Summary) -> Fault {
    let message = format!("the run has ended: {}", run.standing());
    Fault::new(StatusCode::CONFLICT, Reason::AlreadyEnded, message).next("nothing needs to be done")
}
