//! Model files: a fitted model as arrays and one JSON header, whole or refused.
//!
//! A `.lgp` file is a [safetensors](https://github.com/huggingface/safetensors) file, so that other
//! programs can read its arrays. Under `__metadata__` it has one key, `latentgp`, with the JSON
//!
//! ```text
//! { "sha256": …, "version": 1, "kind": "bayesian-gplvm", "header": { kernel, expectation, scaling, … } }
//! ```
//!
//! where `sha256` is that of the whole file with 64 zeros in its own place: no byte of the file, header
//! included, can change unnoticed. Reading executes nothing; sizes are checked against the file's length
//! before anything is allocated for them.
//!
//! A header may have [`SETTINGS`] beside the model: what the program that wrote the file was asked for.
//!
//! [`ModelFile`] is this layer. A model goes to and from it as a [`Store`]; `save` and `load` do both. Without the feature
//! `files` models go to and from a [`ModelFile`] too, which then has no bytes.
//!
//! ```
//! # #[cfg(feature = "files")] {
//! use latentgp::{Mat, file::ModelFile};
//! # let dir = tempfile::tempdir().unwrap();
//! let path = dir.path().join("a.lgp");
//! let mut file = ModelFile::new("example", serde_json::json!({ "name": "a" }));
//! file.tensors.insert("x".into(), Mat::eye(2));
//! file.write(&path)?;
//! assert_eq!(ModelFile::read(&path)?, file);
//! # }
//! # Ok::<(), latentgp::Error>(())
//! ```

#[cfg(feature = "files")]
mod disk;
mod labels;
mod latent_space;
mod params;
mod parts;
mod regression;
mod report;
#[cfg(feature = "files")]
mod seal;
mod series;
mod unfinished;

#[cfg(feature = "files")]
pub use disk::{in_file, load, load_with, save};
pub use labels::Labels;
pub use latent_space::TrainedSpace;
pub use params::{ParamSpec, put_params, take_params};
pub use regression::TrainedRegression;
pub(crate) use regression::{put_regression, take_regression};
pub use report::Report;
pub use series::TrainedSeries;
pub use unfinished::Unfinished;

use crate::error::{Error, Result};
use crate::kernel::{Kernel, Own};
use crate::mat::Mat;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the format that this library writes; it reads this and all before it.
pub const VERSION: u32 = 1;

/// The key in a header of what a program was asked for, as an object of its own; models are read without it.
pub const SETTINGS: &str = "settings";

/// The content of a model file.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFile {
    /// The kind of content, such as `bayesian-gplvm`.
    pub kind: String,
    /// Everything that is not an array.
    pub header: Value,
    /// The arrays by name; NaN is allowed.
    pub tensors: BTreeMap<String, Mat>,
}

/// Something that has a model file.
pub trait Store: Sized {
    /// What the file says it holds.
    const KIND: &'static str;

    /// Whether a file of this kind holds such a thing.
    fn holds(kind: &str) -> bool {
        kind == Self::KIND
    }

    /// The content of its file; errs where it cannot be written down, such as with a kernel whose expression
    /// is not that of its parameters.
    fn to_file(&self) -> Result<ModelFile>;

    /// The inverse of [`to_file`](Self::to_file), to the bit; errs when parts are missing or do not fit, or when
    /// its kernel has a part that is neither the library's nor in `own`.
    fn from_file_with(file: ModelFile, own: &Own) -> Result<Self>;

    /// The same, where its parameters give the evidence that its report tells; errs where they do not.
    fn verified(self) -> Result<Self> {
        Ok(self)
    }

    /// As [`from_file_with`](Self::from_file_with), with the library's kernels alone.
    fn from_file(file: ModelFile) -> Result<Self> {
        Self::from_file_with(file, &Own::default())
    }
}

impl ModelFile {
    /// A file without arrays yet.
    pub fn new(kind: impl Into<String>, header: Value) -> Self {
        ModelFile { kind: kind.into(), header, tensors: BTreeMap::new() }
    }

    /// An array; errs when it is missing.
    pub fn tensor(&self, name: &str) -> Result<&Mat> {
        self.tensors.get(name).ok_or_else(|| damaged(format!("the array `{name}` is missing")))
    }

    /// An array of the shape given, taken out; errs when it is missing or has another shape.
    pub fn take(&mut self, name: &str, rows: usize, cols: usize) -> Result<Mat> {
        let found = self.tensors.remove(name);
        let found = found.ok_or_else(|| damaged(format!("the array `{name}` is missing")))?;
        if (found.rows(), found.cols()) != (rows, cols) {
            let reason = format!("the array `{name}` should be {rows} × {cols}, it is {}", found.shape());
            return Err(damaged(reason));
        }
        Ok(found)
    }

    /// The header as a type of one's own.
    pub fn header_as<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_value(self.header.clone()).map_err(|e| damaged(format!("in the header, {e}")))
    }
}

/// An error about a file that is not named yet.
pub(crate) fn damaged(reason: impl Into<String>) -> Error {
    Error::ModelFile { path: "model file".into(), reason: reason.into() }
}

/// The expression of a kernel on `dim` columns; errs when it does not read back: that must not be written.
pub(crate) fn written(kernel: &dyn Kernel, dim: usize) -> Result<String> {
    let expression = kernel.expression();
    match Own::of(kernel).parse(&expression, dim) {
        Ok(read) if *read == *kernel => Ok(expression),
        _ => {
            let expected = "one whose expression reads back to the same kernel";
            Err(Error::invalid("the kernel of a model file", expected, format!("`{expression}`")))
        }
    }
}
