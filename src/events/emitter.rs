//! The handle by which a program emits Events. It never waits: what cannot be queued is dropped and counted.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use super::event::Draft;
use super::metrics::{Loss, Metrics};
use super::occurrence::{Effect, Occurrence};

/// Emits Events. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Emitter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// None where Events are switched off.
    queue: Option<Sender<Draft>>,
    metrics: Metrics,
}

impl Emitter {
    pub(super) fn new(queue: Option<Sender<Draft>>, metrics: Metrics) -> Self {
        Self {
            shared: Arc::new(Shared { queue, metrics }),
        }
    }

    /// What is counted about what it emits.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Says that something happened. Emit after what it tells is stored, so that no Event speaks of what never was.
    ///
    /// Returns at once in any case, and does nothing on a dry run.
    pub fn emit(&self, effect: Effect, occurrence: Occurrence) {
        let Shared { queue, metrics } = &*self.shared;
        match (effect, queue) {
            (Effect::DryRun, _) | (_, None) => {}
            (Effect::Real, Some(queue)) => match queue.try_reserve() {
                Ok(place) => place.send(draft(occurrence)),
                Err(TrySendError::Full(())) => metrics.count_dropped(Loss::QueueFull, 1),
                Err(TrySendError::Closed(())) => metrics.count_dropped(Loss::Closed, 1),
            },
        }
    }
}

/// Sanitises here, so that nothing secret waits in a queue.
fn draft(occurrence: Occurrence) -> Draft {
    let Occurrence {
        regarding,
        related,
        reason,
        note,
    } = occurrence;
    Draft {
        regarding,
        related,
        reason,
        note: note.sanitised(),
        seen: whole_microseconds(Timestamp::now()),
    }
}

/// What is stored has this grain, and is compared later.
fn whole_microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}
