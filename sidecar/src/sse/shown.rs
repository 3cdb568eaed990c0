//! What is known of one source: how its connection goes, and what it tells. The task that follows it writes, a scrape reads.

#[cfg(test)]
mod tests;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agents::closed_labels;
use jiff::Timestamp;
use tokio::time::Instant;

use super::{
    control_plane::{self, Runs},
    load::Load,
    parse::{Event, Excess},
    queue::{self, State},
    state::Cause,
};

closed_labels! {
    /// What an event is about.
    pub(super) enum Sort {
        /// Of a queue: everything, at the start.
        Snapshot = "snapshot",
        /// Of a queue: everything, after a change.
        Queue = "queue",
        /// Of a queue: we were too slow.
        Dropped = "dropped",
        /// Of a queue: there will be no more.
        End = "end",
        /// Of a control plane: an object.
        Resource = "resource",
        /// Of a control plane: itself.
        Status = "status",
        /// Of a control plane: something is wrong with it.
        Error = "error",
        /// Anything else.
        Other = "other",
    }
}

closed_labels! {
    /// Why something that came was left out.
    pub(super) enum Fault {
        /// A line is too long.
        Line = "line_too_long",
        /// An event is too large.
        Event = "event_too_large",
        /// What it says makes no sense.
        Content = "not_understood",
    }
}

impl From<Excess> for Fault {
    fn from(excess: Excess) -> Self {
        match excess {
            Excess::Line => Self::Line,
            Excess::Event => Self::Event,
        }
    }
}

/// What a source tells.
#[derive(Debug)]
pub(super) enum Told {
    /// How the queue of the controllers stands, and when that was told.
    Queue(Option<(Box<State>, Instant)>),
    /// What happens to the objects of a control plane.
    ControlPlane(Runs),
}

/// One source.
#[derive(Debug)]
pub(super) struct Shown {
    /// What it is called.
    pub(super) name: String,
    /// How long what it told holds without it.
    grace: Duration,
    now: Mutex<Now>,
}

/// How one source stands now.
#[derive(Debug)]
pub(super) struct Now {
    link: Link,
    pub(super) is_stopped: bool,
    pub(super) connections: u64,
    pub(super) ends: [u64; Cause::ALL.len()],
    pub(super) bytes: u64,
    pub(super) events: [u64; Sort::ALL.len()],
    pub(super) faults: [u64; Fault::ALL.len()],
    /// Events that the source could not keep for us.
    pub(super) dropped: u64,
    /// Times that it could not go on from where we were.
    pub(super) gaps: u64,
    pub(super) last_event: Option<Instant>,
    /// Seconds from the telling to the hearing, of the last event that says when it was told.
    lag: Option<f64>,
    told: Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// There is a stream since then; whether what was told before still holds has been settled.
    Up { since: Instant, is_settled: bool },
    /// There is none since then.
    Down { since: Instant },
}

impl Shown {
    /// A source that is not followed yet.
    pub(super) fn new(name: String, grace: Duration, told: Told) -> Self {
        Self {
            name,
            grace,
            now: Mutex::new(Now {
                link: Link::Down {
                    since: Instant::now(),
                },
                is_stopped: false,
                connections: 0,
                ends: [0; Cause::ALL.len()],
                bytes: 0,
                events: [0; Sort::ALL.len()],
                faults: [0; Fault::ALL.len()],
                dropped: 0,
                gaps: 0,
                last_event: None,
                lag: None,
                told,
            }),
        }
    }

    /// How it stands; what it told is forgotten where the source has been gone for too long.
    pub(super) fn at(&self, now: Instant) -> MutexGuard<'_, Now> {
        // Whole between any two statements, also if one of them panicked.
        let mut shown = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        shown.age(now, self.grace);
        shown
    }
}

impl Now {
    /// Lets go of what does not hold any more.
    fn age(&mut self, now: Instant, grace: Duration) {
        match &mut self.link {
            Link::Down { since } if now.duration_since(*since) >= grace => self.forget(),
            Link::Up { since, is_settled }
                if !*is_settled && now.duration_since(*since) >= grace =>
            {
                *is_settled = true;
                self.settle();
            }
            Link::Down { .. } | Link::Up { .. } => {}
        }
    }

    fn forget(&mut self) {
        self.lag = None;
        match &mut self.told {
            Told::Queue(state) => *state = None,
            Told::ControlPlane(runs) => runs.forget(),
        }
    }

    fn settle(&mut self) {
        match &mut self.told {
            Told::Queue(_) => {} // each event holds everything
            Told::ControlPlane(runs) => runs.settle(),
        }
    }

    /// There is a stream.
    pub(super) fn opened(&mut self, now: Instant) {
        self.link = Link::Up {
            since: now,
            is_settled: false,
        };
        self.connections += 1;
        match &mut self.told {
            Told::Queue(_) => {}
            Told::ControlPlane(runs) => runs.reconnected(),
        }
    }

    /// There is none any more, or still none.
    pub(super) fn ended(&mut self, cause: Cause, now: Instant) {
        if self.is_up() {
            self.link = Link::Down { since: now };
        }
        self.is_stopped = cause == Cause::Stopped;
        count(&mut self.ends, Cause::ALL, cause);
    }

    /// Something was left out.
    pub(super) fn fault(&mut self, fault: Fault) {
        count(&mut self.faults, Fault::ALL, fault);
    }

    /// An event has come.
    pub(super) fn take(&mut self, event: Event<'_>, now: Instant, time: Timestamp) {
        self.last_event = Some(now);
        let (sort, at) = match &mut self.told {
            Told::Queue(state) => {
                let (sort, message) = queue::read(event);
                let at = message.map(|message| match message {
                    queue::Message::State(told) => {
                        let at = told.at;
                        self.gaps += u64::from(told.gap);
                        *state = Some((told, now));
                        Some(at)
                    }
                    queue::Message::Dropped(missed) => {
                        self.dropped = self.dropped.saturating_add(missed);
                        None
                    }
                    queue::Message::End => {
                        *state = None;
                        None
                    }
                    queue::Message::Nothing => None,
                });
                (sort, at)
            }
            Told::ControlPlane(runs) => {
                let (sort, message) = control_plane::read(event);
                runs.heard();
                let at = message.map(|message| match message {
                    control_plane::Message::Run { key, stands } => {
                        runs.put(key, stands);
                        None
                    }
                    control_plane::Message::Status(status) => {
                        runs.status = status;
                        status.at
                    }
                    control_plane::Message::Nothing => None,
                });
                (sort, at)
            }
        };
        count(&mut self.events, Sort::ALL, sort);
        match at {
            Ok(Some(at)) => self.lag = Some(time.duration_since(at).as_secs_f64().max(0.0)),
            Ok(None) => {}
            Err(_) => self.fault(Fault::Content),
        }
    }

    /// Whether there is a stream.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.link, Link::Up { .. })
    }

    /// Whether anything that was told still holds, so that the stream can go on from there.
    pub(super) fn can_resume(&self) -> bool {
        match &self.told {
            Told::Queue(state) => state.is_some(),
            Told::ControlPlane(_) => false,
        }
    }

    /// Seconds from the telling to the hearing.
    pub(super) fn lag(&self) -> Option<f64> {
        self.lag
    }

    /// Whether the source holds the lease, if it says so.
    pub(super) fn leads(&self) -> Option<bool> {
        self.state().map(|(state, _)| state.leader)
    }

    /// How the queue stands, if this source knows.
    pub(super) fn load(&self, now: Instant, time: Timestamp) -> Option<Load> {
        match &self.told {
            Told::Queue(_) => {
                let (state, told) = self.state()?;
                state.load(now.duration_since(told).as_secs_f64())
            }
            Told::ControlPlane(runs) => runs.load(time),
        }
    }

    /// Who follows the stream, as its server counts.
    pub(super) fn stream(&self) -> Option<queue::Stream> {
        self.state().map(|(state, _)| state.stream)
    }

    /// The runs of a control plane, if it is one.
    pub(super) fn runs(&self) -> Option<&Runs> {
        match &self.told {
            Told::Queue(_) => None,
            Told::ControlPlane(runs) => Some(runs),
        }
    }

    fn state(&self) -> Option<(&State, Instant)> {
        match &self.told {
            Told::Queue(state) => state.as_ref().map(|(state, at)| (&**state, *at)),
            Told::ControlPlane(_) => None,
        }
    }
}

/// Counts one entry of a closed list.
fn count<T: PartialEq>(counts: &mut [u64], all: &[T], entry: T) {
    let at = all.iter().position(|known| *known == entry);
    if let Some(count) = at.and_then(|at| counts.get_mut(at)) {
        *count += 1;
    }
}
