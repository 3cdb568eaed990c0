//! What the tests of several modules read.

pub(super) mod fixtures;
