//! Recipes of latent spaces.

use super::{Job, Learnt, Recipe, job};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::mat::Mat;
use crate::model::{BayesianSpace, GplvmTraining, PpcaOptions, PpcaSpace, Training};
use crate::model::{check_range, prior};

impl Recipe {
    /// What the fit of this model maximises, in words.
    pub fn objective(&self) -> &'static str {
        match self.model.as_str() {
            "bayesian-gplvm" => "bound",
            "gplvm" => "log density",
            _ => "log evidence",
        }
    }

    /// Q, where it is given or follows from given positions.
    fn positions(&self) -> Option<usize> {
        self.latent_dim.or_else(|| self.init.as_ref()?.latent_dim())
    }

    pub(super) fn latent(
        &self,
        y: &Mat,
        known: Option<&Mat>,
        kernel: Option<Box<dyn Kernel>>,
    ) -> Result<Box<dyn Job>> {
        // Decoded variances contain the squares of the scales, which must stay in range.
        check_range(y, "value")?;
        match self.model.as_str() {
            "ppca" => {
                let usual = PpcaOptions::default();
                let how = PpcaOptions {
                    latent_dim: self.latent_dim.unwrap_or(usual.latent_dim),
                    scale: self.scale(),
                    noise_kind: self.noise_kind.unwrap_or_default(),
                    max_iterations: self.max_iterations.unwrap_or(usual.max_iterations),
                    ..usual
                };
                job(how.plan(y)?, |fit| Learnt::Space(Box::new(PpcaSpace { model: fit.model, y: fit.y })))
            }
            "gplvm" => {
                let usual = GplvmTraining::default();
                let how = GplvmTraining {
                    latent_dim: self.positions().unwrap_or(usual.latent_dim),
                    init: self.init.clone().unwrap_or_default(),
                    scale: self.scale(),
                    noise: self.noise.unwrap_or(usual.noise),
                    noise_kind: self.noise_kind.unwrap_or_default(),
                    hold: self.hold.unwrap_or(usual.hold),
                    max_iterations: self.max_iterations.unwrap_or(usual.max_iterations),
                    restarts: self.restarts.unwrap_or(usual.restarts),
                    effort: self.effort(),
                    seed: self.seed,
                    ..usual
                };
                let kernel = self.kernel_on(how.latent_dim, kernel)?;
                // During the fit positions are points; the rule is for decoding later.
                let rule = self.rule(&*kernel, how.latent_dim)?;
                job(how.plan(y, &*kernel), move |mut model| {
                    model.expectation = rule.clone();
                    Learnt::Space(Box::new(model))
                })
            }
            _ => {
                let usual = Training::default();
                let latent_dim = self.positions().unwrap_or(usual.latent_dim);
                let inducing_init = self.inducing_init.clone().unwrap_or_default();
                let kernel = self.kernel_on(latent_dim, kernel)?;
                let how = Training {
                    latent_dim,
                    inducing: self.inducing.or(inducing_init.inducing()).unwrap_or(usual.inducing),
                    init: self.init.clone().unwrap_or_default(),
                    inducing_init,
                    expectation: self.rule(&*kernel, latent_dim)?,
                    scale: self.scale(),
                    noise: self.noise.unwrap_or(usual.noise),
                    noise_kind: self.noise_kind.unwrap_or_default(),
                    variance: self.variance.unwrap_or(usual.variance),
                    hold: self.hold.unwrap_or(usual.hold),
                    max_iterations: self.max_iterations.unwrap_or(usual.max_iterations),
                    restarts: self.restarts.unwrap_or(usual.restarts),
                    effort: self.effort(),
                    seed: self.seed,
                    jitter: self.jitter_or(usual.jitter),
                    prior: match &self.prior {
                        None => None,
                        Some(text) => {
                            let columns: Vec<Vec<f64>> =
                                known.map_or(Vec::new(), |m| (0..m.cols()).map(|j| m.col(j)).collect());
                            Some(prior::parse(text)?.bind(y.rows(), latent_dim, &columns)?)
                        }
                    },
                };
                // Data that no restart can start from are rejected before the threads begin.
                how.check(y)?;
                job(how.plan(y, &*kernel), |model| Learnt::Space(Box::new(BayesianSpace::from(model))))
            }
        }
    }
}
