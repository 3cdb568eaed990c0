//! What is counted about Events: writes and failed calls as such, and every occurrence that did not become an Event of its
//! own. One that was aggregated can still be dropped, if its count could not be written.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::reason::Severity;

/// Declares a closed list of label values, each with the word that a scrape shows.
macro_rules! labels {
    (
        $(#[$about:meta])*
        pub enum $name:ident { $($(#[$meaning:meta])* $label:ident = $word:literal,)+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$meaning])* $label,)+
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$label,)+];

            /// The word that a scrape and a log line show.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$label => $word,)+
                }
            }
        }

        impl EncodeLabelValue for $name {
            fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
                EncodeLabelValue::encode(&self.as_str(), encoder)
            }
        }
    };
}

labels! {
    /// Which API took a write.
    pub enum Group {
        /// `events.k8s.io/v1`.
        Events = "events",
        /// Core `v1`.
        Core = "core",
    }
}

labels! {
    /// Which limit held an occurrence back.
    pub enum Limit {
        /// Too much about one object.
        Object = "object",
        /// Too much of one reason in one namespace.
        Topic = "topic",
    }
}

labels! {
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

labels! {
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
        metrics
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
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn metrics_have_closed_labels() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.count_emitted(Severity::Warning, Group::Events);
        metrics.count_updated();
        metrics.count_aggregated();
        metrics.count_suppressed(Limit::Topic);
        metrics.count_dropped(Loss::QueueFull, 3);
        metrics.count_error(Failure::Forbidden);
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        let samples: Vec<_> = page.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "events_emitted_total{type=\"Warning\",group=\"events\"} 1",
            "events_updated_total 1",
            "events_aggregated_total 1",
            "events_suppressed_total{limit=\"topic\"} 1",
            "events_dropped_total{cause=\"queue_full\"} 3",
            "events_errors_total{cause=\"forbidden\"} 1",
        ];
        assert_eq!(samples, expected);
    }
}
