//! The `agents` program.

fn main() {}
