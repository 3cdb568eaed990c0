//! The `agents-sidecar` program.

fn main() {}
