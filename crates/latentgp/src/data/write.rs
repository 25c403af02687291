//! Tables to files: text with the shortest digits that read back as the same numbers.

use crate::data::replace::write_file;
use crate::data::sniff::Cell;
use crate::data::table::{Table, Values, extension, io_error, print};
use crate::error::{Error, Result};
use ::csv::WriterBuilder;
use std::io::Write;
use std::path::Path;

impl Table {
    /// Writes CSV: a header, the shortest digits that read back as the same number, nothing for NaN.
    ///
    /// The header is left out where it would read as a row of numbers: names `0`, `1`, … over numbers.
    pub fn write_csv(&self, out: impl Write) -> Result<()> {
        self.write_delimited(out, b',')
    }

    /// Writes a file in the format its name says (`.csv`, `.tsv`, `.npy`, `.parquet`), whole or not at all.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        match extension(&path.to_string_lossy()).as_str() {
            "npy" => self.write_npy(path),
            "tsv" => write_file(path, |out| self.write_delimited(out, b'\t')),
            #[cfg(feature = "parquet")]
            "parquet" | "pq" => self.write_parquet(path),
            "csv" | "txt" | "" => write_file(path, |out| self.write_delimited(out, b',')),
            other => Err(Error::invalid(
                path.display().to_string(),
                "a name that ends in .csv, .tsv, .npy or, with the feature `parquet`, .parquet",
                format!(".{other}"),
            )),
        }
    }

    fn write_delimited(&self, out: impl Write, delimiter: u8) -> Result<()> {
        let fail = |e: ::csv::Error| match e.into_kind() {
            ::csv::ErrorKind::Io(e) => io_error(self.source(), e),
            other => Error::data(self.source(), format!("cannot be written: {other:?}")),
        };
        let mut writer = WriterBuilder::new().delimiter(delimiter).from_writer(out);
        if self.needs_header() {
            writer.write_record(self.columns()).map_err(fail)?;
        }
        for i in 0..self.rows() {
            for column in self.iter() {
                match &column.values {
                    Values::Numbers(v) => writer.write_field(print(v[i])).map_err(fail)?,
                    Values::Words(w) => writer.write_field(w.get(i)).map_err(fail)?,
                }
            }
            writer.write_record(None::<&[u8]>).map_err(fail)?;
        }
        writer.flush().map_err(|e| io_error(self.source(), e))
    }

    fn needs_header(&self) -> bool {
        let numbers = self.numeric_columns();
        numbers.is_empty() || numbers.iter().any(|n| Cell::of(n.trim()) == Cell::Word)
    }
}

#[cfg(test)]
mod tests {
    use crate::data::table::{Column, Table};

    fn written(columns: Vec<Column>) -> String {
        let mut out = Vec::new();
        Table::new("t", columns).unwrap().write_csv(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn digits_are_the_shortest() {
        let values = vec![0.1, 1.0, -0.0, 1e300, 5e-324, f64::NAN, 1.0 / 3.0];
        let text = written(vec![Column::numbers("a", values), Column::numbers("b", vec![2.0; 7])]);
        assert_eq!(text, "a,b\n0.1,2\n1,2\n-0,2\n1e300,2\n5e-324,2\n,2\n0.3333333333333333,2\n");
    }

    #[test]
    fn a_header_that_would_read_as_numbers_is_left_out() {
        assert_eq!(written(vec![Column::numbers("0", vec![1.0]), Column::words("1", ["w"])]), "1,w\n");
        assert_eq!(written(vec![Column::numbers("x", vec![1.0]), Column::words("1", ["w"])]), "x,1\n1,w\n");
        assert_eq!(written(vec![Column::words("w", ["p"])]), "w\np\n");
    }
}
