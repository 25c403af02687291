//! What a CSV file looks like: its delimiter, its header, the kind of a cell.

use std::io::{self, Read};

/// What stands between two cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// One byte: a comma, a semicolon, a tab.
    Byte(u8),
    /// Any number of blanks and tabs, as in aligned columns.
    Blanks,
}

/// What is in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell {
    Missing,
    Number(f64),
    Infinite,
    /// `3,14` or `1,000`: a number to people, not to this reader.
    Comma,
    Word,
}

const MISSING: [&str; 9] = ["", "NA", "N/A", "#N/A", "NaN", "null", "None", "?", "-"];

impl Cell {
    pub(crate) fn of(text: &str) -> Cell {
        match text.parse::<f64>() {
            Ok(v) if v.is_finite() => Cell::Number(v),
            Ok(v) if v.is_nan() => Cell::Missing,
            Ok(_) => Cell::Infinite,
            Err(_) if MISSING.iter().any(|m| m.eq_ignore_ascii_case(text)) => Cell::Missing,
            Err(_) if text.contains(',') && text.replace(',', "").parse().is_ok_and(f64::is_finite) => {
                Cell::Comma
            }
            Err(_) => Cell::Word,
        }
    }

    /// Whether it was meant as a number.
    pub(crate) fn numeric(self) -> bool {
        matches!(self, Cell::Number(_) | Cell::Infinite | Cell::Comma)
    }
}

/// What a column holds, by its first rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing but missing values.
    Empty,
    Numbers,
    Words,
}

/// Numbers, when at least half of the cells that are not missing are.
pub(crate) fn kind<'a>(cells: impl Iterator<Item = &'a str>) -> Kind {
    let (mut numbers, mut filled) = (0, 0);
    for cell in cells.map(Cell::of).filter(|c| *c != Cell::Missing) {
        filled += 1;
        numbers += usize::from(cell.numeric());
    }
    match filled {
        0 => Kind::Empty,
        _ if 2 * numbers >= filled => Kind::Numbers,
        _ => Kind::Words,
    }
}

/// Whether the first row names the columns below it.
///
/// It does when it has a word above a column of numbers. Without any column of numbers it does when
/// some column repeats its words but never the first one; and when it has words and all below is missing.
pub(crate) fn has_header(first: &[&str], kinds: &[Kind], column: impl Fn(usize) -> Vec<String>) -> bool {
    let word = |j: usize| Cell::of(first[j]) == Cell::Word;
    let mut all = 0..first.len().min(kinds.len());
    if kinds.contains(&Kind::Numbers) {
        return all.any(|j| kinds[j] == Kind::Numbers && word(j));
    }
    if kinds.contains(&Kind::Words) {
        return all.any(|j| kinds[j] == Kind::Words && word(j) && only_first_is_unique(first[j], column(j)));
    }
    all.any(word)
}

fn only_first_is_unique(first: &str, mut below: Vec<String>) -> bool {
    if below.iter().any(|b| b == first) {
        return false;
    }
    let n = below.len();
    below.sort_unstable();
    below.dedup();
    below.len() < n
}

/// The delimiter of the text that begins with `head`; `whole` when nothing follows.
///
/// Tab, semicolon or comma, the first of these that each line has equally often; otherwise blanks, when
/// they split every line into equally many cells that are mostly numbers; otherwise the most frequent.
pub(crate) fn delimiter(head: &[u8], whole: bool) -> Delimiter {
    const CANDIDATES: [u8; 3] = *b"\t;,";
    let lines = lines(head, whole);
    let counts = |d: u8| lines.iter().map(move |l| unquoted(l).filter(|&b| b == d).count());
    let alike = |d: u8| counts(d).next().is_some_and(|n| n > 0 && counts(d).all(|m| m == n));
    if let Some(d) = CANDIDATES.into_iter().find(|&d| alike(d)) {
        return Delimiter::Byte(d);
    }
    if counts(b';').chain(counts(b',')).all(|n| n == 0) && aligned(&lines) {
        return Delimiter::Blanks;
    }
    let total = |d: u8| (counts(d).min().unwrap_or(0) > 0, counts(d).sum::<usize>());
    Delimiter::Byte(
        CANDIDATES.into_iter().max_by_key(|&d| total(d)).filter(|&d| total(d).1 > 0).unwrap_or(b','),
    )
}

/// The first lines that are not blank; a quoted line break does not end one.
fn lines(head: &[u8], whole: bool) -> Vec<&[u8]> {
    const SAMPLE: usize = 100;
    let (mut out, mut start, mut quoted) = (Vec::new(), 0, false);
    for (i, &b) in head.iter().enumerate() {
        quoted ^= b == b'"';
        if matches!(b, b'\n' | b'\r') && !quoted {
            out.push(&head[start..i]);
            start = i + 1;
        }
    }
    if whole || out.is_empty() {
        out.push(&head[start..]);
    }
    out.retain(|l| !l.trim_ascii().is_empty());
    out.truncate(SAMPLE);
    out
}

fn unquoted(line: &[u8]) -> impl Iterator<Item = u8> {
    line.iter().scan(false, |quoted, &b| {
        *quoted ^= b == b'"';
        Some(if *quoted { b'"' } else { b })
    })
}

fn aligned(lines: &[&[u8]]) -> bool {
    let split = |l: &[u8]| String::from_utf8_lossy(l).split_whitespace().map(Cell::of).collect::<Vec<_>>();
    let width = lines.first().map_or(0, |l| split(l).len());
    let below: Vec<Vec<Cell>> = lines.iter().skip(usize::from(lines.len() > 1)).map(|l| split(l)).collect();
    let numbers = below.iter().flatten().filter(|c| c.numeric()).count();
    width > 1 && below.iter().all(|l| l.len() == width) && 2 * numbers >= width * below.len()
}

/// Text with `\n` at the end of every line, and runs of blanks turned into tabs where they delimit.
///
/// With one kind of line end, lines can be counted.
pub(crate) struct Clean<R> {
    from: R,
    blanks: bool,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    after_return: bool,
    quoted: bool,
    gap: bool,
    fresh: bool,
    pending: Option<u8>,
}

impl<R: Read> Clean<R> {
    pub(crate) fn new(from: R, delimiter: Delimiter) -> Self {
        let (blanks, buffer) = (delimiter == Delimiter::Blanks, vec![0; 1 << 16].into());
        let (at, end) = (0, 0);
        Clean {
            from,
            blanks,
            buffer,
            at,
            end,
            after_return: false,
            quoted: false,
            gap: false,
            fresh: true,
            pending: None,
        }
    }

    /// What `b` becomes: nothing, a byte, or a tab with the byte still to come.
    fn put(&mut self, b: u8) -> Option<u8> {
        if std::mem::replace(&mut self.after_return, b == b'\r') && b == b'\n' {
            return None;
        }
        let b = if b == b'\r' { b'\n' } else { b };
        self.quoted ^= b == b'"';
        if self.blanks && !self.quoted && matches!(b, b' ' | b'\t') {
            self.gap = true;
            return None;
        }
        let tab = std::mem::take(&mut self.gap) && b != b'\n' && !self.fresh;
        self.fresh = b == b'\n';
        self.pending = tab.then_some(b);
        Some(if tab { b'\t' } else { b })
    }
}

impl<R: Read> Read for Clean<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut n = 0;
        while n < out.len() {
            let next = match self.pending.take() {
                Some(b) => Some(b),
                // Hand over what there is before waiting for more.
                None if self.at == self.end && n > 0 => break,
                None if self.at == self.end => {
                    (self.at, self.end) = (0, read_some(&mut self.from, &mut self.buffer)?);
                    match self.end {
                        0 if std::mem::replace(&mut self.fresh, true) => break,
                        0 => Some(b'\n'),
                        _ => None,
                    }
                }
                None => {
                    self.at += 1;
                    self.put(self.buffer[self.at - 1])
                }
            };
            if let Some(b) = next {
                out[n] = b;
                n += 1;
            }
        }
        Ok(n)
    }
}

/// A read that a signal cannot interrupt.
pub(crate) fn read_some(from: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(to) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str, d: Delimiter) -> String {
        let mut out = String::new();
        Clean::new(text.as_bytes(), d).read_to_string(&mut out).unwrap();
        // A byte at a time gives the same.
        let (mut slow, mut single, mut byte) = (Clean::new(text.as_bytes(), d), Vec::new(), [0]);
        while slow.read(&mut byte).unwrap() == 1 {
            single.push(byte[0]);
        }
        assert_eq!(single, out.as_bytes());
        out
    }

    #[test]
    fn cells() {
        for m in ["", "NA", "na", "n/a", "N/A", "#N/A", "NaN", "nan", "-nan", "NULL", "none", "?", "-"] {
            assert_eq!(Cell::of(m), Cell::Missing, "{m}");
        }
        for (t, v) in [("1", 1.0), ("-.5", -0.5), ("+2e3", 2000.0), ("7.", 7.0)] {
            assert_eq!(Cell::of(t), Cell::Number(v));
        }
        for t in ["inf", "-Infinity", "1e999"] {
            assert_eq!(Cell::of(t), Cell::Infinite, "{t}");
        }
        for t in ["3,14", "-1,5e3", "1,234,567.8"] {
            assert_eq!(Cell::of(t), Cell::Comma, "{t}");
        }
        for t in ["a", "1949-01", "1 2", "0x1f", "a,b", ",", "1_000"] {
            assert_eq!(Cell::of(t), Cell::Word, "{t}");
        }
    }

    #[test]
    fn half_the_cells_make_a_column_of_numbers() {
        let of = |cells: &[&str]| kind(cells.iter().copied());
        assert_eq!(of(&["", "NA"]), Kind::Empty);
        assert_eq!(of(&["1", "a"]), Kind::Numbers);
        assert_eq!(of(&["1", "a", "b"]), Kind::Words);
        assert_eq!(of(&["1", "", "", "NA"]), Kind::Numbers);
    }

    #[test]
    fn delimiters() {
        let of = |t: &str| delimiter(t.as_bytes(), true);
        for (text, byte) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n3,14;2,5\n", b';'),
            ("3,14;2,5\n1,0;2,0", b';'),
            ("a\tb\n1,5\t2\n", b'\t'),
            ("name,v\n\"x; y\",1\n\"a\nb;c\",2\n", b','),
            ("x\n1\n2\n", b','),
            ("a,b,c\n1,2,3\n1,2\n", b','),
            ("New York\nSan Jose\n", b','),
            ("first name\tage\nAnn Lee\t3\n", b'\t'),
        ] {
            assert_eq!(of(text), Delimiter::Byte(byte), "{text:?}");
        }
        assert_eq!(of("  1.0   2.0\n 10.0  20.0\n"), Delimiter::Blanks);
        assert_eq!(of("year value\n1 2\n"), Delimiter::Blanks);
    }

    #[test]
    fn line_ends_become_one() {
        let comma = Delimiter::Byte(b',');
        assert_eq!(clean("a,b\r\n1,2\r\n", comma), "a,b\n1,2\n");
        assert_eq!(clean("a\r\rb", comma), "a\n\nb\n");
        assert_eq!(clean("a  b\n\nc", comma), "a  b\n\nc\n");
        assert_eq!(clean("", comma), "");
    }

    #[test]
    fn blanks_become_tabs() {
        assert_eq!(clean("  1   2 \n\t3 \t\"a  b\"", Delimiter::Blanks), "1\t2\n3\t\"a  b\"\n");
    }
}
