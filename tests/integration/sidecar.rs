//! The sidecar as a process, beside controllers and the real API server.

mod corpus;
mod forward;
mod hostile;
mod jobs;
mod manners;
mod memory;
mod otlp;
pub(crate) mod streams;
