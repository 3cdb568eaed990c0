//! The reconcilers as a process, against the real API server with its real Job, TTL and garbage-collection controllers.

mod away;
pub(crate) mod custody;
mod egress;
mod kinds;
mod lease;
mod policy;
mod runs;
pub(crate) mod scene;
mod scoped;
mod settings;
mod telemetry;
