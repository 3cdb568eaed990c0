//! What is shown about the certificate and about those who come with one.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use super::clients::{Client, Standing};
use crate::{closed_labels, kit::labels::start_at_zero};

/// Most pairs of issuer and subject that are told apart; the rest is `other`.
const NAMES: usize = 16;

/// Metrics of a certificate source.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub(super) not_after: Gauge,
    pub(super) on_wire: Gauge,
    reloads: Family<ReloadLabel, Counter>,
    clients: Family<ClientLabel, Counter>,
    names: Family<NameLabels, Counter>,
    /// Pairs that have a series of their own.
    known: Arc<Mutex<HashSet<NameLabels>>>,
}

impl Metrics {
    /// Registers them; the caller chooses the prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self {
            not_after,
            on_wire,
            reloads,
            clients,
            names,
            known: _,
        } = &metrics; // a metric left out here does not compile
        registry.register_with_unit(
            "certificate_not_after_timestamp",
            "End of the certificate in use, as Unix time",
            Unit::Seconds,
            not_after.clone(),
        );
        registry.register(
            "certificate_on_wire",
            "Whether a connection to our own port showed the certificate in use; 1 is yes",
            on_wire.clone(),
        );
        registry.register(
            "certificate_reloads",
            "Changed certificate files, by whether they could be used",
            reloads.clone(),
        );
        registry.register(
            "tls_clients",
            "Connections of clients who were asked for a certificate, by how that stands",
            clients.clone(),
        );
        registry.register(
            "tls_client_names",
            "Connections of clients with a certificate, by common names; the first 16 pairs, the rest is other",
            names.clone(),
        );
        let results = Reload::ALL.iter().map(|&result| ReloadLabel { result });
        start_at_zero(reloads, results);
        let standings = Standing::ALL
            .iter()
            .map(|&certificate| ClientLabel { certificate });
        start_at_zero(clients, standings);
        start_at_zero(names, [NameLabels::other()]);
        metrics
    }

    pub(super) fn reloaded(&self, result: Reload) {
        self.reloads.get_or_create(&ReloadLabel { result }).inc();
    }

    pub(super) fn met(&self, client: Client) {
        let Client { standing, names } = client;
        let certificate = standing;
        self.clients
            .get_or_create(&ClientLabel { certificate })
            .inc();
        if let Some(names) = names {
            self.names.get_or_create(&self.bounded(names)).inc();
        }
    }

    /// The pair itself if there is room for it: anyone can make up names.
    fn bounded(&self, (issuer, subject): (String, String)) -> NameLabels {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let names = NameLabels { issuer, subject };
        if known.contains(&names) {
            return names;
        }
        if known.len() < NAMES {
            known.insert(names.clone());
            return names;
        }
        NameLabels::other()
    }
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabel {
    result: Reload,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClientLabel {
    certificate: Standing,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NameLabels {
    issuer: String,
    subject: String,
}

impl NameLabels {
    fn other() -> Self {
        Self {
            issuer: "other".to_owned(),
            subject: "other".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn page(registry: &Registry) -> String {
        let mut page = String::new();
        encode(&mut page, registry).expect("a page");
        page
    }

    #[test]
    fn closed_labels_are_there_from_the_start() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let page = page(&registry);
        for line in [
            "certificate_reloads_total{result=\"ok\"} 0",
            "certificate_reloads_total{result=\"refused\"} 0",
            "tls_clients_total{certificate=\"none\"} 0",
            "tls_clients_total{certificate=\"untrusted\"} 0",
            "tls_client_names_total{issuer=\"other\",subject=\"other\"} 0",
        ] {
            assert!(page.contains(line), "{page}");
        }
        drop(metrics);
    }

    #[test]
    fn a_crowd_of_names_ends_in_one_series() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        for number in 0..1000 {
            metrics.met(Client {
                standing: Standing::Unchecked,
                names: Some(("issuer".to_owned(), format!("subject {number}"))),
            });
        }
        let page = page(&registry);
        let series = page
            .lines()
            .filter(|line| line.starts_with("tls_client_names_total"));
        assert_eq!(series.count(), NAMES + 1);
        assert!(
            page.contains("tls_client_names_total{issuer=\"other\",subject=\"other\"} 984"),
            "{page}"
        );
    }
}
