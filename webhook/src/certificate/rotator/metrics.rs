//! What is counted about the certificates that the webhook makes for itself.

use agents::closed_labels;
use agents::kit::labels::start_at_zero;
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};
use prometheus_client::registry::{Registry, Unit};

use super::plan::Change;

closed_labels! {
    /// What was done.
    pub(super) enum Step {
        /// An authority was made.
        Begin = "begin",
        /// All API servers were told of it.
        Announce = "announce",
        /// It signs.
        Promote = "promote",
        /// A certificate was made.
        Renew = "renew",
        /// The authority before is no longer kept.
        Forget = "forget",
        /// The configurations were given other authorities.
        Trust = "trust",
    }
}

impl From<&Change> for Step {
    fn from(change: &Change) -> Self {
        match change {
            Change::Begin { .. } => Self::Begin,
            Change::Announce => Self::Announce,
            Change::Promote { .. } => Self::Promote,
            Change::Renew => Self::Renew,
            Change::Forget => Self::Forget,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabel {
    step: Step,
}

/// Metrics of the rotator.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    steps: Family<StepLabel, Counter>,
    failures: Counter,
    authorities: Gauge,
    not_after: Gauge,
}

impl Metrics {
    /// Registers them; the caller chooses the prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self {
            steps,
            failures,
            authorities,
            not_after,
        } = &metrics; // a metric left out here does not compile
        registry.register(
            "rotator_steps",
            "Steps in which the webhook made or changed its own certificates, by step",
            steps.clone(),
        );
        registry.register(
            "rotator_failures",
            "Looks at its own certificates that ended in trouble; they are tried again",
            failures.clone(),
        );
        registry.register(
            "rotator_authorities",
            "Authorities of its own that the API servers should trust now; 2 while one takes over from another",
            authorities.clone(),
        );
        registry.register_with_unit(
            "rotator_authority_not_after_timestamp",
            "When the authority of its own ends; 0 where it has none",
            Unit::Seconds,
            not_after.clone(),
        );
        start_at_zero(
            steps,
            Step::ALL.iter().map(|step| StepLabel { step: *step }),
        );
        metrics
    }

    pub(super) fn did(&self, step: Step) {
        self.steps.get_or_create(&StepLabel { step }).inc();
    }

    pub(super) fn failed(&self) {
        self.failures.inc();
    }

    pub(super) fn show(&self, authorities: usize, not_after: Option<Timestamp>) {
        self.authorities
            .set(authorities.try_into().unwrap_or(i64::MAX));
        let seconds = not_after.map_or(0, Timestamp::as_second);
        self.not_after.set(seconds);
    }
}
