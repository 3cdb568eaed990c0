//! What is counted about reviews. Labels come from closed lists and every series is there from the start, so that a rate
//! over the first refusal is right. No name and no namespace is a label.

mod labels;
#[cfg(test)]
mod tests;

use std::time::Duration;

use agents::api::policy::Mode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use labels::{
    CallLabels, DifferenceLabels, PhaseLabel, RefusalLabel, Resource, ReviewLabels, RuleLabels,
};
pub use labels::{Outcome, Phase};

use crate::decision::{Decision, Difference, Direction, Rule};
use crate::refusal::Refusal;
use crate::subject::{Door, Operation, Subject, Target};

/// From 100 microseconds, which most phases stay below, to the longest time that the API server waits.
const BUCKETS: [f64; 14] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0,
];

/// Metrics of admission.
#[derive(Clone, Debug)]
pub struct Metrics {
    reviews: Family<ReviewLabels, Counter>,
    calls: Family<CallLabels, Counter>,
    rules: Family<RuleLabels, Counter>,
    differences: Family<DifferenceLabels, Counter>,
    refusals: Family<RefusalLabel, Counter>,
    phases: Family<PhaseLabel, Histogram, fn() -> Histogram>,
    /// The histogram of each phase, so that nobody looks for it.
    handles: [Histogram; Phase::ALL.len()],
    in_flight: Gauge,
    shed: Counter,
    late: Counter,
    unknown: Counter,
    panics: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let phases = Family::new_with_constructor(histogram as fn() -> Histogram);
        let handles = Phase::ALL.map(|phase| phases.get_or_create_owned(&PhaseLabel { phase }));
        Self {
            handles,
            reviews: Family::default(),
            calls: Family::default(),
            rules: Family::default(),
            differences: Family::default(),
            refusals: Family::default(),
            phases,
            in_flight: Gauge::default(),
            shed: Counter::default(),
            late: Counter::default(),
            unknown: Counter::default(),
            panics: Counter::default(),
        }
    }
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl Metrics {
    /// Registers them; the caller chooses the prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self {
            reviews,
            calls,
            rules,
            differences,
            refusals,
            phases,
            handles: _,
            in_flight,
            shed,
            late,
            unknown,
            panics,
        } = &metrics; // a metric left out here does not compile
        registry.register(
            "reviews",
            "Reviews answered, by resource, operation, outcome and whether nothing will be stored",
            reviews.clone(),
        );
        registry.register(
            "calls",
            "Reviews answered, by door and outcome; one request comes in by several doors",
            calls.clone(),
        );
        registry.register(
            "rule_outcomes",
            "Broken rules, by rule and by what was done about it",
            rules.clone(),
        );
        registry.register(
            "shadow_differences",
            "Decisions that the candidate policy would make otherwise, by rule and direction",
            differences.clone(),
        );
        registry.register(
            "refusals",
            "Requests answered without a decision, by cause",
            refusals.clone(),
        );
        registry.register_with_unit(
            "phase_duration",
            "Time that reviews spend in each phase",
            Unit::Seconds,
            phases.clone(),
        );
        registry.register(
            "in_flight",
            "Reviews that are being answered now",
            in_flight.clone(),
        );
        registry.register(
            "shed",
            "Reviews turned away because there were too many at once",
            shed.clone(),
        );
        registry.register(
            "late",
            "Reviews turned away because the answer would have come too late",
            late.clone(),
        );
        registry.register(
            "unknown_reviews",
            "Reviews let through because no rule is about them: the configuration sends too much",
            unknown.clone(),
        );
        registry.register(
            "panics",
            "Panics while a review was being answered; it got a 500, as with every fault of the webhook itself",
            panics.clone(),
        );
        metrics.start_at_zero();
        metrics
    }

    fn start_at_zero(&self) {
        for labels in ReviewLabels::all() {
            drop(self.reviews.get_or_create(&labels));
        }
        for labels in CallLabels::all() {
            drop(self.calls.get_or_create(&labels));
        }
        for labels in RuleLabels::all() {
            drop(self.rules.get_or_create(&labels));
        }
        for labels in DifferenceLabels::all() {
            drop(self.differences.get_or_create(&labels));
        }
        for cause in Refusal::WORDS {
            drop(self.refusals.get_or_create(&RefusalLabel { cause }));
        }
        for phase in Phase::ALL {
            drop(self.phases.get_or_create(&PhaseLabel { phase }));
        }
    }

    /// Counts a decision.
    pub fn decided(&self, subject: &Subject<'_>, decision: &Decision) {
        let outcome = match decision.is_refusal() {
            true => Outcome::Denied,
            false => Outcome::Allowed,
        };
        self.answered(subject.door, outcome);
        let labels = ReviewLabels {
            resource: Resource::Known(subject.target),
            operation: Some(subject.operation.as_str()),
            outcome,
            dry_run: subject.dry_run(),
        };
        self.reviews.get_or_create(&labels).inc();
        if decision.is_last_word(subject.door) {
            for finding in &decision.findings {
                self.broken(finding.rule, finding.mode);
            }
        }
        for Difference { rule, direction } in &decision.differences {
            let labels = DifferenceLabels {
                rule: *rule,
                direction: *direction,
            };
            self.differences.get_or_create(&labels).inc();
        }
    }

    fn broken(&self, rule: Rule, mode: Mode) {
        let labels = RuleLabels::new(rule, mode);
        self.rules.get_or_create(&labels).inc();
    }

    /// Counts a review that no rule is about.
    pub fn let_through(&self, door: Door, dry_run: bool) {
        self.answered(door, Outcome::Unknown);
        self.unknown.inc();
        let labels = ReviewLabels {
            resource: Resource::Unknown,
            operation: None,
            outcome: Outcome::Unknown,
            dry_run,
        };
        self.reviews.get_or_create(&labels).inc();
    }

    /// Counts an answer without a decision.
    pub fn refused(&self, door: Option<Door>, refusal: &Refusal) {
        let cause = refusal.as_str();
        self.refusals.get_or_create(&RefusalLabel { cause }).inc();
        match refusal {
            Refusal::Shed => self.shed.inc(),
            Refusal::Late => self.late.inc(),
            Refusal::Failed
            | Refusal::UnknownPath
            | Refusal::WrongMethod
            | Refusal::WrongType
            | Refusal::TooLarge { .. }
            | Refusal::Broken
            | Refusal::Malformed(_) => 0,
        };
        if let Some(door) = door {
            self.answered(door, Outcome::Refused);
        }
    }

    /// Counts a panic. What became of the review is counted where it is answered.
    pub fn panicked(&self) {
        self.panics.inc();
    }

    fn answered(&self, door: Door, outcome: Outcome) {
        let labels = CallLabels::new(door, outcome);
        self.calls.get_or_create(&labels).inc();
    }

    /// Notes how long a phase took.
    pub fn took(&self, phase: Phase, time: Duration) {
        if let Some(histogram) = self.handles.get(phase as usize) {
            histogram.observe(time.as_secs_f64());
        }
    }

    /// Counts a review as in flight until the guard is dropped.
    pub fn begin(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }
}

/// A review that is being answered.
#[derive(Debug)]
pub struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}
