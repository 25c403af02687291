//! Restarts of a model that is there already.
//!
//! The first run starts at the model as it is. Later ones start where the model says ([`Model::another_start`]), or shake the kernel's hyperparameters and the noise on the
//! scale on which they are optimised: positive ones by a factor exp(spread · N(0, 1)). A run depends on the seed and
//! its number alone.

use super::{Fitted, OnIteration, Plan, Schedule, train};
use crate::error::Result;
use crate::model::Model;
use crate::param::{Parameterized, Transform};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// How a model is fitted by type-II maximum likelihood.
#[derive(Clone, Debug, PartialEq)]
pub struct Restarts {
    /// Runs in all.
    pub runs: usize,
    /// Iterations of a run.
    pub max_iterations: usize,
    /// Standard deviation of the logarithm of the factors that shake a start.
    pub spread: f64,
    /// Seed of the starts.
    pub seed: u64,
}

impl Default for Restarts {
    fn default() -> Self {
        Restarts { runs: 1, max_iterations: 1000, spread: 1.0, seed: 0 }
    }
}

/// The generator of a restart.
pub(crate) fn rng_of(seed: u64, restart: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(restart as u64);
    rng
}

impl Restarts {
    /// Fits a model from its own hyperparameters and from shaken ones.
    pub fn fit<M: Model + Clone + Send + Sync>(
        &self,
        start: &M,
        watch: &OnIteration<'_>,
    ) -> Result<Fitted<M>> {
        train(&self.plan(start.clone()), Vec::new(), watch)
    }

    /// The plan of [`fit`](Self::fit).
    pub fn plan<M: Model + Clone + Send + Sync>(&self, start: M) -> FromModel<M> {
        FromModel { how: self.clone(), start }
    }

    /// Moves the free hyperparameters of every run but the first.
    fn shake(&self, model: &mut impl Parameterized, run: usize) {
        let mut rng = rng_of(self.seed, run);
        for (name, p) in model.params_mut() {
            if p.fixed || !(name.starts_with("kernel.") || name == "noise") {
                continue;
            }
            let transform = p.transform;
            for v in p.value.as_mut_slice() {
                let noise: f64 = StandardNormal.sample(&mut rng);
                match transform {
                    Transform::Identity => *v += 0.1 * self.spread * noise,
                    _ => *v = transform.forward(transform.inverse(*v) + self.spread * noise),
                }
            }
        }
    }
}

/// Restarts around a model.
pub struct FromModel<M> {
    how: Restarts,
    start: M,
}

impl<M: Model + Clone + Send + Sync> Plan for FromModel<M> {
    type Model = M;

    fn schedule(&self) -> Schedule {
        Schedule { hold: 0, max_iterations: self.how.max_iterations, restarts: self.how.runs }
    }

    fn start(&self, restart: usize) -> Result<M> {
        let mut model = self.start.clone();
        if restart > 0 && !model.another_start(restart) {
            self.how.shake(&mut model, restart);
            model.choose_inducing(&mut rng_of(self.how.seed, restart))?;
        }
        Ok(model)
    }
}
