//! A span per request, as a child of the one that the client is in.

use std::time::Duration;

use http::{Request, Response};
use tower_http::{
    classify::{ServerErrorsAsFailures, SharedClassifier},
    trace::{MakeSpan, OnResponse, TraceLayer},
};
use tracing::{Span, field::Empty, info_span};

use crate::kit::telemetry::propagation;

/// A layer that traces requests. The admin endpoint goes without: probes are not worth a trace.
pub type Traced =
    TraceLayer<SharedClassifier<ServerErrorsAsFailures>, RequestSpan, (), RequestSpan, (), (), ()>;

/// Makes that layer.
pub fn traced() -> Traced {
    TraceLayer::new_for_http()
        .make_span_with(RequestSpan)
        .on_request(())
        .on_response(RequestSpan)
        .on_body_chunk(())
        .on_eos(())
        .on_failure(())
}

/// What the span of a request says.
#[derive(Clone, Copy, Debug)]
pub struct RequestSpan;

impl<B> MakeSpan<B> for RequestSpan {
    fn make_span(&mut self, request: &Request<B>) -> Span {
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
}

impl<B> OnResponse<B> for RequestSpan {
    fn on_response(self, response: &Response<B>, _: Duration, span: &Span) {
        span.record("status", response.status().as_u16());
        tracing::debug!("Request answered");
    }
}
