//! Who gets to work at once. Memory is bounded by it: small bodies by their number, large ones by a few places of their own.

use std::sync::Arc;

use agents::kit::http::BoxError;
use bytes::Bytes;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout_at;
use tracing::Span;

use super::answer::{Admission, Answer};
use super::budget::Budget;
use crate::refusal::Refusal;
use crate::review::uid_of;
use crate::subject::Door;

/// Bodies up to here are judged where they are read; that takes less time than handing them over. Larger ones would
/// keep other connections waiting.
const SMALL: u64 = 64 * 1024;
/// Large bodies at a time. Each may have 7 MiB, and a tree of several times that.
const LARGE_AT_ONCE: usize = 4;

/// The room that there is for work.
#[derive(Debug)]
pub struct Room {
    all: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// A place in the room; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _any: OwnedSemaphorePermit,
    large: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// Room for so many reviews.
    pub fn new(reviews: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(reviews)),
            large: Arc::new(Semaphore::new(LARGE_AT_ONCE)),
        }
    }

    /// A place for a review with this body: at once, or not at all. A large one waits until there is room for its kind,
    /// so that slow senders of large bodies hold up nobody but each other.
    pub(super) async fn enter<B>(&self, body: &B) -> Option<Place>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let any = Arc::clone(&self.all).try_acquire_owned().ok()?;
        // A body that does not say how long it is may be large.
        let is_small = body.size_hint().upper().is_some_and(|size| size <= SMALL);
        let large = match is_small {
            true => None,
            false => Some(Arc::clone(&self.large).acquire_owned().await.ok()?),
        };
        Some(Place { _any: any, large })
    }
}

impl Place {
    /// Answers, in time in any case.
    pub(super) async fn work(
        self,
        admission: &Arc<Admission>,
        door: Door,
        budget: Budget,
        body: Bytes,
    ) -> Answer {
        let late = |body: &[u8]| {
            let uid = uid_of(body).unwrap_or_default();
            admission.refuse(Some(door), &uid, &Refusal::Late)
        };
        if budget.is_spent() {
            return late(&body);
        }
        let Some(permit) = self.large else {
            return admission.answer(door, &body);
        };
        let (span, judge, judged) = (Span::current(), Arc::clone(admission), body.clone());
        let work = spawn_blocking(move || {
            // Held until the work is done, also when nobody waits for it any more.
            let _permit = permit;
            span.in_scope(|| judge.answer(door, &judged))
        });
        match timeout_at(budget.deadline, work).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                let uid = uid_of(&body).unwrap_or_default();
                admission.refuse(Some(door), &uid, &Refusal::Failed)
            }
            Err(_) => late(&body),
        }
    }
}
