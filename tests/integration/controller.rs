//! The reconcilers as a process, against the real API server with its real Job, TTL and garbage-collection controllers.

mod admission;
mod any;
mod asked;
mod crash;
mod custody;
mod custom;
mod endpoint;
mod idle;
mod lease;
mod looks;
mod orchestrations;
mod queue_stream;
mod refuses;
mod runs;
mod scene;
mod schedules;
mod sources;
mod standing;
mod stop;
mod telemetry;
mod tools;
mod waits;
mod workflow;
mod workspaces;
