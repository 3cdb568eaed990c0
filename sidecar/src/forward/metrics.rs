//! What is counted of what goes on.

use agents::{closed_labels, kit::labels::start_at_zero};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::otlp::Signal;

closed_labels! {
    /// Why a request did not go on.
    pub(super) enum Cause {
        /// There was no room for it.
        QueueFull = "queue_full",
        /// The target does not want it.
        Refused = "refused",
        /// The target could not take it for too long.
        Expired = "expired",
        /// The program ended.
        Ended = "ended",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SentLabels {
    signal: Signal,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DroppedLabels {
    signal: Signal,
    cause: Cause,
}

/// What is counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics {
    sent: Family<SentLabels, Counter>,
    dropped: Family<DroppedLabels, Counter>,
    retries: Counter,
}

impl Metrics {
    /// Registers them; the caller chooses the prefix.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self {
            sent,
            dropped,
            retries,
        } = &metrics; // a metric left out here does not compile
        let help = "Requests that the target of forwarding has taken, by signal";
        registry.register("forward_sent", help, sent.clone());
        let help = "Requests that were not forwarded, by signal and cause";
        registry.register("forward_dropped", help, dropped.clone());
        let help = "Tries to forward a request that were not the first for it";
        registry.register("forward_retries", help, retries.clone());
        let signals = Signal::ALL.iter().copied();
        start_at_zero(sent, signals.clone().map(|signal| SentLabels { signal }));
        let causes = signals.flat_map(|signal| {
            let causes = Cause::ALL.iter();
            causes.map(move |&cause| DroppedLabels { signal, cause })
        });
        start_at_zero(dropped, causes);
        metrics
    }

    pub(super) fn sent(&self, signal: Signal) {
        self.sent.get_or_create(&SentLabels { signal }).inc();
    }

    pub(super) fn dropped(&self, signal: Signal, cause: Cause) {
        let labels = DroppedLabels { signal, cause };
        self.dropped.get_or_create(&labels).inc();
    }

    pub(super) fn retried(&self) {
        self.retries.inc();
    }

    #[cfg(test)]
    pub(super) fn count(&self, signal: Signal, cause: Option<Cause>) -> u64 {
        match cause {
            Some(cause) => self
                .dropped
                .get_or_create(&DroppedLabels { signal, cause })
                .get(),
            None => self.sent.get_or_create(&SentLabels { signal }).get(),
        }
    }
}
