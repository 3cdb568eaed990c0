//! Serving: configuration, telemetry, admin endpoint, HTTP, TLS, shutdown and owned tasks. No Kubernetes objects.

pub mod admin;
pub mod args;
pub mod config;
pub mod egress;
pub mod exit;
pub mod fence;
pub mod http;
pub mod labels;
pub mod program;
pub mod readiness;
pub mod shutdown;
pub mod tasks;
pub mod telemetry;
pub mod tls;
