//! What is read when it is exported: the queues, the runs, the Jobs, the Events and the stream, each from where it is kept.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};

use crate::api::contract::{annotation, finalizer, metric};
use crate::api::custody::{LastStatus, last_status_of};
use crate::api::kind::Kind;
use crate::controller::agent_run::RunBook;
use crate::controller::context::Clock;
use crate::controller::driver::Work;
use crate::controller::driver::queue::Figures;

use crate::controller::cache::shelves::Shelves;
use crate::controller::runs::look::is_held;
use crate::controller::stream::Hub;
use crate::events::metrics::{Failure, Group, Limit, Loss};
use crate::events::{self, Severity};
use crate::kit::fence::Fence;
use crate::kit::http;

/// Where everything is kept.
#[derive(Clone)]
pub(crate) struct Sources {
    pub(crate) book: Arc<RunBook>,
    pub(crate) shelves: Arc<Shelves>,
    pub(crate) works: Arc<[(Kind, Work)]>,
    pub(crate) leadership: Fence,
    pub(crate) hub: Arc<Hub>,
    pub(crate) events: events::Metrics,
    pub(crate) clock: Clock,
}

/// Reads all of it with every export from now on.
pub(crate) fn register(meter: &Meter, sources: &Sources) {
    queues(meter, &sources.works);
    runs(meter, sources);
    custody(meter, sources);
    told(meter, &sources.events);
    stream(meter, &sources.hub);
}

type Observer<'a, T> = &'a dyn AsyncInstrument<T>;

/// A number that goes up and down.
fn gauge(
    meter: &Meter,
    name: &'static str,
    help: &'static str,
    read: impl Fn(Observer<'_, u64>) + Send + Sync + 'static,
) {
    let gauge = meter.u64_observable_gauge(name).with_description(help);
    gauge.with_callback(read).build();
}

/// A time that goes up and down.
fn seconds(
    meter: &Meter,
    name: &'static str,
    help: &'static str,
    read: impl Fn(Observer<'_, f64>) + Send + Sync + 'static,
) {
    let gauge = meter.f64_observable_gauge(name).with_unit("s");
    gauge.with_description(help).with_callback(read).build();
}

/// A number that only grows.
fn counter(
    meter: &Meter,
    name: &'static str,
    help: &'static str,
    read: impl Fn(Observer<'_, u64>) + Send + Sync + 'static,
) {
    let counter = meter.u64_observable_counter(name).with_description(help);
    counter.with_callback(read).build();
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Seconds since a time, none if that is yet to come.
fn age(since: Option<Timestamp>, clock: Clock) -> f64 {
    let since = since.map(|since| clock.now().duration_since(since));
    since.map_or(0.0, |age| age.as_secs_f64().max(0.0))
}

fn queues(meter: &Meter, works: &Arc<[(Kind, Work)]>) {
    let by_kind = Arc::clone(works);
    gauge(
        meter,
        metric::QUEUE_DEPTH,
        "Objects that are ready to be worked on, by kind",
        move |observer| {
            for (kind, work) in by_kind.iter() {
                let kind = KeyValue::new("kind", kind.as_str());
                observer.observe(work.figures().depth, &[kind]);
            }
        },
    );
    let each = |read: fn(Figures) -> u64| {
        let works = Arc::clone(works);
        move |observer: Observer<'_, u64>| {
            for (_, work) in works.iter() {
                observer.observe(read(work.figures()), &[KeyValue::new("name", work.name)]);
            }
        }
    };
    let each_time = |read: fn(Figures) -> f64| {
        let works = Arc::clone(works);
        move |observer: Observer<'_, f64>| {
            for (_, work) in works.iter() {
                observer.observe(read(work.figures()), &[KeyValue::new("name", work.name)]);
            }
        }
    };
    gauge(
        meter,
        metric::WORKQUEUE_DEPTH,
        "Objects that stand in a queue, by name",
        each(|figures| figures.depth),
    );
    counter(
        meter,
        metric::WORKQUEUE_ADDS,
        "Objects that were put into a queue, by name",
        each(|figures| figures.adds),
    );
    counter(
        meter,
        metric::WORKQUEUE_RETRIES,
        "Objects that are tried again after a failure, by name",
        each(|figures| figures.retries),
    );
    seconds(
        meter,
        metric::WORKQUEUE_UNFINISHED,
        "Time that all objects which are worked on have taken so far, by name",
        each_time(|figures| figures.unfinished.as_secs_f64()),
    );
    seconds(
        meter,
        metric::WORKQUEUE_LONGEST,
        "Time of the one that has taken longest, by name",
        each_time(|figures| figures.longest.as_secs_f64()),
    );
}

/// Runs as admission counts them. A standby knows them as well, but they are told once.
fn runs(meter: &Meter, sources: &Sources) {
    let load = {
        let (book, leadership) = (Arc::clone(&sources.book), sources.leadership.clone());
        move || leadership.is_open().then(|| book.figures(0).cluster)
    };
    let clock = sources.clock;
    let (waiting, running, blocked) = (load.clone(), load.clone(), load.clone());
    gauge(
        meter,
        metric::RUNS_WAITING,
        "AgentRuns in line for a slot",
        move |observer| {
            if let Some(load) = waiting() {
                observer.observe(number(load.waiting), &[]);
            }
        },
    );
    gauge(
        meter,
        metric::RUNS_RUNNING,
        "AgentRuns that have begun and not ended",
        move |observer| {
            if let Some(load) = running() {
                observer.observe(number(load.running), &[]);
            }
        },
    );
    gauge(
        meter,
        metric::RUNS_BLOCKED,
        "AgentRuns that are held back, by reason",
        move |observer| {
            let load = blocked().unwrap_or_default();
            for (reason, count) in load.blocked {
                observer.observe(number(count), &[KeyValue::new("reason", reason)]);
            }
        },
    );
    seconds(
        meter,
        metric::RUNS_OLDEST_WAITING,
        "Time since the AgentRun was made that has been in line for longest",
        move |observer| {
            if let Some(load) = load() {
                observer.observe(age(load.oldest_waiting_since, clock), &[]);
            }
        },
    );
}

/// Jobs that have ended and whose outcome is not stored.
fn custody(meter: &Meter, sources: &Sources) {
    let unrecorded = {
        let (shelves, leadership) = (Arc::clone(&sources.shelves), sources.leadership.clone());
        move || leadership.is_open().then(|| unrecorded(&shelves))
    };
    let (oldest, clock) = (unrecorded.clone(), sources.clock);
    gauge(
        meter,
        metric::OUTCOME_UNRECORDED,
        "Jobs that have ended and whose outcome is not stored yet",
        move |observer| {
            if let Some(ends) = unrecorded() {
                observer.observe(number(ends.len()), &[]);
            }
        },
    );
    seconds(
        meter,
        metric::OUTCOME_UNRECORDED_AGE,
        "Time since the first of those Jobs ended",
        move |observer| {
            if let Some(ends) = oldest() {
                observer.observe(age(ends.into_iter().min(), clock), &[]);
            }
        },
    );
}

/// When each Job ended that is still held for its outcome.
fn unrecorded(shelves: &Shelves) -> Vec<Timestamp> {
    let end = |job: &Job| {
        let is_marked = job.annotations().contains_key(annotation::OUTCOME_RECORDED);
        if is_marked || !is_held(job, finalizer::OUTCOME) {
            return None;
        }
        match last_status_of(job) {
            LastStatus::Finished { at, .. } => Some(at),
            LastStatus::Active | LastStatus::Unknown => None,
        }
    };
    let mut ends = shelves.jobs.select(end);
    ends.extend(shelves.tool_jobs.select(end));
    ends
}

/// What the emitter counts.
fn told(meter: &Meter, events: &events::Metrics) {
    let all = events.clone();
    counter(
        meter,
        metric::EVENTS_EMITTED,
        "Events stored, by type and API",
        move |observer| {
            for severity in Severity::ALL {
                for group in Group::ALL {
                    let labels = [
                        KeyValue::new("type", severity.as_str()),
                        KeyValue::new("group", group.as_str()),
                    ];
                    observer.observe(all.emitted(*severity, *group), &labels);
                }
            }
        },
    );
    let all = events.clone();
    counter(
        meter,
        metric::EVENTS_UPDATED,
        "Writes of the count of a series",
        move |observer| observer.observe(all.updated(), &[]),
    );
    let all = events.clone();
    counter(
        meter,
        metric::EVENTS_AGGREGATED,
        "Occurrences counted in a series instead of stored",
        move |observer| observer.observe(all.aggregated(), &[]),
    );
    let all = events.clone();
    counter(
        meter,
        metric::EVENTS_SUPPRESSED,
        "Occurrences held back, by limit",
        move |observer| {
            for limit in Limit::ALL {
                let label = KeyValue::new("limit", limit.as_str());
                observer.observe(all.suppressed(*limit), &[label]);
            }
        },
    );
    lost(meter, events);
}

fn lost(meter: &Meter, events: &events::Metrics) {
    let all = events.clone();
    counter(
        meter,
        metric::EVENTS_DROPPED,
        "Occurrences lost, by cause",
        move |observer| {
            for cause in Loss::ALL {
                let label = KeyValue::new("cause", cause.as_str());
                observer.observe(all.dropped(*cause), &[label]);
            }
        },
    );
    let all = events.clone();
    counter(
        meter,
        metric::EVENTS_ERRORS,
        "Calls about Events that failed, by cause; most are tried again",
        move |observer| {
            for cause in Failure::ALL {
                let label = KeyValue::new("cause", cause.as_str());
                observer.observe(all.errors(*cause), &[label]);
            }
        },
    );
}

/// Who reads the stream of the queue.
fn stream(meter: &Meter, hub: &Arc<Hub>) {
    type Read = fn(&http::events::Figures) -> u64;
    let of = |read: Read| {
        let hub = Arc::clone(hub);
        move |observer: Observer<'_, u64>| observer.observe(read(&hub.figures()), &[])
    };
    gauge(
        meter,
        metric::STREAM_READERS,
        "Readers of the stream of the queue",
        of(|figures| figures.readers),
    );
    gauge(
        meter,
        metric::STREAM_BACKLOG,
        "Events that readers have not taken yet",
        of(|figures| figures.backlog),
    );
    let counts: [(&str, &str, Read); 4] = [
        (metric::STREAM_OPENED, "Readers that came", |f| f.opened),
        (metric::STREAM_CLOSED, "Readers that went", |f| f.closed),
        (metric::STREAM_DROPPED, "Readers that were too slow", |f| {
            f.dropped
        }),
        (
            metric::STREAM_REFUSED,
            "Readers for whom there was no room",
            |f| f.refused,
        ),
    ];
    for (name, help, read) in counts {
        counter(meter, name, help, of(read));
    }
}
