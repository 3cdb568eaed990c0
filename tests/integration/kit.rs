//! The kit over real sockets and as real processes.

pub(crate) mod client;
mod http;
pub(crate) mod pki;
pub(crate) mod process;
mod programs;
mod streams;
mod telemetry;
mod tls;
