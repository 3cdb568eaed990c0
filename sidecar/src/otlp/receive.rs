//! The service behind both ports: gRPC and HTTP are told apart by what they say they are.

use std::{
    convert::Infallible,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use agents::kit::http::{BodyError, BoxError, read_body};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;
use tower::Service;

use super::{
    answer::{self, Denied, Encoding},
    body::Answer,
    grpc,
    inflate::{Packing, unpack},
    json::to_protobuf,
    metrics::{Metrics, Transport},
    room::{Counted, NoRoom, Room, Share},
    signal::Signal,
    walk,
};
use crate::{
    forward::Forward,
    memory::{Stage, Watch},
    store::{Store, Tally},
};

/// Time to throw away what a sender still sends when it is turned away.
const DISCARD: Duration = Duration::from_secs(2);

/// What a receiver works with.
#[derive(Debug)]
pub struct Receiving {
    /// Where points go.
    pub store: Arc<Store>,
    /// Bytes of one request, packed and unpacked.
    pub most: usize,
    /// Bytes of all requests at once.
    pub in_flight: usize,
    /// Whether there is memory for more.
    pub memory: Watch,
    /// Where what came goes on to.
    pub forward: Option<Forward>,
    /// What is counted.
    pub metrics: Metrics,
    /// Where time counts from.
    pub since: Instant,
}

#[derive(Debug)]
struct Shared {
    receiving: Receiving,
    room: Room,
}

/// Takes OTLP.
#[derive(Clone, Debug)]
pub struct Receiver {
    shared: Arc<Shared>,
}

impl Receiver {
    /// One that works with these.
    pub fn new(receiving: Receiving) -> Self {
        let room = Room::of(receiving.in_flight);
        Self {
            shared: Arc::new(Shared { receiving, room }),
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
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        let (head, body) = request.into_parts();
        let is_grpc = grpc::is_grpc(&head.headers);
        let Some(signal) = Signal::at(head.uri.path()) else {
            return match is_grpc {
                true => grpc::denied(&Denied::Unimplemented("such calls", "at all")),
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
                if let Some(later) = denied.later().map(HeaderValue::from) {
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
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        // The limit is that of the message; what is before it comes on top.
        let most = self.receiving.most.saturating_add(grpc::HEAD);
        let (body, _share) = self.read(body, most).await?;
        let message = grpc::message(body, headers, self.receiving.most)?;
        self.receiving.metrics.received(message.len());
        self.take(signal, Encoding::Protobuf, &message)
    }

    async fn take_http<B>(
        &self,
        signal: Signal,
        encoding: Encoding,
        headers: &HeaderMap,
        body: B,
    ) -> Result<Tally, Denied>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        let packing = headers.get(header::CONTENT_ENCODING);
        let packing = packing.map(|packing| packing.to_str().unwrap_or("?"));
        let packing = Packing::named(packing)?;
        let (body, _share) = self.read(body, self.receiving.most).await?;
        let body = unpack(body, packing, self.receiving.most)?;
        self.receiving.metrics.received(body.len());
        self.take(signal, encoding, &body)
    }

    /// The whole body, and the room that it takes until it is done with.
    async fn read<B>(&self, body: B, most: usize) -> Result<(Bytes, Share<'_>), Denied>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        let body = pin!(body);
        let mut body = Counted {
            body,
            share: self.room.share(),
        };
        let read = match self.stage() >= Stage::Soft {
            true => Err(Denied::Full),
            false => {
                let read = read_body(&mut body, most).await;
                read.map_err(|error| unread(&error, self.receiving.most))
            }
        };
        let Counted { body, share } = body;
        match read {
            Ok(bytes) => Ok((bytes, share)),
            Err(denied) => {
                drop(share);
                discard(body, most).await;
                Err(denied)
            }
        }
    }

    fn stage(&self) -> Stage {
        let Receiving {
            store,
            memory,
            forward,
            ..
        } = &self.receiving;
        let waiting = forward.as_ref().map_or(0, Forward::waiting);
        memory.stage(store.weight() + waiting)
    }

    fn take(&self, signal: Signal, encoding: Encoding, body: &[u8]) -> Result<Tally, Denied> {
        if self.stage() == Stage::Hard {
            return Err(Denied::Full);
        }
        match signal {
            Signal::Metrics => self.take_metrics(encoding, body),
            Signal::Traces => self.pass(signal, encoding, body, "traces"),
            Signal::Logs => self.pass(signal, encoding, body, "logs"),
        }
    }

    fn take_metrics(&self, encoding: Encoding, body: &[u8]) -> Result<Tally, Denied> {
        let turned;
        let message = match encoding {
            Encoding::Protobuf => body,
            Encoding::Json => {
                turned = to_protobuf(body, self.receiving.most)?;
                &turned
            }
        };
        let now = self.receiving.since.elapsed().as_secs();
        let mut intake = self.receiving.store.intake(now);
        walk::metrics(message, &mut intake)
            .map_err(|malformed| Denied::Malformed(malformed.to_string()))?;
        if let Some(forward) = &self.receiving.forward {
            match forward.speaks(encoding) {
                true => forward.offer(Signal::Metrics, encoding, body),
                false => forward.offer(Signal::Metrics, Encoding::Protobuf, message),
            }
        }
        Ok(intake.tally)
    }

    /// What is not for us goes on unread, if it can.
    fn pass(
        &self,
        signal: Signal,
        encoding: Encoding,
        body: &[u8],
        name: &'static str,
    ) -> Result<Tally, Denied> {
        match &self.receiving.forward {
            None => Err(Denied::Unimplemented(
                name,
                "without a target to forward them to",
            )),
            Some(forward) if !forward.speaks(encoding) => Err(Denied::Unimplemented(
                name,
                "as JSON, since the target that they are forwarded to speaks gRPC",
            )),
            Some(forward) => {
                forward.offer(signal, encoding, body);
                Ok(Tally::default())
            }
        }
    }
}

/// What a sender is told whose body could not be had.
fn unread(error: &BodyError, most: usize) -> Denied {
    match error {
        BodyError::TooLarge { .. } => Denied::TooLarge(most),
        BodyError::Broken(error) if error.is::<NoRoom>() => Denied::Busy,
        BodyError::Broken(_) => Denied::Malformed("the body broke off".to_owned()),
    }
}

/// Takes what a sender still sends and throws it away, within bounds. An answer that is earlier closes the connection, and whoever
/// is still sending then sees that and not the answer.
async fn discard<B: Body<Data = Bytes>>(body: B, most: usize) {
    let mut body = pin!(body);
    let discarded = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > most {
                break;
            }
        }
    };
    // Who is slower has to do without the answer.
    drop(timeout(DISCARD, discarded).await);
}

/// How a body is encoded; only what is named exactly, so that no page in a browser can send here.
fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let kind = kind.split(';').next()?.trim();
    let known = [
        ("application/x-protobuf", Encoding::Protobuf),
        ("application/json", Encoding::Json),
    ];
    let mut known = known.into_iter();
    known.find_map(|(name, encoding)| kind.eq_ignore_ascii_case(name).then_some(encoding))
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
