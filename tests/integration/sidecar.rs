//! The sidecar as a process, beside controllers and the real API server.

mod jobs;
mod manners;
mod otlp;
pub(crate) mod streams;
