//! Serving: configuration, telemetry, admin endpoint, HTTP, TLS, shutdown and owned tasks. No Kubernetes objects.

pub mod config;
