//! The library that the three programs share.
//!
//! `api` is types, names and pure rules: no I/O, no clock. `kit` is serving: TLS, HTTP, admin endpoint, shutdown,
//! telemetry; it knows no Kubernetes object. `events` is the one emitter of Kubernetes Events.

pub mod api;
#[cfg(feature = "controller")]
pub mod cli;
pub mod events;
pub mod kit;
