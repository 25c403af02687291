//! Inputs of which each cell is known, known up to an error, missing, or latent.
//!
//! ```text
//! known                        x
//! known up to an error s       prior N(x, s²)·N(c_j, v_j), posterior N(μ, S)       s may be learnt, one a column
//! missing                      prior N(c_j, v_j), posterior N(μ, S)
//! latent, a whole column       prior N(0, 1), posterior N(μ, S)
//! ```
//!
//! c_j and v_j are mean and variance of the observed cells of a column, those with errors by the weight v_j/(v_j + s²).
//! Posteriors are fitted with −KL in the bound.
//! As s grows, a cell becomes a missing one; as s vanishes, a known one. Where errors are only averaged over
//! ([`Treatment::Averaged`]), their cells keep N(x, s²) and have no KL.
//!
//! Posteriors of cells with errors are kept relative to their priors N(m, p), so that the fit sees cells of all
//! precisions alike:
//!
//! ```text
//! p = s²v/(s² + v)     m = x + (c − x)s²/(s² + v)     μ = m + √p ν     S = p r     KL = ½(ν² + r − ln r − 1)
//! ```

use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::expectation::Gaussians;
use crate::file::{ModelFile, damaged};
use crate::fit::fit;
use crate::mat::Mat;
use crate::model::Model;
use crate::model::shared::init::Init;
use crate::model::shared::prior::{InputPrior, KlGrad, Normal, gaussian_kl};
use crate::optim::{Lbfgs, quiet};
use crate::param::{Param, Parameterized};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A posterior starts with this part of its prior's variance.
const START: f64 = 0.5;

/// A learnt s starts at this part of the column's standard deviation.
const START_STD: f64 = 0.1;

/// The most latent columns.
const MOST_LATENT: usize = 1000;

/// Rounds in which the moments of a column and the weights of its cells follow from each other.
const ROUNDS: usize = 30;

/// What is done about inputs that are known up to errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Treatment {
    /// Each has a posterior: y tells where in its error bar it lies.
    #[default]
    Inferred,
    /// Each is averaged over as it was given. It has fewer parameters, but the noise pays for the slope of the function
    /// across every error bar.
    Averaged,
}

impl Treatment {
    /// Its name, which [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Treatment::Inferred => "inferred",
            Treatment::Averaged => "averaged",
        }
    }
}

impl fmt::Display for Treatment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Treatment {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let all = [Treatment::Inferred, Treatment::Averaged];
        all.into_iter()
            .find(|t| t.name() == text)
            .ok_or_else(|| Error::invalid("inputs", "inferred or averaged", text))
    }
}

/// What a model can be told of uncertain inputs besides the numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InputOptions {
    /// What is done about errors.
    pub treatment: Treatment,
    /// The columns whose errors have a standard deviation that is learnt; one that is given there is not read.
    pub learn: Vec<usize>,
    /// Columns that were never observed, after the others.
    pub latent: usize,
}

/// What the bound says of a learnt error: how much of it is lost, everything else fitted again, where there is next to no
/// error and where it is twice as large.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorEvidence {
    /// The column.
    pub column: usize,
    /// The loss without it.
    pub without: f64,
    /// The loss where it is doubled.
    pub doubled: f64,
}

/// Losses below this leave an error unclear: it is about half the 95 % quantile of χ² with one degree of freedom.
const CLEAR: f64 = 2.0;
/// An error of this part is next to none.
const NEARLY_NONE: f64 = 0.02;
/// Iterations of a fit with an error held.
const HELD_ITERATIONS: usize = 300;

impl ErrorEvidence {
    /// Whether the data tell the error, or could do as well without it or with a larger one.
    pub fn is_clear(&self) -> bool {
        self.without >= CLEAR && self.doubled >= CLEAR
    }
}

/// Works out the [`ErrorEvidence`] of every learnt error of a fitted model; other learnt errors are held.
pub(crate) fn weigh_errors<M: Model + Clone>(
    model: &M,
    inputs: impl Fn(&mut M) -> &mut UncertainInputs,
) -> Result<Vec<ErrorEvidence>> {
    let best = model.varying_evidence(None)?;
    let count = inputs(&mut model.clone()).read.learn.len();
    let loss = |k: usize, factor: f64| -> Result<f64> {
        let mut other = model.clone();
        inputs(&mut other).hold_error(k, factor);
        let how = Lbfgs { max_iterations: HELD_ITERATIONS, ..Lbfgs::default() };
        fit(&mut other, &how, &mut quiet)?;
        Ok(best - other.varying_evidence(None)?)
    };
    (0..count)
        .map(|k| {
            let column = inputs(&mut model.clone()).read.learn[k];
            Ok(ErrorEvidence { column, without: loss(k, NEARLY_NONE)?, doubled: loss(k, 2.0)? })
        })
        .collect()
}

/// Cells that are known up to errors, with a posterior each.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadCells {
    /// Row and column of each.
    cells: Vec<(usize, usize)>,
    /// ν, one row.
    pub offset: Param,
    /// r, one row.
    pub ratio: Param,
    /// The columns whose s is learnt.
    learn: Vec<usize>,
    /// Their s, one row.
    pub std: Param,
}

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

/// Prior of a cell that was read as x with the variance `a` of its error, in a column of N(c, v).
#[derive(Clone, Copy)]
struct CellPrior {
    mean: f64,
    var: f64,
    /// ∂m/∂a and ∂p/∂a.
    slopes: (f64, f64),
    /// p/a, which is finite at a = 0.
    part: f64,
}

impl CellPrior {
    fn new(x: f64, a: f64, c: f64, v: f64) -> Self {
        let (part, rest) = (1.0 / (1.0 + a / v), 1.0 / (1.0 + v / a));
        let slopes = ((c - x) * part * part / v, part * part);
        CellPrior { mean: x + (c - x) * rest, var: v * rest, slopes, part }
    }
}

impl ReadCells {
    fn new(cells: Vec<(usize, usize)>, learn: Vec<usize>, std: Vec<f64>) -> Self {
        let n = cells.len();
        ReadCells {
            cells,
            offset: Param::free(Mat::zeros(1, n)),
            ratio: Param::positive(Mat::filled(1, n, START)),
            learn,
            std: Param::positive(Mat::from_fn(1, std.len(), |_, k| std[k])),
        }
    }

    /// The place of a column among those whose s is learnt.
    fn learnt(&self, column: usize) -> Option<usize> {
        self.learn.iter().position(|l| *l == column)
    }
}

/// x with `latent` columns of missing cells after its own.
pub(crate) fn with_latent(x: &Mat, latent: usize) -> Mat {
    let q = x.cols();
    match latent {
        0 => x.clone(),
        k => Mat::from_fn(x.rows(), q + k, |i, j| if j < q { x[(i, j)] } else { f64::NAN }),
    }
}

/// The units of `q` observed columns, and of latent ones after them, which have their own.
pub(crate) fn with_latent_units(of: Scaling, latent: usize) -> Scaling {
    let Scaling { mut mean, mut scale } = of;
    mean.extend(std::iter::repeat_n(0.0, latent));
    scale.extend(std::iter::repeat_n(1.0, latent));
    Scaling { mean, scale }
}

/// The units of the observed columns alone.
pub(crate) fn without_latent_units(of: &Scaling, latent: usize) -> Scaling {
    let observed = of.mean.len() - latent;
    Scaling { mean: of.mean[..observed].to_vec(), scale: of.scale[..observed].to_vec() }
}

/// Mean and standard deviation of every column of X; a cell counts less the larger its error is.
fn moments(x: &Mat, var: &Mat) -> Result<Scaling> {
    if x.cols() == 0 {
        return Ok(Scaling { mean: Vec::new(), scale: Vec::new() });
    }
    let mut all = Scaling::fit(x, Scale::Standardize)?;
    for j in 0..x.cols() {
        let seen: Vec<(f64, f64)> =
            (0..x.rows()).map(|i| (x[(i, j)], var[(i, j)])).filter(|(x, _)| !x.is_nan()).collect();
        if seen.iter().all(|(_, a)| *a == 0.0) {
            continue;
        }
        for _ in 0..ROUNDS {
            let v = all.scale[j] * all.scale[j];
            let mean_of = |of: &dyn Fn(f64) -> f64| {
                let (sum, total) = seen.iter().fold((0.0, 0.0), |(sum, total), (x, a)| {
                    let weight = 1.0 / (1.0 + a / v);
                    (sum + weight * of(*x), total + weight)
                });
                sum / total
            };
            let mean = mean_of(&|x| x);
            let scale = mean_of(&|x| (x - mean) * (x - mean)).sqrt();
            if !(mean.is_finite() && (scale * scale).is_normal()) {
                break;
            }
            (all.mean[j], all.scale[j]) = (mean, scale);
        }
    }
    Ok(all)
}

/// Errs unless standard deviations fit X and are finite and not negative where X is known.
fn variances(x: &Mat, std: Option<&Mat>) -> Result<Mat> {
    let (n, q) = (x.rows(), x.cols());
    let mut var = Mat::zeros(n, q);
    let Some(std) = std else { return Ok(var) };
    if std.shape() != x.shape() {
        return Err(Error::shape("standard deviations of the inputs", x.shape(), std.shape()));
    }
    for (at, (v, &s)) in var.as_mut_slice().iter_mut().zip(std.as_slice()).enumerate() {
        if x.as_slice()[at].is_nan() {
            continue;
        }
        *v = s * s;
        if !(s >= 0.0 && v.is_finite()) {
            let what =
                format!("standard deviation of row {}, column {} of the inputs", at / q + 1, at % q + 1);
            return Err(Error::invalid(what, "a finite number, not negative", s));
        }
    }
    Ok(var)
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

    /// Writes all that was given into a model file.
    pub(crate) fn store(&self, file: &mut ModelFile) -> Result<()> {
        let given = self.given();
        file.put("x", &given.mean);
        file.put("x.var", &given.var);
        file.put("prior.mean", &self.prior.mean);
        file.put("prior.var", &self.prior.var);
        let options = self.options();
        if options.treatment == Treatment::Inferred || options.latent > 0 {
            file.set("uncertain", Some(options))?;
        }
        if !self.evidence.is_empty() {
            file.set("error_evidence", &self.evidence)?;
        }
        Ok(())
    }

    /// The inverse of [`store`](Self::store), but for x itself; files of version 0.1 have averages.
    pub(crate) fn restore(x: Mat, file: &mut ModelFile) -> Result<Self> {
        let given = Gaussians { var: file.take("x.var", x.rows(), x.cols())?, mean: x };
        let array = |name: &str| file.tensor(name).cloned();
        let prior = Normal { mean: array("prior.mean")?, var: array("prior.var")? };
        let averaged = InputOptions { treatment: Treatment::Averaged, ..InputOptions::default() };
        let how: InputOptions = file.field::<Option<InputOptions>>("uncertain")?.unwrap_or(averaged);
        if prior.mean.len() != prior.var.len()
            || !prior.mean.is_finite()
            || prior.var.as_slice().iter().any(|v| !(*v > 0.0 && v.is_finite()))
            || given.var.as_slice().iter().any(|v| !(*v >= 0.0 && v.is_finite()))
            || how.learn.iter().any(|j| *j >= given.dim())
            || how.latent > MOST_LATENT
        {
            return Err(damaged("its inputs or their variances are outside their domain"));
        }
        let mut all = Self::of_given(given, prior, &how)?;
        all.evidence = file.field::<Option<Vec<ErrorEvidence>>>("error_evidence")?.unwrap_or_default();
        match all.evidence.iter().all(|e| how.learn.contains(&e.column)) {
            true => Ok(all),
            false => Err(damaged("its errors of inputs are those of other columns")),
        }
    }

    /// Columns whose errors are learnt, and their standard deviations.
    pub fn learnt(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.read.learn.iter().copied().zip(self.read.std.as_slice().iter().copied())
    }

    /// The standard deviation of the error of a cell, given or learnt.
    pub fn read_std(&self, row: usize, column: usize) -> f64 {
        match self.read.learnt(column) {
            Some(k) => self.read.std.as_slice()[k],
            None => self.known.var[(row, column)].sqrt(),
        }
    }

    /// What is known of the observed columns of X, with NaN in the means of missing cells; with [`prior`](Self::prior)
    /// it is all that was given.
    pub(crate) fn given(&self) -> Gaussians {
        let mut known = self.known.clone();
        self.cells.iter().for_each(|&at| known.mean[at] = f64::NAN);
        if self.latent == 0 {
            return known;
        }
        let observed: Vec<usize> = (0..known.dim() - self.latent).collect();
        Gaussians { mean: known.mean.select_cols(&observed), var: known.var.select_cols(&observed) }
    }

    /// The inverse of [`given`](Self::given) and [`options`](Self::options), to the bit.
    pub(crate) fn of_given(given: Gaussians, prior: Normal, how: &InputOptions) -> Result<Self> {
        let mut all = UncertainInputs::of(&given.mean, given.var, how.learn.clone(), how)?;
        if prior.mean.len() != all.cells.len() {
            return Err(Error::shape("priors of missing inputs", all.cells.len(), prior.mean.len()));
        }
        all.prior = prior;
        Ok(all)
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

    /// The priors of new rows, in the units of the model: X has the observed columns, with NaN where a cell is missing,
    /// and `var` the variances of their errors. Latent columns follow.
    ///
    /// Errs when shapes disagree.
    pub fn priors(&self, x: &Mat, var: Option<&Mat>) -> Result<Gaussians> {
        let observed = self.columns.mean.cols() - self.latent;
        if x.cols() != observed {
            return Err(Error::shape("columns of the inputs", observed, x.cols()));
        }
        if let Some(var) = var.filter(|v| v.shape() != x.shape()) {
            return Err(Error::shape("variances of the inputs", x.shape(), var.shape()));
        }
        let one = |i: usize, j: usize| {
            let (c, v) = self.column(j);
            if j >= observed || x[(i, j)].is_nan() {
                return (c, v);
            }
            let (x, a) = (x[(i, j)], var.map_or(0.0, |v| v[(i, j)]));
            match self.treatment {
                Treatment::Averaged => (x, a),
                Treatment::Inferred if a == 0.0 => (x, 0.0),
                Treatment::Inferred => {
                    let prior = CellPrior::new(x, a, c, v);
                    (prior.mean, prior.var)
                }
            }
        };
        let (n, q) = (x.rows(), observed + self.latent);
        Gaussians::new(Mat::from_fn(n, q, |i, j| one(i, j).0), Mat::from_fn(n, q, |i, j| one(i, j).1))
    }

    /// [`priors`](Self::priors) of rows in the units of the data.
    pub(crate) fn priors_in(&self, units: Option<&Scaling>, x: &Mat, var: Option<&Mat>) -> Result<Gaussians> {
        let Some(s) = units else { return self.priors(x, var) };
        if let Some(var) = var.filter(|v| v.shape() != x.shape()) {
            return Err(Error::shape("variances of the inputs", x.shape(), var.shape()));
        }
        let x = s.apply(x)?;
        let var = var.map(|v| Mat::from_fn(v.rows(), v.cols(), |i, j| v[(i, j)] / s.scale[j] / s.scale[j]));
        self.priors(&x, var.as_ref())
    }

    /// The KL of all cells.
    pub(crate) fn kl(&self) -> Result<f64> {
        let missing = self.prior.kl(&self.mean.value, &self.var.value, None)?;
        Ok(missing + self.read_kl(None))
    }

    fn read_kl(&self, grads: Option<(&mut [f64], &mut [f64])>) -> f64 {
        let n = self.read.cells.len();
        if n == 0 {
            return 0.0;
        }
        let (zeros, ones) = (Mat::zeros(1, n), Mat::filled(1, n, 1.0));
        let (offset, ratio) = (self.read.offset.as_slice(), self.read.ratio.as_slice());
        gaussian_kl(offset, ratio, zeros.as_slice(), ones.as_slice(), grads)
    }

    /// From μ̄ and S̄ of all rows to the gradients of the parameters, those of −KL included, which are written to `slots`;
    /// the KL.
    pub(crate) fn pull(&self, mean_bar: &Mat, var_bar: &Mat, slots: &mut [f64]) -> Result<f64> {
        let (mean, rest) = slots.split_at_mut(self.cells.len());
        let (var, rest) = rest.split_at_mut(self.cells.len());
        for (c, &at) in self.cells.iter().enumerate() {
            mean[c] = mean_bar[at];
            var[c] = var_bar[at];
        }
        let grads = KlGrad { mean, var, params: &mut [] };
        let missing = self.prior.kl(&self.mean.value, &self.var.value, Some(grads))?;
        let (offset, rest) = rest.split_at_mut(self.read.cells.len());
        let (ratio, std) = rest.split_at_mut(self.read.cells.len());
        std.fill(0.0);
        let (nu, r) = (self.read.offset.as_slice(), self.read.ratio.as_slice());
        for (c, &at) in self.read.cells.iter().enumerate() {
            let prior = self.prior_of(at);
            let (m, s) = (mean_bar[at], var_bar[at]);
            let root = prior.var.sqrt();
            offset[c] = m * root;
            ratio[c] = s * prior.var;
            if let Some(k) = self.read.learnt(at.1) {
                let (m_slope, p_slope) = prior.slopes;
                let own = self.read.std.as_slice()[k];
                // √p = s√(p/a), so that nothing is divided by s.
                let root_slope = prior.part * prior.part.sqrt();
                std[k] += m * (2.0 * own * m_slope + nu[c] * root_slope) + s * r[c] * 2.0 * own * p_slope;
            }
        }
        Ok(missing + self.read_kl(Some((offset, ratio))))
    }
}

impl Parameterized for UncertainInputs {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = Vec::new();
        if !self.cells.is_empty() {
            all.extend([("missing.mean".to_string(), &self.mean), ("missing.var".to_string(), &self.var)]);
        }
        if self.has_errors() {
            let read = &self.read;
            all.extend([
                ("errors.offset".to_string(), &read.offset),
                ("errors.ratio".to_string(), &read.ratio),
            ]);
            all.extend((!read.learn.is_empty()).then(|| ("errors.std".to_string(), &read.std)));
        }
        all
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let (missing, errors) = (!self.cells.is_empty(), self.has_errors());
        let mut all = Vec::new();
        if missing {
            all.extend([
                ("missing.mean".to_string(), &mut self.mean),
                ("missing.var".to_string(), &mut self.var),
            ]);
        }
        if errors {
            let read = &mut self.read;
            all.extend([
                ("errors.offset".to_string(), &mut read.offset),
                ("errors.ratio".to_string(), &mut read.ratio),
            ]);
            all.extend((!read.learn.is_empty()).then_some(("errors.std".to_string(), &mut read.std)));
        }
        all
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        if !self.cells.is_empty() {
            [&self.mean, &self.var].into_iter().for_each(&mut *visit);
        }
        if self.has_errors() {
            [&self.read.offset, &self.read.ratio].into_iter().for_each(&mut *visit);
            if !self.read.learn.is_empty() {
                visit(&self.read.std);
            }
        }
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        let errors = self.has_errors();
        if !self.cells.is_empty() {
            [&mut self.mean, &mut self.var].into_iter().for_each(&mut *visit);
        }
        if errors {
            [&mut self.read.offset, &mut self.read.ratio].into_iter().for_each(&mut *visit);
            if !self.read.learn.is_empty() {
                visit(&mut self.read.std);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{differences, relative_error};
    use crate::param;

    fn table() -> (Mat, Mat) {
        let mut x = Mat::from_fn(9, 2, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin() * 2.0 + 1.0);
        x[(4, 1)] = f64::NAN;
        (x, Mat::from_fn(9, 2, |i, j| if j == 0 { 0.1 * (i % 3) as f64 } else { 0.0 }))
    }

    #[test]
    fn a_prior_is_between_what_was_read_and_its_column() {
        let (x, c, v) = (1.3, 0.4, 2.0);
        let at = |a: f64| CellPrior::new(x, a, c, v);
        assert_eq!((at(0.0).mean, at(0.0).var), (x, 0.0));
        assert_eq!((at(f64::INFINITY).mean, at(f64::INFINITY).var), (c, v));
        for a in [1e-12, 0.01, 0.7, 30.0] {
            let (one, weight) = (at(a), 1.0 / a + 1.0 / v);
            assert!((one.var * weight - 1.0).abs() < 1e-12);
            assert!((one.mean - (x / a + c / v) / weight).abs() < 1e-12);
            if a < 1e-6 {
                // Differences of so little have no digits.
                continue;
            }
            let slope = |of: &dyn Fn(f64) -> f64| (of(a * 1.0001) - of(a * 0.9999)) / (2e-4 * a);
            let (m, p) = (slope(&|a| at(a).mean), slope(&|a| at(a).var));
            assert!((one.slopes.0 - m).abs() < 1e-3 * m.abs() + 1e-4, "{a}: {m} {}", one.slopes.0);
            assert!((one.slopes.1 - p).abs() < 1e-3 * p.abs() + 1e-4, "{a}: {p} {}", one.slopes.1);
        }
    }

    #[test]
    fn a_cell_that_was_read_with_a_boundless_error_is_missing() {
        let (x, mut std) = table();
        let mut holed = x.clone();
        holed[(2, 0)] = f64::NAN;
        std[(2, 0)] = 1e150;
        let how = InputOptions::default();
        let wide = UncertainInputs::with(&x, Some(&std), &how).unwrap();
        let none = UncertainInputs::with(&holed, Some(&std), &how).unwrap();
        let (a, b) = (wide.gaussians(), none.gaussians());
        let close =
            |a: &Mat, b: &Mat| a.as_slice().iter().zip(b.as_slice()).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(&a.mean, &b.mean) && close(&a.var, &b.var));
        assert!((wide.kl().unwrap() - none.kl().unwrap()).abs() < 1e-12);
        let new = Mat::from_rows(&[[0.3, 0.9]]);
        let var = Mat::from_rows(&[[1e300, 0.0]]);
        let (a, b) = (
            wide.priors(&new, Some(&var)).unwrap(),
            none.priors(&new.map(|v| if v == 0.3 { f64::NAN } else { v }), None).unwrap(),
        );
        assert!(close(&a.mean, &b.mean) && close(&a.var, &b.var));
    }

    #[test]
    fn what_was_given_comes_back() {
        let (x, std) = table();
        for how in [
            InputOptions::default(),
            InputOptions { treatment: Treatment::Averaged, ..Default::default() },
            InputOptions { learn: vec![1], ..Default::default() },
            InputOptions { latent: 2, ..Default::default() },
        ] {
            let all = UncertainInputs::with(&x, Some(&std), &how).unwrap();
            assert_eq!(all.options(), how);
            assert_eq!(all.given().dim(), 2);
            let again = UncertainInputs::of_given(all.given(), all.prior.clone(), &all.options()).unwrap();
            assert_eq!(again, all);
        }
        let mut twice = UncertainInputs::new(&x, Some(&std)).unwrap();
        assert_eq!(twice.params().len(), 2);
        twice =
            UncertainInputs::with(&x, Some(&std), &InputOptions { learn: vec![1, 1], ..Default::default() })
                .unwrap();
        let names: Vec<String> = twice.params().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["missing.mean", "missing.var", "errors.offset", "errors.ratio", "errors.std"]);
        assert_eq!((twice.learnt().count(), twice.read.offset.len()), (1, 6 + 8));
        crate::check::order(&mut twice).unwrap();
    }

    #[test]
    fn gradients_of_the_parameters_agree_with_differences() {
        let (x, std) = table();
        let how = InputOptions { learn: vec![1], latent: 1, ..Default::default() };
        let mut at = UncertainInputs::with(&x, Some(&std), &how).unwrap();
        let n = at.read.offset.len();
        at.read.offset.value = Mat::from_fn(1, n, |_, c| (1.7 * c as f64).sin());
        at.read.ratio.value = Mat::from_fn(1, n, |_, c| 0.3 + 0.1 * (c % 5) as f64);
        let weight = |k: usize| Mat::from_fn(9, 3, |i, j| ((3 * i + j + 7 * k) as f64).cos());
        let (a, b) = (weight(0), weight(1));
        let value = |at: &UncertainInputs| {
            let q = at.gaussians();
            a.dot(&q.mean) + b.dot(&q.var) - at.kl().unwrap()
        };
        let mut grad = vec![0.0; param::count(&at)];
        let kl = at.pull(&a, &b, &mut grad).unwrap();
        assert!((kl - at.kl().unwrap()).abs() < 1e-12);
        let mut moved = at.clone();
        let slow = differences(&param::values(&at), |theta| {
            param::set_values(&mut moved, theta);
            value(&moved)
        });
        assert!(relative_error(&grad, &slow, 1e-3) < 1e-7);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let (x, std) = table();
        let error =
            |how: InputOptions| UncertainInputs::with(&x, Some(&std), &how).err().unwrap().to_string();
        assert!(error(InputOptions { learn: vec![2], ..Default::default() }).contains("below 2"));
        let both = InputOptions { learn: vec![0], treatment: Treatment::Averaged, ..Default::default() };
        assert!(error(both).contains("inferred"));
        assert!("mean".parse::<Treatment>().unwrap_err().to_string().contains("inferred or averaged"));
        assert_eq!("averaged".parse::<Treatment>().unwrap().to_string(), "averaged");
        let inputs = UncertainInputs::with(&x, None, &InputOptions::default()).unwrap();
        assert!(inputs.priors(&Mat::zeros(1, 3), None).is_err());
        assert!(inputs.priors(&Mat::zeros(1, 2), Some(&Mat::zeros(2, 2))).is_err());
    }
}
