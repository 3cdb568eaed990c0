//! The service behind both ports: gRPC and HTTP are told apart by what they say they are.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use agents::kit::http::{BodyError, read_body};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::{Body, Incoming};
use tokio::sync::{Semaphore, SemaphorePermit};
use tower::Service;

use super::{
    answer::{self, Denied, Encoding},
    body::Answer,
    grpc,
    inflate::{Packing, unpack},
    json::to_protobuf,
    metrics::{Metrics, Transport},
    walk,
};
use crate::store::{Store, Tally};

/// Units in which bytes in flight are counted.
const UNIT: usize = 1_024;

/// Seconds after which a sender may try again.
const LATER: &str = "1";

/// What a receiver works with.
#[derive(Debug)]
pub struct Receiving {
    /// Where points go.
    pub store: Arc<Store>,
    /// Bytes of one request, packed and unpacked.
    pub most: usize,
    /// Bytes of all requests at once.
    pub in_flight: usize,
    /// What is counted.
    pub metrics: Metrics,
    /// Where time counts from.
    pub since: Instant,
}

#[derive(Debug)]
struct Shared {
    receiving: Receiving,
    room: Semaphore,
}

/// Takes OTLP.
#[derive(Clone, Debug)]
pub struct Receiver {
    shared: Arc<Shared>,
}

impl Receiver {
    /// One that works with these.
    pub fn new(receiving: Receiving) -> Self {
        let room = Semaphore::new(receiving.in_flight.div_ceil(UNIT));
        Self {
            shared: Arc::new(Shared { receiving, room }),
        }
    }
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Metrics,
    Traces,
    Logs,
}

impl Signal {
    fn at(path: &str) -> Option<Self> {
        match path.strip_prefix("/otlp").unwrap_or(path) {
            "/v1/metrics" | grpc::METRICS => Some(Self::Metrics),
            "/v1/traces" | grpc::TRACES => Some(Self::Traces),
            "/v1/logs" | grpc::LOGS => Some(Self::Logs),
            _ => None,
        }
    }
}

impl Service<Request<Incoming>> for Receiver {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Answer>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        async move { Ok(shared.answer(request).await) }.boxed()
    }
}

impl Shared {
    async fn answer<B>(&self, request: Request<B>) -> Response<Answer>
    where
        B: Body<Data = Bytes, Error: Into<agents::kit::http::BoxError>>,
    {
        let (head, body) = request.into_parts();
        let is_grpc = grpc::is_grpc(&head.headers);
        let Some(signal) = Signal::at(head.uri.path()) else {
            return match is_grpc {
                true => grpc::denied(&Denied::Unimplemented("such calls")),
                false => plain(
                    StatusCode::NOT_FOUND,
                    "no such path; metrics go to /v1/metrics\n",
                ),
            };
        };
        if head.method != Method::POST {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "only POST\n");
        }
        if is_grpc {
            let taken = self.take_grpc(signal, &head.headers, body).await;
            self.receiving
                .metrics
                .request(Transport::Grpc, taken.as_ref());
            return match taken {
                Ok(tally) => grpc::accepted(answer::accepted(&tally, Encoding::Protobuf)),
                Err(denied) => grpc::denied(&denied),
            };
        }
        let Some(encoding) = encoding(&head.headers) else {
            let words = "the content type is neither application/x-protobuf nor application/json\n";
            return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, words);
        };
        let taken = self.take_http(signal, encoding, &head.headers, body).await;
        self.receiving
            .metrics
            .request(Transport::Http, taken.as_ref());
        match taken {
            Ok(tally) => respond(StatusCode::OK, answer::accepted(&tally, encoding), encoding),
            Err(denied) => {
                let status = StatusCode::from_u16(denied.status());
                let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let mut response = respond(status, denied.body(encoding), encoding);
                if denied == Denied::Busy {
                    let later = HeaderValue::from_static(LATER);
                    response.headers_mut().insert(header::RETRY_AFTER, later);
                }
                response
            }
        }
    }

    async fn take_grpc<B>(
        &self,
        signal: Signal,
        headers: &HeaderMap,
        body: B,
    ) -> Result<Tally, Denied>
    where
        B: Body<Data = Bytes, Error: Into<agents::kit::http::BoxError>>,
    {
        let (body, _room) = self.read(body).await?;
        let message = grpc::message(body, headers, self.receiving.most)?;
        self.take(signal, &message)
    }

    async fn take_http<B>(
        &self,
        signal: Signal,
        encoding: Encoding,
        headers: &HeaderMap,
        body: B,
    ) -> Result<Tally, Denied>
    where
        B: Body<Data = Bytes, Error: Into<agents::kit::http::BoxError>>,
    {
        let packing = headers.get(header::CONTENT_ENCODING);
        let packing = packing.map(|packing| packing.to_str().unwrap_or("?"));
        let packing = Packing::named(packing)?;
        let (body, _room) = self.read(body).await?;
        let body = unpack(body, packing, self.receiving.most)?;
        match (encoding, signal) {
            (Encoding::Json, Signal::Metrics) => {
                let turned = to_protobuf(&body);
                let message = turned.map_err(|error| Denied::Malformed(error.to_string()))?;
                self.take(signal, &message)
            }
            _ => self.take(signal, &body),
        }
    }

    /// The whole body, and the room that it takes until it is done with.
    async fn read<B>(&self, body: B) -> Result<(Bytes, SemaphorePermit<'_>), Denied>
    where
        B: Body<Data = Bytes, Error: Into<agents::kit::http::BoxError>>,
    {
        let most = self.receiving.most;
        let declared = body
            .size_hint()
            .exact()
            .and_then(|size| usize::try_from(size).ok());
        let expected = declared.unwrap_or(most).min(most);
        let units = u32::try_from(expected.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let room = self
            .room
            .try_acquire_many(units)
            .map_err(|_| Denied::Busy)?;
        match read_body(body, most).await {
            Ok(body) => Ok((body, room)),
            Err(BodyError::TooLarge { limit }) => Err(Denied::TooLarge(limit)),
            Err(BodyError::Broken(_)) => Err(Denied::Malformed("the body broke off".to_owned())),
        }
    }

    fn take(&self, signal: Signal, message: &[u8]) -> Result<Tally, Denied> {
        self.receiving.metrics.received(message.len());
        match signal {
            Signal::Metrics => {}
            Signal::Traces => return Err(Denied::Unimplemented("traces")),
            Signal::Logs => return Err(Denied::Unimplemented("logs")),
        }
        let now = self.receiving.since.elapsed().as_secs();
        let mut intake = self.receiving.store.intake(now);
        match walk::metrics(message, &mut intake) {
            Ok(()) => Ok(intake.tally),
            Err(malformed) => Err(Denied::Malformed(malformed.to_string())),
        }
    }
}

/// How a body is encoded; only what is named exactly, so that no page in a browser can send here.
fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let kind = kind.split(';').next()?.trim();
    match kind.to_ascii_lowercase().as_str() {
        "application/x-protobuf" => Some(Encoding::Protobuf),
        "application/json" => Some(Encoding::Json),
        _ => None,
    }
}

fn respond(status: StatusCode, body: Bytes, encoding: Encoding) -> Response<Answer> {
    let kind = match encoding {
        Encoding::Protobuf => "application/x-protobuf",
        Encoding::Json => "application/json",
    };
    let mut response = Response::new(Answer::of(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn plain(status: StatusCode, words: &'static str) -> Response<Answer> {
    let mut response = Response::new(Answer::of(Bytes::from_static(words.as_bytes())));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests;
