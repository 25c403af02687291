//! What several models share: outputs with missing cells, the collapsed bound, the exact process, noise and inputs.

pub(crate) mod exact_process;
pub(crate) mod expected_rows;
pub(crate) mod init;
pub(crate) mod kzz;
pub(crate) mod noise;
pub(crate) mod outputs;
pub(crate) mod pca;
pub mod prior;
pub(crate) mod row_density;
pub(crate) mod sparse_bound;
pub(crate) mod starts;
pub(crate) mod supervised;
pub(crate) mod uncertain_inputs;
