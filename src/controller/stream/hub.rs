//! The last events, and those who read them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::watch;

use super::message::event;
use crate::api::contract::queue_event;

/// Events that are kept, for those who come back and for those who are slow.
pub(super) const RING: usize = 128;

/// Readers at a time.
pub(super) const READERS: usize = 256;

/// The last events, and those who read them.
#[derive(Debug)]
pub(crate) struct Hub {
    /// Tells the events of this process from those of another.
    epoch: u32,
    shared: Mutex<Shared>,
    news: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Number of the last event.
    last: u64,
    ring: VecDeque<Bytes>,
    /// The last event that each reader has taken.
    readers: BTreeMap<u64, u64>,
    opened: u64,
    closed: u64,
    dropped: u64,
    refused: u64,
}

/// Who reads, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Figures {
    pub(crate) readers: u64,
    /// Events that readers have not taken yet.
    pub(crate) backlog: u64,
    pub(crate) opened: u64,
    pub(crate) closed: u64,
    /// Readers that were too slow.
    pub(crate) dropped: u64,
    /// Readers for whom there was no room.
    pub(crate) refused: u64,
}

/// What there is for a reader.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This.
    Event(Bytes),
    /// Nothing yet.
    Nothing,
    /// It was so slow that so many are gone.
    Missed(u64),
}

/// A reader, from its coming to its going.
#[derive(Debug)]
pub(super) struct Place {
    hub: Arc<Hub>,
    number: u64,
}

impl Hub {
    pub(super) fn new() -> Self {
        Self {
            epoch: fastrand::u32(..),
            shared: Mutex::default(),
            news: watch::Sender::new(0),
        }
    }

    /// Tells everyone.
    pub(super) fn publish(&self, data: &[u8]) {
        let mut shared = self.lock();
        shared.last += 1;
        let last = shared.last;
        let event = event(queue_event::QUEUE, Some(&self.id(last)), data);
        shared.ring.push_back(event);
        if shared.ring.len() > RING {
            shared.ring.pop_front();
        }
        drop(shared);
        self.news.send_replace(last);
    }

    /// The name of the last event; what is sent under it holds all that was told so far.
    pub(super) fn last_id(&self) -> String {
        let last = self.lock().last;
        self.id(last)
    }

    fn id(&self, number: u64) -> String {
        format!("{:08x}-{number}", self.epoch)
    }

    /// The number of an event of ours that is kept, or comes right before those that are.
    fn resumable(&self, id: &str, shared: &Shared) -> Option<u64> {
        let (epoch, number) = id.split_once('-')?;
        let number: u64 = number.parse().ok()?;
        let is_ours = u32::from_str_radix(epoch, 16) == Ok(self.epoch);
        (is_ours && number <= shared.last && number >= shared.before_first()).then_some(number)
    }

    /// Lets a reader in, if there is room: where it left off, or at the end. Says which.
    pub(super) fn enter(self: &Arc<Self>, after: Option<&str>) -> Option<(Place, bool)> {
        let mut shared = self.lock();
        if shared.readers.len() >= READERS {
            shared.refused += 1;
            return None;
        }
        let resumed = after.and_then(|id| self.resumable(id, &shared));
        shared.opened += 1;
        let number = shared.opened;
        let at = resumed.unwrap_or(shared.last);
        shared.readers.insert(number, at);
        let place = Place {
            hub: Arc::clone(self),
            number,
        };
        Some((place, resumed.is_some()))
    }

    /// Wakes with each event.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    pub(crate) fn figures(&self) -> Figures {
        let shared = self.lock();
        let backlog = |taken: &u64| shared.last.saturating_sub(*taken);
        Figures {
            readers: u64::try_from(shared.readers.len()).unwrap_or(u64::MAX),
            backlog: shared.readers.values().map(backlog).sum(),
            opened: shared.opened,
            closed: shared.closed,
            dropped: shared.dropped,
            refused: shared.refused,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The number before that of the first event that is kept.
    fn before_first(&self) -> u64 {
        let kept = u64::try_from(self.ring.len()).unwrap_or(u64::MAX);
        self.last.saturating_sub(kept)
    }
}

impl Place {
    /// The next event for this reader.
    pub(super) fn next(&self) -> Next {
        let mut shared = self.hub.lock();
        let (last, before_first) = (shared.last, shared.before_first());
        let Some(taken) = shared.readers.get_mut(&self.number) else {
            return Next::Nothing;
        };
        if *taken < before_first {
            return Next::Missed(before_first - *taken);
        }
        if *taken >= last {
            return Next::Nothing;
        }
        let index = *taken - before_first;
        *taken += 1;
        let event = usize::try_from(index)
            .ok()
            .and_then(|index| shared.ring.get(index));
        event.cloned().map_or(Next::Nothing, Next::Event)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut shared = self.hub.lock();
        let before_first = shared.before_first();
        shared.closed += 1;
        let taken = shared.readers.remove(&self.number);
        if taken.is_some_and(|taken| taken < before_first) {
            shared.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(next: Next) -> String {
        match next {
            Next::Event(bytes) => {
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                text.split("data: ").nth(1).unwrap().trim().to_owned()
            }
            other @ (Next::Nothing | Next::Missed(_)) => format!("{other:?}"),
        }
    }

    #[test]
    fn a_reader_goes_on_where_it_left_off_or_is_told_that_it_cannot() {
        let hub = Arc::new(Hub::new());
        hub.publish(b"1");
        let (first, resumed) = hub.enter(None).unwrap();
        assert!(!resumed);
        assert_eq!(
            first.next(),
            Next::Nothing,
            "what was before comes as a snapshot"
        );
        hub.publish(b"2");
        let id = hub.last_id();
        hub.publish(b"3");
        assert_eq!(hub.figures().backlog, 2);
        assert_eq!(data(first.next()), "2");
        assert_eq!(data(first.next()), "3");
        assert_eq!(first.next(), Next::Nothing);
        let (again, resumed) = hub.enter(Some(&id)).unwrap();
        assert!(resumed);
        assert_eq!(data(again.next()), "3");
        for wrong in ["", "x", "-", "00000000-1", &format!("{}0", hub.last_id())] {
            assert!(!hub.enter(Some(wrong)).unwrap().1, "{wrong}");
        }
        for number in 0..RING {
            hub.publish(number.to_string().as_bytes());
        }
        assert!(!hub.enter(Some(&id)).unwrap().1, "too old");
    }

    #[test]
    fn who_is_too_slow_is_told_so_and_counted_once() {
        let hub = Arc::new(Hub::new());
        let (slow, _) = hub.enter(None).unwrap();
        for _ in 0..RING + 3 {
            hub.publish(b"x");
        }
        assert_eq!(slow.next(), Next::Missed(3));
        assert_eq!(slow.next(), Next::Missed(3));
        drop(slow);
        let figures = hub.figures();
        assert_eq!((figures.opened, figures.closed, figures.dropped), (1, 1, 1));
        assert_eq!((figures.readers, figures.backlog), (0, 0));
    }

    #[test]
    fn there_is_room_for_so_many() {
        let hub = Arc::new(Hub::new());
        let mut all: Vec<_> = (0..READERS).filter_map(|_| hub.enter(None)).collect();
        assert_eq!(all.len(), READERS);
        assert!(hub.enter(None).is_none());
        all.pop();
        assert!(hub.enter(None).is_some());
        drop(all);
        let figures = hub.figures();
        assert_eq!(figures.refused, 1);
        assert_eq!((figures.readers, figures.opened), (0, figures.closed));
    }
}
