//! Everything the integration tests and the lab share: a real Kubernetes, waits, captures and runners.

pub mod cluster;
pub mod crds;
pub mod fixtures;
pub mod kubectl;
pub mod lab;
mod namespace;
pub mod wait;

pub use namespace::{Namespace, namespace, namespace_in};
