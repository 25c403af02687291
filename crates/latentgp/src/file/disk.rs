//! Model files on the disk.

use super::{ModelFile, Store};
use crate::data::replace::write_file;
use crate::data::table::io_error;
use crate::error::{Error, Result};
use crate::kernel::Own;
use std::path::Path;

/// Writes a model file, whole or not at all.
pub fn save<S: Store>(path: impl AsRef<Path>, model: &S) -> Result<()> {
    model.to_file()?.write(path)
}

/// Reads a model file of one kind, and checks that its parameters give the evidence of its report.
///
/// # Errors
/// [`Error::ModelFile`] for a file that is truncated, altered, of a newer version or of another kind.
pub fn load<S: Store>(path: impl AsRef<Path>) -> Result<S> {
    load_with(path, &Own::default())
}

/// As [`load`], where the kernel may have parts of one's own.
pub fn load_with<S: Store>(path: impl AsRef<Path>, own: &Own) -> Result<S> {
    let path = path.as_ref();
    let file = ModelFile::read(path)?;
    if !S::holds(&file.kind) {
        let reason = format!("holds a `{}`, expected a `{}`", file.kind, S::KIND);
        return Err(Error::ModelFile { path: path.display().to_string(), reason });
    }
    in_file(path, S::from_file_with(file, own).and_then(S::verified))
}

/// Names the file in what went wrong with its content.
pub fn in_file<T>(path: &Path, result: Result<T>) -> Result<T> {
    result.map_err(|e| match e {
        Error::ModelFile { reason, .. } => Error::ModelFile { path: path.display().to_string(), reason },
        other => Error::ModelFile { path: path.display().to_string(), reason: other.to_string() },
    })
}

impl ModelFile {
    /// Writes the file, whole or not at all.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.to_bytes()?;
        write_file(path, |out| out.write_all(&bytes).map_err(|e| io_error(&path.display().to_string(), e)))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read, [`Error::ModelFile`] when any byte of it is not as written.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| io_error(&path.display().to_string(), e))?;
        in_file(path, Self::from_bytes(&bytes))
    }
}
