//! What the commands of the `latentgp` program share, whatever they do.
//!
//! ```text
//! work ──Outcome──▶ exit code        results ──out──▶ stdout, files      notes ──out──▶ stderr
//! Ctrl-C ──interrupt──▶ work         numbers ──words──▶ a few digits
//! ```

pub mod failure;
pub mod interrupt;
pub mod out;
pub mod words;
