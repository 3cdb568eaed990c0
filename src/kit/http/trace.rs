//! A span per request, or at least ids, as a child of the one that the client is in.

use std::task::{Context, Poll};

use futures::{FutureExt, future::Inspect};
use http::{Request, Response};
use opentelemetry::context::{FutureExt as _, WithContext};
use tower::{Layer, Service};
use tracing::{Instrument, Span, field::Empty, info_span, instrument::Instrumented};

use crate::kit::telemetry::{REQUEST_SPANS, Requests, propagation};

/// A layer that traces requests. The admin endpoint goes without: probes are not worth a trace.
///
/// The span is entered while the service works and not while its answer is sent: answers of ours are complete.
#[derive(Clone, Copy, Debug)]
pub struct Traced {
    requests: Requests,
}

/// Makes that layer.
pub fn traced(requests: Requests) -> Traced {
    Traced { requests }
}

impl<S> Layer<S> for Traced {
    type Service = Tracing<S>;

    fn layer(&self, service: S) -> Tracing<S> {
        let requests = self.requests;
        Tracing { service, requests }
    }
}

/// A service whose requests are traced.
#[derive(Clone, Debug)]
pub struct Tracing<S> {
    service: S,
    requests: Requests,
}

impl<S, A, B> Service<Request<A>> for Tracing<S>
where
    S: Service<Request<A>, Response = Response<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = WithContext<Instrumented<Inspect<S::Future, Note<B, S::Error>>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let span = span_of(&request);
        let mut context = propagation::from_headers(request.headers());
        match self.requests {
            Requests::Recorded => propagation::adopt(&span, context.clone()),
            Requests::Named => context = propagation::named_within(&context),
        }
        let note: Note<B, S::Error> = note;
        let answered = self.service.call(request).inspect(note);
        answered.instrument(span).with_context(context)
    }
}

/// What is done with an answer.
type Note<B, E> = fn(&Result<Response<B>, E>);

fn span_of<B>(request: &Request<B>) -> Span {
    info_span!(
        target: REQUEST_SPANS,
        "request",
        otel.kind = "server",
        method = request.method().as_str(),
        path = request.uri().path(),
        status = Empty,
    )
}

/// Called within the span.
fn note<B, E>(answered: &Result<Response<B>, E>) {
    if let Ok(response) = answered {
        Span::current().record("status", response.status().as_u16());
        tracing::debug!("Request answered");
    }
}
