//! What the page gets: JSON, arrays of 32-bit floats, or a refusal in words.

use latentgp::{Error, Mat};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The media type.
    pub kind: &'static str,
    /// The content.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The HTTP status.
    pub status: u16,
    /// What was expected, what was found, what to try.
    pub why: String,
}

impl Reply {
    /// JSON.
    pub fn json(value: &Value) -> Self {
        Reply { kind: "application/json", body: value.to_string().into_bytes() }
    }

    /// Little-endian 32-bit floats; NaN is a missing value.
    pub fn floats(values: impl Iterator<Item = f64>) -> Self {
        Reply {
            kind: "application/octet-stream",
            body: values.flat_map(|v| (v as f32).to_le_bytes()).collect(),
        }
    }
}

impl Refused {
    /// What was asked makes no sense.
    pub fn wrong(why: impl std::fmt::Display) -> Self {
        Refused { status: 400, why: why.to_string() }
    }

    /// There is no such thing.
    pub fn unknown(name: &str) -> Self {
        Refused { status: 404, why: format!("there is no `{name}` here") }
    }
}

impl From<Error> for Refused {
    fn from(e: Error) -> Self {
        Refused::wrong(e)
    }
}

/// What was asked, as a type; errs in words where it is none.
pub fn asked<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|e| Refused::wrong(format!("expected other JSON: {e}")))
}

/// Rows of numbers as a matrix of `cols` columns, `most` rows at most.
pub fn rows(rows: &[Vec<f64>], cols: usize, most: usize) -> Result<Mat, Refused> {
    if rows.is_empty() || rows.len() > most {
        return Err(Refused::wrong(format!("expected 1 to {most} positions, found {}", rows.len())));
    }
    if let Some(row) = rows.iter().find(|row| row.len() != cols) {
        return Err(Refused::wrong(format!("expected positions of {cols} numbers, found {}", row.len())));
    }
    Ok(Mat::from_rows(rows))
}

/// A number for JSON: the shortest digits of a 32-bit float, and null for what is none.
pub fn number(v: f64) -> Value {
    let digits: Option<f64> = (v as f32).to_string().parse().ok().filter(|v: &f64| v.is_finite());
    digits.map_or(Value::Null, Value::from)
}

/// Rows of such numbers.
pub fn table(m: &Mat) -> Value {
    (0..m.rows()).map(|i| list(m.row(i))).collect()
}

/// Such numbers.
pub fn list(of: &[f64]) -> Value {
    of.iter().map(|v| number(*v)).collect()
}
