//! What a unit of work costs: processor time, latency and memory, as tables that can be compared from run to run.
//!
//! `benches/units.rs` measures functions and the serving kit in this process, `benches/webhook.rs` the release build of
//! the webhook from outside, `benches/sidecar.rs` that of the sidecar, `benches/controller.rs` that of the controllers on a lab. Wall time on a shared machine says little, so costs are processor time, and what is served
//! is compared with a server that does nothing, in the same run.

pub mod client;
pub mod colony;
pub mod cpu;
pub mod load;
pub mod pki;
pub mod points;
pub mod program;
pub mod review;
pub mod servers;
pub mod sidecar;
pub mod table;
pub mod watched;
