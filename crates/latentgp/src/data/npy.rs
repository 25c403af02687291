//! NumPy's `.npy` and `.npz`: arrays of numbers, booleans or text, with one or two dimensions.
//!
//! A file is a magic word, a Python dictionary (`descr`, `fortran_order`, `shape`) and the numbers. Sizes
//! in the header are promises of the file: memory grows with the bytes that come. Objects, which would
//! have to be unpickled, are refused: reading executes nothing.

use crate::budget;
use crate::data::names::{list, nearest};
use crate::data::replace::write_file;
use crate::data::scalar::Scalar;
use crate::data::table::{Column, Table, Values, io_error, open};
use crate::data::words::{Interner, push_lean};
use crate::error::{Error, Result};
use std::io::{BufReader, Read};
use std::path::Path;
use zip::ZipArchive;
use zip::result::ZipError;

/// Reads `.npy`.
pub(crate) fn read_npy(path: &str) -> Result<Table> {
    read_array(&mut BufReader::new(open(path)?), path)
}

/// Reads one array of `.npz`; the key may be left out when there is only one.
pub(crate) fn read_npz(path: &str, key: Option<&str>) -> Result<Table> {
    let broken = |e: ZipError| match e {
        ZipError::Io(e) => io_error(path, e),
        e => Error::data(path, format!("is not a whole .npz archive: {e}")),
    };
    let mut zip = ZipArchive::new(BufReader::new(open(path)?)).map_err(broken)?;
    let files: Vec<_> = zip.file_names().collect::<std::result::Result<_, _>>().map_err(broken)?;
    let keys: Vec<String> = files.iter().filter_map(|n| n.strip_suffix(".npy")).map(String::from).collect();
    drop(files);
    let key = choose(path, key, &keys)?;
    let name = format!("{path}:{key}");
    let mut entry = zip.by_name(&format!("{key}.npy")).map_err(broken)?;
    read_array(&mut entry, &name)
}

/// The key asked for, or the only one there is.
pub(crate) fn choose(path: &str, key: Option<&str>, keys: &[String]) -> Result<String> {
    let known: Vec<&str> = keys.iter().map(String::as_str).collect();
    match (key, keys) {
        (Some(k), _) if known.contains(&k) => Ok(k.to_string()),
        (Some(k), _) => {
            let hint = nearest(k, &known).map_or("; it".into(), |n| format!("; did you mean `{n}`? It"));
            Err(Error::data(path, format!("has no array `{k}`{hint} has {}", list(keys))))
        }
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(Error::data(path, "has no arrays")),
        (None, [first, ..]) => Err(Error::data(
            path,
            format!("has several arrays, {}; choose one, as in {path}:{first}", list(keys)),
        )),
    }
}

/// What an element is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Element {
    Number(Scalar),
    /// UTF-32, that many characters.
    Unicode(usize),
    /// That many bytes.
    Bytes(usize),
}

#[derive(Debug, PartialEq)]
struct Header {
    element: Element,
    big_endian: bool,
    fortran: bool,
    rows: usize,
    cols: usize,
}

fn read_array(from: &mut dyn Read, name: &str) -> Result<Table> {
    let header = Header::read(from, name)?;
    let columns = match header.element {
        Element::Number(scalar) => header.numbers(scalar, from, name)?,
        text => header.text(text, from, name)?,
    };
    if from.read(&mut [0]).map_err(|e| io_error(name, e))? != 0 {
        return Err(Error::data(name, "has bytes after its array; one array a file is expected"));
    }
    Table::new(name, columns)
}

impl Header {
    fn read(from: &mut dyn Read, name: &str) -> Result<Header> {
        const LONGEST: usize = 1 << 16;
        let mut start = [0; 8];
        let fail = |e| io_error(name, e);
        from.read_exact(&mut start).map_err(fail)?;
        if !start.starts_with(b"\x93NUMPY") {
            return Err(Error::data(name, "is not a NumPy array: it does not begin with \\x93NUMPY"));
        }
        let mut size = [0; 4];
        let digits = if start[6] == 1 { 2 } else { 4 };
        from.read_exact(&mut size[..digits]).map_err(fail)?;
        let size = u32::from_le_bytes(size) as usize;
        if !(1..=3).contains(&start[6]) || size > LONGEST {
            let reason = format!(
                "is NumPy format {}.{} with a header of {size} bytes, which is not known",
                start[6], start[7]
            );
            return Err(Error::data(name, reason));
        }
        let mut text = vec![0; size];
        from.read_exact(&mut text).map_err(fail)?;
        Header::parse(&String::from_utf8_lossy(&text), name)
    }

    fn parse(text: &str, name: &str) -> Result<Header> {
        let bad = || Error::data(name, format!("has a header that cannot be read: {}", text.trim()));
        let descr = field(text, "descr").ok_or_else(bad)?;
        let fortran = field(text, "fortran_order").ok_or_else(bad)?.starts_with("True");
        let shape = field(text, "shape").and_then(shape).ok_or_else(bad)?;
        let shown = shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ");
        let (rows, cols) = match shape[..] {
            [n] => (n, 1),
            [n, d] => (n, d),
            _ => {
                let found = format!("{} dimensions ({shown})", shape.len());
                return Err(Error::shape(name, "1 or 2 dimensions; reshape the array", found));
            }
        };
        if rows.checked_mul(cols).and_then(|n| n.checked_mul(8)).is_none_or(|n| n == 0) {
            return Err(Error::shape(name, "at least one row and one column", shown));
        }
        let quoted = descr.strip_prefix(['\'', '"']).and_then(|d| d.find(['\'', '"']).map(|end| &d[..end]));
        let (element, big_endian) = element(quoted.unwrap_or("structured"), name)?;
        budget::check(name, 8.0 * rows as f64 * cols as f64, "fewer rows or columns")?;
        Ok(Header { element, big_endian, fortran, rows, cols })
    }

    /// Column and whether it is a new one, for the k-th element in the file.
    fn place(&self, k: usize) -> (usize, bool) {
        if self.fortran {
            (k / self.rows, k.is_multiple_of(self.rows))
        } else {
            (k % self.cols, k < self.cols)
        }
    }

    fn numbers(&self, scalar: Scalar, from: &mut dyn Read, name: &str) -> Result<Vec<Column>> {
        let (mut columns, mut k): (Vec<Vec<f64>>, usize) = (Vec::new(), 0);
        let take = |v| {
            let (j, new) = self.place(k);
            if new {
                columns.push(Vec::new());
            }
            push_lean(&mut columns[j], v);
            k += 1;
        };
        scalar.read(from, self.rows * self.cols, self.big_endian, take).map_err(|e| io_error(name, e))?;
        columns.iter_mut().for_each(Vec::shrink_to_fit);
        Ok(columns.into_iter().enumerate().map(|(j, v)| Column::numbers(j.to_string(), v)).collect())
    }

    fn text(&self, element: Element, from: &mut dyn Read, name: &str) -> Result<Vec<Column>> {
        let mut columns: Vec<Interner> = Vec::new();
        let mut bytes = vec![0; element.size()];
        for k in 0..self.rows * self.cols {
            from.read_exact(&mut bytes).map_err(|e| io_error(name, e))?;
            let (j, new) = self.place(k);
            if new {
                columns.push(Interner::default());
            }
            let word = element.decode(&bytes, self.big_endian);
            columns[j]
                .push(&word.ok_or_else(|| Error::data(name, format!("element {k} is not valid text")))?);
        }
        let column =
            |(j, w): (usize, Interner)| Column { name: j.to_string(), values: Values::Words(w.finish()) };
        Ok(columns.into_iter().enumerate().map(column).collect())
    }
}

impl Element {
    fn size(self) -> usize {
        match self {
            Element::Number(s) => s.size(),
            Element::Unicode(n) => 4 * n,
            Element::Bytes(n) => n,
        }
    }

    fn decode(self, bytes: &[u8], big_endian: bool) -> Option<String> {
        let text = match self {
            Element::Unicode(_) => {
                let code = |b: &[u8]| {
                    let b = [b[0], b[1], b[2], b[3]];
                    char::from_u32(if big_endian { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) })
                };
                bytes.chunks_exact(4).map(code).collect::<Option<String>>()?
            }
            _ => String::from_utf8(bytes.to_vec()).ok()?,
        };
        Some(text.trim_end_matches('\0').to_string())
    }
}

/// What follows `'key':` in the dictionary.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let at = [format!("'{key}'"), format!("\"{key}\"")]
        .iter()
        .find_map(|k| text.find(k.as_str()).map(|i| i + k.len()))?;
    Some(text[at..].trim_start().strip_prefix(':')?.trim_start())
}

/// `(3, 2)` or `(3,)`; Python 2 wrote `(3L, 2L)`.
fn shape(text: &str) -> Option<Vec<usize>> {
    let inside = text.strip_prefix('(')?.split_once(')')?.0;
    let sizes = inside.split(',').map(|n| n.trim().trim_end_matches('L')).filter(|n| !n.is_empty());
    sizes.map(|n| n.parse().ok()).collect()
}

/// A type string such as `<f8`, and whether it is big-endian.
fn element(descr: &str, name: &str) -> Result<(Element, bool)> {
    const LONGEST: usize = 1 << 20;
    let refuse = |what: &str| {
        let reason = format!("its elements are {what}; save an array of numbers, booleans or text");
        Err(Error::data(name, reason))
    };
    let kind = descr.trim_start_matches(['<', '>', '|', '=']);
    let (letter, size) = kind.split_at(kind.chars().next().map_or(0, char::len_utf8));
    let number = |s| Ok((Element::Number(s), descr.starts_with('>')));
    match (letter, size) {
        ("b", "1") => number(Scalar::Bool),
        ("i", "1") => number(Scalar::I8),
        ("i", "2") => number(Scalar::I16),
        ("i", "4") => number(Scalar::I32),
        ("i", "8") => number(Scalar::I64),
        ("u", "1") => number(Scalar::U8),
        ("u", "2") => number(Scalar::U16),
        ("u", "4") => number(Scalar::U32),
        ("u", "8") => number(Scalar::U64),
        ("f", "2") => number(Scalar::F16),
        ("f", "4") => number(Scalar::F32),
        ("f", "8") => number(Scalar::F64),
        ("U" | "S" | "a", n) => match n.parse::<usize>() {
            Ok(n) if (1..=LONGEST).contains(&n) => Ok((
                if letter == "U" { Element::Unicode(n) } else { Element::Bytes(n) },
                descr.starts_with('>'),
            )),
            _ => refuse(&format!("text of length {n}")),
        },
        ("O", _) => refuse("pickled Python objects"),
        ("c", _) => refuse("complex"),
        ("M" | "m", _) => refuse("dates or times"),
        _ if descr == "structured" => refuse("records"),
        _ => refuse(&format!("of the type `{descr}`")),
    }
}

impl Table {
    /// Writes the numbers as a two-dimensional `.npy` array; errs when a column holds words.
    pub fn write_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        const ALIGNED: usize = 64;
        let name = path.as_ref().display().to_string();
        let columns: Vec<&[f64]> = self
            .iter()
            .map(|c| {
                c.as_numbers().ok_or_else(|| {
                    Error::data(
                        format!("{name}, column `{}`", c.name),
                        "holds text, which .npy does not; write CSV",
                    )
                })
            })
            .collect::<Result<_>>()?;
        let mut header = format!(
            "{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, {}), }}",
            self.rows(),
            columns.len()
        );
        while !(header.len() + 11).is_multiple_of(ALIGNED) {
            header.push(' ');
        }
        header.push('\n');
        write_file(path, |out| {
            let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(|e| io_error(&name, e));
            put(b"\x93NUMPY\x01\x00")?;
            put(&(header.len() as u16).to_le_bytes())?;
            put(header.as_bytes())?;
            (0..self.rows())
                .flat_map(|i| columns.iter().map(move |c| c[i]))
                .try_for_each(|v| put(&v.to_le_bytes()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(descr: &str, shape: &str) -> Result<Header> {
        Header::parse(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"), "a.npy")
    }

    #[test]
    fn headers() {
        let h = parse("'>i4'", "(3, 2)").unwrap();
        assert_eq!(
            h,
            Header {
                element: Element::Number(Scalar::I32),
                big_endian: true,
                fortran: false,
                rows: 3,
                cols: 2
            }
        );
        assert_eq!(parse("'<U7'", "(3L,)").unwrap().element, Element::Unicode(7));
        assert_eq!(parse("\"|b1\"", "(3,)").unwrap().cols, 1);
    }

    #[test]
    fn refused_headers_say_why() {
        let says = |descr, shape, what: &str| {
            let e = parse(descr, shape).unwrap_err().to_string();
            assert!(e.contains(what), "{e}");
        };
        says("'<f8'", "(2, 3, 4)", "3 dimensions (2 × 3 × 4)");
        says("'<f8'", "()", "0 dimensions");
        says("'<f8'", "(0, 3)", "0 × 3");
        says("'<f8'", "(4294967296, 4294967296)", "expected at least one row");
        says("'<f8'", "(-1,)", "cannot be read");
        says("'<f8'", "5", "cannot be read");
        says("'|O'", "(3,)", "pickled");
        says("'|O8'", "(3,)", "pickled");
        says("'<c16'", "(3,)", "complex");
        says("'<M8[ns]'", "(3,)", "dates");
        says("'<f16'", "(3,)", "`<f16`");
        says("'é'", "(3,)", "`é`");
        says("[('a', '<f8')]", "(3,)", "records");
        says("'<U99999999999'", "(3,)", "text of length");
        // No bytes would be needed for any number of rows.
        says("'<U0'", "(999999999999,)", "text of length");
    }

    #[test]
    fn keys_are_chosen() {
        let keys = ["Y".to_string(), "labels".to_string()];
        assert_eq!(choose("a", Some("Y"), &keys).unwrap(), "Y");
        assert_eq!(choose("a", None, &keys[..1]).unwrap(), "Y");
        let several = choose("a.npz", None, &keys).unwrap_err().to_string();
        assert_eq!(several, "a.npz: has several arrays, `Y`, `labels`; choose one, as in a.npz:Y");
        let wrong = choose("a.npz", Some("label"), &keys).unwrap_err().to_string();
        assert_eq!(wrong, "a.npz: has no array `label`; did you mean `labels`? It has `Y`, `labels`");
        assert!(choose("a", None, &[]).is_err());
    }
}
