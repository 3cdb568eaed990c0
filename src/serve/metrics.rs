//! What the control plane counts.

use std::time::Duration;

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::operation::Id;
use crate::closed_labels;
use crate::kit::labels::start_at_zero;

/// Bounds of the time that an answer takes, in seconds.
const BOUNDS: [f64; 9] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// What is counted. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    requests: Family<RequestLabels, Counter>,
    latency: Family<OperationLabel, Histogram, fn() -> Histogram>,
    reviews: Family<ReviewLabels, Counter>,
    pub(super) streams: StreamMetrics,
    pub(super) deliveries: DeliveryMetrics,
}

impl Metrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            latency: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
            reviews: Family::default(),
            streams: StreamMetrics::default(),
            deliveries: DeliveryMetrics::default(),
        };
        let Self {
            requests,
            latency,
            reviews,
            streams,
            deliveries,
        } = &metrics; // a metric left out here does not compile
        registry.register(
            "requests",
            "Requests answered, by operation and by the first digit of the code",
            requests.clone(),
        );
        registry.register_with_unit(
            "request_latency",
            "From the head of a request to the head of its answer, by operation",
            Unit::Seconds,
            latency.clone(),
        );
        registry.register(
            "reviews",
            "Questions to the cluster about who someone is and what they may do, by sort and by what was said; what is known from before is not asked",
            reviews.clone(),
        );
        streams.register(registry);
        deliveries.register(registry);
        for &operation in Id::ALL {
            let labels = Class::ALL.iter();
            let labels = labels.map(|&code| RequestLabels { operation, code });
            start_at_zero(requests, labels);
            start_at_zero(latency, [OperationLabel { operation }]);
        }
        for &review in Review::ALL {
            let labels = Verdict::ALL.iter();
            let labels = labels.map(|&verdict| ReviewLabels { review, verdict });
            start_at_zero(reviews, labels);
        }
        metrics
    }

    pub(super) fn answered(&self, operation: Id, status: StatusCode, took: Duration) {
        let code = Class::of(status);
        let labels = RequestLabels { operation, code };
        self.requests.get_or_create(&labels).inc();
        let label = OperationLabel { operation };
        self.latency
            .get_or_create(&label)
            .observe(took.as_secs_f64());
    }

    pub(super) fn reviewed(&self, review: Review, verdict: Verdict) {
        let labels = ReviewLabels { review, verdict };
        self.reviews.get_or_create(&labels).inc();
    }
}

/// What is counted about calls of trackers.
#[derive(Clone, Debug, Default)]
pub(super) struct DeliveryMetrics {
    came: Family<OutcomeLabel, Counter>,
    waiting: Gauge,
}

impl DeliveryMetrics {
    fn register(&self, registry: &mut Registry) {
        let Self { came, waiting } = self;
        registry.register(
            "deliveries",
            "Calls of trackers, by what became of them",
            came.clone(),
        );
        let labels = Outcome::ALL.iter();
        start_at_zero(came, labels.map(|&outcome| OutcomeLabel { outcome }));
        registry.register(
            "deliveries_waiting",
            "Deliveries of trackers that wait for the controllers",
            waiting.clone(),
        );
    }

    pub(super) fn came(&self, outcome: Outcome) {
        self.came.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(super) fn waiting(&self, count: usize) {
        self.waiting.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: Outcome,
}

closed_labels! {
    /// What became of a call of a tracker.
    pub(super) enum Outcome {
        /// It waits for the controllers.
        Queued = "queued",
        /// It came before.
        Duplicate = "duplicate",
        /// It is about nothing that we take over.
        Ignored = "ignored",
        /// Nobody signed it.
        Unsigned = "unsigned",
        /// It is old, cannot be understood, or is about nothing that a source names.
        Unfit = "unfit",
        /// As many wait as may.
        Full = "full",
        /// The API server did not take it.
        Failed = "failed",
    }
}

/// What is counted about readers of streams. Opened less closed is how many there are.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamMetrics {
    readers: Family<StreamLabel, Gauge>,
    opened: Family<StreamLabel, Counter>,
    closed: Family<StreamLabel, Counter>,
    dropped: Family<StreamLabel, Counter>,
    refused: Family<StreamLabel, Counter>,
}

impl StreamMetrics {
    fn register(&self, registry: &mut Registry) {
        let Self {
            readers,
            opened,
            closed,
            dropped,
            refused,
        } = self;
        registry.register("stream_readers", "Readers of a stream now", readers.clone());
        for (name, help, family) in [
            ("stream_opened", "Readers that came", opened),
            ("stream_closed", "Readers that went", closed),
            (
                "stream_dropped",
                "Readers that went because they were too slow",
                dropped,
            ),
            (
                "stream_refused",
                "Readers for whom there was no room",
                refused,
            ),
        ] {
            registry.register(name, help, family.clone());
            start_at_zero(
                family,
                Stream::ALL.iter().map(|&stream| StreamLabel { stream }),
            );
        }
        start_at_zero(
            readers,
            Stream::ALL.iter().map(|&stream| StreamLabel { stream }),
        );
    }

    pub(super) fn opened(&self, stream: Stream) {
        self.opened.get_or_create(&StreamLabel { stream }).inc();
        self.readers.get_or_create(&StreamLabel { stream }).inc();
    }

    pub(super) fn closed(&self, stream: Stream) {
        self.closed.get_or_create(&StreamLabel { stream }).inc();
        self.readers.get_or_create(&StreamLabel { stream }).dec();
    }

    pub(super) fn dropped(&self, stream: Stream) {
        self.dropped.get_or_create(&StreamLabel { stream }).inc();
    }

    pub(super) fn refused(&self, stream: Stream) {
        self.refused.get_or_create(&StreamLabel { stream }).inc();
    }

    #[cfg(test)]
    pub(super) fn figures(&self, stream: Stream) -> Figures {
        let of = |family: &Family<StreamLabel, Counter>| {
            family.get_or_create(&StreamLabel { stream }).get()
        };
        Figures {
            readers: self.readers.get_or_create(&StreamLabel { stream }).get(),
            opened: of(&self.opened),
            closed: of(&self.closed),
            dropped: of(&self.dropped),
            refused: of(&self.refused),
        }
    }
}

/// Who reads, in numbers.
#[cfg(test)]
pub(super) struct Figures {
    pub(super) readers: i64,
    pub(super) opened: u64,
    pub(super) closed: u64,
    pub(super) dropped: u64,
    pub(super) refused: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StreamLabel {
    stream: Stream,
}

closed_labels! {
    /// A stream.
    pub(super) enum Stream {
        /// What happens to all objects.
        ControlPlane = "control-plane",
        /// How the queue stands.
        Queue = "queue",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabel {
    operation: Id,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    operation: Id,
    code: Class,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReviewLabels {
    review: Review,
    verdict: Verdict,
}

closed_labels! {
    /// The first digit of a code.
    pub(super) enum Class {
        /// It was done.
        Done = "2xx",
        /// The client is at fault.
        Refused = "4xx",
        /// We are, or the cluster is.
        Failed = "5xx",
    }
}

impl Class {
    fn of(status: StatusCode) -> Self {
        match status.as_u16() {
            ..400 => Self::Done,
            400..500 => Self::Refused,
            500.. => Self::Failed,
        }
    }
}

closed_labels! {
    /// A question to the cluster.
    pub(super) enum Review {
        /// Whose token is it?
        Token = "token",
        /// May they do it?
        Access = "access",
    }
}

impl Review {
    /// What is made to ask it.
    pub(super) fn resource(self) -> &'static str {
        match self {
            Self::Token => "tokenreviews.authentication.k8s.io",
            Self::Access => "subjectaccessreviews.authorization.k8s.io",
        }
    }
}

closed_labels! {
    /// What the cluster said.
    pub(super) enum Verdict {
        /// Yes.
        Allowed = "allowed",
        /// No.
        Denied = "denied",
        /// It did not say.
        Failed = "failed",
    }
}
