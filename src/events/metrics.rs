//! What is counted about Events: writes and failed calls as such, and every occurrence that did not become an Event of its
//! own. One that was aggregated can still be dropped, if its count could not be written.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::reason::Severity;
use crate::closed_labels;
use crate::kit::labels::start_at_zero;

closed_labels! {
    /// Which API took a write.
    pub enum Group {
        /// `events.k8s.io/v1`.
        Events = "events",
        /// Core `v1`.
        Core = "core",
    }
}

closed_labels! {
    /// Which limit held an occurrence back.
    pub enum Limit {
        /// Too much about one object.
        Object = "object",
        /// Too much of one reason in one namespace.
        Topic = "topic",
    }
}

closed_labels! {
    /// Why an occurrence was lost.
    pub enum Loss {
        /// The queue was full.
        QueueFull = "queue_full",
        /// The writer has ended.
        Closed = "closed",
        /// Too many series at a time: the least recently used one had to go.
        Evicted = "evicted",
        /// The API server did not take it, or could not be reached for too long.
        Undelivered = "undelivered",
        /// The program ended before it could be written.
        Shutdown = "shutdown",
    }
}

closed_labels! {
    /// Why a call to the API server failed.
    pub enum Failure {
        /// No connection, or it broke.
        Unreachable = "unreachable",
        /// No answer in time.
        Timeout = "timeout",
        /// The API server asks for fewer calls.
        Throttled = "throttled",
        /// The API server has an error of its own.
        Server = "server",
        /// The API server does not know who is calling.
        Unauthorized = "unauthorized",
        /// A role lacks a rule.
        Forbidden = "forbidden",
        /// The API server has no such group.
        GroupAbsent = "group_absent",
        /// The namespace does not exist or is being deleted.
        NamespaceGone = "namespace_gone",
        /// The Event was deleted.
        EventGone = "event_gone",
        /// An Event of this name exists already.
        Exists = "exists",
        /// Someone else changed the Event.
        Conflict = "conflict",
        /// The API server finds the Event wrong.
        Invalid = "invalid",
        /// This process no longer holds the lease; it must not write.
        Fenced = "fenced",
    }
}

impl EncodeLabelValue for Severity {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        EncodeLabelValue::encode(&self.as_str(), encoder)
    }
}

/// Metrics of the emitter.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    emitted: Family<EmittedLabels, Counter>,
    updated: Counter,
    aggregated: Counter,
    suppressed: Family<SuppressedLabels, Counter>,
    dropped: Family<DroppedLabels, Counter>,
    errors: Family<ErrorLabels, Counter>,
}

impl Metrics {
    /// Registers them; the caller chooses the prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self {
            emitted,
            updated,
            aggregated,
            suppressed,
            dropped,
            errors,
        } = &metrics; // a metric left out here does not compile
        registry.register(
            "events_emitted",
            "Events stored, by type and API",
            emitted.clone(),
        );
        registry.register(
            "events_updated",
            "Writes of the count of a series",
            updated.clone(),
        );
        registry.register(
            "events_aggregated",
            "Occurrences counted in a series instead of stored",
            aggregated.clone(),
        );
        registry.register(
            "events_suppressed",
            "Occurrences held back by a limit",
            suppressed.clone(),
        );
        registry.register(
            "events_dropped",
            "Occurrences lost, by cause",
            dropped.clone(),
        );
        registry.register(
            "events_errors",
            "Calls to the API server that failed, by cause; most are tried again",
            errors.clone(),
        );
        metrics.start_at_zero();
        metrics
    }

    fn start_at_zero(&self) {
        let types = Severity::ALL.iter();
        let emitted = types.flat_map(|&r#type| {
            let groups = Group::ALL.iter();
            groups.map(move |&group| EmittedLabels { r#type, group })
        });
        start_at_zero(&self.emitted, emitted);
        let limits = Limit::ALL.iter().map(|&limit| SuppressedLabels { limit });
        start_at_zero(&self.suppressed, limits);
        let losses = Loss::ALL.iter().map(|&cause| DroppedLabels { cause });
        start_at_zero(&self.dropped, losses);
        let failures = Failure::ALL.iter().map(|&cause| ErrorLabels { cause });
        start_at_zero(&self.errors, failures);
    }

    /// Events stored.
    pub fn emitted(&self, severity: Severity, group: Group) -> u64 {
        let labels = EmittedLabels {
            r#type: severity,
            group,
        };
        self.emitted.get_or_create(&labels).get()
    }

    /// Writes of the count of a series.
    pub fn updated(&self) -> u64 {
        self.updated.get()
    }

    /// Occurrences counted in a series.
    pub fn aggregated(&self) -> u64 {
        self.aggregated.get()
    }

    /// Occurrences held back by a limit.
    pub fn suppressed(&self, limit: Limit) -> u64 {
        self.suppressed
            .get_or_create(&SuppressedLabels { limit })
            .get()
    }

    /// Occurrences lost.
    pub fn dropped(&self, cause: Loss) -> u64 {
        self.dropped.get_or_create(&DroppedLabels { cause }).get()
    }

    /// Failed calls.
    pub fn errors(&self, cause: Failure) -> u64 {
        self.errors.get_or_create(&ErrorLabels { cause }).get()
    }

    pub(super) fn count_emitted(&self, severity: Severity, group: Group) {
        let labels = EmittedLabels {
            r#type: severity,
            group,
        };
        self.emitted.get_or_create(&labels).inc();
    }

    pub(super) fn count_updated(&self) {
        self.updated.inc();
    }

    pub(super) fn count_aggregated(&self) {
        self.aggregated.inc();
    }

    pub(super) fn count_suppressed(&self, limit: Limit) {
        self.suppressed
            .get_or_create(&SuppressedLabels { limit })
            .inc();
    }

    pub(super) fn count_dropped(&self, cause: Loss, occurrences: u32) {
        if occurrences > 0 {
            let labels = DroppedLabels { cause };
            self.dropped
                .get_or_create(&labels)
                .inc_by(occurrences.into());
        }
    }

    pub(super) fn count_error(&self, cause: Failure) {
        self.errors.get_or_create(&ErrorLabels { cause }).inc();
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EmittedLabels {
    r#type: Severity,
    group: Group,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SuppressedLabels {
    limit: Limit,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DroppedLabels {
    cause: Loss,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    cause: Failure,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prometheus_client::encoding::text::encode;

    use super::*;

    /// What a scrape shows, without the descriptions.
    fn samples(registry: &Registry) -> BTreeSet<String> {
        let mut page = String::new();
        encode(&mut page, registry).unwrap();
        let samples = page.lines().filter(|line| !line.starts_with('#'));
        samples.map(str::to_owned).collect()
    }

    #[test]
    fn every_series_stands_at_zero_until_something_is_counted() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let before = samples(&registry);
        let combined = Severity::ALL.len() * Group::ALL.len();
        let closed = Limit::ALL.len() + Loss::ALL.len() + Failure::ALL.len();
        assert_eq!(before.len(), combined + closed + 2);
        assert!(before.iter().all(|sample| sample.ends_with(" 0")));

        metrics.count_emitted(Severity::Warning, Group::Events);
        metrics.count_updated();
        metrics.count_aggregated();
        metrics.count_suppressed(Limit::Topic);
        metrics.count_dropped(Loss::QueueFull, 3);
        metrics.count_error(Failure::Forbidden);
        let after = samples(&registry);
        let changed: Vec<_> = after.difference(&before).map(String::as_str).collect();
        let expected = [
            "events_aggregated_total 1",
            "events_dropped_total{cause=\"queue_full\"} 3",
            "events_emitted_total{type=\"Warning\",group=\"events\"} 1",
            "events_errors_total{cause=\"forbidden\"} 1",
            "events_suppressed_total{limit=\"topic\"} 1",
            "events_updated_total 1",
        ];
        assert_eq!(changed, expected);
        assert_eq!(after.len(), before.len());
    }
}
