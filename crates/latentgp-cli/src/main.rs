//! The `latentgp` program.
fn main() {}
