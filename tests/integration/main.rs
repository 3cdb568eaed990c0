//! The integration tests: one program, a module per area, all against a real Kubernetes.

mod api_server;
mod crds;
mod lab;
mod layers;
