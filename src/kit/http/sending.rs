//! Answers that come piece by piece: in flight until the last piece, so that nobody who only opens connections takes the place
//! of one who reads.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::Response;
use http_body_util::Either;
use hyper::body::{Body, Frame, SizeHint};

use super::activity::{Giving, InFlight};

/// The body of an answer: there as a whole, or sent piece by piece.
pub(super) type Answer<B> = Either<B, Sending<B>>;

/// The answer, which keeps its request in flight if it comes piece by piece.
///
/// One that is there as a whole is done with: its client need only take it, and one that dawdles over that must not hold a
/// place that others wait for.
pub(super) fn sent<B: Body>(answer: Response<B>, in_flight: InFlight) -> Response<Answer<B>> {
    answer.map(|body| match body.size_hint().exact() {
        Some(_) => Either::Left(body),
        None => Either::Right(Sending {
            body: Box::pin(body),
            giving: in_flight.giving(),
        }),
    })
}

/// A body that is sent piece by piece. It is asked for the next piece once there is room for it, so a client that takes nothing
/// shows by that no piece is asked for.
#[derive(Debug)]
pub(super) struct Sending<B> {
    body: Pin<Box<B>>,
    giving: Giving,
}

impl<B: Body> Body for Sending<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let polled = self.body.as_mut().poll_frame(cx);
        match polled {
            Poll::Ready(Some(_)) => self.giving.gave(),
            Poll::Ready(None) | Poll::Pending => self.giving.has_nothing(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
