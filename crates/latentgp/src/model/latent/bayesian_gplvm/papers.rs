//! The protocol of the published experiments with the unscented GPLVM (de Souza et al., 2021), as released.
//!
//! ```text
//! μ = scores of centred Y on its leading components, in ascending order of eigenvalue     S = 0.1
//! Z = the first M rows of μ in NumPy's order of seed 42     kernel parameters 1     σ² given
//! positive parameters 10⁻⁶ + ln(1 + exp u)     10⁻⁶ on the diagonals of Kzz and B
//! ```
//!
//! Y is neither centred nor scaled. L-BFGS remembers ten steps; Adam with rate 0.01 takes its place where nodes
//! are drawn afresh. [`Training`](crate::model::Training) starts better and reaches higher bounds: the transform and
//! the start decide which local optimum is found, and these are for comparisons with the papers' tables.

use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::expectation::{Expectation, Gaussians};
use crate::fit::{self, Fitted, Method, OnIteration, Plan, Schedule, Search};
use crate::kernel::Kernel;
use crate::mat::Mat;
use crate::model::shared::pca;
use crate::model::{BayesianGplvm, Jitter, Model, Outputs};
use crate::numpy;
use crate::optim::Lbfgs;
use crate::param::{Parameterized, Transform};

/// Positive parameters stay above this.
pub(crate) const FLOOR: f64 = 1e-6;
/// S starts here.
const VARIANCE: f64 = 0.1;

/// The optimiser of the papers' deterministic fits: ten corrections, and SciPy's tolerances.
pub(crate) fn lbfgs() -> Lbfgs {
    Lbfgs { memory: 10, gradient_tolerance: 1e-5, value_tolerance: 2.2e-9, ..Lbfgs::default() }
}

/// A Bayesian GPLVM as the papers fit it.
#[derive(Clone, Debug, PartialEq)]
pub struct PapersTraining {
    /// Q, latent dimensions.
    pub latent_dim: usize,
    /// M, inducing inputs.
    pub inducing: usize,
    /// The start of σ².
    pub noise: f64,
    /// Most iterations of L-BFGS.
    pub max_iterations: usize,
    /// Iterations of Adam.
    pub adam_iterations: usize,
    /// Seed of NumPy's generator, which chooses the rows of Z.
    pub seed: u32,
}

impl Default for PapersTraining {
    fn default() -> Self {
        PapersTraining {
            latent_dim: 5,
            inducing: 20,
            noise: 0.01,
            max_iterations: 5000,
            adam_iterations: 1000,
            seed: 42,
        }
    }
}

impl PapersTraining {
    /// The model at the papers' start; the kernel's own parameters are those it is given with.
    ///
    /// Errs when a cell is missing, when there are fewer rows than inducing inputs, and as
    /// [`BayesianGplvm::new`] does.
    pub fn start(
        &self,
        y: &Mat,
        kernel: &dyn Kernel,
        expectation: Box<dyn Expectation>,
    ) -> Result<BayesianGplvm> {
        if !y.is_finite() {
            return Err(Error::not_finite("a cell of the data"));
        }
        if y.rows() < self.inducing.max(2) {
            let expected = format!("at least {} rows, one for each inducing input", self.inducing.max(2));
            return Err(Error::shape("the data", expected, y.rows()));
        }
        let order: Vec<usize> = (0..self.latent_dim).rev().collect();
        let mean = pca::scores(y, self.latent_dim)?.select_cols(&order);
        let z = mean.select_rows(&numpy::permutation(y.rows(), self.seed)[..self.inducing]);
        let q = Gaussians::new(mean, Mat::filled(y.rows(), self.latent_dim, VARIANCE))?;
        let scaling = Scaling::fit(y, Scale::None)?;
        let outputs = Outputs::new(y.clone());
        let mut model = BayesianGplvm::new(outputs, scaling, kernel.boxed(), expectation, q, z, self.noise)?;
        model.jitter = Jitter { kzz: FLOOR, b: FLOOR };
        for (_, p) in model.params_mut() {
            if p.transform == Transform::Exp {
                p.transform = Transform::Softplus { lo: FLOOR };
            }
        }
        Ok(model)
    }

    /// Fits from [`start`](Self::start).
    pub fn fit(
        &self,
        y: &Mat,
        kernel: &dyn Kernel,
        expectation: Box<dyn Expectation>,
        watch: &OnIteration<'_>,
    ) -> Result<Fitted<BayesianGplvm>> {
        self.go_on(self.start(y, kernel, expectation)?, watch)
    }

    /// Fits from wherever a model is; Adam begins with no memory of earlier steps.
    pub fn go_on(&self, model: BayesianGplvm, watch: &OnIteration<'_>) -> Result<Fitted<BayesianGplvm>> {
        fit::train(&PapersPlan { how: self.clone(), model }, Vec::new(), watch)
    }
}

/// One run from a model as it is.
struct PapersPlan {
    how: PapersTraining,
    model: BayesianGplvm,
}

impl Plan for PapersPlan {
    type Model = BayesianGplvm;

    fn schedule(&self) -> Schedule {
        let max_iterations = match self.model.is_stochastic() {
            true => self.how.adam_iterations,
            false => self.how.max_iterations,
        };
        Schedule { hold: 0, max_iterations, search: Search::runs(1) }
    }

    fn start(&self, _: usize) -> Result<BayesianGplvm> {
        Ok(self.model.clone())
    }

    fn method(&self, model: &BayesianGplvm, limit: usize) -> Method {
        match model.is_stochastic() {
            true => Method::usual(true, limit),
            false => Method::Lbfgs(Lbfgs { max_iterations: limit, ..lbfgs() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::oil_flow;
    use crate::expectation::{CloneExpectation, MonteCarlo, Unscented};
    use crate::kernel::Matern32;
    use std::ops::ControlFlow;

    const GO: &OnIteration<'static> = &|_| ControlFlow::Continue(());

    #[test]
    fn the_start_is_as_described() {
        let y = oil_flow::simulate(40, 0).y;
        let how = PapersTraining { latent_dim: 3, inducing: 7, ..Default::default() };
        let model = how.start(&y, &Matern32::new(3), Box::new(Unscented)).unwrap();
        let mean = &model.mean.value;
        let square = |k: usize| mean.col(k).iter().map(|v| v * v).sum::<f64>();
        assert!(square(0) < square(1) && square(1) < square(2));
        assert_eq!(model.z.value.row(6), mean.row(numpy::permutation(40, 42)[6]));
        assert_eq!((model.noise.get(), model.var.as_slice()[0]), (0.01, 0.1));
        assert_eq!(model.noise.transform, Transform::Softplus { lo: 1e-6 });
        assert_eq!(model.mean.transform, Transform::Identity);
    }

    #[test]
    fn fits_climb_by_both_optimisers_and_repeat() {
        let y = oil_flow::simulate(30, 0).y;
        let how = PapersTraining {
            latent_dim: 2,
            inducing: 5,
            max_iterations: 30,
            adam_iterations: 30,
            ..Default::default()
        };
        let kernel = Matern32::new(2);
        let start = how.start(&y, &kernel, Box::new(Unscented)).unwrap().log_evidence(None).unwrap();
        let mut fresh = MonteCarlo::new(10, 1);
        fresh.fresh = true;
        for rule in [Unscented.boxed(), fresh.boxed()] {
            crate::check::order(&mut how.start(&y, &kernel, rule.clone()).unwrap()).unwrap();
            let one = how.fit(&y, &kernel, rule.clone(), GO).unwrap();
            let two = how.fit(&y, &kernel, rule, GO).unwrap();
            assert!(one.evidence > start, "{} from {start}", one.evidence);
            assert_eq!(one.evidence.to_bits(), two.evidence.to_bits());
            let more = how.go_on(one.model, GO).unwrap();
            assert!(more.evidence > one.evidence, "{} after {}", more.evidence, one.evidence);
        }
    }

    #[test]
    fn unusable_data_are_refused() {
        let mut y = oil_flow::simulate(30, 0).y;
        let how = PapersTraining { latent_dim: 2, ..Default::default() };
        let start = |y: &Mat| how.start(y, &Matern32::new(2), Box::new(Unscented));
        assert!(start(&y.slice_rows(0, 10)).is_err());
        y[(3, 3)] = f64::NAN;
        assert!(start(&y).is_err());
    }
}
