//! What is shown about the certificate.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

/// Metrics of a certificate source.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub(super) not_after: Gauge,
    reloads: Family<ReloadLabel, Counter>,
}

impl Metrics {
    /// Registers them; the caller chooses the prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { not_after, reloads } = &metrics; // a metric left out here does not compile
        registry.register_with_unit(
            "certificate_not_after_timestamp",
            "End of the certificate in use, as Unix time",
            Unit::Seconds,
            not_after.clone(),
        );
        registry.register(
            "certificate_reloads",
            "Changed certificate files, by whether they could be used",
            reloads.clone(),
        );
        metrics
    }

    pub(super) fn reloaded(&self, result: &'static str) {
        self.reloads.get_or_create(&ReloadLabel { result }).inc();
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabel {
    result: &'static str,
}
