//! Tables as text, read in one pass.
//!
//! - **Delimiter**: tab, semicolon or comma, whichever each line has equally often (the first of these
//!   three), or blanks, for aligned columns of numbers. Cells may be quoted (`"a, b"`); blanks around a
//!   cell do not count.
//! - **Header**: the first row is one when it has a word above a column of numbers. Without any column
//!   of numbers it is one when some column repeats its words but never the first one. A cell of the
//!   header that is empty names its column by its number.
//! - **Missing**: an empty cell, `NA`, `N/A`, `#N/A`, `NaN`, `null`, `None`, `?` and `-`, in upper or lower case.
//! - **Numbers or words**: by the first 1000 rows (or the first MB), a column is one of numbers when at least
//!   half of its cells that are not missing are numbers. A word in such a column is an error, and so is
//!   a column of words that turns out to be mostly numbers. Words are kept as written, `NA` included.
//! - **Refused**, with line and column: rows of different lengths, infinities, decimal commas, text that
//!   is not UTF-8, and, in a table of one column, a blank line between two rows. Blank lines elsewhere
//!   are skipped; no character starts a comment.
//!
//! Memory is eight bytes a number, not the size of the text.

use crate::data::names::excerpt;
use crate::data::sniff::{self, Cell, Clean, Kind};
use crate::data::table::{Column, Table, Values, io_error};
use crate::data::words::{Interner, push_lean};
use crate::error::{Error, Result};
use ::csv::{ByteRecord, Reader, ReaderBuilder};
use std::io::{Cursor, Read};

pub use crate::data::sniff::Delimiter;

/// What is known about a CSV file; what is not is detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsvOptions {
    /// What stands between two cells.
    pub delimiter: Option<Delimiter>,
    /// Whether the first row names the columns.
    pub header: Option<bool>,
}

/// Reads a table; `path` is for messages.
///
/// ```
/// use latentgp::data::csv::{CsvOptions, read};
/// let years = read("2019,2020\n1,2\n".as_bytes(), "t", CsvOptions { header: Some(true), ..Default::default() })?;
/// assert_eq!(years.column("2020")?, [2.0]);
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn read(mut reader: impl Read, path: &str, how: CsvOptions) -> Result<Table> {
    let (head, whole) = head(&mut reader, path)?;
    let delimiter = how.delimiter.unwrap_or_else(|| sniff::delimiter(&head, whole));
    let mut rows = Rows::new(Clean::new(Cursor::new(head).chain(reader), delimiter), delimiter, path);
    let mut window = Window::read(&mut rows)?;
    let header = match how.header {
        Some(given) => given,
        None => window.has_header(),
    };
    let names = window.names(header);
    if window.rows.is_empty() {
        let reason = format!("has a header ({}) but no rows below it", names.join(", "));
        return Err(Error::data(path, reason));
    }
    let unnamed_end = header && names.len() > 1 && window.last_name_is_empty;
    let mut columns: Vec<Builder> =
        names.into_iter().enumerate().map(|(j, name)| Builder::new(name, window.kind(j))).collect();
    for (line, record) in window.rows.drain(..) {
        push_row(&mut columns, &record, line, path)?;
    }
    let mut record = ByteRecord::new();
    while let Some(line) = rows.next(&mut record)? {
        rows.check_width(&record, line, columns.len(), |j| columns[j].name.clone())?;
        push_row(&mut columns, &record, line, path)?;
    }
    let mut columns: Vec<Column> = columns.into_iter().map(|c| c.finish(path)).collect::<Result<_>>()?;
    // A delimiter at the end of every line, the header's too, is no column.
    if unnamed_end
        && columns.last().and_then(Column::as_numbers).is_some_and(|v| v.iter().all(|x| x.is_nan()))
    {
        columns.pop();
    }
    Table::new(path, columns)
}

/// The first bytes, without a byte order mark, and whether they are all there are.
fn head(reader: &mut impl Read, path: &str) -> Result<(Vec<u8>, bool)> {
    const HEAD: usize = 1 << 16;
    let (mut bytes, mut n) = (vec![0; HEAD], 0);
    while n < HEAD {
        match sniff::read_some(reader, &mut bytes[n..]).map_err(|e| io_error(path, e))? {
            0 => break,
            more => n += more,
        }
    }
    bytes.truncate(n);
    if let Some(other) = other_format(&bytes) {
        return Err(Error::data(path, format!("is not CSV but {other}")));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    if n < HEAD && bytes.trim_ascii().is_empty() {
        return Err(Error::data(path, "is empty; expected rows of numbers, with or without a header"));
    }
    Ok((bytes, n < HEAD))
}

fn other_format(bytes: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 7] = [
        (b"\x93NUMPY", "a NumPy array; name it .npy"),
        (b"PK\x03\x04", "a zip archive; name it .npz if it is NumPy's, or save a spreadsheet as CSV"),
        (b"PAR1", "Parquet; name it .parquet"),
        (b"MATLAB ", "a MATLAB file; name it .mat"),
        (b"\x89HDF", "HDF5, which is not read; save it as CSV or .npy"),
        (b"\x1f\x8b", "compressed with gzip; decompress it first"),
        (b"\xff\xfe", "UTF-16; save it as UTF-8"),
    ];
    let found = known.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|k| k.1);
    found.or(bytes.starts_with(b"\xfe\xff").then_some("UTF-16; save it as UTF-8")).or(bytes
        .contains(&0)
        .then_some("binary (it has a zero byte); DATA is CSV, .npy, .npz, .mat or .parquet"))
}

/// Records and the lines they begin on.
struct Rows<'a, R> {
    reader: Reader<R>,
    path: &'a str,
    any: bool,
    single: bool,
}

impl<'a, R: Read> Rows<'a, R> {
    fn new(from: R, delimiter: Delimiter, path: &'a str) -> Self {
        let byte = match delimiter {
            Delimiter::Byte(b) => b,
            Delimiter::Blanks => b'\t',
        };
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(byte)
            .buffer_capacity(1 << 16)
            .from_reader(from);
        Rows { reader, path, any: false, single: false }
    }

    /// The next row that is not blank, and the line it begins on.
    fn next(&mut self, record: &mut ByteRecord) -> Result<Option<usize>> {
        loop {
            let line = self.next_record(record)?;
            if line.is_none() || self.single || record.len() != 1 || !record[0].trim_ascii().is_empty() {
                return Ok(line);
            }
        }
    }

    fn next_record(&mut self, record: &mut ByteRecord) -> Result<Option<usize>> {
        let before = self.reader.position().line() as usize;
        let more = self.reader.read_byte_record(record).map_err(|e| match e.into_kind() {
            ::csv::ErrorKind::Io(e) => io_error(self.path, e),
            other => Error::data(self.path, format!("cannot be read: {other:?}")),
        })?;
        if !more {
            return Ok(None);
        }
        let breaks = 1 + record.as_slice().iter().filter(|&&b| b == b'\n').count();
        let line = (self.reader.position().line() as usize).saturating_sub(breaks);
        if self.any && self.single && line > before {
            let reason =
                "a blank line between two rows of one column; write NaN if a value is missing, or remove it";
            return Err(error(self.path, before, "0", reason));
        }
        if !self.any {
            self.single = record.len() == 1;
        }
        self.any = true;
        Ok(Some(line))
    }

    fn check_width(
        &self,
        record: &ByteRecord,
        line: usize,
        width: usize,
        name: impl Fn(usize) -> String,
    ) -> Result<()> {
        if record.len() == width {
            return Ok(());
        }
        let at = record.len().min(width);
        let name = if at < width { name(at) } else { at.to_string() };
        let reason = format!(
            "expected {width} cells as in the first row, found {}; check the delimiter and the quotes",
            record.len()
        );
        Err(error(self.path, line, &name, reason))
    }
}

fn error(path: &str, line: usize, column: &str, reason: impl Into<String>) -> Error {
    Error::Csv { path: path.to_string(), line, column: column.to_string(), reason: reason.into() }
}

fn text<'r>(cell: &'r [u8], path: &str, line: usize, column: &str) -> Result<&'r str> {
    std::str::from_utf8(cell).map(str::trim).map_err(|e| {
        let byte = cell[e.valid_up_to()];
        error(path, line, column, format!("byte 0x{byte:02X} is not UTF-8; save the file as UTF-8"))
    })
}

/// What to call a column before it is known whether the first row is a header.
fn likely_name(first: &[String], j: usize) -> String {
    first.get(j).filter(|c| Cell::of(c) == Cell::Word).cloned().unwrap_or_else(|| j.to_string())
}

/// The rows that decide about header and kinds.
struct Window {
    first: Vec<String>,
    first_row: Option<(usize, ByteRecord)>,
    rows: Vec<(usize, ByteRecord)>,
    last_name_is_empty: bool,
}

impl Window {
    fn read<R: Read>(from: &mut Rows<'_, R>) -> Result<Window> {
        const ROWS: usize = 1000;
        const BYTES: usize = 1 << 20;
        let (mut rows, mut bytes, mut record) = (Vec::new(), 0, ByteRecord::new());
        let mut first: Vec<String> = Vec::new();
        while rows.len() < ROWS && (bytes < BYTES || rows.len() < 3) {
            let Some(line) = from.next(&mut record)? else { break };
            for (j, cell) in record.iter().enumerate() {
                let cell = text(cell, from.path, line, &likely_name(&first, j))?;
                if rows.is_empty() {
                    first.push(cell.to_string());
                }
            }
            from.check_width(&record, line, first.len(), |j| likely_name(&first, j))?;
            bytes += record.as_slice().len() + 8 * record.len();
            rows.push((line, std::mem::take(&mut record)));
        }
        let last_name_is_empty = first.last().is_some_and(String::is_empty);
        if rows.is_empty() {
            return Err(Error::data(
                from.path,
                "is empty; expected rows of numbers, with or without a header",
            ));
        }
        let first_row = Some(rows.remove(0));
        Ok(Window { first, first_row, rows, last_name_is_empty })
    }

    /// The cells of a column below the first row.
    fn cells(&self, j: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().map(move |(_, r)| std::str::from_utf8(&r[j]).unwrap_or_default().trim())
    }

    fn kind(&self, j: usize) -> Kind {
        sniff::kind(self.cells(j))
    }

    fn has_header(&self) -> bool {
        let first: Vec<&str> = self.first.iter().map(String::as_str).collect();
        if self.rows.is_empty() {
            return !first.iter().any(|c| Cell::of(c).numeric())
                && first.iter().any(|c| Cell::of(c) == Cell::Word);
        }
        let kinds: Vec<Kind> = (0..first.len()).map(|j| self.kind(j)).collect();
        sniff::has_header(&first, &kinds, |j| self.cells(j).map(str::to_string).collect())
    }

    /// The names of the columns; the first row becomes data when it is no header.
    fn names(&mut self, header: bool) -> Vec<String> {
        if !header && let Some(row) = self.first_row.take() {
            self.rows.insert(0, row);
        }
        let named = |(j, cell): (usize, &String)| {
            if header && !cell.is_empty() { cell.clone() } else { j.to_string() }
        };
        self.first.iter().enumerate().map(named).collect()
    }
}

fn push_row(columns: &mut [Builder], record: &ByteRecord, line: usize, path: &str) -> Result<()> {
    for (column, cell) in columns.iter_mut().zip(record) {
        let cell = text(cell, path, line, &column.name)?;
        column.push(cell, line, path)?;
    }
    Ok(())
}

/// A column on its way.
struct Builder {
    name: String,
    cells: Cells,
}

enum Cells {
    /// Missing so far, as written, since words are kept as written.
    Open(Interner),
    Numbers(Vec<f64>),
    Words {
        words: Interner,
        numbers: usize,
        others: usize,
        first: Option<(usize, String)>,
    },
}

impl Builder {
    fn new(name: String, kind: Kind) -> Self {
        let cells = match kind {
            Kind::Empty => Cells::Open(Interner::default()),
            Kind::Numbers => Cells::Numbers(Vec::new()),
            Kind::Words => Builder::words(Interner::default()),
        };
        Builder { name, cells }
    }

    fn words(words: Interner) -> Cells {
        Cells::Words { words, numbers: 0, others: 0, first: None }
    }

    fn push(&mut self, text: &str, line: usize, path: &str) -> Result<()> {
        let cell = Cell::of(text);
        if let Cells::Open(open) = &mut self.cells {
            match cell {
                Cell::Missing => {
                    open.push(text);
                    return Ok(());
                }
                Cell::Word => self.cells = Builder::words(std::mem::take(open)),
                _ => self.cells = Cells::Numbers(vec![f64::NAN; open.len()]),
            }
        }
        match &mut self.cells {
            Cells::Open(_) => {}
            Cells::Numbers(values) => match cell {
                Cell::Number(v) => push_lean(values, v),
                Cell::Missing => push_lean(values, f64::NAN),
                bad => return Err(error(path, line, &self.name, refusal(bad, text))),
            },
            Cells::Words { words, numbers, others, first } => {
                words.push(text);
                if cell.numeric() {
                    *numbers += 1;
                } else if cell == Cell::Word {
                    *others += 1;
                    first.get_or_insert_with(|| (line, text.to_string()));
                }
            }
        }
        Ok(())
    }

    fn finish(self, path: &str) -> Result<Column> {
        let values = match self.cells {
            Cells::Open(open) => Values::Numbers(vec![f64::NAN; open.len()]),
            Cells::Numbers(mut values) => {
                values.shrink_to_fit();
                Values::Numbers(values)
            }
            Cells::Words { numbers, others, first: Some((line, word)), .. } if numbers > others => {
                return Err(error(path, line, &self.name, refusal(Cell::Word, &word)));
            }
            Cells::Words { words, .. } => Values::Words(words.finish()),
        };
        Ok(Column { name: self.name, values })
    }
}

fn refusal(cell: Cell, text: &str) -> String {
    let found = excerpt(text);
    match cell {
        Cell::Infinite => format!("`{found}` is infinite; leave the cell empty if the value is missing"),
        Cell::Comma => {
            format!("`{found}` has a comma; write decimals with a point (3.14) and no thousands separator")
        }
        _ => format!(
            "expected a number, as most of this column, found `{found}`; if the value is missing leave the cell \
             empty (NA, N/A, NaN, null, None, ? and - are missing too)"
        ),
    }
}
