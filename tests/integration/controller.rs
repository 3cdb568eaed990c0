//! The reconcilers as a process, against the real API server with its real Job, TTL and garbage-collection controllers.

mod admission;
mod any;
mod asked;
mod crash;
mod custody;
mod idle;
mod lease;
mod looks;
mod orchestrations;
mod policy;
mod refuses;
mod runs;
mod scene;
mod schedules;
mod standing;
mod stop;
mod tools;
mod vcs;
mod waits;
mod workflow;
mod workspaces;
