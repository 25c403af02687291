//! Series in time.

pub mod narx;
