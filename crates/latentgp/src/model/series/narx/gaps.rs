//! Series with latent values: missing values, and values that were read with an error.
//!
//! A latent value is one cell with one posterior q(y_c) = N(μ_c, S_c). The cell is a lag in several windows
//! and the target of its own time step, so that both earlier and later values inform it.
//!
//! ```text
//! F = collapsed(Y, Ψ, Kzz, β) + Σ_c ½ log 2πeS_c
//!     + Σ_c E_q log N(y_c | m, v)  [no target]  + Σ_c E_q log N(r_c | y_c, s²)  [read]
//! log p(what was observed) ≥ F
//! ```
//!
//! A latent target has mean μ_c and variance S_c in Y ([`collapsed`](mod@crate::evidence)); a latent lag has
//! the same moments in every window of Ψ. m and v are the mean and variance of the column: the prior of
//! exogenous inputs, and of the values before the first target, which no window predicts.

use crate::data::lags::{Lags, Source};
use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::evidence::OutputsGrad;
use crate::expectation::{Gaussians, Mixed, Unscented};
use crate::mat::{Mat, all_finite};
use crate::model::shared::sparse_bound::{BoundGrad, SparseBound};
use crate::model::{Model, Outputs, SparseRegression};
use crate::param::{self, Param, Parameterized};
use crate::posterior::Posterior;
use rand_chacha::ChaCha8Rng;

/// S starts at this part of the variance of the column.
const START: f64 = 0.01;

/// Series in the units of the data, NaN where a value is missing, from the first row with a value to the
/// last.
#[derive(Clone, Debug)]
pub(super) struct Given {
    /// The row of the original table that is the first row here.
    pub first: usize,
    pub series: Mat,
    pub exogenous: Option<Mat>,
}

impl Given {
    /// Errs where the series has no value at all.
    pub fn new(series: &Mat, exogenous: Option<&Mat>) -> Result<Self> {
        let seen = |i: &usize| series.row(*i).iter().any(|v| !v.is_nan());
        let (Some(first), Some(last)) = ((0..series.rows()).find(seen), (0..series.rows()).rev().find(seen))
        else {
            return Err(Error::data("the series", "all values are missing"));
        };
        let part = |of: &Mat| of.slice_rows(first, last + 1);
        Ok(Given { first, series: part(series), exogenous: exogenous.map(part) })
    }

    fn bits(&self) -> impl Iterator<Item = u64> + '_ {
        let all = |of: &Mat| of.as_slice().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        all(&self.series).into_iter().chain(self.exogenous.iter().flat_map(all))
    }
}

/// The latent values.
#[derive(Clone, Debug)]
pub struct Cells {
    /// Time step, counted from the first row with a value, and column: the series come first, then the
    /// exogenous inputs.
    pub at: Vec<(usize, usize)>,
    /// μ, one row, in the units of the scaled series.
    pub mean: Param,
    /// S, one row.
    pub var: Param,
    /// a and b of every term E_q log N(y_c | a, b) of a cell.
    pulls: Vec<Vec<(f64, f64)>>,
    /// The places of each cell in the windows.
    windows: Vec<Vec<(usize, usize)>>,
    /// The place of each cell among the targets.
    targets: Vec<Option<(usize, usize)>>,
}

/// A sparse regression of windows with latent values.
#[derive(Clone)]
pub struct Gapped {
    /// Kernel, noise and inducing inputs; its own windows and targets are only a start.
    pub base: SparseRegression,
    /// The latent values.
    pub cells: Cells,
    pub(super) given: Given,
    /// s², the variance of the reading errors, in the units of the scaled series.
    pub(super) error: f64,
    /// Windows and targets, scaled, with zeros for the latent values.
    known: (Mat, Mat),
    /// The number of observed values of each series.
    observed: Vec<usize>,
}

/// Interpolates linearly between known values; constant before the first and after the last.
fn interpolated(column: &[f64]) -> Vec<f64> {
    let seen: Vec<usize> = (0..column.len()).filter(|&i| !column[i].is_nan()).collect();
    let at = |i: usize| {
        let next = seen.partition_point(|&s| s < i);
        match (next.checked_sub(1).map(|k| seen[k]), seen.get(next).copied()) {
            (_, Some(b)) if b == i => column[i],
            (Some(a), Some(b)) => {
                let part = (i - a) as f64 / (b - a) as f64;
                column[a] + part * (column[b] - column[a])
            }
            (Some(a), None) => column[a],
            (None, Some(b)) => column[b],
            (None, None) => 0.0,
        }
    };
    (0..column.len()).map(at).collect()
}

/// The series and the exogenous inputs side by side, scaled.
pub(super) fn scaled(given: &Given, series: &Scaling, exogenous: Option<&Scaling>) -> Result<Mat> {
    let own = series.apply(&given.series)?;
    let Some((u, s)) = given.exogenous.as_ref().zip(exogenous) else { return Ok(own) };
    let (u, d) = (s.apply(u)?, own.cols());
    Ok(Mat::from_fn(own.rows(), d + u.cols(), |t, j| if j < d { own[(t, j)] } else { u[(t, j - d)] }))
}

/// Windows and targets of a table of series and exogenous inputs side by side.
pub(super) fn windows(lags: &Lags, table: &Mat) -> (Mat, Mat) {
    let (d, first) = (lags.series.len(), lags.longest());
    let (columns, n) = (lags.columns(), table.rows() - first);
    let value = |i: usize, j: usize| match columns[j] {
        Source::Series(s, delay) => table[(first + i - delay, s)],
        Source::Exogenous(e, delay) => table[(first + i - delay, d + e)],
    };
    (Mat::from_fn(n, columns.len(), value), Mat::from_fn(n, d, |i, j| table[(first + i, j)]))
}

/// The table with missing values interpolated in time.
pub(super) fn filled(table: &Mat) -> Mat {
    let columns: Vec<Vec<f64>> = (0..table.cols()).map(|j| interpolated(&table.col(j))).collect();
    Mat::from_fn(table.rows(), table.cols(), |t, j| columns[j][t])
}

impl Gapped {
    /// A model of the windows of `table`, which is `given`, scaled. `base` is a regression of the filled
    /// windows.
    ///
    /// Errs where a column of an exogenous input has no value.
    pub(super) fn new(
        mut base: SparseRegression,
        lags: &Lags,
        given: Given,
        table: &Mat,
        error: f64,
    ) -> Result<Self> {
        let (d, first, start) = (lags.series.len(), lags.longest(), filled(table));
        let is_latent = |t: usize, j: usize| table[(t, j)].is_nan() || (error > 0.0 && j < d);
        let all = (0..table.rows()).flat_map(|t| (0..table.cols()).map(move |j| (t, j)));
        let at: Vec<(usize, usize)> = all.filter(|&(t, j)| is_latent(t, j)).collect();
        let columns = Scaling::fit(table, Scale::Standardize)?;
        let (mut pulls, mut places, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        let sources = lags.columns();
        for &(t, j) in &at {
            let target = (j < d && t >= first).then(|| (t - first, j));
            let prior = target.is_none().then(|| (columns.mean[j], columns.scale[j].powi(2)));
            let read = (!table[(t, j)].is_nan()).then_some((table[(t, j)], error));
            pulls.push(prior.into_iter().chain(read).collect());
            targets.push(target);
            let delay = |source: &Source| match *source {
                Source::Series(s, delay) => (s == j).then_some(delay),
                Source::Exogenous(e, delay) => (d + e == j).then_some(delay),
            };
            let row = |delay: usize| (t + delay).checked_sub(first).filter(|i| *i < table.rows() - first);
            let place = |(q, s)| Some((row(delay(s)?)?, q));
            places.push(sources.iter().enumerate().filter_map(place).collect());
        }
        let row = |f: &dyn Fn((usize, usize)) -> f64| Mat::from_fn(1, at.len(), |_, c| f(at[c]));
        let mean = Param::free(row(&|at| start[at]));
        let var = Param::positive(row(&|(t, j)| match table[(t, j)].is_nan() {
            true => START * columns.scale[j].powi(2),
            false => error,
        }));
        let zeroed =
            Mat::from_fn(
                table.rows(),
                table.cols(),
                |t, j| {
                    if is_latent(t, j) { 0.0 } else { table[(t, j)] }
                },
            );
        let counted = |t: usize, j: usize| !table[(t, j)].is_nan() && (error > 0.0 || t >= first);
        let observed = (0..d).map(|j| (0..table.rows()).filter(|&t| counted(t, j)).count()).collect();
        let cells = Cells { at, mean, var, pulls, windows: places, targets };
        let known = windows(lags, &zeroed);
        base.outputs = Outputs::uncertain(&windows(lags, &start).1, &Mat::zeros(known.1.rows(), d))?;
        // The noise of a series is small. The sums over nodes are whitened before they are squared and keep
        // their digits; closed forms of Ψ2 lose them.
        base.expectation = Mixed(Box::new(Unscented));
        let mut all = Gapped { base, cells, given, error, known, observed };
        all.base.outputs = all.outputs()?;
        Ok(all)
    }

    /// Sets the posteriors of the latent values. Errs unless their number matches and they are in their
    /// domains.
    pub(super) fn take(&mut self, mean: Mat, var: Mat) -> Result<()> {
        for (name, own, given) in
            [("gaps.mean", &mut self.cells.mean, mean), ("gaps.var", &mut self.cells.var, var)]
        {
            if given.shape() != own.value.shape() {
                return Err(Error::shape(name, own.value.shape(), given.shape()));
            }
            own.value = given;
            own.check(name)?;
        }
        self.base.outputs = self.outputs()?;
        Ok(())
    }

    /// Whether the model was fitted to these values, to the bit.
    pub(super) fn is_of(&self, given: &Given) -> bool {
        self.given.series.rows() == given.series.rows() && self.given.bits().eq(given.bits())
    }

    /// Mean and variance of a latent value by time step and column; `None` where the value is known.
    pub(super) fn value(&self, at: (usize, usize)) -> Option<(f64, f64)> {
        let c = self.cells.at.binary_search(&at).ok()?;
        Some((self.cells.mean.as_slice()[c], self.cells.var.as_slice()[c]))
    }

    /// q of the windows, N×Q.
    pub fn latent(&self) -> Gaussians {
        let (x, _) = &self.known;
        let mut q = Gaussians { mean: x.clone(), var: Mat::zeros(x.rows(), x.cols()) };
        for (c, places) in self.cells.windows.iter().enumerate() {
            for &at in places {
                q.mean[at] = self.cells.mean.as_slice()[c];
                q.var[at] = self.cells.var.as_slice()[c];
            }
        }
        q
    }

    /// The targets at the current posteriors.
    fn outputs(&self) -> Result<Outputs> {
        let (_, y) = &self.known;
        let (mut mean, mut var) = (y.clone(), Mat::zeros(y.rows(), y.cols()));
        for (c, at) in self.cells.targets.iter().enumerate() {
            if let Some(at) = *at {
                mean[at] = self.cells.mean.as_slice()[c];
                var[at] = self.cells.var.as_slice()[c];
            }
        }
        let mut outputs = self.base.outputs.clone();
        outputs.set_uncertain(&mean, &var)?;
        Ok(outputs)
    }

    fn bound<'a>(&'a self, outputs: &'a Outputs) -> SparseBound<'a> {
        SparseBound { outputs, ..self.base.bound() }
    }

    /// The terms of F that belong to the cells; adds their gradients.
    fn own_terms(&self, grads: Option<(&mut [f64], &mut [f64])>) -> f64 {
        let tau = std::f64::consts::TAU;
        let (mean, var) = (self.cells.mean.as_slice(), self.cells.var.as_slice());
        let mut value = 0.0;
        for (c, pulls) in self.cells.pulls.iter().enumerate() {
            value += 0.5 * (tau * var[c]).ln() + 0.5;
            for (a, b) in pulls {
                value -= 0.5 * (tau * b).ln() + 0.5 * ((mean[c] - a).powi(2) + var[c]) / b;
            }
        }
        if let Some((mean_bar, var_bar)) = grads {
            for (c, pulls) in self.cells.pulls.iter().enumerate() {
                var_bar[c] += 0.5 / var[c];
                for (a, b) in pulls {
                    mean_bar[c] -= (mean[c] - a) / b;
                    var_bar[c] -= 0.5 / b;
                }
            }
        }
        value
    }

    /// Fits only the posteriors of the latent values.
    pub(super) fn infer(self) -> Result<Self> {
        if self.cells.at.is_empty() {
            return Ok(self);
        }
        let mut start = self;
        let fixed: Vec<bool> = start.base.params().iter().map(|(_, p)| p.fixed).collect();
        start.base.params_mut().into_iter().for_each(|(_, p)| p.fixed = true);
        let how = crate::fit::Restarts { max_iterations: ITERATIONS, ..Default::default() };
        let mut found = how.fit(&start, &crate::fit::go_on)?.model;
        found.base.params_mut().into_iter().zip(fixed).for_each(|((_, p), fixed)| p.fixed = fixed);
        Ok(found)
    }
}

/// Iterations of the fit of a history's latent values.
const ITERATIONS: usize = 200;

impl Parameterized for Gapped {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = self.base.params();
        all.extend([("gaps.mean".to_string(), &self.cells.mean), ("gaps.var".to_string(), &self.cells.var)]);
        all
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let mut all = self.base.params_mut();
        let own = [("gaps.mean", &mut self.cells.mean), ("gaps.var", &mut self.cells.var)];
        all.extend(own.map(|(name, p)| (name.to_string(), p)));
        all
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.base.each_param(&mut *visit);
        [&self.cells.mean, &self.cells.var].into_iter().for_each(visit);
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.base.each_param_mut(&mut *visit);
        [&mut self.cells.mean, &mut self.cells.var].into_iter().for_each(visit);
    }
}

impl Model for Gapped {
    fn constant(&self) -> f64 {
        self.base.scaling.log_jacobian(&self.observed)
    }

    fn varying_evidence(&self, grad: Option<&mut [f64]>) -> Result<f64> {
        let (q, outputs) = (self.latent(), self.outputs()?);
        let bound = self.bound(&outputs);
        let Some(grad) = grad else {
            return Ok(bound.value(&q)? + self.own_terms(None));
        };
        grad.fill(0.0);
        let (theta, rest) = grad.split_at_mut(param::count(&self.base.kernel));
        let (noise, rest) = rest.split_at_mut(self.base.noise.len());
        let (z_slot, rest) = rest.split_at_mut(self.base.z.len());
        let (mean_slot, var_slot) = rest.split_at_mut(self.cells.at.len());
        let like = |of: &Mat| Mat::zeros(of.rows(), of.cols());
        let mut z = like(&self.base.z.value);
        let [mut mean, mut var] = [&q.mean, &q.var].map(like);
        let [mut y_mean, mut y_var] = [(); 2].map(|()| like(&self.known.1));
        let outputs_bar = OutputsGrad { mean: &mut y_mean, var: &mut y_var };
        let bars =
            BoundGrad { theta, noise, z: &mut z, mean: &mut mean, var: &mut var, outputs: Some(outputs_bar) };
        let (value, ()) = bound.gradient(&q, bars, |_, _| ())?;
        z_slot.copy_from_slice(z.as_slice());
        for (c, places) in self.cells.windows.iter().enumerate() {
            mean_slot[c] = places.iter().map(|&at| mean[at]).sum();
            var_slot[c] = places.iter().map(|&at| var[at]).sum();
            if let Some(at) = self.cells.targets[c] {
                mean_slot[c] += y_mean[at];
                var_slot[c] += y_var[at];
            }
        }
        let value = value + self.own_terms(Some((mean_slot, var_slot)));
        if !all_finite(grad) {
            return Err(Error::not_finite("the gradient of the evidence bound"));
        }
        Ok(value)
    }

    fn posterior(&self) -> Result<Posterior> {
        let outputs = self.outputs()?;
        let mut posterior = self.bound(&outputs).posterior(&self.latent())?;
        posterior.expectation = self.base.expectation.0.clone();
        posterior.inputs = self.base.inputs.clone();
        Ok(posterior)
    }

    fn renew(&mut self, step: u64) {
        self.base.renew(step);
    }

    fn is_stochastic(&self) -> bool {
        self.base.is_stochastic()
    }

    fn choose_inducing(&mut self, rng: &mut ChaCha8Rng) -> Result<()> {
        self.base.choose_inducing(rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use crate::data::lags::Lags;
    use crate::kernel::{Linear, Matern32, Rbf};
    use crate::model::Restarts;
    use crate::model::narx::{Narx, NarxOptions, Process, Simulation};

    const NAN: f64 = f64::NAN;

    fn waves(rows: usize, series: usize) -> Mat {
        Mat::from_fn(rows, series, |t, d| {
            (0.6 * t as f64 + d as f64).sin() + 0.1 * ((5 * t + 3 * d) as f64).cos() + d as f64
        })
    }

    fn holed(mut of: Mat, holes: &[(usize, usize)]) -> Mat {
        holes.iter().for_each(|&at| of[at] = NAN);
        of
    }

    fn options(error: f64) -> NarxOptions {
        NarxOptions { inducing: Some(6), error, ..Default::default() }
    }

    fn cells(of: &Narx) -> &Gapped {
        of.latent().expect("latent values")
    }

    #[test]
    fn gradients_agree_with_differences() {
        let two = holed(waves(16, 2), &[(0, 1), (5, 0), (6, 0), (9, 1), (15, 0)]);
        let inputs = holed(waves(16, 1), &[(3, 0), (11, 0)]);
        let one = holed(waves(14, 1), &[(1, 0), (7, 0), (8, 0)]);
        for error in [0.0, 0.02] {
            let lags = Lags::of_series(&[2, 1]).with_exogenous([0, 1]);
            let kernel = Rbf::new(5) + Linear::new(5);
            let model = Narx::new(&two, Some(&inputs), lags, kernel, &options(error)).unwrap();
            check::model(&model, 1e-6).unwrap();
            let model = Narx::new(&one, None, Lags::new(3), Matern32::new(3), &options(error)).unwrap();
            check::model(&model, 1e-6).unwrap();
        }
    }

    #[test]
    fn a_series_without_gaps_has_the_bound_of_its_sparse_regression() {
        let whole = waves(20, 1);
        let sparse = Narx::new(&whole, None, Lags::new(2), Rbf::new(2), &options(0.0)).unwrap();
        let Process::Sparse(base) = &sparse.process else { panic!("a sparse regression") };
        let given = Given::new(&whole, None).unwrap();
        let table = scaled(&given, &sparse.scaling, None).unwrap();
        let same = Gapped::new((**base).clone(), &sparse.lags, given, &table, 0.0).unwrap();
        let (a, b) = (sparse.log_evidence(None).unwrap(), same.log_evidence(None).unwrap());
        assert!(same.cells.at.is_empty() && (a - b).abs() < 1e-10 * a.abs(), "{a} against {b}");
    }

    /// y_t = a y_(t−1) + ε, with a uniform noise of variance s².
    fn autoregression(rows: usize, a: f64, s: f64) -> Mat {
        let (mut state, mut y) = (9u64, 0.0);
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let mut step = || {
            y = a * y + s * 12f64.sqrt() * next();
            y
        };
        Mat::from_fn(rows, 1, |_, _| step())
    }

    #[test]
    fn a_gap_has_the_posterior_of_an_autoregression() {
        const AT: usize = 150;
        let series = holed(autoregression(300, 0.9, 0.3), &[(AT, 0)]);
        let options = NarxOptions { inducing: Some(4), ..Default::default() };
        let start = Narx::new(&series, None, Lags::new(1), Linear::new(1), &options).unwrap();
        let fitted = start.fit(&Restarts { max_iterations: 300, ..Default::default() }, &crate::fit::go_on);
        let model = fitted.unwrap().model;
        // The expected value follows from the fitted slope, in the scaled series, whose targets have the mean
        // 0.
        let posterior = model.posterior().unwrap();
        let at = |x: f64| posterior.predict_scaled(&Mat::filled(1, 1, x)).mean[(0, 0)];
        let (slope, noise) = (0.5 * (at(1.0) - at(-1.0)), model.noise().get());
        let scaled = model.scaling.apply(&series).unwrap();
        let mean = slope * (scaled[(AT - 1, 0)] + scaled[(AT + 1, 0)]) / (1.0 + slope * slope);
        let (found, var) = cells(&model).value((AT, 0)).unwrap();
        assert!((found - mean).abs() < 0.02, "{found} against {mean}");
        let expected = noise / (1.0 + slope * slope);
        assert!((var / expected - 1.0).abs() < 0.05, "{var} against {expected}");
        assert!((slope - 0.9).abs() < 0.1, "{slope}");
    }

    #[test]
    fn gaps_at_both_ends_are_left_out_and_simulated() {
        let inner = holed(waves(24, 1), &[(7, 0)]);
        let outer = Mat::from_fn(30, 1, |t, _| if (4..28).contains(&t) { inner[(t - 4, 0)] } else { NAN });
        let fit = |of: &Mat| {
            let start =
                Narx::new(of, None, Lags::new(3), Rbf::new(3) + Linear::new(3), &options(0.0)).unwrap();
            start
                .fit(&Restarts { max_iterations: 40, ..Default::default() }, &crate::fit::go_on)
                .unwrap()
                .model
        };
        let (a, b) = (fit(&inner), fit(&outer));
        assert_eq!(param::values(&a), param::values(&b));
        let how = Simulation::default();
        let (long, short) =
            (a.simulate(&inner, None, 7, &how).unwrap(), b.simulate(&outer, None, 5, &how).unwrap());
        assert_eq!((short.mean, short.var), (long.mean.slice_rows(2, 7), long.var.slice_rows(2, 7)));
        // A gap in the last window is as uncertain there as it was found to be.
        let late = holed(waves(24, 1), &[(22, 0)]);
        let model = fit(&late);
        let next = model.simulate(&late, None, 3, &how).unwrap();
        assert!(next.mean.is_finite() && next.var.as_slice().iter().all(|v| *v > 0.0));
        // The latent values of another history are inferred.
        let other = holed(waves(40, 1), &[(38, 0)]);
        let there = model.simulate(&other, None, 3, &how).unwrap();
        assert!((there.mean[(0, 0)] - waves(41, 1)[(40, 0)]).abs() < 0.6, "{there:?}");
        assert!(model.simulate(&Mat::filled(9, 1, NAN), None, 3, &how).is_err());
    }

    #[test]
    fn values_read_with_errors_are_smoothed() {
        let truth = Mat::from_fn(120, 1, |t, _| (0.3 * t as f64).sin());
        let mut state = 3u64;
        let read = Mat::from_fn(120, 1, |t, _| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            truth[(t, 0)] + 0.3 * 12f64.sqrt() * ((state >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
        });
        let error = 0.09 / 0.59;
        let options = NarxOptions { inducing: Some(12), error, ..Default::default() };
        let mut start = Narx::new(&read, None, Lags::new(3), Linear::new(3), &options).unwrap();
        start.wide_start();
        let model = start
            .fit(&Restarts { max_iterations: 400, ..Default::default() }, &crate::fit::go_on)
            .unwrap()
            .model;
        let (mut before, mut after) = (0.0, 0.0);
        for t in 10..110 {
            let (mean, _) = cells(&model).value((t, 0)).unwrap();
            let mean = model.scaling.mean[0] + model.scaling.scale[0] * mean;
            before += (read[(t, 0)] - truth[(t, 0)]).powi(2);
            after += (mean - truth[(t, 0)]).powi(2);
        }
        assert!(after < 0.5 * before, "{after} against {before}");
        let next = model.simulate(&read, None, 2, &Simulation::default()).unwrap();
        assert!(next.var[(0, 0)] > model.error() * model.scaling.scale[0].powi(2));
    }

    #[test]
    fn what_cannot_be_learnt_from_is_named() {
        let new = |series: &Mat, exogenous: Option<&Mat>, lags: Lags, error: f64| {
            let width = lags.width();
            Narx::new(series, exogenous, lags, Rbf::new(width), &options(error)).err().unwrap().to_string()
        };
        let one = holed(waves(9, 1), &[(4, 0)]);
        assert!(new(&Mat::filled(9, 1, NAN), None, Lags::new(1), 0.0).contains("all values are missing"));
        assert!(new(&one, None, Lags::new(9), 0.0).contains("longest lag"));
        assert!(new(&one, None, Lags::new(1), -1.0).contains("not negative"));
        let lags = Lags::new(1).with_exogenous([0]);
        assert!(!new(&one, Some(&Mat::filled(9, 1, NAN)), lags.clone(), 0.0).is_empty());
        let model = Narx::new(&one, Some(&waves(9, 1)), lags, Rbf::new(2), &options(0.0)).unwrap();
        let ahead = holed(waves(12, 1), &[(10, 0)]);
        let message = model.simulate(&one, Some(&ahead), 3, &Simulation::default()).unwrap_err().to_string();
        assert!(message.contains("a value is missing at a step to be forecast"), "{message}");
    }
}
