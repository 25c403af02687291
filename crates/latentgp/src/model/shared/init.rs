//! Named or given starts of latent positions and of inducing inputs.

use super::pca;
use super::starts::{normal, normals, rotated, shake, spectral, spread_out};
use crate::error::{Error, Result};
use crate::mat::Mat;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Rounds of k-means.
const ROUNDS: usize = 20;

/// Where latent positions start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// Principal components, each scaled to unit variance.
    #[default]
    Pca,
    /// Principal components, all scaled alike: the first has unit variance.
    PcaRaw,
    /// Eigenvectors of the graph of nearest neighbours, each scaled to unit variance.
    Spectral,
    /// Principal components of unit variance, rotated at random.
    Rotated,
    /// Draws from N(0, 0.3²).
    Random,
    /// Given positions, one for each row of the data.
    Given(Vec<Vec<f64>>),
}

/// Where inducing inputs start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InducingInit {
    /// Positions of rows that are far apart, as k-means++ draws them.
    #[default]
    Spread,
    /// The centres of k-means, which begins at [`InducingInit::Spread`].
    Kmeans,
    /// Positions of rows drawn at random.
    Rows,
    /// Given inputs in the first run; the other runs, whose positions differ, use [`InducingInit::Spread`].
    Given(Vec<Vec<f64>>),
}

/// The rows of a matrix.
fn rows(of: &Mat) -> Vec<Vec<f64>> {
    (0..of.rows()).map(|i| of.row(i).to_vec()).collect()
}

/// A matrix of `q` columns of finite numbers with `n` rows; `None` accepts any number of rows.
fn given(what: &str, of: &[Vec<f64>], n: Option<usize>, q: usize) -> Result<Mat> {
    let n = n.unwrap_or(of.len()).max(1);
    if of.len() != n || of.iter().any(|row| row.len() != q) {
        let found = format!("{} × {}", of.len(), of.iter().map(Vec::len).find(|len| *len != q).unwrap_or(q));
        return Err(Error::shape(what, format!("{n} × {q}"), found));
    }
    match of.iter().flatten().all(|v| v.is_finite()) {
        true => Ok(Mat::from_fn(n, q, |i, j| of[i][j])),
        false => Err(Error::not_finite(what)),
    }
}

impl Init {
    /// Starts at these positions.
    pub fn given(positions: &Mat) -> Self {
        Init::Given(rows(positions))
    }

    /// Q, where it follows from positions that are given.
    pub fn latent_dim(&self) -> Option<usize> {
        match self {
            Init::Given(rows) => rows.first().map(Vec::len),
            _ => None,
        }
    }

    /// Positions of the rows of scaled Y in `q` dimensions; columns without information are narrow draws.
    pub(crate) fn positions(&self, y: &Mat, q: usize, rng: &mut ChaCha8Rng) -> Result<Mat> {
        let n = y.rows();
        let mut x = match self {
            Init::Given(rows) => return given("the positions to start at", rows, Some(n), q),
            Init::Random => return Ok(normals(n, q, 0.3, rng)),
            Init::Rotated => return Ok(rotated(&Init::Pca.positions(y, q, rng)?, rng)),
            Init::Pca | Init::PcaRaw => pca::scores(y, q)?,
            Init::Spectral => spectral(y, q)?,
        };
        let std = |x: &Mat, k: usize| ((0..n).map(|i| x[(i, k)].powi(2)).sum::<f64>() / n as f64).sqrt();
        let first = std(&x, 0);
        for k in 0..q {
            let own = std(&x, k);
            let empty = own <= 1e-9 * first.max(f64::MIN_POSITIVE);
            let unit = if *self == Init::PcaRaw { first } else { own };
            for i in 0..n {
                let noise = normal(rng);
                x[(i, k)] = if empty { 0.1 * noise } else { x[(i, k)] / unit };
            }
        }
        Ok(x)
    }
}

impl InducingInit {
    /// Starts at these inputs.
    pub fn given(inputs: &Mat) -> Self {
        InducingInit::Given(rows(inputs))
    }

    /// M, where it follows from inputs that are given.
    pub fn inducing(&self) -> Option<usize> {
        match self {
            InducingInit::Given(rows) => Some(rows.len()),
            _ => None,
        }
    }

    /// Z of run `run`: `m` inducing inputs for latent positions `x`.
    pub(crate) fn choose(&self, x: &Mat, m: usize, run: usize, rng: &mut ChaCha8Rng) -> Result<Mat> {
        match self {
            InducingInit::Given(rows) if run == 0 => {
                given("the inducing inputs to start at", rows, None, x.cols())
            }
            InducingInit::Spread | InducingInit::Given(_) => Ok(spread_out(x, m.min(x.rows()), rng)),
            InducingInit::Kmeans => Ok(k_means(x, spread_out(x, m.min(x.rows()), rng))),
            InducingInit::Rows => {
                let mut order: Vec<usize> = (0..x.rows()).collect();
                order.shuffle(rng);
                order.truncate(m);
                // Rows that coincide make Kzz singular.
                let mut z = x.select_rows(&order);
                shake(&mut z, 1e-3, rng);
                Ok(z)
            }
        }
    }
}

/// Lloyd's iterations from given centres; a centre without rows stays.
fn k_means(x: &Mat, mut centres: Mat) -> Mat {
    let (m, q) = (centres.rows(), x.cols());
    for _ in 0..ROUNDS {
        let (mut sums, mut counts) = (Mat::zeros(m, q), vec![0usize; m]);
        for i in 0..x.rows() {
            let square =
                |j: usize| x.row(i).iter().zip(centres.row(j)).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            let nearest =
                (0..m).map(|j| (square(j), j)).min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0, |b| b.1);
            counts[nearest] += 1;
            sums.row_mut(nearest).iter_mut().zip(x.row(i)).for_each(|(sum, v)| *sum += v);
        }
        let before = centres.clone();
        for j in (0..m).filter(|j| counts[*j] > 0) {
            (0..q).for_each(|k| centres[(j, k)] = sums[(j, k)] / counts[j] as f64);
        }
        if centres == before {
            break;
        }
    }
    centres
}

/// The names of starts of positions.
const INITS: [(&str, Init); 4] =
    [("pca", Init::Pca), ("pca-raw", Init::PcaRaw), ("spectral", Init::Spectral), ("random", Init::Random)];

/// The names of starts of inducing inputs.
const INDUCING_INITS: [(&str, InducingInit); 3] =
    [("spread", InducingInit::Spread), ("kmeans", InducingInit::Kmeans), ("rows", InducingInit::Rows)];

impl fmt::Display for Init {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Init::Pca => "pca",
            Init::PcaRaw => "pca-raw",
            Init::Spectral => "spectral",
            Init::Rotated => "rotated",
            Init::Random => "random",
            Init::Given(_) => "given positions",
        })
    }
}

impl fmt::Display for InducingInit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InducingInit::Spread => "spread",
            InducingInit::Kmeans => "kmeans",
            InducingInit::Rows => "rows",
            InducingInit::Given(_) => "given inputs",
        })
    }
}

impl FromStr for Init {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = INITS.into_iter().find(|(known, _)| *known == name);
        let known = INITS.map(|(known, _)| known).join(", ");
        found
            .map(|(_, init)| init)
            .ok_or_else(|| Error::invalid("init", format!("one of {known}, or a file"), name))
    }
}

impl FromStr for InducingInit {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = INDUCING_INITS.into_iter().find(|(known, _)| *known == name);
        let known = INDUCING_INITS.map(|(known, _)| known).join(", ");
        found
            .map(|(_, init)| init)
            .ok_or_else(|| Error::invalid("inducing_init", format!("one of {known}, or a file"), name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{self, rng_of};
    use crate::kernel::Rbf;
    use crate::model::{GplvmTraining, Training};

    fn table() -> Mat {
        Mat::from_fn(20, 4, |i, j| ((i * (j + 2)) as f64 * 0.37).sin() + 0.1 * j as f64)
    }

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        for (name, init) in INITS {
            assert_eq!((init.to_string(), name.parse::<Init>().unwrap()), (name.to_string(), init));
        }
        for (name, init) in INDUCING_INITS {
            assert_eq!((init.to_string(), name.parse::<InducingInit>().unwrap()), (name.to_string(), init));
        }
        assert!("umap".parse::<Init>().unwrap_err().to_string().contains("spectral"));
        assert!("grid".parse::<InducingInit>().unwrap_err().to_string().contains("kmeans"));
    }

    #[test]
    fn the_first_run_starts_where_it_is_told_and_the_others_elsewhere() {
        let (y, x) = (table(), Mat::from_fn(20, 2, |i, j| (i as f64 - 9.5) * 0.1 + j as f64));
        let z = Mat::from_fn(3, 2, |i, j| i as f64 - j as f64);
        let how = Training {
            init: Init::given(&x),
            inducing_init: InducingInit::given(&z),
            inducing: 3,
            max_iterations: 5,
            ..Training::default()
        };
        let start = |run: usize| how.start(&y, &Rbf::new(2), run).unwrap();
        assert_eq!((&start(0).mean.value, &start(0).z.value), (&x, &z));
        assert!(start(1).mean.value != x && start(1).z.value.rows() == 3);
        let points = GplvmTraining { init: Init::given(&x), ..GplvmTraining::default() };
        assert_eq!(points.start(&y, &Rbf::new(2), 0).unwrap().x.value, x);
        assert!(points.start(&y, &Rbf::new(2), 1).unwrap().x.value != x);
        let raw = Training { init: Init::PcaRaw, ..Training::default() };
        assert!(
            raw.start(&y, &Rbf::new(2), 0).unwrap().mean.value
                != Training::default().start(&y, &Rbf::new(2), 0).unwrap().mean.value
        );
        let short = Training { init: Init::given(&x.slice_rows(0, 9)), ..how.clone() };
        let message = short.fit(&y, &Rbf::new(2), &fit::go_on).err().unwrap().to_string();
        assert!(message.contains("20 × 2") && message.contains("9 × 2"), "{message}");
        let mut bad = x.clone();
        bad[(3, 1)] = f64::NAN;
        assert!(Training { init: Init::given(&bad), ..how.clone() }.start(&y, &Rbf::new(2), 0).is_err());
        let wide = Training { inducing_init: InducingInit::given(&Mat::zeros(3, 4)), ..how.clone() };
        assert!(wide.start(&y, &Rbf::new(2), 0).err().unwrap().to_string().contains("3 × 2"));
    }

    #[test]
    fn centres_are_where_the_points_are() {
        let x = Mat::from_fn(40, 2, |i, j| 10.0 * (i % 4) as f64 + 0.1 * ((i * 7 + j) as f64).sin());
        let spread = |m: usize| InducingInit::Spread.choose(&x, m, 0, &mut rng_of(0, 0)).unwrap();
        let centres = InducingInit::Kmeans.choose(&x, 4, 0, &mut rng_of(0, 0)).unwrap();
        let loss = |z: &Mat| -> f64 {
            let near = |i: usize| {
                let square = |j: usize| (0..2).map(|k| (x[(i, k)] - z[(j, k)]).powi(2)).sum::<f64>();
                (0..z.rows()).map(square).fold(f64::INFINITY, f64::min)
            };
            (0..40).map(near).sum()
        };
        assert!(loss(&centres) < loss(&spread(4)), "{} and {}", loss(&centres), loss(&spread(4)));
        let rows = InducingInit::Rows.choose(&x, 50, 0, &mut rng_of(0, 0)).unwrap();
        assert_eq!(rows.rows(), 40);
    }
}
