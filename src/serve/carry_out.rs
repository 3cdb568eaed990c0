//! What the operations do: a file for each sort of thing. [`queue`] and [`sidecar`] ask whoever [`leader`] says; [`redact`] sees
//! to it that no secret leaves.

pub(super) mod approvals;
pub(super) mod events;
pub(super) mod health;
pub(super) mod leader;
pub(super) mod queue;
pub(super) mod redact;
pub(super) mod runs;
pub(super) mod sidecar;
pub(super) mod signals;
pub(super) mod stream;

use std::sync::Arc;

use http::StatusCode;

use super::answer::{self, Answer};
use super::fault::Fault;
use super::operation::Id;
use super::service::Call;
use super::state::State;

/// Carries out what was let in.
pub(super) async fn carry_out(state: &Arc<State>, call: Call) -> Result<Answer, Fault> {
    match call.route.operation.id {
        Id::Livez => Ok(health::live()),
        Id::Readyz => Ok(health::ready(&state.readiness)),
        Id::OpenApi => {
            let document = state.document.clone();
            Ok(answer::whole(StatusCode::OK, "application/json", document))
        }
        Id::WhoAmI => {
            let (default, served) = (&state.default_namespace, &state.namespaces);
            Ok(health::who_am_i(&call.caller, default, served))
        }
        Id::SubmitRun => runs::submit(state, &call).await,
        Id::ListRuns => runs::list(state, &call).await,
        Id::GetRun => runs::get(state, &call).await,
        Id::CancelRun => runs::cancel(state, &call).await,
        Id::WaitForRun => runs::wait(state, &call).await,
        Id::RunEvents => events::of_run(state, &call).await,
        Id::RunLogs => runs::logs(state, &call).await,
        Id::ListEvents => events::of_any(state, &call).await,
        Id::ListApprovals => approvals::list(state, &call).await,
        Id::Decide => approvals::decide(state, &call).await,
        Id::CreateSignal => signals::create(state, &call).await,
        Id::DeliverSignal => signals::deliver(state, &call).await,
        Id::ControlPlaneStream => stream::control_plane(state, &call).await,
        Id::Queue => queue::snapshot(state),
        Id::QueueStream => queue::stream(state, &call),
        Id::Sidecar => sidecar::seen(state).await,
        Id::GithubDelivery | Id::LinearDelivery | Id::SourceDelivery | Id::Console | Id::None => {
            Err(Fault::bad_request("there is no such operation"))
        }
    }
}
