//! The integration tests: one program, a module per area, all against a real Kubernetes.

mod events;
mod lab;
