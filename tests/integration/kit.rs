//! The kit over real sockets and as real processes.

mod client;
mod http;
mod otlp;
mod pki;
mod process;
mod programs;
mod telemetry;
mod tls;
