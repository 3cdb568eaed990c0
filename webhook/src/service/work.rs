//! Who gets to work at once. Memory is bounded by it: of a body that has no place there are at most 64 KiB and the piece that
//! came with them, one per connection, and large ones have a few places of their own.

use std::sync::Arc;

use agents::kit::http::ServerMetrics;
use agents::kit::telemetry::propagation::Whereabouts;
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::timeout_at;

use super::answer::{Admission, Answer};
use super::budget::Budget;
use super::claim::Claim;
use crate::refusal::Refusal;
use crate::review::uid_of;
use crate::subject::Door;

/// Bodies up to here are judged where they are read; that takes less time than handing them over. Larger ones would
/// keep other connections waiting.
pub(super) const SMALL: usize = 64 * 1024;
/// Large bodies at a time. Each may have 7 MiB.
const LARGE_AT_ONCE: usize = 4;
/// How many of them are judged at a time. One that is judged takes three times its length besides (`api::object::tree`), and
/// is done sooner where not all of them share the processors.
const JUDGED_AT_ONCE: usize = 2;

/// The room that there is for work.
#[derive(Debug)]
pub struct Room {
    all: Arc<Semaphore>,
    large: Arc<Semaphore>,
    judged: Arc<Semaphore>,
    reviews: usize,
    /// Where reviews come from; none if nobody knows.
    door: Option<ServerMetrics>,
}

/// A place in the room; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _any: OwnedSemaphorePermit,
    large: Option<Large>,
}

/// What a large review has besides: its place among large ones, and where they wait to be judged.
#[derive(Debug)]
struct Large {
    _place: OwnedSemaphorePermit,
    judged: Arc<Semaphore>,
}

impl Room {
    /// Room for so many reviews.
    pub fn new(reviews: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(reviews)),
            large: Arc::new(Semaphore::new(LARGE_AT_ONCE)),
            judged: Arc::new(Semaphore::new(JUDGED_AT_ONCE)),
            reviews,
            door: None,
        }
    }

    /// The same behind this server.
    pub fn behind(self, door: ServerMetrics) -> Self {
        Self {
            door: Some(door),
            ..self
        }
    }

    /// Lets whoever has come meanwhile get a place before the first of them is judged: so it shows how many there are, and how
    /// long each of them waits. Of a connection there is one review at a time, so there cannot be too many of them while there
    /// are no more connections than places, and nobody gives way for nothing.
    pub(super) async fn fill(&self) {
        let few = |door: &ServerMetrics| door.connections() <= self.reviews;
        if !self.door.as_ref().is_some_and(few) {
            yield_now().await;
        }
    }

    /// A place for a review whose body is small and has been read: at once, or not at all.
    pub(super) fn enter(&self) -> Option<Place> {
        let any = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Place {
            _any: any,
            large: None,
        })
    }

    /// A place for a review whose body is large and the rest of it still to be read. It waits until there is room for its kind, and only
    /// then takes a place among all: so large ones hold up nobody but each other, however many there are.
    pub(super) async fn enter_large(&self) -> Option<Place> {
        let large = Large {
            _place: Arc::clone(&self.large).acquire_owned().await.ok()?,
            judged: Arc::clone(&self.judged),
        };
        let place = self.enter()?;
        Some(Place {
            large: Some(large),
            ..place
        })
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
        let Some(large) = self.large else {
            return admission.answer(door, &body);
        };
        let turn = Arc::clone(&large.judged).acquire_owned();
        let Ok(Ok(turn)) = timeout_at(budget.deadline, turn).await else {
            return late(&body);
        };
        let claim = Arc::new(Claim::default());
        let (here, judge, judged) = (Whereabouts::here(), Arc::clone(admission), body.clone());
        let wanted = Arc::clone(&claim);
        let mut work = spawn_blocking(move || {
            // Held until the work is done, also when nobody waits for it any more.
            let _held = (large, turn);
            here.carry_on(|| judge.answer_if_wanted(door, &judged, &wanted))
        });
        let worked = match timeout_at(budget.deadline, &mut work).await {
            Ok(worked) => worked,
            Err(_) if claim.take() => return late(&body),
            Err(_) => work.await, // it is being told of at this moment, so it is there
        };
        let answer = worked.ok().flatten();
        answer.unwrap_or_else(|| admission.fail(door, &body))
    }
}
