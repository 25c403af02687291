//! Recipes: everything that decides on a fit besides the data.
//!
//! ```text
//! options, keyword arguments, a file ──▶ Recipe ──with data──▶ Job ──fit──▶ trained model
//! ```
//!
//! A [`Recipe`] is a plain description that can be written down and read back. The command line and Python
//! fill it; the meaning of an option, the models that it applies to and its default are defined here alone. A
//! [`Job`] is a recipe with its data: it can be fitted, interrupted, and resumed from stored runs.
//!
//! ```
//! use latentgp::recipe::{Data, Learnt, Recipe};
//! use latentgp::{Mat, fit};
//!
//! let recipe = Recipe { inducing: Some(8), ..Recipe::of("sparse") };
//! let x = Mat::from_fn(40, 1, |i, _| 0.1 * i as f64);
//! let y = x.map(f64::sin);
//! let job = recipe.job(Data::Pairs { x, x_std: None, y, classes: 0 }, None)?;
//! let fitted = job.fit(Vec::new(), &fit::go_on)?;
//! assert!(matches!(fitted.model, Learnt::Regression(_)) && fitted.evidence > 0.0);
//! # Ok::<(), latentgp::Error>(())
//! ```

mod chosen;
mod contest;
mod latent;
mod memory;
mod options;
mod regression;
mod series;

pub use chosen::Choice;
pub use contest::{Contest, Standing};
pub use options::{FAMILIES, Family, OPTIONS, family_of};
pub use regression::{Entry, REGRESSIONS};

use crate::data::Scale;
use crate::data::lags::Lags;
use crate::error::{Error, Result};
use crate::expectation::{self, Auto, Expectation};
use crate::fit::{self, Effort, Fitted, OnIteration, Plan, Run, Schedule};
use crate::kernel::{self, Kernel};
use crate::likelihood::{self, Kind};
use crate::mat::Mat;
use crate::model::{
    InducingInit, Init, Jitter, LatentSpace, MeanKind, NoiseKind, Regressor, SeriesModel, Treatment,
};
use serde::{Deserialize, Serialize};

/// What to fit and how. The model chooses what is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recipe {
    /// The model's name, one of those in [`FAMILIES`].
    pub model: String,
    /// What is observed: `gaussian`, or an expression of [`likelihood::names`](crate::likelihood::names).
    pub likelihood: Option<String>,
    /// The kernel, as an expression.
    pub kernel: Option<String>,
    /// How Ψ-statistics are computed, as an expression.
    pub expectation: Option<String>,
    /// The most nodes that an expectation may use.
    pub max_nodes: Option<usize>,
    /// Latent dimensions, or directions of a projection.
    pub latent_dim: Option<usize>,
    /// Inducing inputs.
    pub inducing: Option<usize>,
    /// Where latent positions start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<Init>,
    /// Where inducing inputs start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inducing_init: Option<InducingInit>,
    /// How data or targets are scaled.
    pub scale: Option<Scale>,
    /// The mean function of an exact regression.
    pub mean: Option<MeanKind>,
    /// The prior of the weights of a variational projection: `type-ii` or `gamma`.
    pub weight_prior: Option<String>,
    /// Whether FITC replaces the variational bound.
    pub fitc: bool,
    /// How uncertain inputs are treated; by default the models that can infer them do, and the others average
    /// over them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Treatment>,
    /// The indices of inputs whose errors have a learnt standard deviation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub learn_errors: Vec<usize>,
    /// Number of input columns that were never observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latent_inputs: Option<usize>,
    /// The prior of latent positions, as an expression of [`prior::names`](crate::model::prior::names).
    pub prior: Option<String>,
    /// The lags of a window of a series.
    pub lags: Option<Lags>,
    /// The variance of the reading errors of series, in the units of the scaled series.
    pub error: Option<f64>,
    /// The start of σ², as a part of the variance of the scaled data.
    pub noise: Option<f64>,
    /// Whether all outputs share σ² or each has its own.
    pub noise_kind: Option<NoiseKind>,
    /// The start of the latent variances.
    pub variance: Option<f64>,
    /// Iterations with the noise held.
    pub hold: Option<usize>,
    /// What is added to the diagonals of Kzz and B.
    pub jitter: Option<[f64; 2]>,
    /// Iterations with everything free.
    pub max_iterations: Option<usize>,
    /// How hard the fit looks for the best optimum; normal where neither effort nor restarts are given.
    pub effort: Option<Effort>,
    /// Full runs from different starts, instead of a search.
    pub restarts: Option<usize>,
    /// Seed of the starts.
    pub seed: u64,
}

/// What a recipe is fitted to; NaN is a missing cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A table whose rows have latent positions.
    Table {
        /// Y, N×D.
        y: Mat,
        /// The columns that the prior of X needs, N rows, in its order.
        known: Option<Mat>,
    },
    /// Targets on inputs.
    Pairs {
        /// X, N×Q.
        x: Mat,
        /// Standard deviations of the errors of X, where it is uncertain.
        x_std: Option<Mat>,
        /// Y, N×D; a class is given by its number.
        y: Mat,
        /// How many classes there are; 0 where targets are not classes.
        classes: usize,
    },
    /// Series in time.
    Series {
        /// One row for each time step.
        series: Mat,
        /// Exogenous inputs at the same time steps.
        exogenous: Option<Mat>,
    },
}

/// A trained model of any family.
#[derive(Clone)]
pub enum Learnt {
    /// A latent space.
    Space(Box<dyn LatentSpace>),
    /// A regression.
    Regression(Box<dyn Regressor>),
    /// A model of series.
    Series(Box<dyn SeriesModel>),
}

impl Learnt {
    /// The log evidence of the data as given, or its bound.
    pub fn evidence(&self) -> Result<f64> {
        match self {
            Learnt::Space(m) => m.evidence(),
            Learnt::Regression(m) => m.log_evidence(None),
            Learnt::Series(m) => m.log_evidence(None),
        }
    }
}

/// A fit that is ready to run.
pub trait Job: Send + Sync {
    /// The stages and the number of restarts.
    fn schedule(&self) -> Schedule;

    /// Fits; restarts whose state is among `stored` resume there.
    fn fit(&self, stored: Vec<Run>, watch: &OnIteration<'_>) -> Result<Fitted<Learnt>>;

    /// The model at the start of the first restart.
    fn start(&self) -> Result<Learnt>;

    /// The model at the state of a run.
    fn at(&self, run: &Run) -> Result<Learnt>;
}

/// A plan with the conversion of its model to [`Learnt`].
struct Of<P, F> {
    plan: P,
    learnt: F,
}

impl<P: Plan, F: Fn(P::Model) -> Learnt + Send + Sync> Job for Of<P, F> {
    fn schedule(&self) -> Schedule {
        self.plan.schedule()
    }

    fn fit(&self, stored: Vec<Run>, watch: &OnIteration<'_>) -> Result<Fitted<Learnt>> {
        Ok(fit::train(&self.plan, stored, watch)?.map(&self.learnt))
    }

    fn start(&self) -> Result<Learnt> {
        Ok((self.learnt)(self.plan.start(0)?))
    }

    fn at(&self, run: &Run) -> Result<Learnt> {
        Ok((self.learnt)(fit::model_at(&self.plan, run)?))
    }
}

/// Makes a job of a plan.
fn job<P: Plan + 'static>(
    plan: P,
    learnt: impl Fn(P::Model) -> Learnt + Send + Sync + 'static,
) -> Result<Box<dyn Job>> {
    Ok(Box::new(Of { plan, learnt }))
}

impl Recipe {
    /// The recipe of a model with the defaults elsewhere.
    pub fn of(model: &str) -> Self {
        Recipe { model: model.into(), ..Recipe::default() }
    }

    /// Combines the recipe with its data; `kernel` replaces the expression where it is given.
    ///
    /// Errs when an option has no effect on the model, a value is outside its domain, the data are of another
    /// family, or the model cannot start.
    pub fn job(&self, data: Data, kernel: Option<Box<dyn Kernel>>) -> Result<Box<dyn Job>> {
        self.check()?;
        self.check_memory(&data)?;
        match (family_of(&self.model)?, data) {
            (Family::Latent, Data::Table { y, known }) => self.latent(&y, known.as_ref(), kernel),
            (Family::Regression, Data::Pairs { x, x_std, y, classes }) => {
                self.regression(regression::Pairs { x, x_std, y, classes }, kernel)
            }
            (Family::Series, Data::Series { series, exogenous }) => {
                self.series(&series, exogenous.as_ref(), kernel)
            }
            (family, _) => Err(Error::invalid(format!("data of `{}`", self.model), family.data(), "others")),
        }
    }

    /// The same recipe with a single run.
    pub fn by_one_run(&self) -> Recipe {
        let one = Recipe { effort: None, restarts: None, ..self.clone() };
        let quick = Recipe { effort: Some(Effort::Quick), ..one.clone() };
        // A model without a search does not take an effort.
        if quick.check().is_ok() { quick } else { one }
    }

    /// The likelihood's name, without its options.
    pub fn likelihood(&self) -> &str {
        let name = self.likelihood.as_deref().unwrap_or("gaussian");
        name.split('(').next().unwrap_or(name)
    }

    /// The kind of observations.
    pub fn observed(&self) -> Result<Kind> {
        match &self.likelihood {
            Some(expression) if !self.is_gaussian() => Ok(likelihood::named(expression)?.kind),
            _ => Ok(Kind::Values),
        }
    }

    /// Whether the noise is Gaussian.
    pub fn is_gaussian(&self) -> bool {
        self.likelihood() == "gaussian"
    }

    /// The kernel as it was asked for.
    pub fn kernel_text(&self) -> &str {
        let usual = match self.model.as_str() {
            "ppca" => "linear",
            "narx" => "rbf + linear",
            model => REGRESSIONS.iter().find(|entry| entry.name == model).map_or("rbf", |entry| entry.kernel),
        };
        self.kernel.as_deref().unwrap_or(usual)
    }

    /// How data or targets are scaled.
    pub fn scale(&self) -> Scale {
        self.scale.unwrap_or(Scale::Standardize)
    }

    /// The kernel on `dim` columns.
    fn kernel_on(&self, dim: usize, given: Option<Box<dyn Kernel>>) -> Result<Box<dyn Kernel>> {
        match given {
            Some(kernel) => Ok(kernel),
            None => kernel::parse(self.kernel_text(), dim),
        }
    }

    /// Whether hyperparameters start wide, as they do where the kernel is given without values.
    fn wide(&self, kernel: &dyn Kernel) -> bool {
        !kernel::gives_values(self.kernel_text(), kernel)
    }

    /// The expectation with its limit of nodes. Errs where the limit is exceeded or has no effect.
    fn rule(&self, kernel: &dyn Kernel, dim: usize) -> Result<Box<dyn Expectation>> {
        let mut rule = expectation::parse(self.expectation.as_deref().unwrap_or("auto"))?;
        if let Some(limit) = self.max_nodes {
            let used: &dyn Expectation =
                if rule.expression() == "auto" { Auto::choice(kernel) } else { &*rule };
            let nodes = used.cost(1, dim, 1).nodes;
            if nodes == 0.0 {
                let settings = vec![("expectation".to_string(), format!("`{used}`, which uses no nodes"))];
                return Err(Error::NoEffect { option: "max_nodes".into(), settings });
            }
            if nodes > limit as f64 {
                return Err(Error::TooManyNodes {
                    rule: used.expression(),
                    nodes,
                    dim,
                    megabytes: (nodes * dim as f64 * 8e-6).ceil(),
                    limit,
                    cheaper: cheaper(kernel, dim, limit),
                });
            }
            rule.set_max_nodes(limit);
        }
        rule.check(kernel, dim)?;
        Ok(rule)
    }

    /// How hard the fit looks for the best optimum.
    pub fn effort(&self) -> Effort {
        match self.restarts {
            Some(_) => Effort::Quick,
            None => self.effort.unwrap_or_default(),
        }
    }

    fn jitter_or(&self, usual: Jitter) -> Jitter {
        self.jitter.map_or(usual, |[kzz, b]| Jitter { kzz, b })
    }
}

/// An expectation within the limit, for an error message.
fn cheaper(kernel: &dyn Kernel, dim: usize, limit: usize) -> String {
    if kernel.closed_form().is_some() {
        return "`analytic` (no nodes)".into();
    }
    let nodes =
        |rule: &str| expectation::parse(rule).map_or(f64::INFINITY, |rule| rule.cost(1, dim, 1).nodes);
    match ["unscented", "minimal_skew"].into_iter().find(|rule| nodes(rule) <= limit as f64) {
        Some(rule) => format!("`{rule}` ({} nodes)", nodes(rule)),
        None => "fewer latent dimensions".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::ControlFlow;

    /// Every model with data of its family.
    fn all() -> Vec<(Recipe, Data)> {
        let short = |model: &str| Recipe { max_iterations: Some(9), restarts: Some(2), ..Recipe::of(model) };
        let mut y = Mat::from_fn(16, 4, |i, j| ((i * (j + 2)) as f64 * 0.37).sin() + 0.1 * j as f64);
        let x = Mat::from_fn(20, 2, |i, j| (1.7 * i as f64 + j as f64).sin());
        let target = Mat::from_fn(20, 1, |i, _| x[(i, 0)] + 0.3 * (i as f64).cos());
        let class = Mat::from_fn(20, 1, |i, _| (i % 3) as f64);
        let pairs = |y: &Mat, classes| Data::Pairs { x: x.clone(), x_std: None, y: y.clone(), classes };
        let mut both = Vec::new();
        for model in ["bayesian-gplvm", "gplvm"] {
            both.push((Recipe { hold: Some(3), ..short(model) }, Data::Table { y: y.clone(), known: None }));
        }
        let prior = Some("times(column=day, std=0.5)".into());
        let known = Some(Mat::from_fn(16, 1, |i, _| i as f64));
        let times = Recipe { prior, hold: Some(3), ..short("bayesian-gplvm") };
        both.push((times, Data::Table { y: y.clone(), known }));
        y[(3, 1)] = f64::NAN;
        both.push((Recipe { restarts: None, ..short("ppca") }, Data::Table { y, known: None }));
        for model in ["gp", "sparse", "spgp-dr", "vdmgp", "linear"] {
            both.push((short(model), pairs(&target, 0)));
        }
        both.push((Recipe { fitc: true, ..short("sparse") }, pairs(&target, 0)));
        for model in ["gp", "sparse"] {
            let likelihood = Some("categorical".into());
            both.push((Recipe { likelihood, ..short(model) }, pairs(&class, 3)));
        }
        let series = Mat::from_fn(40, 1, |i, _| (0.7 * i as f64).sin() + 0.02 * i as f64);
        for inducing in [None, Some(6)] {
            let lags = Some(Lags::of_series(&[3]));
            let data = Data::Series { series: series.clone(), exogenous: None };
            both.push((Recipe { lags, inducing, ..short("narx") }, data));
        }
        both
    }

    #[test]
    fn a_fit_of_any_model_that_was_stopped_goes_on_to_the_same_bits() {
        for (recipe, data) in all() {
            let text = serde_json::to_string(&recipe).unwrap();
            assert_eq!(serde_json::from_str::<Recipe>(&text).unwrap(), recipe);
            let job = recipe.job(data, None).unwrap();
            let whole = job.fit(Vec::new(), &fit::go_on).unwrap();
            if let Learnt::Space(space) = &whole.model {
                assert_eq!((space.name(), space.objective()), (&*recipe.model, recipe.objective()));
            }
            for limit in [1, 4] {
                let stop = |run: &Run| match run.total_iterations() >= limit {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
                let part = job.fit(Vec::new(), &stop).unwrap();
                assert_eq!(part.iterations, limit, "{}", recipe.model);
                job.at(&part.runs[0]).unwrap();
                let stored = part.runs.iter().map(|r| serde_json::to_string(r).unwrap());
                let runs = stored.map(|text| serde_json::from_str(&text).unwrap()).collect();
                let rest = job.fit(runs, &fit::go_on).unwrap();
                assert_eq!(
                    (rest.evidence.to_bits(), &rest.trace, &rest.restarts),
                    (whole.evidence.to_bits(), &whole.trace, &whole.restarts),
                    "{}",
                    recipe.model
                );
            }
        }
    }

    #[test]
    fn options_without_effect_are_refused() {
        let usual = Recipe::of("gp");
        for wrong in [
            Recipe { inducing: Some(5), ..usual.clone() },
            Recipe { latent_dim: Some(2), ..usual.clone() },
            Recipe { fitc: true, ..usual.clone() },
            Recipe { mean: Some(MeanKind::Linear), ..Recipe::of("sparse") },
            Recipe { inducing: Some(5), ..Recipe::of("linear") },
            Recipe { likelihood: Some("poisson".into()), scale: Some(Scale::None), ..usual.clone() },
            Recipe { expectation: Some("unscented".into()), ..Recipe::of("ppca") },
            Recipe { init: Some(Init::Spectral), ..usual.clone() },
            Recipe { inducing_init: Some(InducingInit::Rows), ..Recipe::of("gplvm") },
        ] {
            assert!(matches!(wrong.check(), Err(Error::NoEffect { .. })), "{wrong:?}");
        }
        for (wrong, word) in [
            (Recipe { likelihood: Some("poisson".into()), ..Recipe::of("vdmgp") }, "gp or sparse"),
            (Recipe::of("umap"), "bayesian-gplvm"),
            (Recipe { restarts: Some(0), ..usual }, "at least 1"),
        ] {
            assert!(wrong.check().unwrap_err().to_string().contains(word));
        }
    }
}
