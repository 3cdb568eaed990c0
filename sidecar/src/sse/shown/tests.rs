use std::sync::Arc;

use prometheus_client::{encoding::text::encode, registry::Registry};

use super::*;
use crate::sse::metrics::Board;

const GRACE: Duration = Duration::from_secs(60);

const LEADER: &str = r#"{"at": "2026-11-17T01:00:00Z", "leader": true, "oldestWaitingSeconds": 60.0,
    "queue": {"cluster": {"waiting": 3, "running": 2, "blocked": {"RateLimit": 1, "made-up": 4}}},
    "stream": {"readers": 1, "backlog": 2, "opened": 3, "closed": 2, "dropped": 1, "refused": 4}}"#;

const STANDBY: &str = r#"{"at": "2026-11-17T01:00:00Z", "leader": false, "queue": null, "gap": true,
    "stream": {"readers": 1}}"#;

const RUNNING: &str = r#"{"type": "resource", "kind": "AgentRun", "namespace": "a", "action": "ADDED", "name": "b",
    "resource": {"metadata": {}, "status": {"phase": "Running"}}}"#;

fn source(name: &str, told: Told) -> Shown {
    Shown::new(name.to_owned(), GRACE, told)
}

fn queue() -> Shown {
    source("controller", Told::Queue(None))
}

fn take(shown: &Shown, name: &str, data: &str, now: Instant) {
    take_at(shown, name, data, now, "2026-11-17T01:00:02Z");
}

fn take_at(shown: &Shown, name: &str, data: &str, now: Instant, time: &str) {
    let time = time.parse().expect("a time");
    shown.at(now).take(Event { name, data }, now, time);
}

/// How the queue stands by a source: in line, running, and the age of the oldest.
fn stands(shown: &Shown, now: Instant) -> Option<(u64, u64, f64)> {
    let load = shown.at(now).load(now, Timestamp::UNIX_EPOCH);
    load.map(|load| (load.depth, load.running, load.oldest))
}

/// The samples of a page that are about something, without its prefix.
fn samples(source: &Arc<Shown>, about: &str) -> Vec<String> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Board(vec![Arc::clone(source)])));
    let mut page = String::new();
    encode(&mut page, &registry).expect("a page");
    let lines = page.lines().filter(|line| line.starts_with(about));
    lines.map(str::to_owned).collect()
}

#[test]
fn what_a_source_told_outlives_it_by_the_grace_and_no_more() {
    let shown = queue();
    let start = Instant::now();
    let after = |seconds| start + Duration::from_secs(seconds);
    shown.at(start).opened(start);
    take(&shown, "snapshot", LEADER, start);
    assert_eq!(stands(&shown, after(600)), Some((3, 2, 660.0)), "up");
    shown.at(after(600)).ended(Cause::Broken, after(600));
    // Tries that fail do not make it younger.
    shown.at(after(650)).ended(Cause::Unreachable, after(650));
    assert!(shown.at(after(659)).can_resume());
    assert_eq!(stands(&shown, after(659)), Some((3, 2, 719.0)));
    assert_eq!(stands(&shown, after(660)), None);
    let now = shown.at(after(661));
    assert_eq!((now.leads(), now.stream(), now.lag()), (None, None, None));
    assert!(!now.can_resume(), "it has to be told everything anew");
}

#[test]
fn a_clock_that_jumps_ages_nobody() {
    let start = Instant::now();
    let later = start + Duration::from_secs(10);
    for (clock, time, lag) in [
        ("right", "2026-11-17T01:00:02Z", 2.0),
        ("behind", "2001-01-01T00:00:00Z", 0.0),
        ("an hour ahead", "2026-11-17T02:00:00Z", 3600.0),
    ] {
        let shown = queue();
        shown.at(start).opened(start);
        take_at(&shown, "snapshot", LEADER, start, time);
        assert_eq!(shown.at(start).lag(), Some(lag), "{clock}");
        // The oldest goes on ageing by seconds that have passed, whatever any clock shows now.
        for shows in ["1970-01-01T00:00:00Z", "2199-01-01T00:00:00Z"] {
            let load = shown.at(later).load(later, shows.parse().expect("a time"));
            let oldest = load.map(|load| load.oldest);
            assert_eq!(oldest, Some(70.0), "{clock}, then {shows}");
        }
        // Nor does the grace go by it.
        shown.at(later).ended(Cause::Broken, later);
        let over = later + GRACE;
        assert_eq!(
            stands(&shown, over - Duration::from_secs(1)),
            Some((3, 2, 129.0))
        );
        assert_eq!(stands(&shown, over), None);
    }
}

#[test]
fn a_standby_shows_that_it_is_one_and_no_queue() {
    let shown = Arc::new(queue());
    let now = Instant::now();
    shown.at(now).opened(now);
    take(&shown, "snapshot", LEADER, now);
    assert_eq!(
        samples(&shown, "source_leader"),
        [r#"source_leader{source="controller"} 1"#]
    );
    assert_eq!(
        samples(&shown, "queue_blocked"),
        [
            r#"queue_blocked{source="controller",reason="RateLimit"} 1"#,
            r#"queue_blocked{source="controller",reason="other"} 4"#
        ]
    );
    assert_eq!(
        samples(&shown, "stream_backlog"),
        [r#"stream_backlog{source="controller"} 2"#]
    );
    take(&shown, "queue", STANDBY, now);
    assert_eq!(
        samples(&shown, "source_leader"),
        [r#"source_leader{source="controller"} 0"#]
    );
    assert_eq!(samples(&shown, "queue_"), Vec::<String>::new());
    // Who ends has nothing to say any more, since another will hold the lease.
    take(&shown, "queue", LEADER, now);
    take(&shown, "end", "{}", now);
    assert_eq!(samples(&shown, "queue_"), Vec::<String>::new());
    assert_eq!(samples(&shown, "source_leader"), Vec::<String>::new());
}

#[test]
fn everything_that_comes_is_counted() {
    let shown = Arc::new(queue());
    let now = Instant::now();
    shown.at(now).opened(now);
    take(&shown, "snapshot", STANDBY, now);
    take(&shown, "dropped", r#"{"missed": 7}"#, now);
    take(&shown, "queue", "no sense", now);
    take(&shown, "news", "", now);
    shown.at(now).fault(Excess::Line.into());
    shown.at(now).ended(Cause::Stopped, now);
    let one = |name: &str, labels: &str| {
        let start = format!("{name}{{source=\"controller\"{labels}}} ");
        let found = samples(&shown, &start);
        found
            .first()
            .and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
    };
    for (name, labels, expected) in [
        ("source_up", "", 0.0),
        ("source_stopped", "", 1.0),
        ("source_connections_total", "", 1.0),
        ("source_disconnects_total", ",cause=\"stopped\"", 1.0),
        ("source_disconnects_total", ",cause=\"silent\"", 0.0),
        ("source_events_total", ",event=\"snapshot\"", 1.0),
        ("source_events_total", ",event=\"queue\"", 1.0),
        ("source_events_total", ",event=\"other\"", 1.0),
        (
            "source_parse_errors_total",
            ",cause=\"not_understood\"",
            1.0,
        ),
        ("source_parse_errors_total", ",cause=\"line_too_long\"", 1.0),
        (
            "source_parse_errors_total",
            ",cause=\"event_too_large\"",
            0.0,
        ),
        ("source_dropped_total", "", 7.0),
        ("source_gaps_total", "", 1.0),
        ("source_lag_seconds", "", 2.0),
    ] {
        assert_eq!(one(name, labels), Some(expected), "{name}{labels}");
    }
    assert!(one("source_last_event_age_seconds", "").is_some());
    assert_eq!(one("queue_overflow_total", ""), None, "it counts no runs");
}

#[test]
fn a_control_plane_is_believed_from_its_first_message_until_the_grace_is_over() {
    let shown = source("upstream", Told::ControlPlane(Runs::new(10)));
    let start = Instant::now();
    let after = |seconds| start + Duration::from_secs(seconds);
    shown.at(start).opened(start);
    assert_eq!(stands(&shown, start), None, "nothing was told yet");
    take(&shown, "message", RUNNING, start);
    assert_eq!(stands(&shown, start), Some((0, 1, 0.0)));
    assert!(!shown.at(start).can_resume(), "its messages have no ids");
    // It comes back and does not speak of the run any more.
    shown.at(after(10)).ended(Cause::Ended, after(10));
    shown.at(after(20)).opened(after(20));
    assert_eq!(stands(&shown, after(79)), Some((0, 1, 0.0)));
    assert_eq!(stands(&shown, after(80)), Some((0, 0, 0.0)));
    shown.at(after(100)).ended(Cause::Ended, after(100));
    assert_eq!(stands(&shown, after(160)), None);
}
