//! Inputs of which each cell is known, known up to an error, missing, or latent.
//!
//! ```text
//! known                        x
//! known up to an error s       prior N(m, p), posterior N(μ, S)                    s may be learnt, one a column
//! missing                      prior N(c_j, v_j), posterior N(μ, S)
//! latent, a whole column       prior N(0, 1), posterior N(μ, S)
//! ```
//!
//! c_j and v_j are mean and variance of the observed cells of a column, those with errors by the weight v_j/(v_j + s²).
//! N(m, p) is N(x, s²) where s is small beside the column, and N(c_j, v_j) where it is large: see [`cell_prior`].
//! Posteriors are fitted with −KL in the bound.
//! As s grows, a cell becomes a missing one; as s vanishes, a known one. Where errors are only averaged over
//! ([`Treatment::Averaged`]), their cells keep N(x, s²) and have no KL.
//!
//! Posteriors of cells with errors are kept relative to their priors N(m, p), so that the fit sees cells of all
//! precisions alike:
//!
//! ```text
//! μ = m + √p ν     S = p r     KL = ½(ν² + r − ln r − 1)
//! ```

mod bound;
mod cell_prior;
mod columns;
mod evidence;
mod new_rows;
mod options;
mod params;
mod read_cells;
mod stored;
#[cfg(test)]
mod tests;

pub use evidence::ErrorEvidence;
pub use options::{InputOptions, Treatment};
pub use read_cells::ReadCells;

pub(crate) use columns::{with_latent, with_latent_units, without_latent_units};
pub(crate) use evidence::weigh_errors;

use crate::error::{Error, Result};
use crate::expectation::{Gaussians, ScaledUnscented};
use crate::mat::Mat;
use crate::model::shared::init::Init;
use crate::model::shared::prior::Normal;
use crate::param::Param;
use cell_prior::CellPrior;
use columns::{moments, variances};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The posterior of a missing or latent cell starts with this part of its prior's variance.
const START: f64 = 0.5;

/// A learnt s starts at this part of the column's standard deviation.
const START_STD: f64 = 0.1;

/// The most latent columns.
const MOST_LATENT: usize = 1000;

/// The nodes around an inferred input where there is no closed form: x itself and x ± √((Q + 2) S), with positive weights.
///
/// Two nodes a column and none between them, as the unscented rule has them, leave a wide posterior two places to be at,
/// with nothing asked of the function between: a fit then finds those.
pub(crate) const NODES: ScaledUnscented = ScaledUnscented { alpha: 1.0, kappa: 2.0 };

/// Inputs of a regression, scaled.
#[derive(Clone, Debug, PartialEq)]
pub struct UncertainInputs {
    /// Means and variances of what was given; those of missing cells are in `mean` and `var`.
    known: Gaussians,
    /// Row and column of every missing or latent cell.
    pub cells: Vec<(usize, usize)>,
    /// μ of the missing cells, one row.
    pub mean: Param,
    /// S of the missing cells, one row.
    pub var: Param,
    /// The priors of the missing cells, one row.
    pub prior: Normal,
    /// The cells with errors that have a posterior.
    pub read: ReadCells,
    /// What the bound says of learnt errors, once a fit is over.
    pub evidence: Vec<ErrorEvidence>,
    /// c and v of every column, one row.
    columns: Normal,
    /// How many of the columns are latent.
    latent: usize,
    treatment: Treatment,
}

impl UncertainInputs {
    /// X, N×Q, with NaN where a cell is missing, and the standard deviations of the others, if known, which are averaged
    /// over.
    ///
    /// Errs when a value is infinite, a standard deviation is negative or not a number, or a column has no
    /// observed cell. A standard deviation at a missing cell is not read.
    pub fn new(x: &Mat, std: Option<&Mat>) -> Result<Self> {
        let averaged = InputOptions { treatment: Treatment::Averaged, ..Default::default() };
        Self::with(x, std, &averaged)
    }

    /// The same with all that can be asked for; X has the observed columns alone.
    ///
    /// Errs as [`new`](Self::new) does, and when a column whose errors are to be learnt is none of X or errors are to be
    /// learnt and averaged over at once.
    pub fn with(x: &Mat, std: Option<&Mat>, how: &InputOptions) -> Result<Self> {
        if let Some(&bad) = how.learn.iter().find(|l| **l >= x.cols()) {
            return Err(Error::invalid(
                "a column whose errors are learnt",
                format!("below {}", x.cols()),
                bad,
            ));
        }
        if !how.learn.is_empty() && how.treatment == Treatment::Averaged {
            let expected = "inferred inputs where their errors are learnt";
            return Err(Error::invalid("inputs", expected, how.treatment));
        }
        if how.latent > MOST_LATENT {
            return Err(Error::invalid("latent inputs", format!("at most {MOST_LATENT}"), how.latent));
        }
        let mut learn = how.learn.clone();
        learn.sort_unstable();
        learn.dedup();
        let mut var = variances(x, std)?;
        learn.iter().for_each(|&j| (0..x.rows()).for_each(|i| var[(i, j)] = 0.0));
        Self::of(x, var, learn, how)
    }

    /// From variances that are sound.
    fn of(x: &Mat, var: Mat, learn: Vec<usize>, how: &InputOptions) -> Result<Self> {
        let columns = with_latent_units(moments(x, &var)?, how.latent);
        let (x, wide) = (with_latent(x, how.latent), x.cols() + how.latent);
        let var = Mat::from_fn(x.rows(), wide, |i, j| if j < var.cols() { var[(i, j)] } else { 0.0 });
        let cells: Vec<(usize, usize)> =
            (0..x.rows()).flat_map(|i| (0..wide).map(move |j| (i, j))).filter(|&at| x[at].is_nan()).collect();
        let row = |f: &dyn Fn(usize) -> f64| Mat::from_fn(1, cells.len(), |_, c| f(cells[c].1));
        let square = |j: usize| columns.scale[j] * columns.scale[j];
        let prior = Normal { mean: row(&|j| columns.mean[j]), var: row(&square) };
        if !prior.var.as_slice().iter().all(|v| v.is_finite() && *v > 0.0) {
            return Err(Error::not_finite("the variance of an input column with missing cells"));
        }
        let inferred = how.treatment == Treatment::Inferred;
        let has_error = |at: (usize, usize)| !x[at].is_nan() && (var[at] > 0.0 || learn.contains(&at.1));
        let read: Vec<(usize, usize)> = match inferred {
            true => (0..x.rows())
                .flat_map(|i| (0..wide).map(move |j| (i, j)))
                .filter(|&at| has_error(at))
                .collect(),
            false => Vec::new(),
        };
        if read.iter().any(|at| !square(at.1).is_normal()) {
            return Err(Error::not_finite("the variance of an input column with errors"));
        }
        let std = learn.iter().map(|&j| START_STD * columns.scale[j]).collect();
        let treatment = if read.is_empty() { Treatment::Averaged } else { how.treatment };
        Ok(UncertainInputs {
            known: Gaussians { mean: x.map(|v| if v.is_nan() { 0.0 } else { v }), var },
            mean: Param::free(prior.mean.clone()),
            var: Param::positive(prior.var.map(|v| START * v)),
            cells,
            prior,
            read: ReadCells::new(read, learn, std),
            evidence: Vec::new(),
            columns: Normal {
                mean: Mat::from_fn(1, wide, |_, j| columns.mean[j]),
                var: Mat::from_fn(1, wide, |_, j| square(j)),
            },
            latent: how.latent,
            treatment,
        })
    }

    /// How many of the columns were never observed; they are the last ones.
    pub fn latent(&self) -> usize {
        self.latent
    }

    /// What is done about errors; where no cell has one, new ones are averaged over.
    pub fn treatment(&self) -> Treatment {
        self.treatment
    }

    /// Multiplies a learnt error by a factor and holds it; posteriors stay where they are as far as their priors let them.
    fn hold_error(&mut self, k: usize, factor: f64) {
        let column = self.read.learn[k];
        self.read.std.value[(0, k)] *= factor;
        self.read.std.fixed = true;
        for (c, _) in self.read.cells.iter().enumerate().filter(|(_, at)| at.1 == column) {
            let by = factor.max(1.0);
            self.read.offset.value[(0, c)] /= by;
            self.read.ratio.value[(0, c)] /= by * by;
        }
    }

    /// Whether there are cells that are known up to errors and have a posterior.
    pub fn has_errors(&self) -> bool {
        !self.read.cells.is_empty()
    }

    /// Starts the latent columns at the principal components of what the observed ones leave of the outputs.
    pub(crate) fn start_latent(&mut self, rest: &Mat, seed: u64) -> Result<()> {
        let observed = self.columns.mean.cols() - self.latent;
        let positions = Init::Pca.positions(rest, self.latent, &mut ChaCha8Rng::seed_from_u64(seed))?;
        for (c, &(i, j)) in self.cells.iter().enumerate().filter(|(_, at)| at.1 >= observed) {
            self.mean.value[(0, c)] = positions[(i, j - observed)];
        }
        Ok(())
    }

    /// What of it can be asked for.
    pub(crate) fn options(&self) -> InputOptions {
        InputOptions { treatment: self.treatment, learn: self.read.learn.clone(), latent: self.latent }
    }

    /// Rows of which nothing but the means and variances of their priors is known.
    pub(crate) fn of_priors(prior: &Gaussians) -> Self {
        let all = (0..prior.n()).flat_map(|i| (0..prior.dim()).map(move |j| (i, j)));
        let cells: Vec<(usize, usize)> = all.filter(|&at| prior.var[at] > 0.0).collect();
        let row = |of: &Mat| Mat::from_fn(1, cells.len(), |_, c| of[cells[c]]);
        let own = Normal { mean: row(&prior.mean), var: row(&prior.var) };
        UncertainInputs {
            known: Gaussians::certain(prior.mean.clone()),
            mean: Param::free(own.mean.clone()),
            var: Param::positive(own.var.map(|v| START * v)),
            prior: own,
            cells,
            read: ReadCells::new(Vec::new(), Vec::new(), Vec::new()),
            evidence: Vec::new(),
            columns: Normal::standard(1, prior.dim()),
            latent: 0,
            treatment: Treatment::Averaged,
        }
    }

    /// Columns whose errors are learnt, and their standard deviations.
    pub fn learnt(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.read.learn.iter().copied().zip(self.read.std.as_slice().iter().copied())
    }

    /// Whether a cell was not observed.
    pub fn is_missing(&self, row: usize, column: usize) -> bool {
        self.cells.binary_search(&(row, column)).is_ok()
    }

    /// The standard deviation of the error of a cell, given or learnt.
    pub fn read_std(&self, row: usize, column: usize) -> f64 {
        match self.read.learnt(column) {
            Some(k) => self.read.std.as_slice()[k],
            None => self.known.var[(row, column)].sqrt(),
        }
    }

    /// q(X) of all rows.
    pub fn gaussians(&self) -> Gaussians {
        let mut q = self.known.clone();
        for (c, &at) in self.cells.iter().enumerate() {
            q.mean[at] = self.mean.as_slice()[c];
            q.var[at] = self.var.as_slice()[c];
        }
        let (offset, ratio) = (self.read.offset.as_slice(), self.read.ratio.as_slice());
        for (c, &at) in self.read.cells.iter().enumerate() {
            let prior = self.prior_of(at);
            q.mean[at] = prior.mean + prior.var.sqrt() * offset[c];
            q.var[at] = prior.var * ratio[c];
        }
        q
    }

    fn column(&self, j: usize) -> (f64, f64) {
        (self.columns.mean[(0, j)], self.columns.var[(0, j)])
    }

    fn prior_of(&self, at: (usize, usize)) -> CellPrior {
        let (c, v) = self.column(at.1);
        let a = match self.read.learnt(at.1) {
            Some(k) => self.read.std.as_slice()[k] * self.read.std.as_slice()[k],
            None => self.known.var[at],
        };
        CellPrior::new(self.known.mean[at], a, c, v)
    }
}
