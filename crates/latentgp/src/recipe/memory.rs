//! The memory that a fit needs, from the sizes alone.

use super::{Data, Recipe};
use crate::budget;
use crate::error::Result;
use crate::model::{SparseOptions, Training};

/// Copies of the data: as given, as scaled, and in the models of running fits.
const COPIES: f64 = 6.0;
/// Numbers that L-BFGS stores for each parameter.
const OPTIMISER: f64 = 26.0;
/// N×N matrices of an exact process in each run: covariance, factor, adjoint and a buffer for products.
const SQUARES: f64 = 4.0;
/// N×M matrices of a sparse process in each run: Ψ1, its adjoint and a buffer.
const TALL: f64 = 3.0;

impl Recipe {
    /// An estimate of the peak memory of a fit to such data, in bytes.
    pub fn memory(&self, data: &Data) -> f64 {
        let threads = rayon::current_num_threads() as f64;
        let effort = self.effort();
        let search = match self.model.as_str() {
            "bayesian-gplvm" | "gplvm" => effort.search(self.restarts.unwrap_or(1)),
            _ => effort.search_few(self.restarts.unwrap_or(1)),
        };
        // Runs that lost a race keep their memory until the next round.
        let (alive, together) = (search.starts as f64, threads.min(search.most() as f64));
        // No model has more inducing inputs than rows.
        let inducing = |usual: usize, n: f64| (self.inducing.unwrap_or(usual) as f64).min(n);
        let numbers = match data {
            Data::Table { y, .. } => {
                let (n, d) = (y.rows() as f64, y.cols() as f64);
                let q = self.latent_dim.unwrap_or(Training::default().latent_dim) as f64;
                let m = inducing(Training::default().inducing, n);
                match self.model.as_str() {
                    "ppca" => COPIES * n * d + n.min(d) * n.min(d),
                    "gplvm" => COPIES * n * d + together * SQUARES * n * n + alive * OPTIMISER * n * q,
                    _ => {
                        let params = 2.0 * n * q + m * q;
                        let each = TALL * n * m + 8.0 * m * m;
                        // Data with more columns than rows are replaced by an N×N matrix.
                        COPIES * n * d + n * n.min(d) + together * each + alive * OPTIMISER * params
                    }
                }
            }
            Data::Pairs { x, x_std, y, classes } => {
                let (n, width) = (x.rows() as f64, (x.cols() + y.cols()) as f64);
                // With uncertain rows a likelihood is averaged over several points each; every class has a
                // process.
                let points = match x_std.is_some() && !self.is_gaussian() {
                    true => 2.0 * x.cols() as f64 + 1.0,
                    false => 1.0,
                };
                let processes = points * (*classes).max(1) as f64;
                let m = inducing(SparseOptions::default().inducing, n);
                let process = match self.model.as_str() {
                    "gp" => (*classes).max(1) as f64 * SQUARES * n * n,
                    "linear" => (x.cols() * x.cols()) as f64,
                    _ => processes * (TALL * n * m + 8.0 * m * m),
                };
                COPIES * n * width + together * process
            }
            Data::Series { series, exogenous } => {
                let n = series.rows() as f64;
                let lags = self.lags.as_ref().map_or(1, |lags| lags.width()) as f64;
                let gaps = series.as_slice().iter().any(|v| v.is_nan());
                let process = match self.inducing {
                    Some(m) => TALL * n * (m as f64).min(n),
                    None if gaps => TALL * n * n.min(200.0),
                    None => SQUARES * n * n,
                };
                let inputs = exogenous.as_ref().map_or(0, |u| u.cols()) as f64;
                COPIES * n * (lags + inputs) + together * process
            }
        };
        8.0 * numbers
    }

    /// Errs where a fit to such data would exceed the memory limit.
    pub(super) fn check_memory(&self, data: &Data) -> Result<()> {
        let advice = match (data, self.model.as_str()) {
            (Data::Table { .. }, "gplvm") => {
                "fewer rows, or the model bayesian-gplvm, whose memory grows with N·M"
            }
            (Data::Table { .. }, _) => "fewer rows or columns, or fewer inducing inputs",
            (Data::Pairs { .. }, "gp") => "fewer rows, or the model sparse, whose memory grows with N·M",
            (Data::Pairs { .. }, _) => "fewer rows or fewer inducing inputs",
            (Data::Series { .. }, _) => "a shorter series, or inducing inputs",
        };
        budget::check(&format!("the fit of `{}`", self.model), self.memory(data), advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mat::Mat;

    #[test]
    fn memory_grows_as_theory_says() {
        let table = |n, d| Data::Table { y: Mat::zeros(n, d), known: None };
        let pairs = |n| Data::Pairs { x: Mat::zeros(n, 2), x_std: None, y: Mat::zeros(n, 1), classes: 0 };
        let ratio = |model: &str, small: Data, large: Data| {
            let recipe = Recipe::of(model);
            recipe.memory(&large) / recipe.memory(&small)
        };
        assert!((ratio("bayesian-gplvm", table(1000, 5), table(10_000, 5)) - 10.0).abs() < 0.5);
        assert!((ratio("gplvm", table(1000, 5), table(10_000, 5)) - 100.0).abs() < 10.0);
        assert!((ratio("gp", pairs(1000), pairs(10_000)) - 100.0).abs() < 2.0);
        assert!((ratio("sparse", pairs(10_000), pairs(100_000)) - 10.0).abs() < 0.5);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_fit_that_no_machine_has_room_for_is_refused_at_once() {
        let data =
            Data::Pairs { x: Mat::zeros(3_000_000, 1), x_std: None, y: Mat::zeros(3_000_000, 1), classes: 0 };
        let error = Recipe::of("gp").job(data, None).err().unwrap().to_string();
        assert!(
            error.contains("`gp`") && error.contains("the model sparse") && error.contains("TB"),
            "{error}"
        );
    }
}
