//! Integration tests.

#[cfg(test)]
mod crds;
