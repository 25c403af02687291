//! Files that appear whole or not at all: written beside the target under another name, then renamed.

use crate::data::table::io_error;
use crate::error::Result;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file through `fill`; until that has succeeded the old file, if any, stays as it was.
///
/// A link is followed; a target that is no regular file (a pipe, `/dev/stdout`) is written to directly.
/// Errs when the folder cannot be written to, and with whatever `fill` errs with.
///
/// ```
/// use latentgp::data::replace::write_file;
/// # let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("a.txt");
/// write_file(&path, |w| w.write_all(b"whole").map_err(|e| latentgp::Error::Io { path: "a".into(), reason: e.to_string() }))?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"whole");
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn write_file(
    path: impl AsRef<Path>,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>,
) -> Result<()> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if fs::metadata(&target).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        let mut direct = fs::OpenOptions::new().write(true).open(&target).map_err(|e| io_error(&name, e))?;
        return fill(&mut direct);
    }
    // Who may read the old file may read the new one.
    let mode = fs::metadata(&target).ok().map(|m| m.permissions());
    let mut out = BufWriter::new(beside(&target).map_err(|e| io_error(&name, e))?);
    fill(&mut out)?;
    let file = out.into_inner().map_err(|e| io_error(&name, e.into_error()))?;
    mode.map_or(Ok(()), |mode| file.as_file().set_permissions(mode)).map_err(|e| io_error(&name, e))?;
    file.as_file().sync_all().map_err(|e| io_error(&name, e))?;
    file.persist(&target).map_err(|e| io_error(&name, e.error))?;
    Ok(())
}

fn beside(target: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let folder = match target.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".latentgp-");
    // A temporary file is private by default; a result is as readable as any other file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn names(dir: &Path) -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_litter() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.csv");
        fs::write(&path, "old").unwrap();
        let failed = write_file(&path, |w| {
            w.write_all(b"new").unwrap();
            Err(Error::Interrupted)
        });
        assert_eq!(failed, Err(Error::Interrupted));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["t.csv"]);
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let bad = write_file(dir.path().join("no/such/t.csv"), |_| Ok(()));
        assert!(matches!(bad, Err(Error::Io { .. })), "{bad:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_keeps_pointing_and_the_file_is_readable_by_others() {
        use std::os::unix::fs::{MetadataExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        symlink(&real, &link).unwrap();
        write_file(&link, |w| w.write_all(b"new").map_err(|e| io_error("link", e))).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_ne!(fs::metadata(&real).unwrap().mode() & 0o044, 0);
    }

    #[cfg(unix)]
    #[test]
    fn who_may_read_a_file_stays_as_it_was() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        for mode in [0o600, 0o640, 0o755] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            write_file(&path, |w| w.write_all(b"new").map_err(|e| io_error("secret", e))).unwrap();
            assert_eq!(
                (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().mode() & 0o777),
                (b"new".to_vec(), mode)
            );
        }
    }
}
