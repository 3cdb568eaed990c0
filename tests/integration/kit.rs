//! The kit over real sockets and as real processes.

mod client;
mod http;
mod otlp;
mod pki;
pub(crate) mod process;
mod programs;
mod telemetry;
mod tls;
