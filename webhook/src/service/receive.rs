//! The body of a review, and a place to work on it.

use std::pin::pin;
use std::time::Duration;

use agents::kit::http::{BodyError, BoxError, Come, declares_more};
use bytes::Bytes;
use hyper::body::Body;
use tokio::time::{Instant, timeout_at};

use super::BODY_LIMIT;
use super::budget::Budget;
use super::work::{Place, Room, SMALL};
use crate::metrics::{Metrics, Phase};
use crate::refusal::Refusal;

/// Why there will be no decision, and what has come of the body, so that the answer can name the question.
pub(super) struct Undecided {
    pub(super) refusal: Refusal,
    pub(super) come: Bytes,
}

/// The body, and a place to work on it. What a small body has is read first, so that whoever sends nothing holds no
/// place; more than that may come only where there is a place for it, or it would fill the memory.
pub(super) async fn receive<B>(
    metrics: &Metrics,
    room: &Room,
    budget: Budget,
    body: B,
) -> Result<(Place, Bytes), Undecided>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (mut body, mut come) = (pin!(body), Come::default());
    match arrive(metrics, room, budget, &mut body, &mut come).await {
        Ok(place) => Ok((place, come.into_bytes())),
        Err(refusal) => Err(Undecided {
            refusal,
            come: come.into_bytes(),
        }),
    }
}

async fn arrive<B>(
    metrics: &Metrics,
    room: &Room,
    budget: Budget,
    body: &mut B,
    come: &mut Come,
) -> Result<Place, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    if declares_more(body, BODY_LIMIT) {
        return Err(Refusal::TooLarge { limit: BODY_LIMIT });
    }
    let mut reading = Reading {
        budget,
        spent: Duration::ZERO,
    };
    if reading.go_on(body, come, SMALL).await? {
        metrics.took(Phase::Read, reading.spent);
        let place = room.enter().ok_or(Refusal::Shed)?;
        let started = Instant::now();
        room.fill().await;
        metrics.took(Phase::Queue, started.elapsed());
        return Ok(place);
    }
    let started = Instant::now();
    let entered = timeout_at(budget.deadline, room.enter_large()).await;
    let place = entered.or(Err(Refusal::Late))?.ok_or(Refusal::Shed)?;
    metrics.took(Phase::Queue, started.elapsed());
    reading.go_on(body, come, BODY_LIMIT).await?;
    metrics.took(Phase::Read, reading.spent);
    Ok(place)
}

/// Waiting for a body, in one go or in two.
struct Reading {
    budget: Budget,
    spent: Duration,
}

impl Reading {
    /// Reads until there are more bytes than `enough`, and says whether the body ended before that.
    async fn go_on<B>(
        &mut self,
        body: &mut B,
        come: &mut Come,
        enough: usize,
    ) -> Result<bool, Refusal>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<BoxError>,
    {
        let started = Instant::now();
        // What waited for a place in between was not the sender.
        let deadline = self.budget.reading(started, self.spent);
        let read = timeout_at(deadline, come.read(body, enough, BODY_LIMIT)).await;
        self.spent += started.elapsed();
        match read {
            Ok(Ok(is_whole)) => Ok(is_whole),
            Ok(Err(BodyError::TooLarge { limit })) => Err(Refusal::TooLarge { limit }),
            Ok(Err(BodyError::Broken(_))) => Err(Refusal::Broken),
            Err(_) => Err(Refusal::Late),
        }
    }
}
