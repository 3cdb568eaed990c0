//! What the controllers count, recorded with OpenTelemetry and exported over OTLP.
//!
//! Names are in `contract`; every attribute comes from a closed list.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};

use super::driver::fault::Class;
use super::driver::plan::Fact;
use crate::api::contract::metric;
use crate::api::kind::Kind;

/// Seconds from a few milliseconds to a minute.
const BRIEF: [f64; 12] = [
    0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0,
];
/// Seconds from one to a day.
const LONG: [f64; 12] = [
    1.0, 5.0, 15.0, 60.0, 180.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0, 43200.0, 86400.0,
];

/// The result of a reconcile without a fault.
const OK: &str = "ok";

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
    depth: Gauge<u64>,
    watch_restarts: Counter<u64>,
    runs: Counter<u64>,
    run_durations: Histogram<f64>,
    outcomes_stored: Histogram<f64>,
    jobs_missing: Counter<u64>,
    leading: Gauge<u64>,
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
        let depth = meter.u64_gauge(metric::QUEUE_DEPTH);
        let leading = meter.u64_gauge(metric::LEADING);
        let handles = Handles {
            reconciles: counter(metric::RECONCILES, "Reconciles, by kind and result"),
            durations: seconds(metric::RECONCILE_DURATION, "Time of one reconcile", &BRIEF),
            panics: counter(
                metric::RECONCILE_PANICS,
                "Reconciles that panicked, by kind",
            ),
            depth: depth
                .with_description("Objects that are ready to be worked on, by kind")
                .build(),
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
        };
        Self {
            handles: Arc::new(handles),
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

    /// So many objects are ready.
    pub(crate) fn depth(&self, kind: Kind, depth: usize) {
        let depth = u64::try_from(depth).unwrap_or(u64::MAX);
        let kind = KeyValue::new("kind", kind.as_str());
        self.handles.depth.record(depth, &[kind]);
    }

    /// Whether this process holds the lease.
    pub(crate) fn leading(&self, leading: bool) {
        self.handles.leading.record(leading.into(), &[]);
    }

    /// Someone asked for the lease.
    pub(crate) fn asked_to_yield(&self, granted: bool) {
        let result = if granted { "yielded" } else { "refused" };
        let result = KeyValue::new("result", result);
        self.handles.yields.add(1, &[result]);
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
                Fact::JobMissing { class, recovered } => self.handles.jobs_missing.add(
                    1,
                    &[
                        KeyValue::new("class", class.as_str()),
                        KeyValue::new("recovered", recovered.as_str()),
                    ],
                ),
            }
        }
    }
}
