//! What a scrape shows of all sources, in the same order every time. What is not known is not shown.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};
use tokio::time::Instant;

use super::{
    control_plane::Status,
    load::Load,
    queue::Stream,
    shown::{Fault, Shown, Sort},
    state::Cause,
};

/// All sources.
#[derive(Debug)]
pub(super) struct Board(pub(super) Vec<Arc<Shown>>);

impl Collector for Board {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (now, time) = (Instant::now(), Timestamp::now());
        let rows = self.0.iter().map(|source| Row::of(source, now, time));
        let mut page = Page {
            rows: rows.collect(),
            encoder,
        };
        page.sources()?;
        page.arrivals()?;
        page.queues()?;
        page.streams()
    }
}

/// One source, as it stands at a time.
struct Row {
    source: String,
    is_up: bool,
    is_stopped: bool,
    leads: Option<bool>,
    connections: u64,
    ends: [u64; Cause::ALL.len()],
    bytes: u64,
    events: [u64; Sort::ALL.len()],
    faults: [u64; Fault::ALL.len()],
    dropped: u64,
    gaps: u64,
    age: Option<f64>,
    lag: Option<f64>,
    load: Option<Load>,
    stream: Option<Stream>,
    status: Option<Status>,
    overflow: Option<u64>,
}

impl Row {
    fn of(source: &Shown, now: Instant, time: Timestamp) -> Self {
        let shown = source.at(now);
        let age = |event: Instant| now.duration_since(event).as_secs_f64();
        Self {
            source: source.name.clone(),
            is_up: shown.is_up(),
            is_stopped: shown.is_stopped,
            leads: shown.leads(),
            connections: shown.connections,
            ends: shown.ends,
            bytes: shown.bytes,
            events: shown.events,
            faults: shown.faults,
            dropped: shown.dropped,
            gaps: shown.gaps,
            age: shown.last_event.map(age),
            lag: shown.lag(),
            load: shown.load(now, time),
            stream: shown.stream(),
            status: shown.runs().map(|runs| runs.status),
            overflow: shown.runs().map(|runs| runs.overflow),
        }
    }
}

/// A name and what it means.
type About<'a> = (&'a str, &'a str);

struct Page<'e> {
    rows: Vec<Row>,
    encoder: DescriptorEncoder<'e>,
}

impl Page<'_> {
    fn sources(&mut self) -> fmt::Result {
        let up = ("source_up", "Whether the stream is followed now");
        self.gauge(up, None, |row| Some(u64::from(row.is_up)))?;
        let stopped = (
            "source_stopped",
            "Whether the server has said that there is nothing to follow; it is not asked again",
        );
        self.gauge(stopped, None, |row| Some(u64::from(row.is_stopped)))?;
        let leader = (
            "source_leader",
            "Whether the source holds the lease; only then it has a queue to tell of",
        );
        self.gauge(leader, None, |row| row.leads.map(u64::from))?;
        let connections = ("source_connections", "Times that a stream was opened");
        self.counter(connections, |row| Some(row.connections))?;
        let ends = (
            "source_disconnects",
            "Times that a stream came to its end or could not be opened, by cause; each but `stopped` is followed by a new try",
        );
        let words = || Cause::ALL.iter().map(|cause| cause.as_str());
        self.counters(ends, "cause", |row| words().zip(row.ends).collect())
    }

    fn arrivals(&mut self) -> fmt::Result {
        let bytes = ("source_bytes", "Bytes that came");
        self.counter(bytes, |row| Some(row.bytes))?;
        let events = ("source_events", "Events that came, by what they are about");
        let words = || Sort::ALL.iter().map(|sort| sort.as_str());
        self.counters(events, "event", |row| words().zip(row.events).collect())?;
        let faults = (
            "source_parse_errors",
            "Lines and events that came and were left out, by cause",
        );
        let words = || Fault::ALL.iter().map(|fault| fault.as_str());
        self.counters(faults, "cause", |row| words().zip(row.faults).collect())?;
        let dropped = (
            "source_dropped",
            "Events that the source could not keep until we took them",
        );
        self.counter(dropped, |row| Some(row.dropped))?;
        let gaps = (
            "source_gaps",
            "Times that the source could not go on from the last event that we had",
        );
        self.counter(gaps, |row| Some(row.gaps))?;
        let seconds = Some(&Unit::Seconds);
        let age = ("source_last_event_age", "Time since the last event");
        self.gauge(age, seconds, |row| row.age)?;
        let lag = (
            "source_lag",
            "Time from the telling of an event to its coming, of the last that says when it was told",
        );
        self.gauge(lag, seconds, |row| row.lag)
    }

    fn queues(&mut self) -> fmt::Result {
        let load = |row: &Row, of: fn(&Load) -> u64| row.load.as_ref().map(of);
        let depth = ("queue_depth", "Runs in line");
        self.gauge(depth, None, |row| load(row, |load| load.depth))?;
        let running = ("queue_running", "Runs that have begun and not ended");
        self.gauge(running, None, |row| load(row, |load| load.running))?;
        self.blocked()?;
        let seconds = Some(&Unit::Seconds);
        let oldest = (
            "queue_oldest_age",
            "Time since the first in line was made, 0 if there is none",
        );
        self.gauge(oldest, seconds, |row| Some(row.load.as_ref()?.oldest))?;
        let untouched = (
            "queue_untouched",
            "Runs that the control plane has not looked at yet, as it says",
        );
        self.gauge(untouched, None, |row| row.status?.untouched)?;
        let oldest = (
            "queue_untouched_oldest_age",
            "Time that the oldest of those has waited, as the control plane said last",
        );
        self.gauge(oldest, seconds, |row| row.status?.oldest_untouched)?;
        let overflow = (
            "queue_overflow",
            "Changes of runs that are not counted because there are too many",
        );
        self.counter(overflow, |row| row.overflow)
    }

    fn blocked(&mut self) -> fmt::Result {
        let Self { rows, encoder } = self;
        let help = "Runs that are held back, by reason";
        let mut metric =
            encoder.encode_descriptor("queue_blocked", help, None, MetricType::Gauge)?;
        for row in rows {
            let reasons = row.load.iter().flat_map(|load| &load.blocked.0);
            for (reason, count) in reasons {
                let labels = [("source", &*row.source), ("reason", reason)];
                ConstGauge::new(*count).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn streams(&mut self) -> fmt::Result {
        let of = |row: &Row, of: fn(&Stream) -> u64| row.stream.as_ref().map(of);
        let readers = (
            "stream_readers",
            "Readers of the stream, as its server counts",
        );
        self.gauge(readers, None, |row| of(row, |stream| stream.readers))?;
        let backlog = (
            "stream_backlog",
            "Events that readers of the stream have not taken yet, as its server counts",
        );
        self.gauge(backlog, None, |row| of(row, |stream| stream.backlog))?;
        let opened = ("stream_opened", "Readers that came, as the server counts");
        self.counter(opened, |row| of(row, |stream| stream.opened))?;
        let closed = ("stream_closed", "Readers that went, as the server counts");
        self.counter(closed, |row| of(row, |stream| stream.closed))?;
        let dropped = (
            "stream_dropped",
            "Readers that were too slow, as the server counts",
        );
        self.counter(dropped, |row| of(row, |stream| stream.dropped))?;
        let refused = (
            "stream_refused",
            "Readers for whom there was no room, as the server counts",
        );
        self.counter(refused, |row| of(row, |stream| stream.refused))
    }

    fn gauge<V: EncodeGaugeValue>(
        &mut self,
        (name, help): About<'_>,
        unit: Option<&Unit>,
        value: impl Fn(&Row) -> Option<V>,
    ) -> fmt::Result {
        let Self { rows, encoder } = self;
        let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for row in rows {
            if let Some(value) = value(row) {
                let labels = [("source", &*row.source)];
                ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn counter(
        &mut self,
        (name, help): About<'_>,
        value: impl Fn(&Row) -> Option<u64>,
    ) -> fmt::Result {
        let Self { rows, encoder } = self;
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for row in rows {
            if let Some(value) = value(row) {
                let labels = [("source", &*row.source)];
                ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    /// A counter for each word of a closed list.
    fn counters(
        &mut self,
        (name, help): About<'_>,
        label: &str,
        values: impl Fn(&Row) -> Vec<(&'static str, u64)>,
    ) -> fmt::Result {
        let Self { rows, encoder } = self;
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for row in rows {
            for (word, value) in values(row) {
                let labels = [("source", &*row.source), (label, word)];
                ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
