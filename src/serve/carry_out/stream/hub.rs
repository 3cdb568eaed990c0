//! What is kept of a stream for those who read it, and which of them it concerns.

use bytes::Bytes;

use crate::api::kind::Kind;
use crate::kit::http::events::{self, Room, in_lines, lines};

/// Events that are kept, for those who come back and for those who are slow.
const RING: usize = 1024;

/// Bytes of them.
const BYTES: usize = 16 * 1024 * 1024;

/// The last events, and those who read them.
pub(in crate::serve) type Hub = events::Hub<Kept>;

/// An event, and whom it concerns.
#[derive(Debug)]
pub(in crate::serve) struct Kept {
    event: Event,
    about: About,
}

impl events::Event for Kept {
    fn size(&self) -> usize {
        self.event.lines.len()
    }
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

    /// The event, if it concerns the reader.
    pub(super) fn pick(&self, kept: &Kept) -> Option<Event> {
        self.admits(&kept.about).then(|| kept.event.clone())
    }
}

/// A hub for so many readers.
pub(in crate::serve) fn hub(readers: usize) -> Hub {
    Hub::new(Room {
        readers,
        events: RING,
        bytes: BYTES,
    })
}

/// Tells everyone whom it concerns.
pub(in crate::serve) fn tell(hub: &Hub, name: &'static str, about: About, data: &[u8]) {
    tell_in_short(hub, name, about, data, None);
}

/// The same; of the data, so much is for those who want it in short.
pub(super) fn tell_in_short(
    hub: &Hub,
    name: &'static str,
    about: About,
    data: &[u8],
    brief: Option<usize>,
) {
    hub.publish(|id| {
        let lines = lines(Some(id), data);
        let event = Event {
            name,
            brief: brief.map(|brief| in_lines(&lines, data, brief)),
            lines,
        };
        Kept { event, about }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::kit::http::events::{Next, Place};

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

    fn data(event: &Event) -> String {
        let text = String::from_utf8(event.lines.to_vec()).unwrap();
        text.split("data: ").nth(1).unwrap().trim().to_owned()
    }

    #[test]
    fn a_reader_sees_what_concerns_it_in_order() {
        let hub = Arc::new(hub(10));
        let (one, _) = hub.enter(None).unwrap();
        let (runs, _) = hub.enter(None).unwrap();
        for (kind, namespace, word) in [
            (Kind::AgentRun, "a", "1"),
            (Kind::Agent, "b", "2"),
            (Kind::Agent, "a", "3"),
            (Kind::AgentRun, "b", "4"),
        ] {
            tell(&hub, "resource", about(kind, namespace), word.as_bytes());
        }
        tell(&hub, "error", About::default(), b"5");
        let read = |place: &Place<Kept>, filter: &Filter| {
            let next = || match place.next(|kept| filter.pick(kept)) {
                Next::Event(event) => Some(data(&event)),
                Next::Nothing | Next::Missed(_) => None,
            };
            std::iter::from_fn(next).collect::<Vec<_>>()
        };
        let all = filter(Some("a"), &Kind::ALL);
        assert_eq!(read(&one, &all), ["1", "3", "5"]);
        let of_runs = filter(None, &[Kind::AgentRun]);
        assert_eq!(read(&runs, &of_runs), ["1", "4", "5"]);
    }

    #[test]
    fn an_event_in_short_ends_before_what_is_left_out() {
        let hub = Arc::new(hub(1));
        let (place, _) = hub.enter(None).unwrap();
        tell_in_short(&hub, "x", About::default(), br#"{"a":1,"b":2}"#, Some(6));
        let Next::Event(event) = place.next(|kept| Filter::default().pick(kept)) else {
            panic!("no event");
        };
        let brief = String::from_utf8_lossy(&event.lines[..event.brief.unwrap()]).into_owned();
        assert!(brief.ends_with(r#"data: {"a":1"#), "{brief}");
    }
}
