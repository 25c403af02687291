//! Known times: one latent column is a time that was measured with an error.
//!
//! ```text
//! x_n,dim ~ N((t_n − c)/h, (s/h)²)     x_nq ~ N(0, 1) in the other columns, and where t_n is missing
//! −∂KL/∂s = Σ_n ((μ − m)²/p + S/p − 1)/s     over the rows with a time, m = (t_n − c)/h, p = (s/h)²
//! ```
//!
//! c and h are mean and standard deviation of the observed times, so that the column is on the scale of the others.

use super::arguments::quoted;
use super::{Arguments, Entry, InputPrior, KlGrad, Take, check_columns, gaussian_kl, normal};
use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::expectation::Gaussians;
use crate::linalg::{self, Cholesky};
use crate::mat::Mat;
use crate::param::{Param, Parameterized};
use crate::scratch::Buffer;

pub(super) const ENTRY: Entry = Entry {
    name: "times",
    about: "known times in one latent column: N(t, std²), std in the units of the table's column",
    example: "times(column=day, std=0.1)",
    arguments: &["column", "std", "dim", "learn"],
    make,
};

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn InputPrior>> {
    let missing = |key: &str| arguments.wrong(format!("`times` needs `{key}`, as in `{}`", ENTRY.example));
    let column = arguments.text("column").ok_or_else(|| missing("column"))?;
    let std: f64 = arguments.value("std", "a number above 0")?.ok_or_else(|| missing("std"))?;
    let mut times = Times::new(column, std).map_err(|e| arguments.wrong(e.to_string()))?;
    times.dim = arguments.value("dim", "a whole number from 0")?.unwrap_or(0);
    times.std.fixed = !arguments.value("learn", "true or false")?.unwrap_or(false);
    Ok(Box::new(times))
}

/// Times of the rows, known up to an error of standard deviation s; the latent column is the time, standardised.
///
/// ```
/// use latentgp::model::prior::{self, InputPrior};
/// let prior = prior::parse("times(column=day, std=0.5)")?;
/// assert_eq!(prior.columns(), ["day"]);
/// let prior = prior.bind(3, 2, &[vec![1.0, 3.0, f64::NAN]])?;
/// assert_eq!(prior.marginals().mean.col(0), [-1.0, 1.0, 0.0]);
/// assert_eq!(prior.marginals().var.col(0), [0.25, 0.25, 1.0]);
/// # Ok::<(), latentgp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    column: String,
    /// The latent column.
    pub dim: usize,
    /// s, in the units of the times; fixed unless it is to be learnt.
    pub std: Param,
    /// t, N×1, NaN where one is missing.
    times: Mat,
    latent_dim: usize,
    /// c and h.
    center: f64,
    scale: f64,
}

impl Times {
    /// Times in the column of that name, with that standard deviation, in latent column 0; there are no rows yet.
    ///
    /// Errs unless the standard deviation is a finite number above 0 and the name is free of double quotes.
    pub fn new(column: &str, std: f64) -> Result<Self> {
        if !(std > 0.0 && (std * std).is_normal()) {
            return Err(Error::invalid("the standard deviation of the times", "a number above 0", std));
        }
        if column.is_empty() || column.contains('"') {
            return Err(Error::invalid("the column of the times", "a name without double quotes", column));
        }
        Ok(Times {
            column: column.into(),
            dim: 0,
            std: Param { fixed: true, ..Param::scalar(std) },
            times: Mat::zeros(0, 1),
            latent_dim: 0,
            center: 0.0,
            scale: 1.0,
        })
    }

    /// Rows and m of those that have a time.
    fn known<'a>(&'a self, times: &'a [f64]) -> impl Iterator<Item = (usize, f64)> + 'a {
        let known = times.iter().enumerate().filter(|(_, t)| !t.is_nan());
        known.map(|(n, t)| (n, (t - self.center) / self.scale))
    }

    /// p.
    fn var(&self) -> f64 {
        (self.std.get() / self.scale).powi(2)
    }

    /// Writes m and p of known times over those of N(0, I).
    fn place(&self, times: &[f64], mean: &mut [f64], var: &mut [f64]) {
        let p = self.var();
        for (n, m) in self.known(times) {
            let at = n * self.latent_dim + self.dim;
            (mean[at], var[at]) = (m, p);
        }
    }

    fn gaussians(&self, times: &[f64]) -> Gaussians {
        let mut all = normal::standard(times.len(), self.latent_dim);
        self.place(times, all.mean.as_mut_slice(), all.var.as_mut_slice());
        all
    }

    fn check(&self) -> Result<()> {
        if self.dim >= self.latent_dim {
            let expected = format!("a latent column from 0 to {}", self.latent_dim.saturating_sub(1));
            return Err(Error::invalid("`dim` of the prior `times`", expected, self.dim));
        }
        if self.times.as_slice().iter().any(|t| t.is_infinite()) {
            return Err(Error::not_finite(format!("a time in the column `{}`", self.column)));
        }
        let var = self.var();
        match var.is_normal() {
            true => Ok(()),
            false => Err(Error::invalid(
                format!("the standard deviation of the times in the column `{}`", self.column),
                "a number on the scale of the times",
                self.std.get(),
            )),
        }
    }
}

impl Parameterized for Times {
    fn params(&self) -> Vec<(String, &Param)> {
        vec![("std".into(), &self.std)]
    }
    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        vec![("std".into(), &mut self.std)]
    }
    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        visit(&self.std);
    }
    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        visit(&mut self.std);
    }
}

impl InputPrior for Times {
    fn expression(&self) -> String {
        let learn = if self.std.fixed { "" } else { ", learn=true" };
        format!("times(column={}, std={}, dim={}{learn})", quoted(&self.column), self.std.get(), self.dim)
    }

    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn bind(&self, n: usize, q: usize, columns: &[Vec<f64>]) -> Result<Box<dyn InputPrior>> {
        check_columns(&self.columns(), n, columns)?;
        let times = Mat::column(&columns[0]);
        if columns[0].iter().all(|t| t.is_nan()) {
            let reason = "no time is observed; leave the prior out";
            return Err(Error::data(format!("the column `{}`", self.column), reason));
        }
        let mut bound = Times { times, latent_dim: q, ..self.clone() };
        bound.check()?;
        let units = Scaling::fit(&bound.times, Scale::Standardize)?;
        (bound.center, bound.scale) = (units.mean[0], units.scale[0]);
        bound.check()?;
        Ok(Box::new(bound))
    }

    fn sizes(&self) -> (usize, usize) {
        (self.times.rows(), self.latent_dim)
    }

    fn kl(&self, mean: &Mat, var: &Mat, grads: Option<KlGrad<'_>>) -> Result<f64> {
        let (mut m, mut p) = (Buffer::filled(0.0, mean.len()), Buffer::filled(1.0, mean.len()));
        self.place(self.times.as_slice(), &mut m, &mut p);
        let (mean, var) = (mean.as_slice(), var.as_slice());
        let grads = grads.map(|to| {
            let (p, s) = (self.var(), self.std.get());
            for (n, m) in self.known(self.times.as_slice()) {
                let at = n * self.latent_dim + self.dim;
                to.params[0] += (((mean[at] - m).powi(2) + var[at]) / p - 1.0) / s;
            }
            (to.mean, to.var)
        });
        Ok(gaussian_kl(mean, var, &m, &p, grads))
    }

    fn marginals(&self) -> Gaussians {
        self.gaussians(self.times.as_slice())
    }

    /// The times of new rows are in the units of those it was bound with.
    fn new_rows(&self, n: usize, columns: &[Vec<f64>]) -> Result<Gaussians> {
        if columns.is_empty() {
            return Ok(normal::standard(n, self.latent_dim));
        }
        check_columns(&self.columns(), n, columns)?;
        let new = Times { times: Mat::column(&columns[0]), ..self.clone() };
        new.check()?;
        Ok(new.marginals())
    }

    fn select_rows(&self, rows: &[usize]) -> Box<dyn InputPrior> {
        Box::new(Times { times: self.times.select_rows(rows), ..self.clone() })
    }

    /// μ of the column starts at the times, S no wider than the prior. A row without a time starts where a linear
    /// regression of the times on all columns of μ puts it.
    fn start(&self, mean: &mut Mat, var: &mut Mat) -> Result<()> {
        let (n, q) = self.sizes();
        let missing: Vec<usize> = (0..n).filter(|n| self.times[(*n, 0)].is_nan()).collect();
        if !missing.is_empty() {
            let known: Vec<(usize, f64)> = self.known(self.times.as_slice()).collect();
            let with_one = |n: usize, k: usize| if k < q { mean[(n, k)] } else { 1.0 };
            let x = Mat::from_fn(known.len(), q + 1, |i, k| with_one(known[i].0, k));
            let m = Mat::from_fn(known.len(), 1, |i, _| known[i].1);
            let mut gram = linalg::mul_tn(&x, &x);
            // Few times or equal columns leave a slope open; it is then small.
            let ridge = 1e-6 * (1.0 + gram.trace());
            (0..=q).for_each(|k| gram[(k, k)] += ridge);
            let slopes = Cholesky::new(&gram, "the regression of the times on the start")?
                .solve(&linalg::mul_tn(&x, &m));
            let there: Vec<f64> =
                missing.iter().map(|&n| (0..=q).map(|k| with_one(n, k) * slopes[(k, 0)]).sum()).collect();
            missing.iter().zip(there).for_each(|(&n, at)| mean[(n, self.dim)] = at);
        }
        let p = self.var();
        for (n, m) in self.known(self.times.as_slice()) {
            mean[(n, self.dim)] = m;
            var[(n, self.dim)] = var[(n, self.dim)].min(p);
        }
        Ok(())
    }

    fn arrays(&self) -> Vec<(&'static str, Mat)> {
        vec![("times", self.times.clone()), ("units", Mat::from_rows(&[[self.center, self.scale]]))]
    }

    fn restore(&self, n: usize, q: usize, take: &mut Take<'_>) -> Result<Box<dyn InputPrior>> {
        let (times, units) = (take("times", n, 1)?, take("units", 1, 2)?);
        if !units.is_finite() || units[(0, 1)] <= 0.0 {
            return Err(Error::invalid("the units of the times", "a mean and a scale above 0", "others"));
        }
        let restored =
            Times { times, latent_dim: q, center: units[(0, 0)], scale: units[(0, 1)], ..self.clone() };
        restored.check()?;
        Ok(Box::new(restored))
    }
}
