//! The reconcilers as a process, against the real API server with its real Job, TTL and garbage-collection controllers.

mod admission;
mod alone;
mod any;
mod asked;
mod away;
mod crash;
mod custody;
mod idle;
mod lease;
mod looks;
mod orchestrations;
mod refuses;
mod runs;
mod scene;
mod schedules;
mod scoped;
mod settings;
mod standing;
mod stop;
mod tools;
mod waits;
mod workflow;
mod workspaces;
mod yields;
