//! What the controllers tell of their queue of runs, as numbers. Pure.

use agents::api::contract::queue_event;
use jiff::Timestamp;
use serde::Deserialize;

use super::{
    load::{Blocked, Load},
    parse::Event,
    shown::Sort,
};

/// What an event says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// How everything stands.
    State(Box<State>),
    /// We were too slow: so many events are gone.
    Dropped(u64),
    /// The program ends, and with it what it told: the lease goes to another.
    End,
    /// Nothing that is counted.
    Nothing,
}

/// How everything stands.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct State {
    /// When it was told.
    pub(super) at: Timestamp,
    /// Whether who tells it holds the lease; only then there are numbers of the queue.
    pub(super) leader: bool,
    queue: Option<Queue>,
    oldest_waiting_seconds: Option<f64>,
    /// Who follows the stream.
    #[serde(default)]
    pub(super) stream: Stream,
    /// Whether events before this one are gone.
    #[serde(default)]
    pub(super) gap: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Queue {
    cluster: Cluster,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Cluster {
    waiting: u64,
    running: u64,
    #[serde(default)]
    blocked: Blocked,
}

/// Who follows a stream, as its server counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Stream {
    pub(super) readers: u64,
    pub(super) backlog: u64,
    pub(super) opened: u64,
    pub(super) closed: u64,
    pub(super) dropped: u64,
    pub(super) refused: u64,
}

impl State {
    /// How the queue stands so many seconds later, if nothing was told since; nothing where it is for another to tell.
    pub(super) fn load(&self, later: f64) -> Option<Load> {
        let Queue { cluster } = self.queue.as_ref().filter(|_| self.leader)?;
        let oldest = self.oldest_waiting_seconds.filter(|_| cluster.waiting > 0);
        Some(Load {
            depth: cluster.waiting,
            running: cluster.running,
            blocked: cluster.blocked.clone(),
            oldest: oldest.map_or(0.0, |oldest| (oldest + later).max(0.0)),
        })
    }
}

#[derive(Deserialize)]
struct Dropped {
    missed: u64,
}

/// What sort of event it is, and what it says.
pub(super) fn read(event: Event<'_>) -> (Sort, serde_json::Result<Message>) {
    let Event { name, data } = event;
    match name {
        queue_event::SNAPSHOT => (Sort::Snapshot, state(data)),
        queue_event::QUEUE => (Sort::Queue, state(data)),
        queue_event::DROPPED => {
            let dropped = serde_json::from_str(data);
            let dropped = dropped.map(|Dropped { missed }| Message::Dropped(missed));
            (Sort::Dropped, dropped)
        }
        queue_event::END => (Sort::End, Ok(Message::End)),
        _ => (Sort::Other, Ok(Message::Nothing)),
    }
}

fn state(data: &str) -> serde_json::Result<Message> {
    serde_json::from_str(data).map(|state| Message::State(Box::new(state)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADER: &str = r#"{"at": "2026-11-17T01:00:00.5Z", "leader": true, "queue": {
        "cluster": {"waiting": 3, "running": 2, "blocked": {"RateLimit": 1}, "oldestWaitingSince": "2026-11-17T00:59:00Z"},
        "namespaces": {"top": [{"name": "a", "waiting": 3}], "rest": {"scopes": 1, "waiting": 0, "running": 1, "blocked": {"RateLimit": 1}, "oldestWaitingSince": null}}},
        "oldestWaitingSeconds": 60.5,
        "stream": {"readers": 1, "backlog": 2, "opened": 3, "closed": 2, "dropped": 1, "refused": 4},
        "new": [{"field": null}]}"#;

    fn told(name: &str, data: &str) -> (Sort, Option<Message>) {
        let (sort, message) = read(Event { name, data });
        (sort, message.ok())
    }

    fn stated(data: &str) -> State {
        match told("queue", data) {
            (Sort::Queue, Some(Message::State(state))) => *state,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_holder_of_the_lease_tells_the_queue_and_the_oldest_goes_on_ageing() {
        let state = stated(LEADER);
        let expected = Load {
            depth: 3,
            running: 2,
            blocked: Blocked([("RateLimit", 1)].into()),
            oldest: 70.5,
        };
        assert_eq!(state.load(10.0), Some(expected));
        assert_eq!((state.stream.backlog, state.stream.refused), (2, 4));
        assert_eq!(state.at.to_string(), "2026-11-17T01:00:00.5Z");
    }

    #[test]
    fn a_standby_tells_no_queue_whatever_it_says() {
        let standby =
            r#"{"at": "2026-11-17T01:00:00Z", "leader": false, "queue": null, "gap": true}"#;
        let standby = stated(standby);
        assert_eq!((standby.load(0.0), standby.gap), (None, true));
        let liar = stated(&LEADER.replace("\"leader\": true", "\"leader\": false"));
        assert_eq!(liar.load(0.0), None);
    }

    #[test]
    fn an_empty_queue_has_no_oldest() {
        let empty = r#"{"at": "2026-11-17T01:00:00Z", "leader": true, "queue": {"cluster": {"waiting": 0, "running": 0}},
            "oldestWaitingSeconds": null}"#;
        assert_eq!(stated(empty).load(9.0), Some(Load::default()));
    }

    #[test]
    fn every_event_has_its_sort_and_what_makes_no_sense_is_said() {
        for (name, data, expected) in [
            (
                "dropped",
                r#"{"reason": "slow", "missed": 7}"#,
                (Sort::Dropped, Some(Message::Dropped(7))),
            ),
            ("dropped", "{}", (Sort::Dropped, None)),
            (
                "end",
                r#"{"reason": "shutdown"}"#,
                (Sort::End, Some(Message::End)),
            ),
            ("news", "anything", (Sort::Other, Some(Message::Nothing))),
            ("snapshot", "{}", (Sort::Snapshot, None)),
            ("queue", "not json", (Sort::Queue, None)),
            (
                "queue",
                r#"{"at": "2026-11-17T01:00:00Z", "leader": true, "queue": {"cluster": {"waiting": -1, "running": 0}}}"#,
                (Sort::Queue, None),
            ),
        ] {
            assert_eq!(told(name, data), expected, "{name}: {data}");
        }
    }
}
