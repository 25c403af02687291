//! The `latentgp` program.

// The commands that draw come with the models they draw.
#[allow(dead_code, unused_imports)]
mod figure;

fn main() {}
