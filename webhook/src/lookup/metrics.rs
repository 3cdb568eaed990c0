//! What is shown about look-ups.

use agents::admission::known::Known;
use agents::api::kind::Kind;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// Metrics of the look-ups.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    objects: Family<KindLabel, Gauge>,
    watch_errors: Family<KindLabel, Counter>,
    stale: Family<KindLabel, Gauge>,
}

impl Metrics {
    /// Registers them; the caller chooses the prefix. Every kind is there from the start.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self {
            objects,
            watch_errors,
            stale,
        } = &metrics; // a metric left out here does not compile
        registry.register(
            "lookup_objects",
            "Objects that are known for look-ups, by kind",
            objects.clone(),
        );
        registry.register(
            "lookup_watch_errors",
            "Watches and lists that failed and are tried again, by kind",
            watch_errors.clone(),
        );
        registry.register_with_unit(
            "lookup_stale",
            "How long a kind has not been followed because its watch is broken; 0 when it is followed",
            Unit::Seconds,
            stale.clone(),
        );
        for (kind, _) in Known::followed() {
            let label = KindLabel::of(kind);
            drop(objects.get_or_create(&label));
            drop(watch_errors.get_or_create(&label));
            drop(stale.get_or_create(&label));
        }
        metrics
    }

    pub(super) fn set_objects(&self, kind: Kind, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.objects.get_or_create(&KindLabel::of(kind)).set(count);
    }

    pub(super) fn count_error(&self, kind: Kind) {
        self.watch_errors.get_or_create(&KindLabel::of(kind)).inc();
    }

    pub(super) fn set_stale(&self, kind: Kind, seconds: u64) {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        self.stale.get_or_create(&KindLabel::of(kind)).set(seconds);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

impl KindLabel {
    fn of(kind: Kind) -> Self {
        Self {
            kind: kind.as_str(),
        }
    }
}
