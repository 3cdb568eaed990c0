//! Serving: configuration, telemetry, admin endpoint, HTTP, TLS, shutdown and owned tasks. No Kubernetes objects.

pub mod config;
pub mod http;
pub mod readiness;
pub mod shutdown;
pub mod tasks;
pub mod tls;
