//! What is counted about Events: writes and failed calls as such, and every occurrence that did not become an Event of its
//! own. One that was aggregated can still be dropped, if its count could not be written.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::reason::Severity;
use crate::api::names::closed_words;

closed_words! {
    /// Which API took a write.
    pub enum Group {
        /// `events.k8s.io/v1`.
        Events,
        /// Core `v1`.
        Core,
    }
}

closed_words! {
    /// Which limit held an occurrence back.
    pub enum Limit {
        /// Too much about one object.
        Object,
        /// Too much of one reason in one namespace.
        Topic,
    }
}

closed_words! {
    /// Why an occurrence was lost.
    pub enum Drop {
        /// The queue was full.
        QueueFull,
        /// The writer has ended.
        Closed,
        /// Too many series at a time: the least recently used one had to go.
        Evicted,
        /// The API server did not take it, or could not be reached for too long.
        Undelivered,
        /// The program ended before it could be written.
        Shutdown,
    }
}

closed_words! {
    /// Why a call to the API server failed.
    pub enum Failure {
        /// No connection, or it broke.
        Unreachable,
        /// No answer in time.
        Timeout,
        /// The API server asks for fewer calls.
        Throttled,
        /// The API server has an error of its own.
        Server,
        /// The API server does not know who is calling.
        Unauthorized,
        /// A role lacks a rule.
        Forbidden,
        /// The API server has no such group.
        GroupAbsent,
        /// The namespace does not exist or is being deleted.
        NamespaceGone,
        /// The Event was deleted.
        EventGone,
        /// An Event of this name exists already.
        Exists,
        /// Someone else changed the Event.
        Conflict,
        /// The API server finds the Event wrong.
        Invalid,
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
    pub fn dropped(&self, cause: Drop) -> u64 {
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

    pub(super) fn count_dropped(&self, cause: Drop, occurrences: u32) {
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
    cause: Drop,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    cause: Failure,
}

macro_rules! label_values {
    ($($label:ty),+) => {
        $(impl EncodeLabelValue for $label {
            fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
                EncodeLabelValue::encode(&self.as_str(), encoder)
            }
        })+
    };
}

label_values!(Severity, Group, Limit, Drop, Failure);
