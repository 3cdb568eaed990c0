//! The `agents-webhook` program.

fn main() {}
