//! What is counted about connections and requests of every server.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::{closed_labels, kit::labels::start_at_zero};

/// Metrics of all HTTP servers of a program, by the name of the server.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    connections: Family<ServerLabel, Gauge>,
    closed: Family<CloseLabels, Counter>,
    failures: Family<FailureLabels, Counter>,
    accept_errors: Family<ServerLabel, Counter>,
}

impl Metrics {
    /// Registers them; the caller chooses the prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self {
            connections,
            closed,
            failures,
            accept_errors,
        } = &metrics; // a metric left out here does not compile
        registry.register(
            "http_connections",
            "Connections open now",
            connections.clone(),
        );
        registry.register(
            "http_connections_closed",
            "Connections closed, by cause",
            closed.clone(),
        );
        registry.register(
            "http_request_failures",
            "Requests that the service did not answer itself, by cause",
            failures.clone(),
        );
        registry.register(
            "http_accept_errors",
            "Connections that could not be accepted, e.g. for want of file descriptors",
            accept_errors.clone(),
        );
        metrics
    }

    /// The handles of one server; all its series stand at 0 from here on.
    pub fn of(&self, server: &'static str) -> ServerMetrics {
        let label = ServerLabel { server };
        let closes = Close::ALL
            .iter()
            .map(|&cause| CloseLabels { server, cause });
        start_at_zero(&self.closed, closes);
        let failures = Failure::ALL
            .iter()
            .map(|&cause| FailureLabels { server, cause });
        start_at_zero(&self.failures, failures);
        ServerMetrics {
            server,
            connections: self.connections.get_or_create_owned(&label),
            accept_errors: self.accept_errors.get_or_create_owned(&label),
            closed: self.closed.clone(),
            failures: self.failures.clone(),
        }
    }
}

/// Metrics of one HTTP server.
#[derive(Clone, Debug)]
pub struct ServerMetrics {
    pub(super) server: &'static str,
    connections: Gauge,
    pub(super) accept_errors: Counter,
    closed: Family<CloseLabels, Counter>,
    failures: Family<FailureLabels, Counter>,
}

impl ServerMetrics {
    /// Counts a connection as open until the guard is dropped.
    pub(super) fn open(&self) -> Open<'_> {
        self.connections.inc();
        Open {
            metrics: self,
            close: Close::Cut,
        }
    }

    /// Connections that are open now.
    pub fn connections(&self) -> usize {
        usize::try_from(self.connections.get()).unwrap_or_default()
    }

    pub(super) fn failed(&self, cause: Failure) {
        let server = self.server;
        self.failures
            .get_or_create(&FailureLabels { server, cause })
            .inc();
    }
}

/// A connection that counts as open; one that is dropped without a word was cut.
pub(super) struct Open<'a> {
    metrics: &'a ServerMetrics,
    close: Close,
}

impl Open<'_> {
    pub(super) fn closed(mut self, close: Close) {
        self.close = close;
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let ServerMetrics {
            server,
            connections,
            closed,
            ..
        } = self.metrics;
        connections.dec();
        let labels = CloseLabels {
            server,
            cause: self.close,
        };
        closed.get_or_create(&labels).inc();
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServerLabel {
    server: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CloseLabels {
    server: &'static str,
    cause: Close,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    server: &'static str,
    cause: Failure,
}

closed_labels! {
    /// Why a connection was closed.
    pub(super) enum Close {
        /// Both sides were done.
        Done = "done",
        /// The client broke off or spoke no HTTP.
        Broken = "broken",
        /// The TLS handshake failed.
        HandshakeFailed = "handshake_failed",
        /// The TLS handshake took too long.
        HandshakeDeadline = "handshake_deadline",
        /// The head of a request took too long.
        HeadDeadline = "head_deadline",
        /// Nothing was asked for too long.
        Idle = "idle",
        /// Nothing was taken of what was sent for too long.
        Stalled = "stalled",
        /// It had waited longest, with nothing in flight, when another wanted in and there was no room.
        Displaced = "displaced",
        /// It was still busy when the drain was over.
        Cut = "cut",
    }
}

impl Close {
    pub(super) fn after<E>(result: Result<(), E>) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(_) => Self::Broken,
        }
    }
}

closed_labels! {
    /// Why a request was not answered by its service.
    pub(super) enum Failure {
        /// The service panicked.
        Panic = "panic",
        /// The service took too long.
        Deadline = "deadline",
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn every_series_of_a_server_stands_at_zero_from_the_start() {
        let mut registry = Registry::default();
        Metrics::register(&mut registry).of("admin");
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        let samples: Vec<_> = page.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(samples.len(), 2 + Close::ALL.len() + Failure::ALL.len());
        for sample in samples {
            assert!(
                sample.contains("{server=\"admin\"") && sample.ends_with(" 0"),
                "{sample}"
            );
        }
    }
}
