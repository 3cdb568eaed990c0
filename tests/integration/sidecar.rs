//! The sidecar as a process, beside controllers and the real API server.

pub(crate) mod conformance;
mod jobs;
mod otlp;
pub(crate) mod streams;
