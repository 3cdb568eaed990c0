//! OTLP in: gRPC and HTTP, protobuf and JSON, whole or compressed, with an answer for every point that is refused.
//!
//! A request takes this way: `http` or `grpc` take its bytes, `inflate` unpacks them, `json` turns JSON into protobuf,
//! `walk` reads them point by point into the store, and `answer` says what became of them. Traces and logs go on unread, if
//! there is somewhere to go.

pub mod answer;
mod attributes;
mod body;
pub mod grpc;
pub mod inflate;
mod json;
mod metrics;
mod points;
mod receive;
mod room;
mod settings;
mod signal;
mod start;
pub mod walk;
pub mod wire;
pub mod write;

pub use attributes::pairs;
pub use json::to_protobuf;
pub use metrics::Metrics;
pub use receive::{Receiver, Receiving};
pub use settings::Settings;
pub use signal::Signal;
pub use start::start;
