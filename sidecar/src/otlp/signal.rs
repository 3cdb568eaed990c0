//! What a request is about.

use agents::closed_labels;

use super::grpc;

closed_labels! {
    /// What a request is about.
    pub enum Signal {
        /// Points of metrics.
        Metrics = "metrics",
        /// Spans.
        Traces = "traces",
        /// Records of a log.
        Logs = "logs",
    }
}

impl Signal {
    /// What comes to this path, by gRPC or by HTTP.
    pub fn at(path: &str) -> Option<Self> {
        match path.strip_prefix("/otlp").unwrap_or(path) {
            "/v1/metrics" | grpc::METRICS => Some(Self::Metrics),
            "/v1/traces" | grpc::TRACES => Some(Self::Traces),
            "/v1/logs" | grpc::LOGS => Some(Self::Logs),
            _ => None,
        }
    }

    /// Where it goes by gRPC.
    pub fn method(self) -> &'static str {
        match self {
            Self::Metrics => grpc::METRICS,
            Self::Traces => grpc::TRACES,
            Self::Logs => grpc::LOGS,
        }
    }

    /// Where it goes by HTTP.
    pub fn path(self) -> &'static str {
        match self {
            Self::Metrics => "/v1/metrics",
            Self::Traces => "/v1/traces",
            Self::Logs => "/v1/logs",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_to_a_path_comes_from_it() {
        for &signal in Signal::ALL {
            for path in [signal.path(), signal.method()] {
                assert_eq!(Signal::at(path), Some(signal));
                assert_eq!(Signal::at(&format!("/otlp{path}")), Some(signal));
            }
        }
        assert_eq!(Signal::at("/v1/metric"), None);
    }
}
