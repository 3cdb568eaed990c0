//! The library that the three programs share.
//!
//! `api` is types, names and pure rules: no I/O, no clock. `admission` is one review from bytes to decision. `kit` is serving: TLS, HTTP, admin endpoint, shutdown,
//! telemetry; it knows no Kubernetes object. `events` is the one emitter of Kubernetes Events; `cluster` is what every
//! program needs that talks to one.

pub mod admission;
pub mod api;
#[cfg(feature = "controller")]
pub mod cli;
pub mod cluster;
#[cfg(feature = "controller")]
pub mod controller;
pub mod events;
pub mod kit;
#[cfg(test)]
mod planted;
#[cfg(feature = "controller")]
pub mod serve;

/// Paths of the admin endpoint, the same in all programs that have them.
pub const ADMIN_PATHS: kit::admin::Paths = kit::admin::Paths {
    livez: api::contract::path::LIVEZ,
    readyz: api::contract::path::READYZ,
    metrics: Some(api::contract::path::METRICS),
    profile: api::contract::path::PROFILE,
};
