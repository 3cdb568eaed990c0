//! What a release goes through while people work: rungs, certificates and new versions. Requests must not fail for want of a
//! processor, so nothing else runs beside.

mod ladder;
mod renewed;
mod rollouts;
mod traffic;
