//! What is counted about Jobs. All of it describes the cluster, not this process: every sidecar sees the same, so take the
//! maximum of several, never their sum.

mod gauges;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use agents::api::custody::{Class, Outcome};
use agents::closed_labels;
use agents::kit::labels::start_at_zero;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::board::Board;
use super::judge::{Hazard, Stage};
use super::view::Transition;
use gauges::Gauges;

closed_labels! {
    /// What is watched.
    pub(super) enum Resource {
        /// Jobs.
        Jobs = "jobs",
        /// Pods.
        Pods = "pods",
    }
}

closed_labels! {
    /// Whether the watch works at all.
    pub(super) enum Mode {
        /// It is switched off, or there is no cluster.
        Off = "off",
        /// The API server does not answer.
        Waiting = "waiting",
        /// A right or a kind is missing in the cluster.
        Unfit = "unfit",
        /// It works.
        On = "on",
    }
}

closed_labels! {
    /// A step in the life of a Job.
    enum Step {
        Created = "created",
        Running = "running",
        Succeeded = "succeeded",
        Failed = "failed",
        Recorded = "recorded",
        Deleted = "deleted",
    }
}

closed_labels! {
    /// What became of a question about a Job.
    pub(super) enum Answer {
        /// All was in order.
        InOrder = "in_order",
        /// Something was wrong, and an Event tells it.
        Told = "told",
        /// Something was wrong; the status says it already, or nobody is left to be told.
        Counted = "counted",
        /// The API server did not give the answer.
        Failed = "failed",
        /// Too many questions waited.
        Dropped = "dropped",
    }
}

/// Metrics of the watch.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    lifecycle: Family<StepLabels, Counter>,
    run: Family<OutcomeLabels, Histogram, fn() -> Histogram>,
    record: Histogram,
    premature: Family<PrematureLabels, Counter>,
    hazards: Family<HazardLabels, Counter>,
    answers: Family<AnswerLabels, Counter>,
    restarts: Family<ResourceLabels, Counter>,
    mode: Family<ModeLabels, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            lifecycle: Family::default(),
            run: Family::new_with_constructor(run_times),
            record: record_times(),
            premature: Family::default(),
            hazards: Family::default(),
            answers: Family::default(),
            restarts: Family::default(),
            mode: Family::default(),
        }
    }
}

/// From seconds to a day.
fn run_times() -> Histogram {
    Histogram::new([
        1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0,
    ])
}

/// From what is usual to what loses outcomes.
fn record_times() -> Histogram {
    Histogram::new([0.1, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0])
}

impl Metrics {
    /// Registers them and the gauges of the board; the caller chooses the prefix.
    pub(super) fn register(registry: &mut Registry, board: &Arc<Board>) -> Self {
        let metrics = Self::default();
        let Self {
            lifecycle,
            run,
            record,
            premature,
            hazards,
            answers,
            restarts,
            mode,
        } = &metrics; // a metric left out here does not compile
        registry.register(
            "job_lifecycle",
            "Jobs that came into a state, by state; not those that were in it when the watch began; in the cluster, as every replica sees it: take the maximum",
            lifecycle.clone(),
        );
        registry.register_with_unit(
            "job_run",
            "Time from the start of a Job to its end, by outcome; in the cluster, as every replica sees it: take the maximum",
            Unit::Seconds,
            run.clone(),
        );
        registry.register_with_unit(
            "job_record",
            "Time from the end of a Job to its stored outcome; in the cluster, as every replica sees it: take the maximum",
            Unit::Seconds,
            record.clone(),
        );
        registry.register(
            "job_premature_deletions",
            "Jobs deleted before their outcome was stored, by class, and by whether that was asked for or they are gone; in the cluster, as every replica sees it: take the maximum",
            premature.clone(),
        );
        registry.register(
            "job_hazards",
            "What endangered an outcome that was not stored; in the cluster, as every replica sees it: take the maximum",
            hazards.clone(),
        );
        registry.register(
            "job_questions",
            "Looks at the run of a Job of which something seemed wrong, by answer",
            answers.clone(),
        );
        registry.register(
            "job_watch_restarts",
            "Watches that broke and were started anew, by resource",
            restarts.clone(),
        );
        registry.register(
            "job_watch_mode",
            "1 for how the watch of Jobs stands: off, waiting for the API server, unfit for want of a right or a kind, or on",
            mode.clone(),
        );
        registry.register_collector(Box::new(Gauges(Arc::clone(board))));
        metrics.start_at_zero();
        metrics
    }

    fn start_at_zero(&self) {
        let steps = Step::ALL.iter().map(|&state| StepLabels { state });
        start_at_zero(&self.lifecycle, steps);
        let outcomes = [Outcome::Succeeded, Outcome::Failed].map(OutcomeLabels::of);
        start_at_zero(&self.run, outcomes);
        let classes = Class::ALL.iter().flat_map(|&class| {
            let stages = Stage::ALL.iter();
            stages.map(move |&stage| PrematureLabels::of(class, stage))
        });
        start_at_zero(&self.premature, classes);
        let hazards = Hazard::ALL.iter().map(|&hazard| HazardLabels { hazard });
        start_at_zero(&self.hazards, hazards);
        let answers = Answer::ALL.iter().map(|&answer| AnswerLabels { answer });
        start_at_zero(&self.answers, answers);
        let resources = Resource::ALL.iter();
        let resources = resources.map(|&resource| ResourceLabels { resource });
        start_at_zero(&self.restarts, resources);
        self.set_mode(Mode::Off);
    }

    /// Says how the watch stands.
    pub(super) fn set_mode(&self, now: Mode) {
        for &mode in Mode::ALL {
            let value = i64::from(mode == now);
            self.mode.get_or_create(&ModeLabels { mode }).set(value);
        }
    }

    /// Counts what happened to a Job.
    pub(super) fn count(&self, transition: Transition) {
        let state = match transition {
            Transition::Created => Step::Created,
            Transition::Running => Step::Running,
            Transition::Finished { outcome, after } => {
                if let Some(after) = after {
                    let run = self.run.get_or_create(&OutcomeLabels::of(outcome));
                    run.observe(after.as_secs_f64().max(0.0));
                }
                match outcome {
                    Outcome::Succeeded => Step::Succeeded,
                    Outcome::Failed => Step::Failed,
                }
            }
            Transition::Recorded { after } => {
                if let Some(after) = after {
                    self.record.observe(after.as_secs_f64().max(0.0));
                }
                Step::Recorded
            }
            Transition::Deleted => Step::Deleted,
        };
        self.lifecycle.get_or_create(&StepLabels { state }).inc();
    }

    /// Counts a premature deletion.
    pub(super) fn count_premature(&self, class: Class, stage: Stage) {
        let labels = PrematureLabels::of(class, stage);
        self.premature.get_or_create(&labels).inc();
    }

    /// Counts what endangered outcomes.
    pub(super) fn count_hazards(&self, hazard: Hazard, count: u64) {
        let labels = HazardLabels { hazard };
        self.hazards.get_or_create(&labels).inc_by(count);
    }

    /// Counts what became of a question.
    pub(super) fn count_answer(&self, answer: Answer) {
        self.answers.get_or_create(&AnswerLabels { answer }).inc();
    }

    /// Counts that a watch broke.
    pub(super) fn count_restart(&self, resource: Resource) {
        let labels = ResourceLabels { resource };
        self.restarts.get_or_create(&labels).inc();
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    state: Step,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

impl OutcomeLabels {
    fn of(outcome: Outcome) -> Self {
        Self {
            outcome: match outcome {
                Outcome::Succeeded => "succeeded",
                Outcome::Failed => "failed",
            },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PrematureLabels {
    class: &'static str,
    stage: Stage,
}

impl PrematureLabels {
    fn of(class: Class, stage: Stage) -> Self {
        Self {
            class: class.as_str(),
            stage,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HazardLabels {
    hazard: Hazard,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    answer: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabels {
    resource: Resource,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModeLabels {
    mode: Mode,
}
