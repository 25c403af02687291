//! Where the hyperparameters of a GP-NARX start.
//!
//! A window has many columns that nearly repeat each other. Unit lengthscales in so many dimensions make all
//! windows nearly uncorrelated, and the fit then explains everything as noise. Wide lengthscales start from a
//! nearly linear function instead.

use super::Narx;
use crate::data::{Scale, Scaling};
use crate::error::Result;
use crate::fit::{self, Fitted, Method, OnIteration, Plan, Schedule, Search};
use crate::kernel::{Kernel, Structure};
use crate::mat::Mat;
use crate::optim::Lbfgs;
use crate::param::{Parameterized, Transform};

/// Lengthscales start at this many standard deviations of their column.
const WIDE: f64 = 10.0;
/// The start of the sum of a linear kernel's variances.
const SLOPES: f64 = 0.01;
/// σ² starts at this part of the mean square of the targets.
const NOISE: f64 = 0.01;
/// The lower bound of positive parameters in the papers' protocol.
const FLOOR: f64 = 1e-6;
/// The history length of L-BFGS in the papers' protocol.
const MEMORY: usize = 10;
/// The relative difference between the starts of a fit by the papers' protocol.
const ROUNDING: f64 = 1e-13;

/// A parameter of a kernel without parts: the kernel's name, its input columns, the parameter's name.
struct LeafParameter {
    kernel: String,
    columns: Vec<usize>,
    name: String,
}

/// Collects one entry for each parameter of the kernel, in order.
fn leaf_parameters(kernel: &dyn Kernel, columns: &[usize], out: &mut Vec<LeafParameter>) {
    match kernel.structure() {
        Structure::Sum(parts) | Structure::Product(parts) => {
            parts.iter().for_each(|part| leaf_parameters(&**part, columns, out));
        }
        Structure::Select(select) => {
            let own: Vec<usize> = select.dims.iter().map(|&q| columns[q]).collect();
            leaf_parameters(&*select.kernel, &own, out);
        }
        Structure::Leaf => {
            let text = kernel.expression();
            let name = text.split('(').next().unwrap_or_default();
            out.extend(kernel.params().into_iter().map(|(param, _)| LeafParameter {
                kernel: name.to_string(),
                columns: columns.to_vec(),
                name: param,
            }));
        }
    }
}

/// The start of a parameter of `len` entries; `None` where it stays as it is.
fn wide(of: &LeafParameter, std: &[f64], len: usize) -> Option<Vec<f64>> {
    let q = of.columns.len();
    match (of.kernel.as_str(), of.name.as_str()) {
        ("linear", "variance") => Some(vec![SLOPES / q as f64; len]),
        ("periodic", _) => Some(vec![1.0; len]),
        ("rbf" | "matern12" | "matern32" | "matern52" | "rational_quadratic", "lengthscale") => {
            let own: Vec<f64> = of.columns.iter().map(|&c| WIDE * std[c]).collect();
            let shared = own.iter().sum::<f64>() / q as f64;
            Some(if len == q { own } else { vec![shared; len] })
        }
        (_, "variance") => Some(vec![1.0; len]),
        _ => None,
    }
}

impl Narx {
    /// Starts the free hyperparameters so that all windows are strongly correlated: lengthscales at ten
    /// standard deviations of their column, variances at 1, the variances of linear kernels at 0.01/Q each,
    /// periodic kernels at lengthscale and period 1, σ² at 0.01 of the mean square of the targets.
    pub fn wide_start(&mut self) {
        let x = self.inputs();
        let std = match Scaling::fit(&x, Scale::Standardize) {
            Ok(found) => found.scale,
            Err(_) => vec![1.0; x.cols()],
        };
        let all: Vec<usize> = (0..x.cols()).collect();
        let mut at = Vec::new();
        leaf_parameters(self.kernel(), &all, &mut at);
        // The model's parameters begin with the kernel's.
        for (leaf, (_, param)) in at.iter().zip(self.params_mut()) {
            let admits = |v: &Vec<f64>| v.iter().all(|v| param.transform.admits(*v));
            if let Some(value) = wide(leaf, &std, param.len()).filter(|v| !param.fixed && admits(v)) {
                param.value = Mat::from_vec(param.value.rows(), param.value.cols(), value)
                    .expect("as many values as entries");
            }
        }
        if !self.noise().fixed {
            self.start_noise(NOISE);
        }
    }

    /// The start of the papers' protocol: [`wide_start`](Self::wide_start), where positive parameters are
    /// 10⁻⁶ + ln(1 + exp u). It leads to the local optimum of the papers' tables.
    pub fn papers_start(&mut self) {
        self.wide_start();
        for (name, param) in self.params_mut() {
            let positive = param.transform != Transform::Identity;
            if (name.starts_with("kernel.") || name == "noise") && positive && !param.fixed {
                param.transform = Transform::Softplus { lo: FLOOR };
            }
        }
    }

    /// The number of starts of [`papers_fit`](Self::papers_fit). The starts differ in the noise; there is one
    /// where it is fixed.
    pub fn papers_starts(&self) -> usize {
        if self.noise().fixed { 1 } else { 4 }
    }

    /// Fits by the papers' protocol: [`papers_start`](Self::papers_start), then L-BFGS with a history of ten
    /// steps.
    ///
    /// On the airline series with periodic + rbf + linear the length of the history decides which local
    /// optimum is found: ten steps lead to the papers' optimum, thirty to one with less evidence and no
    /// noise. Rounding decides it too, in about one fit of six. The best is kept of a few starts whose noise
    /// differs in the thirteenth digit.
    pub fn papers_fit(&self, watch: &OnIteration<'_>) -> Result<Fitted<Narx>> {
        fit::train(&PapersPlan { narx: self.clone() }, Vec::new(), watch)
    }
}

/// A fit by the papers' protocol.
struct PapersPlan {
    narx: Narx,
}

impl Plan for PapersPlan {
    type Model = Narx;

    fn schedule(&self) -> Schedule {
        let max_iterations = Lbfgs::default().max_iterations;
        Schedule { hold: 0, max_iterations, search: Search::runs(self.narx.papers_starts()) }
    }

    fn start(&self, restart: usize) -> Result<Narx> {
        let mut model = self.narx.clone();
        model.papers_start();
        if !model.noise().fixed {
            let noise = model.noise().get();
            model.noise_mut().set(noise * (1.0 + restart as f64 * ROUNDING));
        }
        Ok(model)
    }

    fn method(&self, _: &Narx, limit: usize) -> Method {
        Method::Lbfgs(Lbfgs { memory: MEMORY, max_iterations: limit, ..Lbfgs::default() })
    }
}

#[cfg(test)]
mod tests {
    use crate::data::{airline, lags::Lags};
    use crate::kernel::{Linear, Matern32, Periodic, Select};
    use crate::mat::Mat;
    use crate::model::narx::{Narx, NarxOptions};
    use crate::param::Parameterized;

    #[test]
    fn every_part_of_the_kernel_has_its_start() {
        let series = Mat::column(&airline::PASSENGERS[..60]);
        let kernel = Periodic::new(4) + Select::new(Matern32::new(2), &[1, 3], 4) * Linear::new(4);
        let mut model = Narx::new(&series, None, Lags::new(4), kernel, &NarxOptions::default()).unwrap();
        model.papers_start();
        let params = model.params();
        let of = |name: &str| params.iter().find(|p| p.0.ends_with(name)).unwrap().1.as_slice().to_vec();
        assert_eq!(of("0.period"), [1.0]);
        assert_eq!(of("1.1.variance"), [0.0025; 4]);
        let x = model.inputs().col(3);
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let std = (x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64).sqrt();
        assert!((of("1.0.lengthscale")[1] - 10.0 * std).abs() < 1e-12);
        assert!((model.noise().get() - 0.01).abs() < 1e-12);
    }
}
