//! The sidecar as a process.

pub(crate) mod streams;
