//! MATLAB's `.mat`, version 5 (what `save -v7` and `-v6` write): arrays of numbers.
//!
//! A file is a header of 128 bytes and a row of elements, each a tag (type, size) and its bytes; an element
//! of type 15 is another one compressed by zlib. A variable is an element of type 14 made of elements: flags,
//! dimensions, name, numbers in column-major order. Every size in the file is checked against the element
//! it lies in, and memory grows with the bytes that come. Version 7.3 is HDF5 and is not read.

use crate::budget;
use crate::data::npy::choose;
use crate::data::scalar::Scalar;
use crate::data::sniff::read_some;
use crate::data::table::{Column, Table, io_error, open, split_key};
use crate::data::words::push_lean;
use crate::error::{Error, Result};
use flate2::read::ZlibDecoder;
use std::io::{BufReader, Read, Take};

/// Reads an array with any number of dimensions: its shape, and its numbers in column-major order.
///
/// `spec` is `PATH` or `PATH.mat:KEY`; the key may be left out when the file has one variable.
///
/// ```no_run
/// let (shape, digits) = latentgp::data::mat5::read_nd("usps_all.mat:data")?;
/// assert_eq!(shape, [256, 1100, 10]);
/// let pixel = |p: usize, n: usize, class: usize| digits[p + 256 * (n + 1100 * class)];
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn read_nd(spec: &str) -> Result<(Vec<usize>, Vec<f64>)> {
    let (path, key) = split_key(spec);
    find(path, &choose(path, key, &names(path)?)?)
}

fn find(path: &str, key: &str) -> Result<(Vec<usize>, Vec<f64>)> {
    let mut found = None;
    scan(path, |variable, body| {
        if variable.name == key && found.is_none() {
            found = Some((variable.shape.clone(), body.numbers(&variable)?));
        }
        Ok(())
    })?;
    found.ok_or_else(|| Error::data(path, format!("has no array `{key}`")))
}

/// Reads a matrix.
pub(crate) fn read(path: &str, key: Option<&str>) -> Result<Table> {
    let key = choose(path, key, &names(path)?)?;
    let name = format!("{path}:{key}");
    let (shape, numbers) = find(path, &key)?;
    let shown = shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ");
    let &[rows, _] = &shape[..] else {
        return Err(Error::shape(
            name,
            "2 dimensions; reshape the array",
            format!("{} ({shown})", shape.len()),
        ));
    };
    if numbers.is_empty() {
        return Err(Error::shape(name, "at least one row and one column", shown));
    }
    let columns = numbers.chunks(rows).enumerate().map(|(j, c)| Column::numbers(j.to_string(), c.to_vec()));
    Table::new(name, columns.collect())
}

fn names(path: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    scan(path, |variable, _| {
        names.push(variable.name);
        Ok(())
    })?;
    // MATLAB stores the workspace of function handles as a variable without a name.
    names.retain(|n| !n.is_empty());
    Ok(names)
}

/// What comes before the numbers of a variable.
struct Variable {
    name: String,
    class: u8,
    complex: bool,
    shape: Vec<usize>,
}

const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;

/// Shows every variable of a file to `visit`.
fn scan(path: &str, mut visit: impl FnMut(Variable, &mut Body<'_>) -> Result<()>) -> Result<()> {
    let mut file = BufReader::new(open(path)?);
    let big_endian = header(&mut file, path)?;
    loop {
        let mut tag = [0; 8];
        match fill(&mut file, &mut tag).map_err(|e| io_error(path, e))? {
            0 => return Ok(()),
            8 => {}
            _ => return Err(damaged(path, "it ends within a tag")),
        }
        let (kind, size) = (word(&tag[..4], big_endian), u64::from(word(&tag[4..], big_endian)));
        let mut element = file.by_ref().take(size);
        match kind {
            COMPRESSED => {
                let mut inflated = ZlibDecoder::new(&mut element);
                inflated.read_exact(&mut tag).map_err(|e| io_error(path, e))?;
                let size = u64::from(word(&tag[4..], big_endian));
                if word(&tag[..4], big_endian) == MATRIX {
                    let mut body =
                        Body { from: (&mut inflated as &mut dyn Read).take(size), big_endian, path };
                    variable(&mut body, &mut visit)?;
                }
                skip(&mut inflated, path)?;
            }
            MATRIX => {
                let mut body = Body { from: (&mut element as &mut dyn Read).take(size), big_endian, path };
                variable(&mut body, &mut visit)?;
            }
            _ => {}
        }
        skip(&mut element, path)?;
        if element.limit() > 0 {
            return Err(damaged(path, "it ends within a variable"));
        }
    }
}

fn variable(
    body: &mut Body<'_>,
    visit: &mut impl FnMut(Variable, &mut Body<'_>) -> Result<()>,
) -> Result<()> {
    let variable = body.variable()?;
    visit(variable, body)?;
    skip(&mut body.from, body.path)?;
    if body.from.limit() > 0 { Err(damaged(body.path, "it ends within a variable")) } else { Ok(()) }
}

/// Reads the header and says whether the file is big-endian.
fn header(file: &mut impl Read, path: &str) -> Result<bool> {
    let mut bytes = [0; 128];
    let n = fill(file, &mut bytes).map_err(|e| io_error(path, e))?;
    let hdf5 = bytes.starts_with(b"\x89HDF") || bytes.starts_with(b"MATLAB 7.3");
    if hdf5 {
        return Err(Error::data(path, "is MATLAB version 7.3 (HDF5), which is not read; save it with -v7"));
    }
    let big_endian = match &bytes[126..] {
        b"IM" => false,
        b"MI" => true,
        _ if n < 128 => return Err(damaged(path, "it ends within its header")),
        _ => return Err(Error::data(path, "is not a MATLAB version 5 file; save it with -v7")),
    };
    let version = if big_endian { bytes[124] } else { bytes[125] };
    match version {
        1 => Ok(big_endian),
        v => Err(Error::data(path, format!("is MATLAB file version {v}, expected 1; save it with -v7"))),
    }
}

/// The inside of a variable.
struct Body<'a> {
    from: Take<&'a mut dyn Read>,
    big_endian: bool,
    path: &'a str,
}

impl Body<'_> {
    fn variable(&mut self) -> Result<Variable> {
        const LONGEST: usize = 4096;
        let flags = self.bytes(LONGEST, "flags")?;
        let dims = self.bytes(LONGEST, "dimensions")?;
        let name = self.bytes(LONGEST, "name")?;
        if flags.len() < 8 || !dims.len().is_multiple_of(4) {
            return Err(damaged(self.path, "the flags or the dimensions of a variable have the wrong size"));
        }
        let flags = word(&flags[..4], self.big_endian);
        let shape = dims.chunks_exact(4).map(|d| word(d, self.big_endian) as usize).collect();
        let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_string();
        Ok(Variable { name, class: flags as u8, complex: flags & 0x0800 != 0, shape })
    }

    /// The numbers of a variable whose beginning has been read.
    fn numbers(&mut self, of: &Variable) -> Result<Vec<f64>> {
        let name = format!("{}:{}", self.path, of.name);
        let class = match of.class {
            6..=15 if !of.complex => None,
            6..=15 => Some("complex"),
            1 => Some("a cell array"),
            2 => Some("a struct"),
            3 | 16 | 17 | 18 => Some("an object"),
            4 => Some("text"),
            5 => Some("sparse; save full(…) of it"),
            _ => Some("of an unknown class"),
        };
        if let Some(class) = class {
            return Err(Error::data(
                name,
                format!("expected an array of real numbers, found one that is {class}"),
            ));
        }
        let count = of.shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let (kind, size, short) = self.tag()?;
        let Some(scalar) = scalar(kind) else {
            return Err(damaged(self.path, &format!("`{}` has numbers of the unknown type {kind}", of.name)));
        };
        let Some(count) = count.filter(|n| n.checked_mul(scalar.size()) == Some(size)) else {
            let reason =
                format!("`{}` has {size} bytes, which does not fit its shape {:?}", of.name, of.shape);
            return Err(damaged(self.path, &reason));
        };
        budget::check(&name, 8.0 * count as f64, "fewer rows or columns")?;
        let mut numbers = Vec::new();
        let (big, path) = (self.big_endian, self.path);
        let from: &mut dyn Read =
            if short.is_some() { &mut &short.unwrap_or_default()[..] } else { &mut self.from };
        scalar.read(from, count, big, |v| push_lean(&mut numbers, v)).map_err(|e| io_error(path, e))?;
        numbers.shrink_to_fit();
        Ok(numbers)
    }

    /// Type and size of the next element; up to four bytes sit in the tag itself.
    fn tag(&mut self) -> Result<(u32, usize, Option<[u8; 4]>)> {
        let mut tag = [0; 8];
        self.from.read_exact(&mut tag).map_err(|e| io_error(self.path, e))?;
        let (first, second) = (word(&tag[..4], self.big_endian), word(&tag[4..], self.big_endian));
        match (first >> 16) as usize {
            0 => Ok((first, second as usize, None)),
            size @ 1..=4 => Ok((first & 0xffff, size, Some([tag[4], tag[5], tag[6], tag[7]]))),
            size => Err(damaged(self.path, &format!("a short element has {size} bytes"))),
        }
    }

    /// The bytes of the next element, which is padded to a multiple of eight.
    fn bytes(&mut self, longest: usize, what: &str) -> Result<Vec<u8>> {
        let (_, size, short) = self.tag()?;
        if let Some(short) = short {
            return Ok(short[..size].to_vec());
        }
        if size > longest {
            return Err(damaged(self.path, &format!("the {what} of a variable take {size} bytes")));
        }
        let mut bytes = vec![0; size.next_multiple_of(8)];
        self.from.read_exact(&mut bytes).map_err(|e| io_error(self.path, e))?;
        bytes.truncate(size);
        Ok(bytes)
    }
}

fn scalar(kind: u32) -> Option<Scalar> {
    Some(match kind {
        1 => Scalar::I8,
        2 => Scalar::U8,
        3 => Scalar::I16,
        4 => Scalar::U16,
        5 => Scalar::I32,
        6 => Scalar::U32,
        7 => Scalar::F32,
        9 => Scalar::F64,
        12 => Scalar::I64,
        13 => Scalar::U64,
        _ => return None,
    })
}

fn word(bytes: &[u8], big_endian: bool) -> u32 {
    let b = [bytes[0], bytes[1], bytes[2], bytes[3]];
    if big_endian { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) }
}

/// Reads until the buffer is full or the file ends, and says how much came.
fn fill(from: &mut impl Read, to: &mut [u8]) -> std::io::Result<usize> {
    let mut n = 0;
    while n < to.len() {
        match read_some(from, &mut to[n..])? {
            0 => break,
            more => n += more,
        }
    }
    Ok(n)
}

fn skip(from: &mut impl Read, path: &str) -> Result<()> {
    std::io::copy(from, &mut std::io::sink()).map(|_| ()).map_err(|e| io_error(path, e))
}

fn damaged(path: &str, how: &str) -> Error {
    Error::data(path, format!("is damaged or truncated: {how}"))
}
