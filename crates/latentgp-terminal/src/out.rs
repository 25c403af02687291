//! Results to stdout or to files; notes to stderr.

use crate::failure::{Failure, Outcome};
use latentgp::data::replace::write_file;
use latentgp::data::table::Table;
use serde_json::Value;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Standard output that ends the program quietly when nobody reads it any more, as `head` does.
struct Stdout(io::StdoutLock<'static>);

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(closed)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(closed)
    }
}

fn closed(e: io::Error) -> io::Error {
    if e.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    e
}

/// Text that a terminal shows and does not obey: a control character, which a name in a file may have, as its number.
pub fn shown(text: &str) -> String {
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    match text.contains(obeyed) {
        true => text
            .chars()
            .map(|c| if obeyed(c) { c.escape_default().to_string() } else { c.to_string() })
            .collect(),
        false => text.to_string(),
    }
}

/// Prints text and a line end.
pub fn text(text: &str) -> Outcome {
    let mut out = Stdout(io::stdout().lock());
    writeln!(out, "{}", shown(text.trim_end())).and_then(|()| out.flush()).map_err(Failure::work)
}

/// Prints one JSON document.
pub fn json(value: &Value) -> Outcome {
    text(&serde_json::to_string_pretty(value).map_err(Failure::work)?)
}

/// A note on stderr, unless `quiet`. Work goes on where nobody reads it any more.
pub fn note(quiet: bool, text: impl std::fmt::Display) {
    if !quiet {
        let _ = writeln!(io::stderr(), "{}", shown(&text.to_string()));
    }
}

/// A table to a file, in the format its name says, or as CSV to stdout.
pub fn table(table: &Table, to: Option<&Path>) -> Outcome {
    match to {
        Some(path) => table.write(path).map_err(Failure::work),
        None => {
            let mut out = io::BufWriter::new(Stdout(io::stdout().lock()));
            if !io::stdout().is_terminal() {
                return table.write_csv(out).map_err(Failure::work);
            }
            let mut csv = Vec::new();
            table.write_csv(&mut csv).map_err(Failure::work)?;
            out.write_all(shown(&String::from_utf8_lossy(&csv)).as_bytes()).map_err(Failure::work)
        }
    }
}

/// Text to a file, whole or not at all.
pub fn file(path: &Path, content: &[u8]) -> Outcome {
    let fail = |e: io::Error| latentgp::Error::Io { path: path.display().to_string(), reason: e.to_string() };
    write_file(path, |out| out.write_all(content).map_err(fail)).map_err(Failure::work)
}

/// Errs before hours of work are spent where the result could not be written: the folder must exist, and
/// the name must end in one of `endings`, if there are any.
pub fn check(path: Option<&Path>, endings: &[&str]) -> Outcome {
    let Some(path) = path else { return Ok(()) };
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    if !endings.is_empty() && !endings.contains(&ending.as_str()) {
        return Err(Failure::usage(format!(
            "{}: the name of this file must end in {}",
            path.display(),
            endings.iter().map(|e| format!(".{e}")).collect::<Vec<_>>().join(" or ")
        )));
    }
    if path.is_dir() {
        return Err(Failure::usage(format!("{} is a folder, expected a file name", path.display())));
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => Err(Failure::usage(format!(
            "{}: there is no folder `{}`; make it first",
            path.display(),
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// Errs where a file to be written is one that is read, or that another option writes: it would be lost.
pub fn apart(inputs: &[(&str, Option<&Path>)], outputs: &[(&str, Option<&Path>)]) -> Outcome {
    let known = |(name, path): &(_, Option<&Path>)| Some((*name, place((*path)?)?));
    let mut taken: Vec<(&str, PathBuf)> = inputs.iter().filter_map(known).collect();
    for (option, path) in outputs.iter().filter_map(|(option, path)| Some((*option, (*path)?))) {
        let Some(place) = place(path) else { continue };
        if let Some((name, _)) = taken.iter().find(|(_, other)| *other == place) {
            return Err(Failure::usage(format!(
                "{option} {}: this is the file of {name}, which would be overwritten; choose another name",
                path.display()
            )));
        }
        taken.push((option, place));
    }
    Ok(())
}

/// Whether two names are those of one file.
pub fn same_file(a: &Path, b: &Path) -> bool {
    a == b || place(a).is_some_and(|a| Some(a) == place(b))
}

/// Where a file is or will be, whatever name it goes by; devices and pipes are nowhere, they may be named twice.
fn place(path: &Path) -> Option<PathBuf> {
    match path.canonicalize() {
        Ok(path) => path.is_file().then_some(path),
        Err(_) => {
            let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(folder.canonicalize().ok()?.join(path.file_name()?))
        }
    }
}

/// Endings of tables.
pub const TABLES: [&str; 6] = ["csv", "tsv", "txt", "npy", "parquet", "pq"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_told_nothing() {
        assert_eq!(shown("a\tb\nπ"), "a\tb\nπ");
        assert_eq!(shown("\u{1b}[2J\u{7}x\r\u{9b}"), "\\u{1b}[2J\\u{7}x\\r\\u{9b}");
    }
}
