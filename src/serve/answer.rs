//! Answers: JSON that is there as a whole, or a body that comes piece by piece.

use bytes::Bytes;
use futures::Stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde::Serialize;

use crate::kit::http::BoxError;

/// The body of any answer.
pub(super) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// What a request is answered.
pub(super) type Answer = Response<Body>;

/// A value as JSON. What we answer can always be written as JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(value).unwrap_or_default();
    whole(status, "application/json", text.into())
}

/// Bytes that are there.
pub(super) fn whole(status: StatusCode, content: &'static str, bytes: Bytes) -> Answer {
    let body = Full::new(bytes).map_err(|never| match never {});
    typed(status, content, body.boxed_unsync())
}

/// Bytes that come piece by piece.
pub(super) fn pieces<S>(content: &'static str, pieces: S) -> Answer
where
    S: Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
{
    use futures::TryStreamExt;
    let body = StreamBody::new(pieces.map_ok(Frame::data));
    let mut answer = typed(StatusCode::OK, content, BodyExt::boxed_unsync(body));
    let unbuffered = HeaderValue::from_static("no");
    answer.headers_mut().insert("x-accel-buffering", unbuffered);
    answer
}

fn typed(status: StatusCode, content: &'static str, body: Body) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content));
    let no_store = HeaderValue::from_static("no-store");
    headers.insert(header::CACHE_CONTROL, no_store);
    let as_said = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, as_said);
    answer
}
