//! The sidecar as a process, beside controllers and the real API server.

pub(crate) mod conformance;
mod corpus;
mod expiry;
mod forward;
mod hostile;
pub(crate) mod jobs;
mod manners;
pub(crate) mod memory;
pub(crate) mod otlp;
pub(crate) mod streams;
