//! Restarts of a model that exists already.
//!
//! The first run starts at the model as it is. Later runs start where the model says
//! ([`Model::another_start`]), or at changed hyperparameters: all lengthscales shorter or longer and the
//! noise lower or higher, in turn, and every hyperparameter shaken in its unconstrained space, positive ones
//! by a factor exp(spread · N(0, 1)). A run depends on the seed and its number alone.

use super::{Effort, Fitted, OnIteration, Plan, Schedule, Search, train};
use crate::error::Result;
use crate::model::Model;
use crate::param::{Parameterized, Transform};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// What is added to the logarithms of lengthscales and noise, in turn.
const CORNERS: [[f64; 2]; 4] = [[-1.5, -2.0], [1.5, 2.0], [1.5, -2.0], [-1.5, 2.0]];

/// How a model is fitted by type-II maximum likelihood.
#[derive(Clone, Debug, PartialEq)]
pub struct Restarts {
    /// Full runs; with more than one there is no race.
    pub runs: usize,
    /// How hard the fit looks for the best optimum; a [`Recipe`](crate::recipe::Recipe) asks for
    /// [`Effort::Normal`].
    pub effort: Effort,
    /// Iterations of a run.
    pub max_iterations: usize,
    /// Standard deviation of the logarithm of the factors that shake a start.
    pub spread: f64,
    /// Seed of the starts.
    pub seed: u64,
}

impl Default for Restarts {
    fn default() -> Self {
        Restarts { runs: 1, effort: Effort::Quick, max_iterations: 1000, spread: 1.0, seed: 0 }
    }
}

/// The random generator of a restart.
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

    /// The search that these restarts make.
    pub fn search(&self) -> Search {
        self.effort.search_few(self.runs)
    }

    /// The plan of [`fit`](Self::fit).
    pub fn plan<M: Model + Clone + Send + Sync>(&self, start: M) -> FromModel<M> {
        FromModel { how: self.clone(), start }
    }

    /// Shakes the free hyperparameters of every run but the first; `corner` shifts lengthscales and noise.
    fn shake(&self, model: &mut impl Parameterized, run: usize, corner: Option<[f64; 2]>) {
        let mut rng = rng_of(self.seed, run);
        let [lengthscale, level] = corner.unwrap_or_default();
        for (name, p) in model.params_mut() {
            if p.fixed || !(name.starts_with("kernel.") || name == "noise") {
                continue;
            }
            let transform = p.transform;
            let shift = match name.rsplit('.').next() {
                Some("lengthscale") => lengthscale,
                Some("noise") => level,
                _ => 0.0,
            };
            for v in p.value.as_mut_slice() {
                let noise: f64 = StandardNormal.sample(&mut rng);
                match transform {
                    Transform::Identity => *v += 0.1 * self.spread * noise,
                    _ => *v = transform.forward(transform.inverse(*v) + shift + self.spread * noise),
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
        Schedule { hold: 0, max_iterations: self.how.max_iterations, search: self.how.search() }
    }

    fn start(&self, restart: usize) -> Result<M> {
        let mut model = self.start.clone();
        if restart > 0 && !model.another_start(restart) {
            self.how.shake(&mut model, restart, Some(CORNERS[(restart - 1) % CORNERS.len()]));
            model.choose_inducing(&mut rng_of(self.how.seed, restart))?;
        }
        Ok(model)
    }

    fn hop(&self, best: &mut M, run: usize) -> Result<bool> {
        self.how.shake(best, run, None);
        Ok(true)
    }
}
