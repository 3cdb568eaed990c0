//! The way of one request: which operation, who asks, may they, carry it out, tell it on. Knows no operation itself.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use http::{HeaderMap, Request, StatusCode, Version, header};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout};
use tower::Service;

use super::answer::Answer;
use super::auth::{Ask, Caller};
use super::carry_out::{carry_out, health};
use super::console;
use super::fault::{Fault, Reason};
use super::inbound;
use super::operation::{Access, Id, Operation};
use super::route::{Route, route};
use super::state::State;
use crate::kit::http::{BodyError, read_body};

/// Largest body of a request, in bytes: what the API server takes of one object.
pub(super) const BODY: usize = 1024 * 1024;

/// Time for an operation, unless it waits for something on purpose.
const DEADLINE: Duration = Duration::from_secs(25);

/// The API as a service.
#[derive(Clone)]
pub(super) struct Api {
    state: Arc<State>,
}

/// A request, whichever way it came.
pub(super) struct Asked {
    /// What it asks for, if there is such a thing.
    pub(super) found: Result<Route, Fault>,
    pub(super) headers: HeaderMap,
    pub(super) version: Version,
    pub(super) body: Given,
}

/// The body of a request.
pub(super) enum Given {
    /// It is still to be read.
    Coming(Incoming),
    /// It is there.
    Whole(Bytes),
}

/// A request that was let in.
pub(super) struct Call {
    pub(super) route: Route,
    /// The namespace that is asked about; none for all.
    pub(super) namespace: Option<String>,
    pub(super) caller: Arc<Caller>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) version: Version,
}

impl Call {
    /// The namespace of an operation that is about one.
    pub(super) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// The name in the path of an operation that has one there.
    pub(super) fn name(&self) -> &str {
        self.route.name.as_deref().unwrap_or_default()
    }
}

/// What the line in the log says about a request.
#[derive(Default)]
struct Record {
    operation: Option<&'static Operation>,
    caller: Option<Arc<Caller>>,
    namespace: Option<String>,
    name: Option<String>,
}

impl Api {
    pub(super) fn new(state: Arc<State>) -> Self {
        Self { state }
    }

    async fn handle(self, request: Request<Incoming>) -> Answer {
        let begun = Instant::now();
        let (head, body) = request.into_parts();
        let page = console::answer(&head.method, head.uri.path(), &head.headers);
        if let Some(page) = page {
            let (metrics, took) = (&self.state.metrics, begun.elapsed());
            metrics.answered(Id::Console, page.status(), took);
            return page;
        }
        let query = head.uri.query().unwrap_or_default();
        let asked = Asked {
            found: route(&head.method, head.uri.path(), query),
            headers: head.headers,
            version: head.version,
            body: Given::Coming(body),
        };
        self.call(asked).await.unwrap_or_else(Fault::answer)
    }

    /// The answer to a request, whichever way it came; counted, and told in the log if it changes something.
    pub(super) async fn call(&self, asked: Asked) -> Result<Answer, Fault> {
        let begun = Instant::now();
        let mut record = Record::default();
        let given = self.answer(asked, &mut record).await;
        match &given {
            Ok(answer) => self.count_and_tell(&record, begun, answer.status(), None),
            Err(fault) => self.count_and_tell(&record, begun, fault.status, Some(fault.reason())),
        }
        given
    }

    /// The same of a request of which nothing was read, since nobody knows who asks.
    pub(super) fn turned_away(
        &self,
        operation: Option<&'static Operation>,
        begun: Instant,
        fault: &Fault,
    ) {
        let record = Record {
            operation,
            ..Record::default()
        };
        self.count_and_tell(&record, begun, fault.status, Some(fault.reason()));
    }

    fn count_and_tell(
        &self,
        record: &Record,
        begun: Instant,
        status: StatusCode,
        reason: Option<Reason>,
    ) {
        let id = record.operation.map_or(Id::None, |known| known.id);
        self.state.metrics.answered(id, status, begun.elapsed());
        record.tell(status, reason);
    }

    async fn answer(&self, asked: Asked, record: &mut Record) -> Result<Answer, Fault> {
        let state = &self.state;
        let Asked {
            found,
            headers,
            version,
            body,
        } = asked;
        if let Ok(found) = &found {
            record.operation = Some(found.operation);
            match found.operation.access {
                Access::Open if found.operation.id == Id::Livez => return Ok(health::live()),
                Access::Open => return Ok(health::ready(&state.readiness)),
                Access::Signed => {
                    record.namespace.clone_from(&found.namespace);
                    record.name.clone_from(&found.name);
                    return inbound::take(state, found, &headers, body).await;
                }
                Access::Known | Access::There(_) | Access::Everywhere(_) | Access::AnyKind => {}
            }
        }
        let waits = found
            .as_ref()
            .is_ok_and(|found| found.operation.id == Id::WaitForRun);
        let room = if waits { &state.waiting } else { &state.room };
        let Ok(_room) = room.try_acquire() else {
            return Err(too_many());
        };
        // Also who asks for what there is not must be known first.
        let caller = state.gatekeeper.who(&headers).await?;
        record.caller = Some(Arc::clone(&caller));
        let route = found?;
        let namespace = namespace(&route, &state.default_namespace);
        record.namespace.clone_from(&namespace);
        record.name.clone_from(&route.name);
        self.let_in(&caller, &route, namespace.as_deref()).await?;
        let body = match route.operation.takes {
            Some(_) => body.read(&headers, BODY, DEADLINE).await?,
            None => Bytes::new(),
        };
        let patience = DEADLINE + route.time("timeout").unwrap_or_default();
        let call = Call {
            route,
            namespace,
            caller,
            headers,
            body,
            version,
        };
        match timeout(patience, carry_out(state, call)).await {
            Ok(given) => given,
            Err(_) => Err(overdue()),
        }
    }

    /// Refuses who may not do it, and what is not done here.
    async fn let_in(
        &self,
        caller: &Caller,
        route: &Route,
        namespace: Option<&str>,
    ) -> Result<(), Fault> {
        match route.operation.access {
            Access::Open | Access::Signed | Access::Known => return Ok(()),
            Access::There(right) => {
                let ask = Ask {
                    right,
                    namespace: namespace.map(str::to_owned),
                    name: route.name.clone(),
                };
                self.state.gatekeeper.demand(caller, &ask).await?;
            }
            Access::Everywhere(right) => {
                return self.state.demand_everywhere(caller, right).await;
            }
            // Kind by kind, by the operation itself.
            Access::AnyKind => {}
        }
        self.state.serves(namespace)
    }
}

impl Service<Request<Incoming>> for Api {
    type Response = Answer;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        self.clone().handle(request).map(Ok).boxed()
    }
}

impl Record {
    /// One line for everything that changes something, whether it was done or not.
    fn tell(&self, status: StatusCode, reason: Option<Reason>) {
        let Some(operation) = self.operation.filter(|known| known.writes()) else {
            return;
        };
        tracing::info!(
            operation = operation.id.as_str(),
            user = self
                .caller
                .as_ref()
                .map_or("", |caller| caller.name.as_str()),
            namespace = self.namespace.as_deref().unwrap_or_default(),
            name = self.name.as_deref().unwrap_or_default(),
            status = status.as_u16(),
            reason = reason.map_or("", Reason::as_str),
            "Audit"
        );
    }
}

/// The namespace that is asked about; none for all, or where the operation has none.
fn namespace(route: &Route, default: &str) -> Option<String> {
    if !route.operation.is_namespaced() {
        return None;
    }
    let given = route.namespace.as_deref().or(route.text("namespace"));
    match given {
        Some("*") => None,
        given => Some(given.unwrap_or(default).to_owned()),
    }
}

impl Given {
    /// The whole body. That it must be said to be JSON also keeps out forms of foreign pages.
    pub(super) async fn read(
        self,
        headers: &HeaderMap,
        most: usize,
        deadline: Duration,
    ) -> Result<Bytes, Fault> {
        let body = match self {
            Self::Whole(bytes) => return Ok(bytes),
            Self::Coming(body) => body,
        };
        let content = headers.get(header::CONTENT_TYPE);
        let content = content.and_then(|content| content.to_str().ok());
        let kind = content.unwrap_or_default().split(';').next();
        let kind = kind.unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            let message = "the body must be JSON and be said to be";
            return Err(Fault::new(status, Reason::BadRequest, message)
                .next("send the header Content-Type: application/json"));
        }
        match timeout(deadline, read_body(body, most)).await {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(error @ BodyError::TooLarge { .. })) => {
                let status = StatusCode::PAYLOAD_TOO_LARGE;
                Err(Fault::new(status, Reason::TooLarge, error.to_string()))
            }
            Ok(Err(error @ BodyError::Broken(_))) => Err(Fault::bad_request(error.to_string())),
            Err(_) => Err(overdue()),
        }
    }
}

pub(super) fn too_many() -> Fault {
    let message = "too many requests are in flight";
    Fault::new(
        StatusCode::TOO_MANY_REQUESTS,
        Reason::TooManyRequests,
        message,
    )
    .next("try again in a moment")
    .again_after(1)
}

fn overdue() -> Fault {
    let message = "it took too long";
    Fault::new(
        StatusCode::GATEWAY_TIMEOUT,
        Reason::DeadlineExceeded,
        message,
    )
    .next("try again; a write may have been done all the same")
}
