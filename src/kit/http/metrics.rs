//! What is counted about connections and requests of every server.

use std::fmt;

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

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

    /// The handles of one server.
    pub fn of(&self, server: &'static str) -> ServerMetrics {
        let label = ServerLabel { server };
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

/// Why a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Close {
    /// Both sides were done.
    Done,
    /// The client broke off or spoke no HTTP.
    Broken,
    /// The TLS handshake failed.
    HandshakeFailed,
    /// The TLS handshake took too long.
    HandshakeDeadline,
    /// The head of a request took too long.
    HeadDeadline,
    /// Nothing was asked for too long.
    Idle,
    /// It was still busy when the drain was over.
    Cut,
}

impl Close {
    pub(super) fn after<E>(result: Result<(), E>) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(_) => Self::Broken,
        }
    }
}

impl EncodeLabelValue for Close {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        let word = match self {
            Self::Done => "done",
            Self::Broken => "broken",
            Self::HandshakeFailed => "handshake_failed",
            Self::HandshakeDeadline => "handshake_deadline",
            Self::HeadDeadline => "head_deadline",
            Self::Idle => "idle",
            Self::Cut => "cut",
        };
        EncodeLabelValue::encode(&word, encoder)
    }
}

/// Why a request was not answered by its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Failure {
    /// The service panicked.
    Panic,
    /// The service took too long.
    Deadline,
}

impl EncodeLabelValue for Failure {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        let word = match self {
            Self::Panic => "panic",
            Self::Deadline => "deadline",
        };
        EncodeLabelValue::encode(&word, encoder)
    }
}
