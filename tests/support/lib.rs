//! Test support.

pub mod fixtures;
