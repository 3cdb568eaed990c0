//! What the receiver counts.

use agents::{closed_labels, kit::labels::start_at_zero};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::{Registry, Unit},
};

use super::answer::Denied;
use crate::store::{Oddity, Refusal, Tally};

closed_labels! {
    /// How a request came.
    pub enum Transport {
        /// Over HTTP/2 with frames.
        Grpc = "grpc",
        /// As a plain body.
        Http = "http",
    }
}

closed_labels! {
    /// What became of a request.
    pub(super) enum Outcome {
        Accepted = "accepted",
        Partial = "partial",
        Malformed = "malformed",
        TooLarge = "too_large",
        Packing = "packing",
        Busy = "busy",
        Memory = "memory",
        Unimplemented = "unimplemented",
    }
}

impl Outcome {
    pub(super) fn of(result: Result<&Tally, &Denied>) -> Self {
        match result {
            Ok(tally) if tally.refused.is_empty() => Self::Accepted,
            Ok(_) => Self::Partial,
            Err(Denied::Malformed(_)) => Self::Malformed,
            Err(Denied::TooLarge(_)) => Self::TooLarge,
            Err(Denied::Packing(_)) => Self::Packing,
            Err(Denied::Busy) => Self::Busy,
            Err(Denied::Full) => Self::Memory,
            Err(Denied::Unimplemented(..)) => Self::Unimplemented,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    transport: Transport,
    outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabel {
    reason: Refusal,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OddityLabel {
    kind: Oddity,
}

/// What the receiver counts.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    bytes: Counter,
    points: Counter,
    refused: Family<RefusalLabel, Counter>,
    oddities: Family<OddityLabel, Counter>,
}

impl Metrics {
    /// Registers them; the caller chooses the prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self {
            requests,
            bytes,
            points,
            refused,
            oddities,
        } = &metrics; // a metric left out here does not compile
        let help = "Requests of OTLP, by how they came and what became of them";
        registry.register("otlp_requests", help, requests.clone());
        let help = "Bytes of requests of OTLP, unpacked";
        registry.register_with_unit("otlp_received", help, Unit::Bytes, bytes.clone());
        registry.register("otlp_points", "Points that were taken", points.clone());
        let help = "Points that were refused, by reason; the sender was told";
        registry.register("otlp_refused_points", help, refused.clone());
        let help = "What was taken, but is worth a look, by kind";
        registry.register("otlp_oddities", help, oddities.clone());
        let outcomes = |transport| {
            Outcome::ALL
                .iter()
                .map(move |&outcome| RequestLabels { transport, outcome })
        };
        start_at_zero(
            requests,
            Transport::ALL
                .iter()
                .flat_map(|&transport| outcomes(transport)),
        );
        start_at_zero(
            refused,
            Refusal::ALL.iter().map(|&reason| RefusalLabel { reason }),
        );
        start_at_zero(
            oddities,
            Oddity::ALL.iter().map(|&kind| OddityLabel { kind }),
        );
        metrics
    }

    pub(super) fn request(&self, transport: Transport, result: Result<&Tally, &Denied>) {
        let outcome = Outcome::of(result);
        self.requests
            .get_or_create(&RequestLabels { transport, outcome })
            .inc();
        let Ok(tally) = result else { return };
        self.points.inc_by(tally.taken);
        for (reason, points, _) in &tally.refused {
            self.refused
                .get_or_create(&RefusalLabel { reason: *reason })
                .inc_by(*points);
        }
        for (kind, times) in &tally.odd {
            self.oddities
                .get_or_create(&OddityLabel { kind: *kind })
                .inc_by(*times);
        }
    }

    pub(super) fn received(&self, bytes: usize) {
        self.bytes.inc_by(bytes as u64);
    }
}
