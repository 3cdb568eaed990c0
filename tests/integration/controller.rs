//! The reconcilers as a process, against the real API server with its real Job, TTL and garbage-collection controllers.

mod any;
mod crash;
mod custody;
mod idle;
mod lease;
mod looks;
mod refuses;
mod runs;
mod scene;
mod standing;
mod stop;
mod waits;
