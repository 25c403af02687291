//! Data in and out.

pub mod csv;
pub mod mat5;
mod names;
mod npy;
#[cfg(feature = "parquet")]
mod parquet;
pub mod replace;
mod scalar;
mod sniff;
pub mod table;
pub mod words;
mod write;
