//! What is shown about the certificate.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use crate::{closed_labels, kit::labels::start_at_zero};

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
        let results = Reload::ALL.iter().map(|&result| ReloadLabel { result });
        start_at_zero(reloads, results);
        metrics
    }

    pub(super) fn reloaded(&self, result: Reload) {
        self.reloads.get_or_create(&ReloadLabel { result }).inc();
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabel {
    result: Reload,
}

closed_labels! {
    /// What became of changed files.
    pub(super) enum Reload {
        /// They are in use.
        Ok = "ok",
        /// They cannot be used; the old ones stay.
        Refused = "refused",
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn both_results_of_a_reload_stand_at_zero_from_the_start() {
        let mut registry = Registry::default();
        Metrics::register(&mut registry);
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        for result in ["ok", "refused"] {
            let sample = format!("certificate_reloads_total{{result=\"{result}\"}} 0\n");
            assert!(page.contains(&sample), "{page}");
        }
    }
}
