//! `agents serve` as a process, against the real API server.

mod access;
mod alone;
mod approvals;
mod deliveries;
mod document;
mod grpc;
mod runs;
pub(crate) mod scene;
mod streams;
