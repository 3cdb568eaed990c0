//! Streams of server-sent events: what happens to all objects, and how the queue changes.
//!
//! [`follow`] watches the objects and [`shelf`] keeps them as they were last told; [`hub`] is what is kept of the events and
//! whom they concern, [`reader`] is one who reads, [`status`] says how the control plane stands.

mod follow;
mod hub;
mod reader;
mod shelf;
mod status;

use std::sync::Arc;

use futures::future::FutureExt;
use futures::stream::{self, BoxStream, StreamExt};
use http::{StatusCode, Version};
use serde_json::json;
use tokio::time::Instant;

pub(in crate::serve) use follow::Board;
pub(in crate::serve) use hub::{About, Event, Filter, Hub, hub, tell};

use crate::api::contract::control_plane_event;
use crate::api::kind::Kind;
use crate::api::object::cause::listed;
use crate::kit::http::events::{in_lines, last_event, lines, set_stream};
use crate::serve::answer::{self, Answer};
use crate::serve::auth::{Ask, Caller, Right};
use crate::serve::fault::{Fault, Reason};
use crate::serve::operation::Access;
use crate::serve::service::Call;
use crate::serve::state::State;
use reader::{HEARTBEAT, Reader, StillAllowed, said};
use shelf::Known;

/// What happens to all objects that the caller may follow.
pub(in crate::serve) async fn control_plane(
    state: &Arc<State>,
    call: &Call,
) -> Result<Answer, Fault> {
    let kinds = asked_for(call)?;
    let kinds = followed(state, &call.caller, call.namespace.as_deref(), &kinds).await?;
    let filter = Filter {
        namespace: call.namespace.clone(),
        kinds,
    };
    let board = &state.board;
    let named = call.route.switch("named").unwrap_or(true);
    let first = |asked: bool| first(board, filter.clone(), asked, &state.default_namespace);
    let wish = Wish {
        filter: filter.clone(),
        named,
        brief: call.route.switch("brief").unwrap_or(false),
    };
    open(state, call, &board.hub, wish, first)
}

/// How a reader wants to be told.
pub(in crate::serve) struct Wish {
    pub(in crate::serve) filter: Filter,
    /// Whether events have names.
    pub(in crate::serve) named: bool,
    /// Whether objects are left out.
    pub(in crate::serve) brief: bool,
}

/// The kinds that a reader asks for.
fn asked_for(call: &Call) -> Result<Vec<Kind>, Fault> {
    let Some(name) = call.route.text("kind") else {
        return Ok(Kind::ALL.to_vec());
    };
    let known = Kind::ALL.into_iter().find(|kind| kind.as_str() == name);
    known.map(|kind| vec![kind]).ok_or_else(|| {
        let names = Kind::ALL.map(Kind::as_str);
        Fault::bad_request("there is no such kind").next(format!("use {}", listed(&names)))
    })
}

/// Opens a stream for a reader; `first` is what it is told if it does not go on where it was.
pub(in crate::serve) fn open(
    state: &Arc<State>,
    call: &Call,
    hub: &Arc<Hub>,
    wish: Wish,
    first: impl FnOnce(bool) -> BoxStream<'static, Event>,
) -> Result<Answer, Fault> {
    let Wish {
        filter,
        named,
        brief,
    } = wish;
    if call.version == Version::HTTP_2 {
        // A reader who stalls could hide behind other requests on the same connection.
        let status = StatusCode::HTTP_VERSION_NOT_SUPPORTED;
        let message = "streams are for HTTP/1.1";
        return Err(Fault::new(status, Reason::HttpVersion, message)
            .next("open the stream on a connection of its own, over HTTP/1.1"));
    }
    let asked = last_event(&call.headers);
    let Some((place, resumed)) = hub.enter(asked) else {
        let message = "there are too many readers";
        let status = StatusCode::SERVICE_UNAVAILABLE;
        return Err(Fault::new(status, Reason::TooManyRequests, message)
            .next("come back later")
            .again_after(5));
    };
    let first = match resumed {
        true => stream::empty().boxed(),
        false => first(asked.is_some()),
    };
    let stalled = place.stalled();
    let reader = Reader {
        place,
        filter,
        news: hub.news(),
        shutdown: state.shutdown.clone(),
        still_allowed: still_allowed(state, call),
        next_look: Instant::now() + HEARTBEAT,
        named,
        brief,
    };
    let mut answer = answer::pieces("text/event-stream", reader.pieces(first));
    set_stream(&mut answer, stalled);
    Ok(answer)
}

/// Those of these kinds that the caller may follow; refused if there is none.
async fn followed(
    state: &State,
    caller: &Caller,
    namespace: Option<&str>,
    asked: &[Kind],
) -> Result<Vec<Kind>, Fault> {
    let mut kinds = Vec::new();
    let ask = |kind| Ask {
        right: Right::of("watch", kind),
        namespace: namespace.map(str::to_owned),
        name: None,
    };
    for &kind in asked {
        if state.gatekeeper.may(caller, &ask(kind)).await? {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        // Says what would be the least.
        state.gatekeeper.demand(caller, &ask(least(asked))).await?;
    }
    Ok(kinds)
}

/// The kind whose right would be enough.
fn least(asked: &[Kind]) -> Kind {
    match asked {
        [only] => *only,
        _ => Kind::AgentRun,
    }
}

/// What there is: how the control plane stands, and every object. Read one by one, as the reader takes them.
fn first(
    board: &Arc<Board>,
    filter: Filter,
    asked: bool,
    default: &str,
) -> BoxStream<'static, Event> {
    let namespace = filter.namespace.as_deref().unwrap_or(default);
    let status = said(control_plane_event::STATUS, &board.status(namespace));
    // Under the name of the last event before, so that who goes on from here misses nothing.
    let id = board.hub.last_id();
    let name = control_plane_event::READY;
    let ready = json!({"type": name, "namespace": filter.namespace, "gap": asked});
    let ready = Event {
        name,
        lines: lines(Some(&id), ready.to_string().as_bytes()),
        brief: None,
    };
    let board = Arc::clone(board);
    let objects = stream::unfold((board, filter, None), |(board, filter, last)| async move {
        let Known { key, data, brief } = board.shelf.after(last.as_ref(), &filter)?;
        let lines = lines(None, &data);
        let event = Event {
            name: control_plane_event::RESOURCE,
            brief: Some(in_lines(&lines, &data, brief)),
            lines,
        };
        Some((event, (board, filter, Some(key))))
    });
    stream::iter([status])
        .chain(objects)
        .chain(stream::iter([ready]))
        .boxed()
}

/// Asks the cluster again, with the same token, for what the stream was opened for.
fn still_allowed(state: &Arc<State>, call: &Call) -> StillAllowed {
    let (state, headers) = (Arc::clone(state), call.headers.clone());
    let (access, namespace) = (call.route.operation.access, call.namespace.clone());
    let kinds = asked_for(call).unwrap_or_default();
    Box::new(move || {
        let (state, headers, namespace) = (Arc::clone(&state), headers.clone(), namespace.clone());
        let kinds = kinds.clone();
        async move {
            let caller = match state.gatekeeper.who(&headers).await {
                Ok(caller) => caller,
                Err(fault) => return lasting(&fault),
            };
            let asked = match access {
                Access::AnyKind => followed(&state, &caller, namespace.as_deref(), &kinds)
                    .await
                    .map(drop),
                Access::Everywhere(right) => state.demand_everywhere(&caller, right).await,
                Access::Open | Access::Signed | Access::Known | Access::There(_) => Ok(()),
            };
            asked.err().as_ref().and_then(lasting)
        }
        .boxed()
    })
}

/// Why a stream ends, if the cluster says so; one that does not answer says nothing.
fn lasting(fault: &Fault) -> Option<&'static str> {
    let refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&fault.status);
    refused.then(|| fault.reason().as_str())
}
