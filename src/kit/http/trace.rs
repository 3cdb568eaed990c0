//! A span per request, as a child of the one that the client is in.

use std::task::{Context, Poll};

use futures::{FutureExt, future::Inspect};
use http::{Request, Response};
use tower::{Layer, Service};
use tracing::{Instrument, Span, field::Empty, info_span, instrument::Instrumented};

use crate::kit::telemetry::propagation;

/// A layer that traces requests. The admin endpoint goes without: probes are not worth a trace.
///
/// The span is entered while the service works and not while its answer is sent: answers of ours are complete.
#[derive(Clone, Copy, Debug)]
pub struct Traced;

/// Makes that layer.
pub fn traced() -> Traced {
    Traced
}

impl<S> Layer<S> for Traced {
    type Service = Tracing<S>;

    fn layer(&self, service: S) -> Tracing<S> {
        Tracing { service }
    }
}

/// A service whose requests are traced.
#[derive(Clone, Debug)]
pub struct Tracing<S> {
    service: S,
}

impl<S, A, B> Service<Request<A>> for Tracing<S>
where
    S: Service<Request<A>, Response = Response<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Instrumented<Inspect<S::Future, Note<B, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let span = span_of(&request);
        let note: Note<B, S::Error> = note;
        self.service.call(request).inspect(note).instrument(span)
    }
}

/// What is done with an answer.
type Note<B, E> = fn(&Result<Response<B>, E>);

fn span_of<B>(request: &Request<B>) -> Span {
    let span = info_span!(
        "request",
        otel.kind = "server",
        method = request.method().as_str(),
        path = request.uri().path(),
        status = Empty,
    );
    propagation::adopt(&span, propagation::from_headers(request.headers()));
    span
}

/// Called within the span.
fn note<B, E>(answered: &Result<Response<B>, E>) {
    if let Ok(response) = answered {
        Span::current().record("status", response.status().as_u16());
        tracing::debug!("Request answered");
    }
}
