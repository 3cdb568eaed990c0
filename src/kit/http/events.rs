//! Server-sent events: the last of a stream, and those who read them. There is one ring for all readers, bounded in number
//! and in bytes; a reader has nothing but its place in it, and who falls out of it is let go.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use serde::Serialize;
use tokio::sync::watch;

/// Where a reader says which event it had last.
const LAST_EVENT_ID: &str = "last-event-id";

/// The end of an event.
const END: &[u8] = b"\n\n";

/// The lines of an event but that of its name. JSON has no line breaks, so the data is one line.
pub fn lines(id: Option<&str>, data: &[u8]) -> Bytes {
    let id = id.map_or(String::new(), |id| format!("id: {id}\n"));
    let mut text = format!("{id}data: ").into_bytes();
    text.extend_from_slice(data);
    text.extend_from_slice(END);
    text.into()
}

/// Where a part of the data ends in its lines, which end with an empty one.
pub fn in_lines(lines: &Bytes, data: &[u8], part: usize) -> usize {
    (lines.len() + part).saturating_sub(data.len() + END.len())
}

/// The event that a reader says it had last.
pub fn last_event(headers: &HeaderMap) -> Option<&str> {
    let asked = headers.get(LAST_EVENT_ID)?.to_str().ok()?;
    Some(asked).filter(|id| !id.is_empty())
}

/// Makes an answer the stream of a reader: nobody between may hold events back, the connection ends with the stream, so that
/// its reader learns of the end at once, and whoever cuts the connection can say why.
pub fn set_stream<B>(answer: &mut Response<B>, stalled: Stalled) {
    let headers = answer.headers_mut();
    let unbuffered = HeaderValue::from_static("no");
    headers.insert("x-accel-buffering", unbuffered);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer.extensions_mut().insert(stalled);
}

/// Whether a reader was cut because it took nothing. Goes with the answer to who serves the connection.
#[derive(Clone, Debug, Default)]
pub struct Stalled(Arc<AtomicBool>);

impl Stalled {
    /// The reader is cut for that.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Something that is kept for readers.
pub trait Event {
    /// Bytes that it takes.
    fn size(&self) -> usize;
}

impl Event for Bytes {
    fn size(&self) -> usize {
        self.len()
    }
}

/// How much is kept, and for how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Readers at a time.
    pub readers: usize,
    /// Events that are kept, for those who come back and for those who are slow.
    pub events: usize,
    /// Bytes of them.
    pub bytes: usize,
}

/// The last events, and those who read them.
#[derive(Debug)]
pub struct Hub<E> {
    /// Tells the events of this process from those of another.
    epoch: u32,
    room: Room,
    shared: Mutex<Shared<E>>,
    news: watch::Sender<u64>,
}

#[derive(Debug)]
struct Shared<E> {
    /// Number of the last event.
    last: u64,
    ring: VecDeque<E>,
    bytes: usize,
    /// The last event that each reader has taken or passed over.
    readers: HashMap<u64, u64>,
    opened: u64,
    closed: u64,
    dropped: u64,
    refused: u64,
}

/// Who reads, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Readers now: those that came, less those that went.
    pub readers: u64,
    /// Events that readers have not taken yet.
    pub backlog: u64,
    /// Readers that came.
    pub opened: u64,
    /// Readers that went.
    pub closed: u64,
    /// Readers that were too slow.
    pub dropped: u64,
    /// Readers for whom there was no room.
    pub refused: u64,
}

/// What there is for a reader.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<T> {
    /// This.
    Event(T),
    /// Nothing yet.
    Nothing,
    /// It was so slow that so many are gone.
    Missed(u64),
}

/// A reader, from its coming to its going.
#[derive(Debug)]
pub struct Place<E> {
    hub: Arc<Hub<E>>,
    number: u64,
    stalled: Stalled,
}

impl<E: Event> Hub<E> {
    /// Without events and readers.
    pub fn new(room: Room) -> Self {
        Self {
            epoch: fastrand::u32(..),
            room,
            shared: Mutex::new(Shared {
                last: 0,
                ring: VecDeque::new(),
                bytes: 0,
                readers: HashMap::new(),
                opened: 0,
                closed: 0,
                dropped: 0,
                refused: 0,
            }),
            news: watch::Sender::new(0),
        }
    }

    /// Tells everyone of an event, which is made with its name.
    pub fn publish(&self, make: impl FnOnce(&str) -> E) {
        let Room { events, bytes, .. } = self.room;
        let mut shared = self.lock();
        shared.last += 1;
        let last = shared.last;
        let event = make(&self.id(last));
        shared.bytes += event.size();
        shared.ring.push_back(event);
        while shared.ring.len() > events || (shared.bytes > bytes && shared.ring.len() > 1) {
            let gone = shared.ring.pop_front();
            shared.bytes -= gone.map_or(0, |gone| gone.size());
        }
        drop(shared);
        self.news.send_replace(last);
    }
}

impl<E> Hub<E> {
    /// The name of the last event; what is sent under it holds all that was told so far.
    pub fn last_id(&self) -> String {
        let last = self.lock().last;
        self.id(last)
    }

    fn id(&self, number: u64) -> String {
        format!("{:08x}-{number}", self.epoch)
    }

    /// The number of an event of ours that is kept, or comes right before those that are.
    fn resumable(&self, id: &str, shared: &Shared<E>) -> Option<u64> {
        let (epoch, number) = id.split_once('-')?;
        let number: u64 = number.parse().ok()?;
        let is_ours = u32::from_str_radix(epoch, 16) == Ok(self.epoch);
        (is_ours && number <= shared.last && number >= shared.before_first()).then_some(number)
    }

    /// Lets a reader in, if there is room: where it left off, or at the end. Says which.
    pub fn enter(self: &Arc<Self>, after: Option<&str>) -> Option<(Place<E>, bool)> {
        let mut shared = self.lock();
        if shared.readers.len() >= self.room.readers {
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
            stalled: Stalled::default(),
        };
        Some((place, resumed.is_some()))
    }

    /// Wakes with each event.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Who reads, in numbers.
    pub fn figures(&self) -> Figures {
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

    fn lock(&self) -> MutexGuard<'_, Shared<E>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E> Shared<E> {
    /// The number before that of the first event that is kept.
    fn before_first(&self) -> u64 {
        let kept = u64::try_from(self.ring.len()).unwrap_or(u64::MAX);
        self.last.saturating_sub(kept)
    }
}

impl<E> Place<E> {
    /// Where to say that it is cut because it took nothing.
    pub fn stalled(&self) -> Stalled {
        self.stalled.clone()
    }

    /// The next event that is picked for this reader; those that are not are passed over.
    pub fn next<T>(&self, mut pick: impl FnMut(&E) -> Option<T>) -> Next<T> {
        let mut shared = self.hub.lock();
        let (last, before_first) = (shared.last, shared.before_first());
        let Some(&taken) = shared.readers.get(&self.number) else {
            return Next::Nothing;
        };
        if taken < before_first {
            return Next::Missed(before_first - taken);
        }
        let passed = usize::try_from(taken - before_first).unwrap_or(usize::MAX);
        let mut ahead = shared.ring.iter().skip(passed).zip(taken + 1..);
        let found = ahead.find_map(|(event, number)| Some((pick(event)?, number)));
        let (next, taken) = match found {
            Some((picked, number)) => (Next::Event(picked), number),
            None => (Next::Nothing, last),
        };
        shared.readers.insert(self.number, taken);
        next
    }
}

impl<E> Drop for Place<E> {
    fn drop(&mut self) {
        let mut shared = self.hub.lock();
        let before_first = shared.before_first();
        shared.closed += 1;
        let taken = shared.readers.remove(&self.number);
        let is_out = taken.is_some_and(|taken| taken < before_first);
        if is_out || self.stalled.is_set() {
            shared.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room {
        readers: 2,
        events: 8,
        bytes: 64,
    };

    fn hub(room: Room) -> Arc<Hub<Bytes>> {
        Arc::new(Hub::new(room))
    }

    fn publish(hub: &Hub<Bytes>, word: &'static str) {
        hub.publish(|_| Bytes::from_static(word.as_bytes()));
    }

    fn next(place: &Place<Bytes>) -> String {
        match place.next(|event| Some(event.clone())) {
            Next::Event(event) => String::from_utf8(event.to_vec()).unwrap(),
            other @ (Next::Nothing | Next::Missed(_)) => format!("{other:?}"),
        }
    }

    #[test]
    fn a_reader_goes_on_where_it_left_off_or_is_told_that_it_cannot() {
        let hub = hub(ROOM);
        publish(&hub, "1");
        let (first, resumed) = hub.enter(None).unwrap();
        assert!(!resumed);
        assert_eq!(next(&first), "Nothing", "what was before is told otherwise");
        publish(&hub, "2");
        let id = hub.last_id();
        publish(&hub, "3");
        assert_eq!(hub.figures().backlog, 2);
        for expected in ["2", "3", "Nothing"] {
            assert_eq!(next(&first), expected);
        }
        let (again, resumed) = hub.enter(Some(&id)).unwrap();
        assert!(resumed);
        assert_eq!(next(&again), "3");
        drop(again);
        for wrong in ["", "x", "-", "00000000-1", &format!("{}0", hub.last_id())] {
            assert!(!hub.enter(Some(wrong)).unwrap().1, "{wrong}");
        }
        for _ in 0..ROOM.events {
            publish(&hub, "x");
        }
        assert!(!hub.enter(Some(&id)).unwrap().1, "too old");
    }

    #[test]
    fn what_is_not_picked_is_passed_over() {
        let hub = hub(ROOM);
        let (place, _) = hub.enter(None).unwrap();
        for word in ["a1", "b1", "a2", "b2"] {
            publish(&hub, word);
        }
        let of_b = || place.next(|event| event.starts_with(b"b").then(|| event.clone()));
        assert_eq!(of_b(), Next::Event("b1".into()));
        assert_eq!(hub.figures().backlog, 2);
        assert_eq!(of_b(), Next::Event("b2".into()));
        publish(&hub, "a3");
        assert_eq!(of_b(), Next::Nothing);
        assert_eq!(hub.figures().backlog, 0);
    }

    #[test]
    fn who_is_too_slow_is_told_so_and_counted_once() {
        let hub = hub(ROOM);
        let (slow, _) = hub.enter(None).unwrap();
        let (quick, _) = hub.enter(None).unwrap();
        for _ in 0..ROOM.events + 3 {
            publish(&hub, "x");
            assert_eq!(next(&quick), "x");
        }
        for _ in 0..2 {
            assert_eq!(next(&slow), "Missed(3)");
        }
        drop((slow, quick));
        let figures = hub.figures();
        assert_eq!((figures.opened, figures.closed, figures.dropped), (2, 2, 1));
        assert_eq!((figures.readers, figures.backlog), (0, 0));
    }

    #[test]
    fn who_is_cut_because_it_takes_nothing_was_too_slow() {
        let hub = hub(ROOM);
        let (stalled, _) = hub.enter(None).unwrap();
        let (gone, _) = hub.enter(None).unwrap();
        publish(&hub, "x");
        stalled.stalled().set();
        drop((stalled, gone));
        let figures = hub.figures();
        assert_eq!((figures.opened, figures.closed, figures.dropped), (2, 2, 1));
    }

    #[test]
    fn there_is_room_for_so_many() {
        let hub = hub(ROOM);
        let mut all: Vec<_> = (0..ROOM.readers).filter_map(|_| hub.enter(None)).collect();
        assert_eq!(all.len(), ROOM.readers);
        assert!(hub.enter(None).is_none());
        all.pop();
        assert!(hub.enter(None).is_some());
        drop(all);
        let figures = hub.figures();
        assert_eq!(figures.refused, 1);
        assert_eq!((figures.readers, figures.opened), (0, figures.closed));
    }

    #[test]
    fn large_events_push_others_out_but_the_last_stays() {
        let hub = hub(ROOM);
        let (place, _) = hub.enter(None).unwrap();
        for _ in 0..5 {
            hub.publish(|_| vec![b'x'; ROOM.bytes / 2].into());
        }
        assert!(hub.lock().bytes <= ROOM.bytes);
        assert_eq!(next(&place), "Missed(3)");
        let (place, _) = hub.enter(None).unwrap();
        hub.publish(|_| vec![b'x'; 2 * ROOM.bytes].into());
        assert_eq!(next(&place).len(), 2 * ROOM.bytes);
    }

    #[test]
    fn an_event_has_a_name_only_where_one_is_given_and_a_part_of_it_ends_where_it_should() {
        let data = br#"{"a":1,"b":2}"#;
        assert_eq!(lines(None, data), &b"data: {\"a\":1,\"b\":2}\n\n"[..]);
        let lines = lines(Some("x-1"), data);
        assert_eq!(lines, &b"id: x-1\ndata: {\"a\":1,\"b\":2}\n\n"[..]);
        let part = &lines[..in_lines(&lines, data, 6)];
        assert_eq!(part, b"id: x-1\ndata: {\"a\":1");
    }
}
