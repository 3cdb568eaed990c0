//! A short body, with trailers where gRPC wants them.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};

/// An answer.
#[derive(Debug, Default)]
pub struct Answer {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Answer {
    /// Of these bytes.
    pub(super) fn of(data: Bytes) -> Self {
        Self {
            data: Some(data).filter(|data| !data.is_empty()),
            trailers: None,
        }
    }

    /// The same, and then these.
    pub(super) fn with_trailers(self, trailers: HeaderMap) -> Self {
        Self {
            trailers: Some(trailers),
            ..self
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = self.data.take().map(Frame::data);
        let frame = data.or_else(|| self.trailers.take().map(Frame::trailers));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let length = self.data.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(length as u64)
    }
}
