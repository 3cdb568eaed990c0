//! Everything the integration tests and the lab share: a real Kubernetes, waits, captures and runners.

pub mod apt;
pub mod browser;
pub mod builders;
pub mod cargo;
pub mod cert_manager;
pub mod cluster;
pub mod crds;
pub mod events;
pub mod fixtures;
pub mod gateway;
pub mod helm;
pub mod hostile;
pub mod http;
pub mod image;
pub mod kstatus;
pub mod kubectl;
pub mod lab;
pub mod left_out;
pub mod memory;
pub mod metrics;
pub mod monitoring;
mod namespace;
pub mod open_metrics;
pub mod otlp;
pub mod outcome;
pub mod pki;
pub mod pods;
pub mod ports;
pub mod postgres;
pub mod prometheus;
pub mod rollouts;
pub mod sink;
pub mod sse;
pub mod wait;

pub use namespace::{Namespace, namespace, namespace_in};
