//! The verdicts. Pure: facts in, a verdict out; one file per sort of fact.

pub(crate) mod cluster;
pub(crate) mod jobs;
pub(crate) mod metrics;
mod others;
pub(crate) mod programs;
pub(crate) mod rights;
pub(crate) mod webhook;

#[cfg(test)]
pub(super) mod tests;
