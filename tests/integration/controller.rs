//! The reconcilers as a process, against the real API server with its real Job, TTL and garbage-collection controllers.

mod admission;
mod asked;
mod crash;
mod custody;
mod idle;
mod lease;
mod refuses;
mod runs;
mod scene;
mod stop;
mod waits;
mod workflow;
