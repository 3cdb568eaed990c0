//! What the controllers count, recorded with OpenTelemetry and exported over OTLP.
//!
//! Names are in `contract`; every attribute comes from a closed list. What happens is counted here; what can be computed
//! is read by [`gauges`] when it is exported, and never set.

mod calls;
pub(super) mod gauges;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};

use super::agent_run::Sort;
use super::driver::fault::Class;
use super::driver::plan::Fact;
use crate::api::contract::metric;
use crate::api::custody::{self, Recovered};
use crate::api::kind::Kind;
use crate::cluster::Call;

/// Seconds from a few milliseconds to a minute.
const BRIEF: [f64; 12] = [
    0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0,
];
/// Seconds from one to a day.
const LONG: [f64; 12] = [
    1.0, 5.0, 15.0, 60.0, 180.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0, 43200.0, 86400.0,
];

/// The result of a reconcile without a fault.
pub(super) const OK: &str = "ok";

/// Handles of what is counted. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    handles: Arc<Handles>,
}

#[derive(Debug)]
struct Handles {
    reconciles: Counter<u64>,
    durations: Histogram<f64>,
    panics: Counter<u64>,
    waits: Histogram<f64>,
    works: Histogram<f64>,
    calls: calls::Calls,
    rate_limit_hits: Counter<u64>,
    watch_restarts: Counter<u64>,
    runs: Counter<u64>,
    run_durations: Histogram<f64>,
    outcomes_stored: Histogram<f64>,
    jobs_missing: Counter<u64>,
    leading: Gauge<u64>,
    egress_refused: Counter<u64>,
    yields: Counter<u64>,
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |name, help| meter.u64_counter(name).with_description(help).build();
        let seconds = |name, help, bounds: &[f64]| {
            let histogram = meter.f64_histogram(name).with_unit("s");
            let histogram = histogram.with_description(help);
            histogram.with_boundaries(bounds.to_vec()).build()
        };
        let leading = meter.u64_gauge(metric::LEADING);
        let handles = Handles {
            reconciles: counter(metric::RECONCILES, "Reconciles, by kind and result"),
            durations: seconds(metric::RECONCILE_DURATION, "Time of one reconcile", &BRIEF),
            panics: counter(
                metric::RECONCILE_PANICS,
                "Reconciles that panicked, by kind",
            ),
            waits: seconds(
                metric::WORKQUEUE_QUEUE_DURATION,
                "Time that an object stands in a queue, by name",
                &BRIEF,
            ),
            works: seconds(
                metric::WORKQUEUE_WORK_DURATION,
                "Time that an object is worked on, by name",
                &BRIEF,
            ),
            calls: calls::Calls {
                calls: counter(
                    metric::API_CALLS,
                    "Calls to the API server, by verb, resource and code",
                ),
                durations: seconds(
                    metric::API_CALL_DURATION,
                    "Time to the first answer of a call, by verb",
                    &BRIEF,
                ),
            },
            rate_limit_hits: counter(
                metric::RATE_LIMIT_HITS,
                "AgentRuns that had to wait because too many began within the window",
            ),
            watch_restarts: counter(metric::WATCH_RESTARTS, "Watches that broke, by kind"),
            runs: counter(metric::RUNS, "Runs that ended, by phase and runtime"),
            run_durations: seconds(
                metric::RUN_DURATION,
                "From the start of a run to its end",
                &LONG,
            ),
            outcomes_stored: seconds(
                metric::OUTCOME_RECORD,
                "From the end of a Job to its stored outcome",
                &BRIEF,
            ),
            jobs_missing: counter(
                metric::JOBS_MISSING,
                "Jobs that are missing, by class and by where their outcome was still found",
            ),
            yields: counter(
                metric::LEASE_YIELDS,
                "Requests to yield the lease, by result",
            ),
            leading: leading
                .with_description("1 while this process holds the lease, else 0")
                .build(),
            egress_refused: counter(
                metric::EGRESS_REFUSED,
                "Calls to addresses in objects that were refused, by reason",
            ),
        };
        Self {
            handles: Arc::new(handles),
        }
    }

    /// Shows what only runs can count before they do.
    pub(crate) fn expect_runs(&self) {
        for scope in Sort::ALL {
            let scope = KeyValue::new("scope", scope.as_str());
            self.handles.rate_limit_hits.add(0, &[scope]);
        }
        for class in custody::Class::ALL {
            for recovered in Recovered::ALL {
                let labels = missing(*class, recovered);
                self.handles.jobs_missing.add(0, &labels);
            }
        }
        for granted in [true, false] {
            self.handles.yields.add(0, &[yielded(granted)]);
        }
    }

    /// Shows every result of a kind before there is one: a series that starts with its first count hides it from alerts.
    pub(crate) fn expect(&self, kind: Kind) {
        let results = Class::ALL.iter().map(|class| class.as_str());
        for result in results.chain([OK]) {
            let kind = KeyValue::new("kind", kind.as_str());
            let labels = [kind, KeyValue::new("result", result)];
            self.handles.reconciles.add(0, &labels);
        }
        let kind = KeyValue::new("kind", kind.as_str());
        self.handles.panics.add(0, &[kind]);
    }

    /// One reconcile is over.
    pub(crate) fn reconciled(&self, kind: Kind, class: Option<Class>, seconds: f64) {
        let result = class.map_or(OK, Class::as_str);
        let kind = KeyValue::new("kind", kind.as_str());
        self.handles
            .reconciles
            .add(1, &[kind.clone(), KeyValue::new("result", result)]);
        self.handles.durations.record(seconds, &[kind]);
    }

    /// A reconcile panicked.
    pub(crate) fn panicked(&self, kind: Kind) {
        self.handles
            .panics
            .add(1, &[KeyValue::new("kind", kind.as_str())]);
    }

    /// An object was taken out of a queue after it had stood there for so long.
    pub(crate) fn taken(&self, queue: &'static str, waited: Duration) {
        let name = KeyValue::new("name", queue);
        self.handles.waits.record(waited.as_secs_f64(), &[name]);
    }

    /// An object was worked on for so long.
    pub(crate) fn worked(&self, queue: &'static str, took: Duration) {
        let name = KeyValue::new("name", queue);
        self.handles.works.record(took.as_secs_f64(), &[name]);
    }

    /// The API server answered, or did not.
    pub(crate) fn called(&self, call: &Call) {
        self.handles.calls.count(call);
    }

    /// What the guard of calls to the outside counts with.
    pub(crate) fn egress_refused(&self) -> Counter<u64> {
        self.handles.egress_refused.clone()
    }

    /// Whether this process holds the lease.
    pub(crate) fn leading(&self, leading: bool) {
        self.handles.leading.record(leading.into(), &[]);
    }

    /// Someone asked for the lease.
    pub(crate) fn asked_to_yield(&self, granted: bool) {
        self.handles.yields.add(1, &[yielded(granted)]);
    }

    /// A watch broke.
    pub(crate) fn watch_broke(&self, kind: &str) {
        self.handles
            .watch_restarts
            .add(1, &[KeyValue::new("kind", kind.to_owned())]);
    }

    /// These things are stored.
    pub(crate) fn count(&self, facts: &[Fact]) {
        for fact in facts {
            match *fact {
                Fact::RunEnded {
                    phase,
                    runtime,
                    seconds,
                } => {
                    let runtime = KeyValue::new("runtime", runtime);
                    let phase = KeyValue::new("phase", phase.as_str());
                    self.handles.runs.add(1, &[phase, runtime.clone()]);
                    if let Some(seconds) = seconds {
                        self.handles.run_durations.record(seconds, &[runtime]);
                    }
                }
                Fact::OutcomeStored { seconds } => {
                    self.handles.outcomes_stored.record(seconds, &[]);
                }
                Fact::RateLimited { scope } => {
                    let scope = KeyValue::new("scope", scope.as_str());
                    self.handles.rate_limit_hits.add(1, &[scope]);
                }
                Fact::JobMissing { class, recovered } => {
                    let labels = missing(class, recovered);
                    self.handles.jobs_missing.add(1, &labels);
                }
            }
        }
    }
}

fn missing(class: custody::Class, recovered: Recovered) -> [KeyValue; 2] {
    [
        KeyValue::new("class", class.as_str()),
        KeyValue::new("recovered", recovered.as_str()),
    ]
}

fn yielded(granted: bool) -> KeyValue {
    let result = if granted { "yielded" } else { "refused" };
    KeyValue::new("result", result)
}
