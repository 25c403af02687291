//! Recipes of regressions of values, classes and counts.

use super::options::NOISE_KIND;
use super::{Job, Learnt, Recipe, job};
use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::fit::{Fitted, OnIteration, Restarts, Run, Schedule};
use crate::kernel::Kernel;
use crate::likelihood::Observations;
use crate::mat::Mat;
use crate::model::regression::sparse::left_by_smooth;
use crate::model::shared::uncertain_inputs::with_latent_units;
use crate::model::{
    InputOptions, Jitter, Laplace, LinearRegression, ProjectionStart, Regression, RegressionOptions,
    SparseOptions, SparseRegression, SpgpDrTraining, Svgp, Treatment, UncertainInputs, VARIANCE_PRIOR,
    VdmgpTraining, WeightPrior,
};
use crate::optim::StopReason;

/// Shape and rate of the Gamma prior of the weights' precisions: weakly informative.
const GAMMA: (f64, f64) = (1.0, 1e-6);

/// A regression that a recipe may name.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it is good for, in a few words.
    pub about: &'static str,
    /// The default kernel.
    pub kernel: &'static str,
    /// The options that it takes with Gaussian noise, besides the options of every model.
    options: &'static [&'static str],
    /// The options that it takes with another likelihood; `None` where it takes no other.
    observed: Option<&'static [&'static str]>,
}

/// The regressions, the default first.
pub const REGRESSIONS: [Entry; 5] = [
    Entry {
        name: "gp",
        kernel: "rbf",
        about: "Exact, for up to a few thousand rows",
        options: &["kernel", "mean", "expectation", "scale", "noise", "restarts"],
        observed: Some(&["likelihood", "kernel", "restarts"]),
    },
    Entry {
        name: "sparse",
        kernel: "rbf",
        about: "Inducing inputs; inputs may be missing, have errors, or be latent",
        options: &[
            "kernel",
            "inducing",
            "fitc",
            "expectation",
            "inputs",
            "learn_errors",
            "latent_inputs",
            "scale",
            "noise",
            NOISE_KIND,
            "restarts",
        ],
        observed: Some(&[
            "likelihood",
            "kernel",
            "inducing",
            "inputs",
            "learn_errors",
            "latent_inputs",
            "restarts",
        ]),
    },
    Entry {
        name: "spgp-dr",
        kernel: "rbf",
        about: "Inducing inputs on a learned projection",
        options: &["kernel", "inducing", "latent_dim", "inputs", "scale", "noise", "restarts"],
        observed: None,
    },
    Entry {
        name: "vdmgp",
        kernel: "rbf",
        about: "Inducing inputs on a projection that is integrated out; tells which inputs matter",
        options: &[
            "kernel",
            "inducing",
            "latent_dim",
            "weight_prior",
            "expectation",
            "inputs",
            "scale",
            "noise",
            "variance",
            "hold",
            "restarts",
        ],
        observed: None,
    },
    Entry {
        name: "linear",
        kernel: "linear",
        about: "Bayesian linear regression, exact for any number of rows",
        options: &["kernel", "expectation", "scale", "noise", "restarts"],
        observed: None,
    },
];

impl Entry {
    /// Whether an option has an effect.
    pub(super) fn has(&self, option: &str, of: &Recipe) -> bool {
        // A model with restarts can search among them.
        let option = if option == "effort" { "restarts" } else { option };
        // Projections and FITC can only average over uncertain inputs.
        let infers = matches!(option, "learn_errors" | "latent_inputs")
            || (option == "inputs" && of.inputs == Some(Treatment::Inferred));
        if infers && (of.fitc || self.name != "sparse") {
            return false;
        }
        match of.is_gaussian() {
            true => {
                self.options.contains(&option) && !(of.fitc && matches!(option, "expectation" | NOISE_KIND))
            }
            false => self.observed.is_some_and(|options| options.contains(&option)),
        }
    }

    /// Whether it takes likelihoods that are not Gaussian.
    pub(super) fn takes_likelihoods(&self) -> bool {
        self.observed.is_some()
    }
}

/// Targets on inputs: see [`Data`](super::Data).
pub(super) struct Pairs {
    pub x: Mat,
    pub x_std: Option<Mat>,
    pub y: Mat,
    pub classes: usize,
}

/// A job that weighs the evidence of learnt errors once its fit is over.
struct Weighed(Box<dyn Job>);

impl Job for Weighed {
    fn schedule(&self) -> Schedule {
        self.0.schedule()
    }

    fn fit(&self, stored: Vec<Run>, watch: &OnIteration<'_>) -> Result<Fitted<Learnt>> {
        let mut fitted = self.0.fit(stored, watch)?;
        if let (Learnt::Regression(model), true) =
            (&mut fitted.model, fitted.stop_reason != StopReason::Asked)
        {
            model.weigh_errors()?;
        }
        Ok(fitted)
    }

    fn start(&self) -> Result<Learnt> {
        self.0.start()
    }

    fn at(&self, run: &Run) -> Result<Learnt> {
        self.0.at(run)
    }
}

impl Recipe {
    pub(super) fn regression(&self, data: Pairs, kernel: Option<Box<dyn Kernel>>) -> Result<Box<dyn Job>> {
        let projected = matches!(self.model.as_str(), "spgp-dr" | "vdmgp");
        let dim = match projected {
            true => self.latent_dim.unwrap_or(if self.model == "vdmgp" { 5 } else { 2 }),
            false => data.x.cols() + self.latent_inputs.unwrap_or(0),
        };
        let kernel = self.kernel_on(dim, kernel)?;
        let job = match self.is_gaussian() {
            true => self.of_values(data, kernel, dim),
            false => self.by_likelihood(data, kernel),
        }?;
        Ok(if self.learn_errors.is_empty() { job } else { Box::new(Weighed(job)) })
    }

    /// How uncertain inputs are treated: inferred where the model can, unless the recipe says otherwise.
    pub fn treatment(&self) -> Treatment {
        self.inputs.unwrap_or(match self.infers_inputs() {
            true => Treatment::Inferred,
            false => Treatment::Averaged,
        })
    }

    /// Whether the model can infer inputs.
    pub fn infers_inputs(&self) -> bool {
        let inferred = Recipe { inputs: Some(Treatment::Inferred), ..self.clone() };
        REGRESSIONS.iter().any(|entry| entry.name == self.model && entry.has("inputs", &inferred))
    }

    /// The options for uncertain inputs.
    fn uncertain(&self) -> InputOptions {
        InputOptions {
            treatment: self.treatment(),
            learn: self.learn_errors.clone(),
            latent: self.latent_inputs.unwrap_or(0),
        }
    }

    fn restarts(&self) -> Restarts {
        let usual = Restarts::default();
        Restarts {
            runs: self.restarts.unwrap_or(usual.runs),
            effort: self.effort(),
            max_iterations: self.max_iterations.unwrap_or(usual.max_iterations),
            seed: self.seed,
            ..usual
        }
    }

    /// The job of a regression with Gaussian noise.
    fn of_values(&self, data: Pairs, kernel: Box<dyn Kernel>, dim: usize) -> Result<Box<dyn Job>> {
        let Pairs { x, x_std, y, .. } = data;
        let how = self.restarts();
        match self.model.as_str() {
            "vdmgp" => {
                let usual = VdmgpTraining::default();
                let training = VdmgpTraining {
                    latent_dim: dim,
                    inducing: self.inducing.unwrap_or(usual.inducing),
                    prior: self.weight_prior()?,
                    expectation: self.rule(&*kernel, dim)?,
                    scale_outputs: self.scale(),
                    noise: self.noise.unwrap_or(usual.noise),
                    variance: self.variance.unwrap_or(usual.variance),
                    hold: self.hold.unwrap_or(usual.hold),
                    max_iterations: self.max_iterations.unwrap_or(usual.max_iterations),
                    restarts: how.runs,
                    effort: how.effort,
                    seed: self.seed,
                    jitter: self.jitter_or(usual.jitter),
                    ..usual
                };
                let plan = training.plan(&x, x_std.as_ref(), &y, &*kernel);
                job(plan, |m| Learnt::Regression(Box::new(m)))
            }
            "sparse" if !self.fitc => {
                let usual = SparseOptions::default();
                let options = SparseOptions {
                    inducing: self.inducing.unwrap_or(usual.inducing),
                    scale: self.scale(),
                    scale_inputs: Scale::Standardize,
                    noise: self.noise.unwrap_or(usual.noise),
                    noise_kind: self.noise_kind.unwrap_or_default(),
                    uncertain: self.uncertain(),
                    expectation: self.rule(&*kernel, dim)?,
                    jitter: self.jitter_or(usual.jitter),
                    seed: self.seed,
                    ..usual
                };
                let start = SparseRegression::new(x, x_std, y, kernel, &options)?;
                job(how.plan(start), |m| Learnt::Regression(Box::new(m)))
            }
            "linear" => {
                if x_std.is_some() {
                    return Err(self.no_effect("standard deviations of the inputs"));
                }
                let usual = RegressionOptions::default();
                let options = RegressionOptions {
                    scale: self.scale(),
                    scale_inputs: Scale::Standardize,
                    noise: self.noise.unwrap_or(usual.noise),
                    expectation: self.rule(&*kernel, dim)?,
                    ..usual
                };
                let start =
                    LinearRegression::new(x, y, LinearRegression::kernel_of(&*kernel, dim)?, &options)?;
                job(how.plan(start), |m| Learnt::Regression(Box::new(m)))
            }
            "spgp-dr" | "sparse" => {
                let usual = SpgpDrTraining::default();
                let inducing = if self.fitc { SparseOptions::default().inducing } else { usual.inducing };
                let training = SpgpDrTraining {
                    latent_dim: dim,
                    inducing: self.inducing.unwrap_or(inducing),
                    projection: if self.fitc { ProjectionStart::Identity } else { ProjectionStart::Pca },
                    scale_outputs: self.scale(),
                    noise: self.noise.unwrap_or(usual.noise),
                    max_iterations: how.max_iterations,
                    restarts: how.runs,
                    effort: how.effort,
                    seed: self.seed,
                    jitter: self.jitter_or(Jitter { kzz: usual.jitter, b: 0.0 }).kzz,
                    ..usual
                };
                let plan = training.plan(&x, x_std.as_ref(), &y, &*kernel);
                job(plan, |m| Learnt::Regression(Box::new(m)))
            }
            _ => {
                let usual = RegressionOptions::default();
                let options = RegressionOptions {
                    scale: self.scale(),
                    scale_inputs: Scale::Standardize,
                    noise: self.noise.unwrap_or(usual.noise),
                    mean: self.mean.unwrap_or(usual.mean),
                    expectation: self.rule(&*kernel, dim)?,
                };
                let start = Regression::with(x, y, kernel, &options)?;
                job(how.plan(start), |m| Learnt::Regression(Box::new(m)))
            }
        }
    }

    fn weight_prior(&self) -> Result<WeightPrior> {
        match self.weight_prior.as_deref() {
            None | Some("type-ii") => Ok(WeightPrior::TypeII),
            Some("gamma") => Ok(WeightPrior::Gamma { shape: GAMMA.0, rate: GAMMA.1 }),
            Some(other) => Err(Error::invalid("weight_prior", "type-ii or gamma", other)),
        }
    }

    /// The job of a regression with another likelihood.
    fn by_likelihood(&self, data: Pairs, kernel: Box<dyn Kernel>) -> Result<Box<dyn Job>> {
        let observations = self.observations(&data)?;
        let inputs = Scaling::fit(&data.x, Scale::Standardize)?;
        let x = inputs.apply(&data.x)?;
        let wide = self.wide(&*kernel);
        if self.model == "gp" {
            let mut start = Laplace::new(x, observations, kernel)?;
            if data.classes > 0 {
                start = start.with_variance_prior(VARIANCE_PRIOR);
            }
            if wide {
                start.wide_start();
            }
            start.inputs = Some(inputs);
            return job(self.restarts().plan(start), |m| Learnt::Regression(Box::new(m)));
        }
        let inducing = self.inducing.unwrap_or(SparseOptions::default().inducing);
        let how_uncertain = self.uncertain();
        let std = data.x_std.as_ref().map(|std| {
            Mat::from_fn(std.rows(), std.cols(), |i, j| std[(i, j)] / inputs.scale.get(j).unwrap_or(&1.0))
        });
        let mut given = UncertainInputs::with(&x, std.as_ref(), &how_uncertain)?;
        if how_uncertain.latent > 0 {
            let y = indicators(&observations);
            given.start_latent(&left_by_smooth(&x, std.as_ref(), &y, inducing, self.seed)?, self.seed)?;
        }
        let uncertain = given.has_errors() || !given.cells.is_empty();
        let mut start = match (uncertain, std) {
            (true, _) => Svgp::inferred(given, &observations, kernel, inducing, self.seed)?,
            (false, Some(_)) => {
                Svgp::uncertain(&given.gaussians(), &observations, kernel, inducing, self.seed)?
            }
            (false, None) => Svgp::new(x, observations, kernel, inducing, self.seed)?,
        };
        if wide {
            start.wide_start();
        }
        start.inputs = Some(with_latent_units(inputs, how_uncertain.latent));
        job(self.restarts().plan(start), |m| Learnt::Regression(Box::new(m)))
    }

    /// The observations; errs for targets that the likelihood cannot produce.
    fn observations(&self, data: &Pairs) -> Result<Observations> {
        let expression = self.likelihood.as_deref().unwrap_or("gaussian");
        Observations::from_expression(expression, &data.y, data.classes).map_err(|e| match e {
            Error::Invalid { what, expected, found } => {
                Error::data(what, format!("expected {expected}, found {found}"))
            }
            other => other,
        })
    }
}

/// The scaled observations as values: a column for each class where there are several.
fn indicators(of: &Observations) -> Mat {
    let column = of.column();
    match of {
        Observations::One { .. } => column,
        Observations::Classes { likelihood, .. } => {
            Mat::from_fn(column.rows(), likelihood.classes, |i, c| f64::from(column[(i, 0)] as usize == c))
        }
    }
}
