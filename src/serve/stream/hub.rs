//! The last events of a stream, and those who read them. There is one ring for all readers, bounded in number and in
//! bytes; a reader has nothing but its place in it, and who falls out of it is let go.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use crate::api::kind::Kind;
use crate::serve::metrics::{Stream, StreamMetrics};

/// Events that are kept, for those who come back and for those who are slow.
pub(super) const RING: usize = 1024;

/// Bytes of them.
const BYTES: usize = 16 * 1024 * 1024;

/// The end of an event.
const END: &[u8] = b"\n\n";

/// The last events, and those who read them.
#[derive(Debug)]
pub(in crate::serve) struct Hub {
    /// Tells the events of this process from those of another.
    epoch: u32,
    most: usize,
    shared: Mutex<Shared>,
    news: watch::Sender<u64>,
    metrics: StreamMetrics,
    pub(in crate::serve) stream: Stream,
}

#[derive(Debug, Default)]
struct Shared {
    /// Number of the last event.
    last: u64,
    ring: VecDeque<Kept>,
    bytes: usize,
    /// The last event that each reader has taken or passed over.
    readers: HashMap<u64, u64>,
    opened: u64,
}

#[derive(Clone, Debug)]
struct Kept {
    event: Event,
    about: About,
}

/// An event as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) struct Event {
    pub(in crate::serve) name: &'static str,
    /// All lines but that of the name.
    pub(in crate::serve) lines: Bytes,
    /// How much of the lines is for those who want it in short; a brace and an empty line end it then.
    pub(in crate::serve) brief: Option<usize>,
}

/// What an event is about; nothing means everyone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::serve) struct About {
    pub(in crate::serve) kind: Option<Kind>,
    pub(in crate::serve) namespace: Option<Box<str>>,
}

/// What a reader wants to know and may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::serve) struct Filter {
    /// None for all.
    pub(in crate::serve) namespace: Option<String>,
    pub(in crate::serve) kinds: Vec<Kind>,
}

impl Filter {
    pub(in crate::serve) fn admits(&self, about: &About) -> bool {
        let kind = about.kind.is_none_or(|kind| self.kinds.contains(&kind));
        let namespace = match (&self.namespace, &about.namespace) {
            (Some(wanted), Some(given)) => **wanted == **given,
            (None, _) | (_, None) => true,
        };
        kind && namespace
    }
}

/// What there is for a reader.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This.
    Event(Event),
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
    filter: Filter,
}

impl Hub {
    pub(in crate::serve) fn new(stream: Stream, most: usize, metrics: StreamMetrics) -> Self {
        Self {
            epoch: fastrand::u32(..),
            most,
            shared: Mutex::default(),
            news: watch::Sender::new(0),
            metrics,
            stream,
        }
    }

    /// Tells everyone whom it concerns.
    pub(in crate::serve) fn publish(&self, name: &'static str, about: About, data: &[u8]) {
        self.publish_in_short(name, about, data, None);
    }

    /// The same; of the data, so much is for those who want it in short.
    pub(super) fn publish_in_short(
        &self,
        name: &'static str,
        about: About,
        data: &[u8],
        brief: Option<usize>,
    ) {
        let mut shared = self.lock();
        shared.last += 1;
        let last = shared.last;
        let lines = lines(Some(&self.id(last)), data);
        shared.bytes += lines.len();
        let event = Event {
            name,
            brief: brief.map(|brief| in_lines(&lines, data, brief)),
            lines,
        };
        shared.ring.push_back(Kept { event, about });
        while shared.ring.len() > RING || (shared.bytes > BYTES && shared.ring.len() > 1) {
            let gone = shared.ring.pop_front();
            shared.bytes -= gone.map_or(0, |gone| gone.event.lines.len());
        }
        drop(shared);
        self.news.send_replace(last);
    }

    /// The name of the last event; what is sent under it holds all that was told so far.
    pub(in crate::serve) fn last_id(&self) -> String {
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
    pub(super) fn enter(
        self: &Arc<Self>,
        after: Option<&str>,
        filter: Filter,
    ) -> Option<(Place, bool)> {
        let mut shared = self.lock();
        if shared.readers.len() >= self.most {
            self.metrics.refused(self.stream);
            return None;
        }
        let resumed = after.and_then(|id| self.resumable(id, &shared));
        shared.opened += 1;
        let number = shared.opened;
        let at = resumed.unwrap_or(shared.last);
        shared.readers.insert(number, at);
        self.metrics.opened(self.stream);
        let place = Place {
            hub: Arc::clone(self),
            number,
            filter,
        };
        Some((place, resumed.is_some()))
    }

    /// Wakes with each event.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
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
        let Some(&taken) = shared.readers.get(&self.number) else {
            return Next::Nothing;
        };
        if taken < before_first {
            return Next::Missed(before_first - taken);
        }
        let passed = usize::try_from(taken - before_first).unwrap_or(usize::MAX);
        let mut ahead = shared.ring.iter().skip(passed).enumerate();
        let found = ahead.find(|(_, kept)| self.filter.admits(&kept.about));
        let (next, taken) = match found {
            Some((over, kept)) => {
                let over = u64::try_from(over).unwrap_or_default();
                (Next::Event(kept.event.clone()), taken + over + 1)
            }
            None => (Next::Nothing, last),
        };
        shared.readers.insert(self.number, taken);
        next
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut shared = self.hub.lock();
        let before_first = shared.before_first();
        let taken = shared.readers.remove(&self.number);
        drop(shared);
        let (hub, stream) = (&self.hub, self.hub.stream);
        hub.metrics.closed(stream);
        if taken.is_some_and(|taken| taken < before_first) {
            hub.metrics.dropped(stream);
        }
    }
}

/// The lines of an event but that of its name. JSON has no line breaks, so the data is one line.
pub(in crate::serve) fn lines(id: Option<&str>, data: &[u8]) -> Bytes {
    let id = id.map_or(String::new(), |id| format!("id: {id}\n"));
    let mut text = format!("{id}data: ").into_bytes();
    text.extend_from_slice(data);
    text.extend_from_slice(END);
    text.into()
}

/// Where a part of the data ends in its lines, which end with an empty one.
pub(super) fn in_lines(lines: &Bytes, data: &[u8], part: usize) -> usize {
    (lines.len() + part).saturating_sub(data.len() + END.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(most: usize) -> (Arc<Hub>, StreamMetrics) {
        let metrics = StreamMetrics::default();
        let hub = Hub::new(Stream::ControlPlane, most, metrics.clone());
        (Arc::new(hub), metrics)
    }

    fn about(kind: Kind, namespace: &str) -> About {
        About {
            kind: Some(kind),
            namespace: Some(namespace.into()),
        }
    }

    fn filter(namespace: Option<&str>, kinds: &[Kind]) -> Filter {
        Filter {
            namespace: namespace.map(str::to_owned),
            kinds: kinds.to_vec(),
        }
    }

    fn data(next: Next) -> String {
        match next {
            Next::Event(event) => {
                let text = String::from_utf8(event.lines.to_vec()).unwrap();
                text.split("data: ").nth(1).unwrap().trim().to_owned()
            }
            other @ (Next::Nothing | Next::Missed(_)) => format!("{other:?}"),
        }
    }

    #[test]
    fn a_reader_sees_what_concerns_it_in_order() {
        let (hub, _) = hub(10);
        let all = Kind::ALL.to_vec();
        let (one, _) = hub.enter(None, filter(Some("a"), &all)).unwrap();
        let (runs, _) = hub.enter(None, filter(None, &[Kind::AgentRun])).unwrap();
        for (kind, namespace, word) in [
            (Kind::AgentRun, "a", "1"),
            (Kind::Agent, "b", "2"),
            (Kind::Agent, "a", "3"),
            (Kind::AgentRun, "b", "4"),
        ] {
            hub.publish("resource", about(kind, namespace), word.as_bytes());
        }
        hub.publish("error", About::default(), b"5");
        let read = |place: &Place| {
            let words =
                std::iter::from_fn(|| Some(data(place.next())).filter(|word| word != "Nothing"));
            words.collect::<Vec<_>>()
        };
        assert_eq!(read(&one), ["1", "3", "5"]);
        assert_eq!(read(&runs), ["1", "4", "5"]);
    }

    #[test]
    fn a_reader_goes_on_where_it_left_off_or_is_told_that_it_cannot() {
        let (hub, _) = hub(10);
        let publish = |word: &str| hub.publish("x", About::default(), word.as_bytes());
        publish("1");
        let id = hub.last_id();
        publish("2");
        let (again, resumed) = hub.enter(Some(&id), Filter::default()).unwrap();
        assert!(resumed);
        assert_eq!(data(again.next()), "2");
        for wrong in ["", "x", "-", "00000000-1", &format!("{}0", hub.last_id())] {
            assert!(
                !hub.enter(Some(wrong), Filter::default()).unwrap().1,
                "{wrong}"
            );
        }
        for number in 0..RING {
            publish(&number.to_string());
        }
        assert!(
            !hub.enter(Some(&id), Filter::default()).unwrap().1,
            "too old"
        );
    }

    #[test]
    fn who_is_too_slow_is_told_so_and_counted_once_and_there_is_room_for_so_many() {
        let (hub, metrics) = hub(2);
        let (slow, _) = hub.enter(None, Filter::default()).unwrap();
        let (quick, _) = hub.enter(None, Filter::default()).unwrap();
        assert!(hub.enter(None, Filter::default()).is_none());
        for _ in 0..RING + 3 {
            hub.publish("x", About::default(), b"x");
            assert!(matches!(quick.next(), Next::Event(_)));
        }
        assert_eq!(slow.next(), Next::Missed(3));
        drop((slow, quick));
        let counted = metrics.figures(Stream::ControlPlane);
        assert_eq!((counted.opened, counted.closed, counted.readers), (2, 2, 0));
        assert_eq!((counted.dropped, counted.refused), (1, 1));
    }

    #[test]
    fn an_event_in_short_ends_before_what_is_left_out() {
        let (hub, _) = hub(1);
        let (place, _) = hub.enter(None, Filter::default()).unwrap();
        hub.publish_in_short("x", About::default(), br#"{"a":1,"b":2}"#, Some(6));
        let Next::Event(event) = place.next() else {
            panic!("no event");
        };
        let brief = String::from_utf8_lossy(&event.lines[..event.brief.unwrap()]).into_owned();
        assert!(brief.ends_with(r#"data: {"a":1"#), "{brief}");
    }

    #[test]
    fn large_events_push_others_out() {
        let (hub, _) = hub(1);
        let (place, _) = hub.enter(None, Filter::default()).unwrap();
        let large = vec![b'x'; BYTES / 4];
        for _ in 0..8 {
            hub.publish("x", About::default(), &large);
        }
        assert!(hub.lock().bytes <= BYTES);
        assert!(matches!(place.next(), Next::Missed(_)));
    }
}
