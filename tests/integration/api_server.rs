//! The CRDs on the real API server: what it takes, what it refuses, and what it keeps by itself.

mod contract;
mod install;
mod refusals;
mod round_trip;
