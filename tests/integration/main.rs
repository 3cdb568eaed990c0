//! The integration tests: one program, a module per area, all against a real Kubernetes.

// Helpers may unwrap as tests do: clippy exempts what is marked as test code.
#![cfg(test)]

mod api_server;
mod chart;
mod console;
mod controller;
mod crds;
mod documents;
mod events;
mod fuzzed;
mod kit;
mod lab;
mod layers;
mod observability;
mod operate;
mod packages;
mod registration;
mod serve;
mod sidecar;
mod way;
mod webhook;
