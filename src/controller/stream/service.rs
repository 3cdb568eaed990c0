//! Answers requests: the numbers as they are, or a stream of them.

use std::convert::Infallible;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::{Ready, ready};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body_util::{Either, Full, StreamBody};
use tower::Service;

use super::key::Key;
use super::message::{State, event};
use super::reader::{Frames, Reader};
use crate::api::contract::{queue, queue_event};
use crate::kit::http::events::{last_event, set_stream};
use crate::kit::http::{TextBody, text};
use crate::kit::shutdown::Shutdown;

/// How the queue stands, for whoever asks.
#[derive(Clone)]
pub(super) struct Queue {
    state: State,
    /// What callers must show; nothing where only the pod itself can call.
    key: Option<Key>,
    shutdown: Shutdown,
}

type Answer = Response<Either<TextBody, StreamBody<Frames>>>;

impl Queue {
    /// For everyone who gets there.
    pub(super) fn open(state: State) -> impl FnOnce(Shutdown) -> Self {
        |shutdown| Self {
            state,
            key: None,
            shutdown,
        }
    }

    /// For those who show the key.
    pub(super) fn locked(state: State, key: Key) -> impl FnOnce(Shutdown) -> Self {
        |shutdown| Self {
            state,
            key: Some(key),
            shutdown,
        }
    }

    fn lets_in(&self, headers: &HeaderMap) -> bool {
        self.key.as_ref().is_none_or(|key| key.is_shown(headers))
    }

    fn now(&self) -> Answer {
        let json = self.state.snapshot().json();
        let mut answer = Response::new(Either::Left(Full::new(json.into())));
        set(&mut answer, "application/json");
        answer
    }

    fn stream(&self, headers: &HeaderMap) -> Answer {
        let asked = last_event(headers);
        let hub = &self.state.hub;
        let Some((place, resumed)) = hub.enter(asked) else {
            let mut answer = refusal(StatusCode::SERVICE_UNAVAILABLE, "too many readers\n");
            let later = HeaderValue::from_static("5");
            answer.headers_mut().insert(header::RETRY_AFTER, later);
            return answer;
        };
        let stalled = place.stalled();
        let first = (!resumed).then(|| self.first(asked.is_some()));
        let reader = Reader {
            place,
            news: hub.news(),
            shutdown: self.shutdown.clone(),
            first,
        };
        let mut answer = Response::new(Either::Right(StreamBody::new(reader.frames())));
        set(&mut answer, "text/event-stream");
        set_stream(&mut answer, stalled);
        answer
    }

    /// Everything as it is, under the name of the last event.
    fn first(&self, gap: bool) -> Bytes {
        let id = self.state.hub.last_id();
        let mut snapshot = self.state.snapshot();
        snapshot.gap = gap;
        event(queue_event::SNAPSHOT, Some(&id), &snapshot.json())
    }
}

impl<B> Service<Request<B>> for Queue {
    type Response = Answer;
    type Error = Infallible;
    type Future = Ready<Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let path = request.uri().path();
        let answer = if ![queue::SNAPSHOT, queue::STREAM].contains(&path) {
            refusal(StatusCode::NOT_FOUND, "no such path\n")
        } else if request.method() != Method::GET {
            refusal(StatusCode::METHOD_NOT_ALLOWED, "only GET\n")
        } else if !self.lets_in(request.headers()) {
            let why =
                "show the key that is on the lease of the controllers, or ask the control plane\n";
            refusal(StatusCode::UNAUTHORIZED, why)
        } else if path == queue::SNAPSHOT {
            self.now()
        } else if request.version() == Version::HTTP_2 {
            // A reader who stalls could hide behind other requests on the same connection.
            let why = "the stream is for HTTP/1.1\n";
            refusal(StatusCode::HTTP_VERSION_NOT_SUPPORTED, why)
        } else {
            self.stream(request.headers())
        };
        ready(Ok(answer))
    }
}

fn refusal(status: StatusCode, why: &'static str) -> Answer {
    text(status, why).map(Either::Left)
}

fn set(answer: &mut Answer, content: &'static str) {
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content));
    let no_store = HeaderValue::from_static("no-store");
    headers.insert(header::CACHE_CONTROL, no_store);
}
