//! Parquet: flat columns of numbers, booleans, text, dates and times.
//!
//! A null is a missing value. Decimals become numbers; dates and times become words, as in CSV.
//! Columns with structure (lists, maps, structs) are refused.

use crate::budget;
use crate::data::replace::write_file;
use crate::data::scalar::half;
use crate::data::table::{Column, Table, Values, open};
use crate::data::words::{Interner, Words, push_lean};
use crate::error::{Error, Result};
use ::parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::record::Field;
use ::parquet::schema::types::{ColumnDescPtr, Type};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// Reads every column.
pub(crate) fn read(path: &str) -> Result<Table> {
    let file = open(path)?;
    // The decoder asserts what a well-formed file promises; a damaged one must be an error all the same.
    catch_unwind(AssertUnwindSafe(|| read_file(file, path)))
        .unwrap_or_else(|_| Err(Error::data(path, "is not a whole Parquet file: its pages are damaged")))
}

fn broken(path: &str, e: ParquetError) -> Error {
    Error::data(path, format!("is not a whole Parquet file of a known kind: {e}"))
}

fn read_file(file: std::fs::File, path: &str) -> Result<Table> {
    let reader = SerializedFileReader::new(file).map_err(|e| broken(path, e))?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut columns: Vec<Builder> =
        schema.columns().iter().map(|c| Builder::new(c, path)).collect::<Result<_>>()?;
    // Runs of one value take next to no room in the file, whatever their length.
    let rows = reader.metadata().file_metadata().num_rows().max(0) as f64;
    budget::check(path, 8.0 * rows * columns.len() as f64, "fewer rows or columns")?;
    for g in 0..reader.num_row_groups() {
        let group = reader.get_row_group(g).map_err(|e| broken(path, e))?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        for (j, column) in columns.iter_mut().enumerate() {
            let read = column.read(group.as_ref(), j, rows).map_err(|e| broken(path, e))?;
            if read != rows {
                let what = format!("{path}, column `{}`", column.descr.name());
                return Err(Error::shape(what, format!("{rows} rows in group {g}"), read));
            }
        }
    }
    Table::new(path, columns.into_iter().map(Builder::finish).collect())
}

/// A column on its way.
struct Builder {
    descr: ColumnDescPtr,
    cells: Cells,
}

enum Cells {
    Numbers(Vec<f64>),
    Words(Interner),
}

impl Cells {
    fn number(&mut self, value: f64) -> ParquetResult<()> {
        if let Cells::Numbers(v) = self {
            push_lean(v, value);
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> ParquetResult<()> {
        if let Cells::Words(w) = self {
            w.push(word);
        }
        Ok(())
    }

    fn missing(&mut self) -> ParquetResult<()> {
        self.number(f64::NAN)?;
        self.word("")
    }

    /// A value as the file means it: a decimal, a date, a time.
    fn field(&mut self, field: &Field) -> ParquetResult<()> {
        let text = field.to_string();
        match self {
            Cells::Words(_) => self.word(&text),
            Cells::Numbers(_) => {
                let value = text.parse();
                self.number(value.map_err(|_| ParquetError::General(format!("`{text}` is not a number")))?)
            }
        }
    }
}

/// Whether a column holds numbers; none where it can be neither numbers nor words.
fn is_numeric(descr: &ColumnDescPtr) -> Option<bool> {
    use ConvertedType as C;
    let nanoseconds = |l: Option<&LogicalType>| matches!(l, Some(LogicalType::Timestamp(_)));
    match (descr.physical_type(), descr.converted_type()) {
        (Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE, _) => Some(true),
        (Physical::INT64, C::NONE) if nanoseconds(descr.logical_type_ref()) => Some(false),
        (Physical::INT32 | Physical::INT64, C::NONE | C::INT_8 | C::INT_16 | C::INT_32 | C::INT_64) => {
            matches!(descr.logical_type_ref(), None | Some(LogicalType::Integer(_))).then_some(true)
        }
        (Physical::INT32 | Physical::INT64, C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64) => Some(true),
        (Physical::INT32, C::DATE | C::TIME_MILLIS) => Some(false),
        (Physical::INT64, C::TIME_MICROS | C::TIMESTAMP_MILLIS | C::TIMESTAMP_MICROS) => Some(false),
        (Physical::INT96, _) => Some(false),
        (Physical::BYTE_ARRAY, C::UTF8 | C::ENUM | C::JSON | C::NONE) => Some(false),
        (_, C::DECIMAL) => Some(true),
        (Physical::FIXED_LEN_BYTE_ARRAY, C::NONE) => {
            (descr.logical_type_ref() == Some(&LogicalType::Float16)).then_some(true)
        }
        _ => None,
    }
}

impl Builder {
    fn new(descr: &ColumnDescPtr, path: &str) -> Result<Self> {
        let refuse =
            |what: String| Err(Error::data(format!("{path}, column `{}`", descr.path().string()), what));
        if descr.max_rep_level() > 0 || descr.path().parts().len() > 1 {
            return refuse("is nested (a list, a map or a struct); flatten it or leave it out".into());
        }
        let cells = match is_numeric(descr) {
            Some(true) => Cells::Numbers(Vec::new()),
            Some(false) => Cells::Words(Interner::default()),
            None => {
                let found = format!("{} ({})", descr.physical_type(), descr.converted_type());
                return refuse(format!("expected numbers or text, found {found}; leave it out"));
            }
        };
        Ok(Builder { descr: descr.clone(), cells })
    }

    /// Appends one row group of the column and says how many rows came.
    fn read(&mut self, group: &dyn RowGroupReader, j: usize, rows: usize) -> ParquetResult<usize> {
        use ConvertedType as C;
        let (descr, cells) = (&self.descr, &mut self.cells);
        let kind = descr.converted_type();
        let unsigned = matches!(kind, C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64);
        let plain = matches!(cells, Cells::Numbers(_)) && kind != C::DECIMAL;
        match group.get_column_reader(j)? {
            ColumnReader::BoolColumnReader(r) => each(r, rows, cells, |c, v| c.number(f64::from(*v))),
            ColumnReader::FloatColumnReader(r) => each(r, rows, cells, |c, v| c.number(f64::from(*v))),
            ColumnReader::DoubleColumnReader(r) => each(r, rows, cells, |c, v| c.number(*v)),
            ColumnReader::Int32ColumnReader(r) => each(r, rows, cells, |c, v| match plain {
                true if unsigned => c.number(f64::from(*v as u32)),
                true => c.number(f64::from(*v)),
                false => c.field(&Field::convert_int32(descr, *v)),
            }),
            ColumnReader::Int64ColumnReader(r) => each(r, rows, cells, |c, v| match plain {
                true if unsigned => c.number(*v as u64 as f64),
                true => c.number(*v as f64),
                false if kind == C::NONE => c.field(&Field::TimestampMicros(micros(descr, *v))),
                false => c.field(&Field::convert_int64(descr, *v)),
            }),
            ColumnReader::Int96ColumnReader(r) => {
                each(r, rows, cells, |c, v| c.field(&Field::convert_int96(descr, *v)))
            }
            ColumnReader::ByteArrayColumnReader(r) => each(r, rows, cells, |c, v| match kind {
                C::DECIMAL => c.field(&Field::convert_byte_array(descr, v.clone())?),
                _ => c.word(v.as_utf8()?),
            }),
            ColumnReader::FixedLenByteArrayColumnReader(r) => each(r, rows, cells, |c, v| match v.data() {
                [a, b] if plain => c.number(half(u16::from_le_bytes([*a, *b]))),
                _ if plain => Err(ParquetError::General("a half-precision number without two bytes".into())),
                _ => c.field(&Field::convert_byte_array(descr, ByteArray::from(v.clone()))?),
            }),
        }
    }

    fn finish(self) -> Column {
        let values = match self.cells {
            Cells::Numbers(mut v) => {
                v.shrink_to_fit();
                Values::Numbers(v)
            }
            Cells::Words(w) => Values::Words(w.finish()),
        };
        Column { name: self.descr.name().to_string(), values }
    }
}

/// A time stamp in microseconds.
fn micros(descr: &ColumnDescPtr, value: i64) -> i64 {
    match descr.logical_type_ref() {
        Some(LogicalType::Timestamp(t)) => match t.unit {
            TimeUnit::NANOS => value.div_euclid(1000),
            TimeUnit::MICROS => value,
            TimeUnit::MILLIS => value.saturating_mul(1000),
        },
        _ => value,
    }
}

/// Hands the values and nulls of a column chunk to `push`, a batch at a time.
fn each<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    cells: &mut Cells,
    push: impl Fn(&mut Cells, &T::T) -> ParquetResult<()>,
) -> ParquetResult<usize> {
    const BATCH: usize = 4096;
    let (mut values, mut levels, mut read) = (Vec::new(), Vec::new(), 0);
    while read < rows {
        values.clear();
        levels.clear();
        let (n, _, _) = reader.read_records(BATCH.min(rows - read), Some(&mut levels), None, &mut values)?;
        if n == 0 {
            break;
        }
        let mut present = values.iter();
        for i in 0..n {
            match levels.get(i) {
                Some(0) => cells.missing()?,
                _ => match present.next() {
                    Some(v) => push(cells, v)?,
                    None => return Err(ParquetError::General("a page has fewer values than it says".into())),
                },
            }
        }
        read += n;
    }
    Ok(read)
}

impl Table {
    /// Writes Parquet (Snappy): numbers as DOUBLE, words as strings, missing values as nulls.
    pub fn write_parquet(&self, path: impl AsRef<Path>) -> Result<()> {
        let name = path.as_ref().display().to_string();
        let fail = |e| Error::Io { path: name.clone(), reason: format!("cannot be written: {e}") };
        let schema = self.schema().map_err(fail)?;
        write_file(&path, |out| self.fill(out, schema).map_err(fail))
    }

    fn schema(&self) -> ParquetResult<Arc<Type>> {
        let column = |c: &Column| {
            let (kind, converted) = match c.values {
                Values::Numbers(_) => (Physical::DOUBLE, ConvertedType::NONE),
                Values::Words(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            };
            let builder = Type::primitive_type_builder(&c.name, kind);
            builder.with_repetition(Repetition::OPTIONAL).with_converted_type(converted).build().map(Arc::new)
        };
        let fields = self.iter().map(column).collect::<ParquetResult<_>>()?;
        Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
    }

    fn fill(&self, out: &mut (dyn Write + Send), schema: Arc<Type>) -> ParquetResult<()> {
        const GROUP: usize = 1 << 20;
        let how = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer = SerializedFileWriter::new(out, schema, Arc::new(how))?;
        for from in (0..self.rows()).step_by(GROUP) {
            let to = (from + GROUP).min(self.rows());
            let mut group = writer.next_row_group()?;
            for column in self.iter() {
                match &column.values {
                    Values::Numbers(v) => put_numbers(&mut group, &v[from..to])?,
                    Values::Words(w) => put_words(&mut group, w, from, to)?,
                }
            }
            group.close()?;
        }
        writer.close().map(|_| ())
    }
}

fn put<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: &[i16],
) -> ParquetResult<()> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".into()));
    };
    column.typed::<T>().write_batch(values, Some(levels), None)?;
    column.close()
}

fn put_numbers<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: &[f64],
) -> ParquetResult<()> {
    let levels: Vec<i16> = cells.iter().map(|v| i16::from(!v.is_nan())).collect();
    let values: Vec<f64> = cells.iter().copied().filter(|v| !v.is_nan()).collect();
    put::<DoubleType, W>(group, &values, &levels)
}

fn put_words<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    words: &Words,
    from: usize,
    to: usize,
) -> ParquetResult<()> {
    let cells = || (from..to).map(|i| words.get(i));
    let levels: Vec<i16> = cells().map(|w| i16::from(!w.is_empty())).collect();
    let values: Vec<ByteArray> = cells().filter(|w| !w.is_empty()).map(ByteArray::from).collect();
    put::<ByteArrayType, W>(group, &values, &levels)
}
