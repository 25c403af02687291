//! Data: tables in and out, embedded sets, simulators, scaling.
//!
//! [`datasets`] lists what is here by name, [`dataset`] makes one. Simulated sets depend on a seed and
//! nothing else.

pub mod airline;
#[cfg(feature = "files")]
pub mod csv;
pub mod doubts;
pub mod iris;
pub mod lags;
#[cfg(feature = "files")]
pub mod mat5;
#[cfg(feature = "files")]
mod matched;
#[cfg(feature = "files")]
mod names;
#[cfg(feature = "files")]
mod npy;
pub mod oil_flow;
#[cfg(feature = "parquet")]
mod parquet;
pub mod pipe;
#[cfg(feature = "files")]
pub mod replace;
#[cfg(feature = "files")]
mod scalar;
pub mod sinc;
#[cfg(feature = "files")]
mod sniff;
pub mod spiral;
pub mod standardize;
#[cfg(feature = "files")]
pub mod table;
pub mod words;
#[cfg(feature = "files")]
mod write;

pub use crate::nearest::nearest;
pub use standardize::{Scale, Scaling};

use crate::error::{Error, Result};
use crate::mat::Mat;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
#[cfg(feature = "files")]
use std::io::Write;
#[cfg(feature = "files")]
use table::{Column, Table};

/// The most rows that [`dataset`] simulates: enough for any test, and far from exhausting a machine.
pub const MAX_ROWS: usize = 10_000_000;

const ROWS_OIL_FLOW: usize = 1000;
const ROWS_TOY: usize = 100;

/// A table with a name for every column and perhaps a column of labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// The name that [`dataset`] knows it by.
    pub name: &'static str,
    /// The names of the columns of `values`.
    pub columns: Vec<String>,
    /// Numbers, a row each observation.
    pub values: Mat,
    /// The name of the label column and the label of each row.
    pub label: Option<(String, Vec<String>)>,
}

#[cfg(feature = "files")]
impl Dataset {
    /// The set as a table, the label last.
    pub fn table(&self) -> Result<Table> {
        let column = |(j, name): (usize, &String)| Column::numbers(name.clone(), self.values.col(j));
        let mut columns: Vec<Column> = self.columns.iter().enumerate().map(column).collect();
        columns.extend(self.label.iter().map(|(name, of)| Column::words(name.clone(), of)));
        Table::new(self.name, columns)
    }

    /// Writes a header and the rows as CSV, the label last; see [`Table::write_csv`].
    pub fn write_csv(&self, to: impl Write) -> Result<()> {
        self.table()?.write_csv(to)
    }
}

/// Names and descriptions of the sets that [`dataset`] knows.
pub fn datasets() -> [(&'static str, &'static str); 5] {
    [
        ("oil-flow", "gamma densitometry of oil, water and gas in a pipe, simulated: 12 columns, 3 regimes"),
        ("airline", "international airline passengers, 144 months from 1949 to 1960"),
        ("spiral", "a spiral in the plane seen in 10 dimensions with noise, simulated"),
        ("sinc", "a sinc of one direction among 25 inputs with noise, simulated"),
        ("iris", "four lengths of 150 irises of 3 species"),
    ]
}

/// The set of that name: `n` rows of it, or as many as is usual.
///
/// A fixed set gives its first `n` rows and a simulated one draws `n` with the seed. Errs for a name that is
/// not among [`datasets`], and for an `n` of 0, above what a fixed set has or above [`MAX_ROWS`].
///
/// ```
/// let iris = latentgp::data::dataset("iris", None, 0)?;
/// assert_eq!(iris.values.shape(), "150 × 4");
/// let wrong = latentgp::data::dataset("oilflow", None, 0).unwrap_err().to_string();
/// assert!(wrong.contains("did you mean `oil-flow`?"));
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn dataset(name: &str, n: Option<usize>, seed: u64) -> Result<Dataset> {
    match name {
        "oil-flow" => Ok(oil_flow_set(&oil_flow::simulate(rows(name, n, ROWS_OIL_FLOW, MAX_ROWS)?, seed))),
        "airline" => {
            let n = rows(name, n, airline::PASSENGERS.len(), airline::PASSENGERS.len())?;
            Ok(Dataset {
                name: "airline",
                columns: vec!["passengers".into()],
                values: Mat::column(&airline::PASSENGERS[..n]),
                label: Some(("month".into(), (0..n).map(airline::month).collect())),
            })
        }
        "spiral" => {
            let n = rows(name, n, ROWS_TOY, MAX_ROWS)?;
            let values = spiral::simulate(n, spiral::DIM, spiral::NOISE_STD, seed)?.y;
            Ok(Dataset { name: "spiral", columns: numbered("y", spiral::DIM), values, label: None })
        }
        "sinc" => {
            let sinc::Sinc { x, y } = sinc::simulate(rows(name, n, ROWS_TOY, MAX_ROWS)?, seed);
            let mut columns = numbered("x", sinc::INPUTS);
            columns.push("y".into());
            Ok(Dataset { name: "sinc", columns, values: beside(&x, &y), label: None })
        }
        "iris" => {
            let (values, mut species) = iris::load();
            let n = rows(name, n, values.rows(), values.rows())?;
            species.truncate(n);
            Ok(Dataset {
                name: "iris",
                columns: iris::COLUMNS.map(String::from).to_vec(),
                values: values.slice_rows(0, n),
                label: Some(("species".into(), species)),
            })
        }
        _ => Err(unknown(name)),
    }
}

/// The set `oil-flow` with three more columns: the fractions of oil, water and gas.
pub fn oil_flow_with_fractions(n: Option<usize>, seed: u64) -> Result<Dataset> {
    let flow = oil_flow::simulate(rows("oil-flow", n, ROWS_OIL_FLOW, MAX_ROWS)?, seed);
    let mut set = oil_flow_set(&flow);
    set.columns.extend(["oil_fraction", "water_fraction", "gas_fraction"].map(String::from));
    set.values = beside(&set.values, &flow.fractions);
    Ok(set)
}

fn oil_flow_set(flow: &oil_flow::OilFlow) -> Dataset {
    let regimes = flow.regime.iter().map(|&r| oil_flow::REGIMES[r].to_string()).collect();
    Dataset {
        name: "oil-flow",
        columns: oil_flow::COLUMNS.map(String::from).to_vec(),
        values: flow.y.clone(),
        label: Some(("regime".into(), regimes)),
    }
}

fn rows(name: &str, asked: Option<usize>, usual: usize, most: usize) -> Result<usize> {
    let n = asked.unwrap_or(usual);
    if n == 0 || n > most {
        return Err(Error::invalid(format!("rows of `{name}`"), format!("from 1 to {most}"), n));
    }
    Ok(n)
}

fn unknown(name: &str) -> Error {
    let known = datasets().map(|(name, _)| name);
    let hint = nearest(name, &known).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Error::invalid("data set", format!("one of {}", known.join(", ")), format!("`{name}`{hint}"))
}

fn numbered(stem: &str, n: usize) -> Vec<String> {
    (1..=n).map(|i| format!("{stem}{i}")).collect()
}

fn beside(left: &Mat, right: &Mat) -> Mat {
    let split = left.cols();
    let at = |i: usize, j: usize| if j < split { left[(i, j)] } else { right[(i, j - split)] };
    Mat::from_fn(left.rows(), split + right.cols(), at)
}

/// The random numbers of row i: a stream of their own, so that a row does not depend on those before it.
fn row_rng(seed: u64, i: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(i as u64);
    rng
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_set_is_whole_and_obeys_n() {
        for (name, _) in datasets() {
            for n in [None, Some(1), Some(7)] {
                let set = dataset(name, n, 3).unwrap();
                assert_eq!(set.name, name);
                assert_eq!(set.columns.len(), set.values.cols());
                assert!(set.values.is_finite());
                assert!(n.is_none_or(|n| n == set.values.rows()));
                if let Some((_, labels)) = &set.label {
                    assert_eq!(labels.len(), set.values.rows());
                }
            }
            assert!(dataset(name, Some(0), 0).is_err());
            assert!(dataset(name, Some(usize::MAX), 0).is_err());
        }
        assert!(dataset("iris", Some(151), 0).unwrap_err().to_string().contains("150"));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let message = dataset("airlines", None, 0).unwrap_err().to_string();
        assert!(message.contains("oil-flow, airline, spiral, sinc, iris"), "{message}");
        assert!(message.contains("did you mean `airline`?"), "{message}");
        assert!(!dataset("mnist", None, 0).unwrap_err().to_string().contains("did you mean"));
    }

    #[test]
    fn fractions_come_on_request() {
        let (plain, with) =
            (dataset("oil-flow", Some(9), 2).unwrap(), oil_flow_with_fractions(Some(9), 2).unwrap());
        assert_eq!(with.values.select_cols(&(0..12).collect::<Vec<_>>()), plain.values);
        assert_eq!(with.columns.len(), 15);
        assert_eq!(with.label, plain.label);
        assert!((with.values.row(4)[12..].iter().sum::<f64>() - 1.0).abs() < 1e-15);
    }

    #[test]
    fn csv_is_exact_quoted_and_empty_where_missing() {
        let mut set = dataset("airline", Some(2), 0).unwrap();
        let text = |set: &Dataset| {
            let mut out = Vec::new();
            set.write_csv(&mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(&set), "passengers,month\n112,1949-01\n118,1949-02\n");
        set.columns[0] = "a, \"b\"".into();
        set.values = Mat::column(&[f64::NAN, 1.0 / 3.0]);
        assert_eq!(text(&set), "\"a, \"\"b\"\"\",month\n,1949-01\n0.3333333333333333,1949-02\n");
    }

    #[test]
    fn a_full_disc_is_reported() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("no space left"))
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let wrong = dataset("iris", None, 0).unwrap().write_csv(Full).unwrap_err();
        assert!(matches!(&wrong, Error::Io { reason, .. } if reason.contains("no space")), "{wrong}");
    }
}
