//! The console: its files over HTTP, and its pages in a real browser against a real control plane.

mod away;
mod files;
mod hostile;
mod many;
mod pages;
mod queue;
mod refusals;
pub(crate) mod scene;
