//! Room for the bytes of all requests at once. A body takes as much of it as has come, not what it may become: else a few
//! senders that say little and then nothing would shut out all others.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use agents::kit::http::BoxError;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Units in which bytes are counted.
const UNIT: usize = 1_024;

/// Room for all requests.
#[derive(Debug)]
pub(super) struct Room(Semaphore);

impl Room {
    /// Room for so many bytes.
    pub(super) fn of(bytes: usize) -> Self {
        Self(Semaphore::new(bytes.div_ceil(UNIT)))
    }

    /// The share of a request of which nothing has come yet.
    pub(super) fn share(&self) -> Share<'_> {
        Share {
            room: &self.0,
            taken: None,
            bytes: 0,
        }
    }
}

/// What one request has of the room, until it is dropped.
#[derive(Debug)]
pub(super) struct Share<'r> {
    room: &'r Semaphore,
    taken: Option<SemaphorePermit<'r>>,
    bytes: usize,
}

/// The room is used up.
#[derive(Debug, thiserror::Error)]
#[error("there is no room for more")]
pub(super) struct NoRoom;

impl Share<'_> {
    /// Takes room for so many bytes more. Nobody waits for it: who waited would keep what others wait for.
    pub(super) fn grow(&mut self, more: usize) -> Result<(), NoRoom> {
        let bytes = self.bytes.saturating_add(more);
        let missing = bytes.div_ceil(UNIT) - self.bytes.div_ceil(UNIT);
        if missing > 0 {
            let units = u32::try_from(missing).unwrap_or(u32::MAX);
            let taken = self.room.try_acquire_many(units).map_err(|_| NoRoom)?;
            match &mut self.taken {
                Some(before) => before.merge(taken),
                None => self.taken = Some(taken),
            }
        }
        self.bytes = bytes;
        Ok(())
    }
}

/// A body whose share grows with it; it breaks off with [`NoRoom`].
#[derive(Debug)]
pub(super) struct Counted<'r, B> {
    pub(super) body: B,
    pub(super) share: Share<'r>,
}

impl<B> Body for Counted<'_, B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { body, share } = self.get_mut();
        let frame = match ready!(Pin::new(body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        Poll::Ready(Some(match share.grow(bytes) {
            Ok(()) => Ok(frame),
            Err(no_room) => Err(no_room.into()),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_takes_what_has_come_in_whole_units_and_gives_it_back() {
        let room = Room::of(4 * UNIT);
        let mut share = room.share();
        for (more, left) in [
            (0, 4),
            (1, 3),
            (UNIT - 1, 3),
            (1, 2),
            (2 * UNIT - 1, 1),
            (UNIT, 0),
        ] {
            assert!(share.grow(more).is_ok(), "{more}");
            assert_eq!(room.0.available_permits(), left, "{more}");
        }
        assert!(share.grow(1).is_err());
        assert!(room.share().grow(0).is_ok(), "nothing takes no room");
        drop(share);
        assert!(room.share().grow(4 * UNIT).is_ok());
    }
}
