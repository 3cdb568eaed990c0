//! Integration tests.

mod crds;
