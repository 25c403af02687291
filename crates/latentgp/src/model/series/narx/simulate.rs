//! Free simulation: many steps ahead, each prediction a lag of the next.
//!
//! ```text
//! certain       m_t, v_t = posterior at the means of the window
//! independent   x_t ~ N(means, diag(variances)):   m_t = ψ1α   v_t = ψ0 − tr CA + vᵀAv − m_t² + σ²
//! correlated    x_t ~ N(means, P):   the same, and Cov[x_t, y_t] enters P with the new value
//! trajectories  draws of whole futures: see [`Draws`]
//! ```
//!
//! Moment propagation assumes a new draw of the function at every step; trajectories by [`Draws::Function`]
//! keep one function and are the reference. Monte Carlo draws new nodes at every step: repeated nodes would
//! err in the same direction at every step, and these errors would add up. With [`UncertainTraining`] the
//! posterior is that of a GPLVM at Z = μ = X, as in the papers.

use super::gaps::Given;
use super::window::Window;
use super::{Draws, Forecast, Narx, Process, trajectories};
use crate::error::{Error, Result};
use crate::expectation::correlated::{Basis, Correlated, Moments, certain, is_closed, moments, resolve};
use crate::expectation::{self, Analytic, Auto, Expectation, Gaussians, Unscented};
use crate::kernel::{Kernel, Term};
use crate::linalg;
use crate::mat::Mat;
use crate::mean::Mean;
use crate::model::{BayesianGplvm, Jitter, Model};
use crate::param;
use crate::posterior::{Posterior, at_least_zero};
use std::sync::Arc;

/// `auto` takes the closed form where rounding moves variances by less than this part of σ², else sigma points.
const AUTO_ROUNDING: f64 = 1e-4;
/// Where rounding may move variances by more than this part of σ², the closed form is refused.
const MOST_ROUNDING: f64 = 1.0;
/// Limit of the rounding error in the exponents of the closed form; very short lengthscales exceed it.
const MOST_SHARP: f64 = 1e-6;

/// The most values of a forecast, over all series.
const MOST_VALUES: usize = 10_000_000;

/// How uncertainty travels from a step to the next.
#[derive(Clone, Debug)]
pub enum Propagation {
    /// None: every lag is replaced by its mean.
    Certain,
    /// The lags are independent Gaussians, as in the papers.
    Independent(Box<dyn Expectation>),
    /// The lags of a window are one Gaussian with a full covariance.
    Correlated(Box<dyn Expectation>),
    /// Futures are drawn; the forecast has their mean and variance.
    Trajectories {
        /// The number of futures.
        count: usize,
        /// The seed; a future depends on the seed and its own number alone.
        seed: u64,
        /// Whether a future keeps its function.
        draws: Draws,
    },
}

/// The variance of the values in the first window, in scaled units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum StartVariance {
    /// 0: the values were observed, and the series itself is forecast.
    #[default]
    Zero,
    /// σ², as in the papers.
    Noise,
    /// A given variance.
    Value(f64),
}

/// Uncertain training inputs: the posterior is that of a Bayesian GPLVM with μ = X and, for an exact
/// regression, Z = X.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UncertainTraining {
    /// S of every cell, in scaled units. The papers state the noise variance, but their numbers result from
    /// 10⁻⁶.
    pub variance: f64,
    /// Added to diagonals.
    pub jitter: Jitter,
}

/// How a simulation is made.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// How uncertainty travels.
    pub propagation: Propagation,
    /// The variance of the first window.
    pub start: StartVariance,
    /// Whether training inputs are uncertain; not for [`Propagation::Certain`] or trajectories.
    pub training: Option<UncertainTraining>,
}

impl Default for Simulation {
    /// Independent lags and the `auto` expectation.
    fn default() -> Self {
        Simulation::independent(Auto)
    }
}

impl Simulation {
    fn by(propagation: Propagation) -> Self {
        Simulation { propagation, start: StartVariance::Zero, training: None }
    }

    /// Without propagation.
    pub fn certain() -> Self {
        Simulation::by(Propagation::Certain)
    }

    /// Independent lags.
    pub fn independent(by: impl Expectation + 'static) -> Self {
        Simulation::by(Propagation::Independent(Box::new(by)))
    }

    /// Correlated lags: the covariance of the window is carried along.
    pub fn correlated(by: impl Expectation + 'static) -> Self {
        Simulation::by(Propagation::Correlated(Box::new(by)))
    }

    /// Drawn futures, each with a function of its own.
    pub fn trajectories(count: usize, seed: u64) -> Self {
        Simulation::by(Propagation::Trajectories { count, seed, draws: Draws::Function })
    }

    /// The papers' protocol: independent lags, the first window with variances σ², training inputs with
    /// variances 10⁻⁶, and 10⁻⁶ added to the diagonals of Kzz and B.
    pub fn papers(by: impl Expectation + 'static) -> Self {
        Simulation {
            start: StartVariance::Noise,
            training: Some(UncertainTraining { variance: 1e-6, jitter: Jitter { kzz: 1e-6, b: 1e-6 } }),
            ..Simulation::independent(by)
        }
    }
}

/// A posterior prepared for many single steps.
pub(super) struct Stepper {
    pub basis: Arc<Basis>,
    /// v = Lᵀα, M×D.
    pub v: Mat,
    /// C; `None` is the identity.
    pub c: Option<Mat>,
    pub noise: f64,
}

/// One step's prediction of the noise-free function, and its covariance with the window, Q×D.
pub(super) struct Predicted {
    pub mean: Vec<f64>,
    pub cov: Mat,
    pub cross: Mat,
}

impl Stepper {
    fn new(posterior: Posterior) -> Result<Self> {
        if posterior.mean != Mean::Zero {
            return Err(Error::invalid("mean function of a GP-NARX", "none", "another"));
        }
        let factors = posterior.factors.into_iter().next().expect("outputs observed together");
        // All series have one noise.
        let (v, c, noise) = (factors.v().clone(), factors.c.of(0), posterior.noise[0]);
        let basis = Basis { kernel: posterior.kernel, z: posterior.z, l: posterior.l };
        Ok(Stepper { basis: Arc::new(basis), v, c, noise })
    }

    /// The rounding error of a variance by the closed form, in parts of σ²: ε(k²|α|² + k cond K)/σ².
    ///
    /// Node sums whiten k(Z, x) before squaring and lose no digits. The closed form computes Ψ2 itself to a
    /// relative error ε, which αᵀΨ2α and tr K⁻¹Ψ2 amplify where the kernel's variance is far above the noise.
    fn rounding(&self) -> f64 {
        let Basis { kernel, z, l } = &*self.basis;
        if sharpness(&**kernel, z) * f64::EPSILON > MOST_SHARP {
            return f64::INFINITY;
        }
        let mut diag = vec![0.0; z.rows()];
        kernel.diag(z, &mut diag);
        let k = diag.into_iter().fold(0.0, f64::max);
        let mut alpha = self.v.clone();
        l.solve_lt(&mut alpha);
        let squares = |d: usize| alpha.col(d).iter().map(|a| a * a).sum::<f64>();
        let alpha2 = (0..alpha.cols()).map(squares).fold(0.0, f64::max);
        f64::EPSILON * k * (k * alpha2 + l.condition()) / self.noise
    }

    /// The rule of the steps: `auto` is resolved, and Monte Carlo draws new nodes at every step.
    ///
    /// Errs where the closed form was asked for and rounding would spoil it.
    fn rule(&self, by: &dyn Expectation) -> Result<Box<dyn Expectation>> {
        if !is_closed(resolve(by, &*self.basis.kernel)) {
            return stepping(resolve(by, &*self.basis.kernel));
        }
        let lost = self.rounding();
        if is_closed(by) && lost > MOST_ROUNDING {
            let found = match lost.is_finite() {
                true => format!(
                    "a kernel so far above the noise that rounding may reach {lost:.0e} of the noise variance"
                ),
                false => "a lengthscale that is nothing beside the range of the data".into(),
            };
            return Err(Error::invalid(
                "steps by `analytic`",
                "rounding below the noise; try `unscented`",
                found,
            ));
        }
        Ok(if is_closed(by) || lost < AUTO_ROUNDING { Box::new(Analytic) } else { Box::new(Unscented) })
    }

    fn predict(&self, of: &Moments) -> Predicted {
        let mean = linalg::mul(&of.psi1, &self.v);
        let explained = self.c.as_ref().map_or_else(|| of.psi2.trace(), |c| c.dot(&of.psi2));
        let rest = at_least_zero(of.psi0 - explained);
        let second = linalg::mul_tn(&self.v, &linalg::mul(&of.psi2, &self.v));
        let d = mean.cols();
        let cov = Mat::from_fn(d, d, |i, j| {
            let spread = second[(i, j)] - mean[(0, i)] * mean[(0, j)];
            if i == j { rest + at_least_zero(spread) } else { spread }
        });
        Predicted { mean: mean.row(0).to_vec(), cov, cross: linalg::mul(&of.cross, &self.v) }
    }
}

/// The largest Σ_q (range of z_q / ℓ_q)² of a Gaussian term; exponents of the closed form are differences of
/// numbers of this size.
fn sharpness(kernel: &dyn Kernel, z: &Mat) -> f64 {
    let theta = param::values(kernel);
    let range = |q: usize| {
        let (lo, hi) = z
            .col(q)
            .into_iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (v.min(lo), v.max(hi)));
        hi - lo
    };
    let terms = kernel.closed_form().map(|form| form.terms).unwrap_or_default();
    let sharp = |term: &Term| term.gauss.iter().map(|&(q, i)| (range(q) / theta[i]).powi(2)).sum::<f64>();
    terms.iter().map(sharp).fold(0.0, f64::max)
}

/// Monte Carlo with new nodes at every step, by seed and step; any other rule unchanged.
fn stepping(by: &dyn Expectation) -> Result<Box<dyn Expectation>> {
    let text = by.expression();
    let fixed = text.strip_suffix(')').filter(|t| t.starts_with("monte_carlo(") && !by.is_stochastic());
    let Some(fixed) = fixed else { return Ok(by.boxed()) };
    let mut fresh = expectation::parse(&format!("{fixed}, fresh=true)"))?;
    if let Some(limit) = by.max_nodes() {
        fresh.set_max_nodes(limit);
    }
    Ok(fresh)
}

/// Moments at independent coordinates, by the closed form for independent inputs where there is one.
fn independent(by: &dyn Expectation, of: &Arc<Basis>, mean: Vec<f64>, var: &[f64]) -> Result<Moments> {
    let closed = is_closed(resolve(by, &*of.kernel));
    if !closed || var.iter().all(|v| *v == 0.0) {
        return moments(by, of, &Correlated::independent(mean, var));
    }
    let row = Gaussians::new(Mat::from_rows(&[&mean[..]]), Mat::from_rows(&[var]))?;
    let psi = Analytic.psi_whitened(&*of.kernel, &row, &of.z, &of.l)?;
    let mut psi1 = psi.psi1;
    of.l.solve_rows(&mut psi1);
    let cross = Mat::zeros(mean.len(), of.z.rows());
    Ok(Moments { psi0: psi.psi0, psi1, psi2: psi.psi2, cross })
}

impl Narx {
    /// Simulates `steps` time steps after the end of `history`.
    ///
    /// `history` has at least as many rows as the longest lag, the oldest first; `exogenous` has a row for
    /// each of its rows and for each step. Means and variances are in the units of the data, noise included.
    /// Missing values of the history, NaN, are inferred; rows without values at its end are simulated too.
    /// Errs when these do not fit, an exogenous input is missing ahead, there are no steps, the expectation
    /// cannot run, or a forecast overflows.
    pub fn simulate(
        &self,
        history: &Mat,
        exogenous: Option<&Mat>,
        steps: usize,
        how: &Simulation,
    ) -> Result<Forecast> {
        if steps == 0 {
            return Err(Error::invalid("horizon", "at least 1 step", 0));
        }
        let most = MOST_VALUES / self.lags.series.len().max(1);
        if steps > most {
            return Err(Error::invalid("horizon", format!("at most {most} steps"), steps));
        }
        self.lags.check_with_gaps(history, exogenous, steps)?;
        let seen = |i: &usize| history.row(*i).iter().any(|v| !v.is_nan());
        let known = (0..history.rows()).rev().find(seen).map_or(0, |i| i + 1);
        let behind = history.rows() - known;
        let (history, steps) = (&history.slice_rows(0, known), steps + behind);
        let longest = self.lags.longest();
        if history.rows() < longest {
            let reason =
                format!("{} values are fewer than the longest lag, {longest}; give more", history.rows());
            return Err(Error::data("the history", reason));
        }
        let (window, exogenous) = self.values(history, exogenous)?;
        let inputs = self.future(history.rows(), exogenous.as_ref(), steps)?;
        let start = match how.start {
            StartVariance::Zero => 0.0,
            StartVariance::Noise => self.noise().get(),
            StartVariance::Value(v) if v.is_finite() && v >= 0.0 => v,
            StartVariance::Value(v) => {
                return Err(Error::invalid("start variance", "a finite number, not negative", v));
            }
        };
        let mut tail = window;
        tail.var.as_mut_slice().iter_mut().for_each(|v| *v = v.max(start));
        let window = Window::new(&self.lags, &tail);
        let run = Run { inputs, steps, lags: &self.lags };
        let scaled = match &how.propagation {
            Propagation::Certain => run.moments(&Stepper::new(self.posterior()?)?, window, None, false)?,
            Propagation::Independent(by) => {
                let stepper = Stepper::new(self.posterior_for(how, &**by)?)?;
                run.moments(&stepper, window, Some(stepper.rule(&**by)?), false)?
            }
            Propagation::Correlated(by) => {
                let stepper = Stepper::new(self.posterior_for(how, &**by)?)?;
                run.moments(&stepper, window, Some(stepper.rule(&**by)?), true)?
            }
            Propagation::Trajectories { count, seed, draws } => {
                let stepper = Stepper::new(self.posterior()?)?;
                let mut drawn = trajectories::run(&stepper, &window, &run, *count, *seed, *draws)?;
                drawn.read_with(self.error(), *seed);
                drawn
            }
        };
        let mut scaled = scaled.after(behind);
        scaled.var.as_mut_slice().iter_mut().for_each(|v| *v += self.error());
        scaled.in_units(&self.scaling)
    }

    /// The last rows of a history, as many as the longest lag, scaled, and its exogenous inputs with gaps
    /// filled.
    fn values(&self, history: &Mat, exogenous: Option<&Mat>) -> Result<(Gaussians, Option<Mat>)> {
        let (rows, longest) = (history.rows(), self.lags.longest());
        let mean = self.scaling.apply(&history.slice_rows(rows - longest, rows))?;
        let mut tail = Gaussians { var: Mat::zeros(mean.rows(), mean.cols()), mean };
        let past = exogenous.map(|u| u.slice_rows(0, rows.min(u.rows())));
        let missing = |of: &Mat| of.slice_rows(rows - longest, rows).as_slice().iter().any(|v| v.is_nan());
        if self.error() == 0.0 && !missing(history) && !past.as_ref().is_some_and(missing) {
            return Ok((tail, exogenous.cloned()));
        }
        let given = Given::new(history, past.as_ref())?;
        let own = self.latent().filter(|model| model.is_of(&given));
        let inferred = if own.is_some() { None } else { Some(self.conditioned(history, past.as_ref())?) };
        let Some(model) = own.or_else(|| inferred.as_ref().and_then(|m| m.latent())) else {
            return Ok((tail, exogenous.cloned()));
        };
        let at = |t: usize, j: usize| model.value((t.checked_sub(given.first)?, j));
        let d = history.cols();
        for (i, j) in (0..longest).flat_map(|i| (0..d).map(move |j| (i, j))) {
            if let Some((mean, var)) = at(rows - longest + i, j) {
                (tail.mean[(i, j)], tail.var[(i, j)]) = (mean, var);
            }
        }
        let mut inputs = exogenous.cloned();
        if let Some((u, s)) = inputs.as_mut().zip(self.exogenous.as_ref()) {
            for (t, e) in (0..rows).flat_map(|t| (0..s.scale.len()).map(move |e| (t, e))) {
                if let Some((mean, _)) = at(t, d + e) {
                    u[(t, e)] = s.mean[e] + s.scale[e] * mean;
                }
            }
        }
        // Before the first value of any series nothing is known.
        match tail.mean.is_finite() {
            true => Ok((tail, inputs)),
            false => {
                let reason = format!("fewer than {longest} rows follow its first value; give more of them");
                Err(Error::data("the history", reason))
            }
        }
    }

    /// The rule by which a simulation takes its steps, `None` where it takes no expectations: `auto` is the closed
    /// form where there is one and rounding leaves it its digits, and the unscented rule elsewhere.
    ///
    /// Errs as [`simulate`](Self::simulate) does.
    pub fn rule(&self, how: &Simulation) -> Result<Option<Box<dyn Expectation>>> {
        match &how.propagation {
            Propagation::Independent(by) | Propagation::Correlated(by) => {
                Stepper::new(self.posterior_for(how, &**by)?)?.rule(&**by).map(Some)
            }
            Propagation::Certain | Propagation::Trajectories { .. } => Ok(None),
        }
    }

    /// The exogenous columns of the windows to come, scaled, steps×(Q − own).
    fn future(&self, known: usize, exogenous: Option<&Mat>, steps: usize) -> Result<Mat> {
        let Some(u) = exogenous.filter(|_| self.lags.width() > self.lags.own()) else {
            return Ok(Mat::zeros(steps, 0));
        };
        let columns = self.columns();
        let (own, sources) = (self.lags.own(), self.lags.columns());
        let at = |h: usize, j: usize| match sources[own + j] {
            crate::data::lags::Source::Exogenous(e, delay) => {
                (u[(known + h - delay, e)] - columns.mean[own + j]) / columns.scale[own + j]
            }
            crate::data::lags::Source::Series(..) => unreachable!("the series come first"),
        };
        let inputs = Mat::from_fn(steps, self.lags.width() - own, at);
        match inputs.is_finite() {
            true => Ok(inputs),
            false => {
                let reason =
                    "a value is missing at a step to be forecast, or as an input of it; give all of them";
                Err(Error::data("the exogenous inputs", reason))
            }
        }
    }

    /// The posterior that a simulation uses.
    fn posterior_for(&self, how: &Simulation, by: &dyn Expectation) -> Result<Posterior> {
        by.check(self.kernel(), self.lags.own().max(1))?;
        let Some(UncertainTraining { variance, jitter }) = how.training else {
            return self.posterior();
        };
        let x = self.inputs();
        let mut var = Mat::filled(x.rows(), x.cols(), variance);
        let z = match &self.process {
            Process::Exact(_) => x.clone(),
            Process::Sparse(model) => model.z.value.clone(),
            Process::Gapped(model) => {
                var.add_scaled(1.0, &model.latent().var);
                model.base.z.value.clone()
            }
        };
        let q = Gaussians::new(x, var)?;
        let mut model = BayesianGplvm::new(
            self.outputs().clone(),
            self.scaling.clone(),
            self.kernel().boxed(),
            by.boxed(),
            q,
            z,
            self.noise().get(),
        )?;
        model.jitter = jitter;
        model.posterior()
    }
}

/// The data that all kinds of propagation share.
pub(super) struct Run<'a> {
    /// Exogenous columns, a row each step.
    pub inputs: Mat,
    pub steps: usize,
    pub lags: &'a crate::data::lags::Lags,
}

impl Run<'_> {
    /// Means and variances of every step, scaled.
    fn moments(
        &self,
        stepper: &Stepper,
        mut window: Window,
        mut by: Option<Box<dyn Expectation>>,
        correlated: bool,
    ) -> Result<Forecast> {
        let d = self.lags.series.len();
        let (m, dim) = (stepper.basis.z.rows(), self.lags.width());
        let mut out = Forecast::empty(self.steps, d);
        for step in 0..self.steps {
            let mean = [&window.mean[..], self.inputs.row(step)].concat();
            if let Some(by) = by.as_mut() {
                by.renew(step as u64);
            }
            let (found, rank) = match &by {
                None => (certain(&stepper.basis, &Correlated::independent(mean, &vec![0.0; dim])), 0),
                Some(by) if correlated => {
                    let q = Correlated::new(mean, &window.cov)?;
                    (moments(&**by, &stepper.basis, &q)?, q.rank())
                }
                Some(by) => {
                    let mut var = window.var();
                    var.resize(dim, 0.0);
                    let rank = var.iter().filter(|v| **v > 0.0).count();
                    (independent(&**by, &stepper.basis, mean, &var)?, rank)
                }
            };
            out.evaluations += match &by {
                Some(by) if rank > 0 => resolve(&**by, &*stepper.basis.kernel).cost(1, rank, m).evaluations,
                _ => m as f64,
            };
            let mut now = stepper.predict(&found);
            (0..d).for_each(|j| now.cov[(j, j)] += stepper.noise);
            if !(now.mean.iter().all(|v| v.is_finite()) && now.cov.is_finite()) {
                return Err(diverged(step));
            }
            out.mean.row_mut(step).copy_from_slice(&now.mean);
            (0..d).for_each(|j| out.var[(step, j)] = now.cov[(j, j)]);
            window.push(&now.mean, &now.cov, correlated.then_some(&now.cross));
            if !window.cov.is_finite() {
                return Err(diverged(step));
            }
        }
        Ok(out)
    }
}

pub(super) fn diverged(step: usize) -> Error {
    Error::not_finite(format!("the forecast of step {} (the simulated series grows without bound)", step + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation::{MonteCarlo, QuasiMonteCarlo, Unscented};

    #[test]
    fn draws_are_fresh_at_every_step_and_nothing_else_changes() {
        let mut limited = MonteCarlo::new(24, 7);
        limited.max_nodes = 99;
        let found = stepping(&limited).unwrap();
        assert_eq!(found.expression(), "monte_carlo(samples=24, seed=7, fresh=true)");
        assert_eq!(found.max_nodes(), Some(99));
        assert_eq!(stepping(&*found).unwrap().expression(), found.expression());
        let others: [Box<dyn Expectation>; 4] =
            [Box::new(Auto), Box::new(Analytic), Box::new(Unscented), Box::new(QuasiMonteCarlo::new(64, 1))];
        for rule in others {
            assert_eq!(stepping(&*rule).unwrap().expression(), rule.expression());
        }
    }
}
