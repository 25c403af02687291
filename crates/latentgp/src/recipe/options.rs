//! Which options a model has. Options without effect are refused, not ignored.

use super::Recipe;
use super::regression::{Entry, REGRESSIONS};
use crate::error::{Error, Result};
use crate::expectation;
use crate::model::{InducingInit, Init, NoiseKind, SparseOptions, Training, Treatment, VdmgpTraining};

/// What a model is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Positions of rows that were not observed.
    Latent,
    /// Targets on inputs.
    Regression,
    /// The next values of series.
    Series,
}

/// The names of the regressions.
const NAMES: [&str; REGRESSIONS.len()] = {
    let mut names = [""; REGRESSIONS.len()];
    let mut k = 0;
    while k < names.len() {
        names[k] = REGRESSIONS[k].name;
        k += 1;
    }
    names
};

/// The names of all models, by family.
pub const FAMILIES: [(Family, &[&str]); 3] = [
    (Family::Latent, &["bayesian-gplvm", "gplvm", "ppca"]),
    (Family::Regression, &NAMES),
    (Family::Series, &["narx"]),
];

impl Family {
    pub(super) fn data(self) -> &'static str {
        match self {
            Family::Latent => "a table",
            Family::Regression => "inputs with targets",
            Family::Series => "series",
        }
    }
}

/// The family of a model. Errs for an unknown name and lists the known ones.
pub fn family_of(model: &str) -> Result<Family> {
    let has = |(_, names): &&(Family, &[&str])| names.contains(&model);
    match FAMILIES.iter().find(has) {
        Some((family, _)) => Ok(*family),
        None => {
            let known: Vec<&str> = FAMILIES.iter().flat_map(|(_, names)| names.iter().copied()).collect();
            Err(Error::invalid("model", format!("one of {}", known.join(", ")), model))
        }
    }
}

/// The options with numbers or names as values, as fields of a [`Recipe`].
pub const OPTIONS: [&str; 25] = [
    "model",
    "likelihood",
    "kernel",
    "expectation",
    "max_nodes",
    "latent_dim",
    "inducing",
    "init",
    "inducing_init",
    "scale",
    "mean",
    "weight_prior",
    "fitc",
    "lags",
    "error",
    "inputs",
    "learn_errors",
    "latent_inputs",
    "prior",
    "noise",
    "variance",
    "hold",
    "max_iterations",
    "effort",
    "restarts",
];

/// Whether the noise is shared or one for each column; users call this option `noise`.
pub(super) const NOISE_KIND: &str = "noise_kind";

impl Recipe {
    /// Errs where an option has no effect on the model or a number is outside its domain.
    pub fn check(&self) -> Result<()> {
        let (family, model, gaussian) = (family_of(&self.model)?, self.model.as_str(), self.is_gaussian());
        let regression = REGRESSIONS.iter().find(|entry| entry.name == model);
        if !gaussian && !regression.is_some_and(Entry::takes_likelihoods) {
            let expected = format!("gp or sparse, which have the likelihood {}", self.likelihood());
            return Err(Error::invalid("model", expected, model));
        }
        let latent = family == Family::Latent;
        if !self.learn_errors.is_empty() && self.inputs == Some(Treatment::Averaged) {
            let expected = "inferred where the errors of inputs are learnt";
            return Err(Error::invalid("inputs", expected, Treatment::Averaged));
        }
        self.observed()?;
        for (given, works, option) in [
            (self.likelihood.is_some() && !gaussian, false, "likelihood"),
            (self.kernel.is_some() && self.kernel_text() != "linear", model != "ppca", "kernel"),
            (self.inducing.is_some(), !matches!(model, "gplvm" | "ppca"), "inducing"),
            (self.latent_dim.is_some(), latent, "latent_dim"),
            (self.init.is_some(), matches!(model, "bayesian-gplvm" | "gplvm"), "init"),
            (self.inducing_init.is_some(), model == "bayesian-gplvm", "inducing_init"),
            (self.mean.is_some(), false, "mean"),
            (self.weight_prior.is_some(), false, "weight_prior"),
            (self.fitc, false, "fitc"),
            (
                self.expectation.is_some() || self.max_nodes.is_some(),
                matches!(model, "bayesian-gplvm" | "gplvm"),
                "expectation",
            ),
            (self.scale.is_some(), true, "scale"),
            (self.inputs.is_some(), false, "inputs"),
            (!self.learn_errors.is_empty(), false, "learn_errors"),
            (self.latent_inputs.is_some(), false, "latent_inputs"),
            (self.prior.is_some(), model == "bayesian-gplvm", "prior"),
            (self.lags.is_some(), family == Family::Series, "lags"),
            (self.error.is_some(), family == Family::Series, "error"),
            (self.noise.is_some(), model != "ppca", "noise"),
            (self.noise_kind == Some(NoiseKind::Columns), latent, NOISE_KIND),
            (self.variance.is_some(), model == "bayesian-gplvm", "variance"),
            (self.hold.is_some(), matches!(model, "bayesian-gplvm" | "gplvm"), "hold"),
            (self.effort.is_some(), model != "ppca", "effort"),
            (self.restarts.is_some(), model != "ppca", "restarts"),
        ] {
            let works = regression.map_or(works, |entry| entry.has(option, self));
            if given && !works {
                return Err(self.no_effect(if option == NOISE_KIND { "noise" } else { option }));
            }
        }
        for (value, option) in [
            (self.latent_dim, "latent_dim"),
            (self.inducing, "inducing"),
            (self.latent_inputs, "latent_inputs"),
            (self.restarts, "restarts"),
            (self.max_iterations, "max_iterations"),
        ] {
            if value == Some(0) {
                return Err(Error::invalid(option, "at least 1", 0));
            }
        }
        if let (Some(m), Some(given)) =
            (self.inducing, self.inducing_init.as_ref().and_then(|z| z.inducing()))
            && m != given
        {
            return Err(Error::invalid("inducing", format!("{given}, as many as inputs are given"), m));
        }
        match (self.effort, self.restarts) {
            (Some(_), Some(restarts)) => Err(Error::NoEffect {
                option: "effort".into(),
                settings: vec![("restarts".into(), format!("{restarts}, which runs each start to its end"))],
            }),
            _ => Ok(()),
        }
    }

    /// The error of an option without effect on this model.
    pub(super) fn no_effect(&self, option: &str) -> Error {
        let mut settings = vec![("model".to_string(), self.model.clone())];
        if !self.is_gaussian() {
            settings.push(("likelihood".into(), self.likelihood().into()));
        }
        if self.fitc && option != "fitc" {
            settings.push(("fitc".into(), String::new()));
        }
        Error::NoEffect { option: option.into(), settings }
    }

    /// The first option that is given here and has another value in `stored`: its name and both values.
    ///
    /// The limit of iterations is not compared: a new limit is no contradiction.
    pub fn contradicts(&self, stored: &Recipe) -> Option<(&'static str, String, String)> {
        let text = |of: &Recipe, option: &str| -> Option<String> {
            let number = |n: Option<usize>| n.map(|n| n.to_string());
            match option {
                "likelihood" => of.likelihood.clone(),
                "kernel" => of.kernel.clone(),
                "expectation" => {
                    let rule =
                        |text: &String| expectation::parse(text).map_or(text.clone(), |r| r.expression());
                    of.expectation.as_ref().map(rule)
                }
                "max_nodes" => number(of.max_nodes),
                "latent_dim" => number(of.latent_dim),
                "inducing" => number(of.inducing),
                "init" => of.init.as_ref().map(|init| init.to_string()),
                "inducing_init" => of.inducing_init.as_ref().map(|init| init.to_string()),
                "scale" => of.scale.map(|s| s.to_string()),
                "prior" => of.prior.clone(),
                "noise" => of.noise_kind.map(|kind| kind.to_string()),
                "inputs" => of.inputs.map(|t| t.to_string()),
                "learn_errors" => (!of.learn_errors.is_empty()).then(|| format!("{:?}", of.learn_errors)),
                "latent_inputs" => number(of.latent_inputs),
                "mean" => of.mean.map(|m| format!("{m:?}").to_lowercase()),
                "weight_prior" => of.weight_prior.clone(),
                "fitc" => of.fitc.then(|| "true".to_string()),
                "effort" => of.effort.map(|e| e.to_string()),
                "restarts" => number(of.restarts),
                _ => None,
            }
        };
        let usual = |option: &str| -> String {
            match (option, stored.model.as_str()) {
                ("latent_dim", "vdmgp") => VdmgpTraining::default().latent_dim.to_string(),
                ("latent_dim", _) => Training::default().latent_dim.to_string(),
                ("inducing", "sparse") => SparseOptions::default().inducing.to_string(),
                ("inducing", _) => Training::default().inducing.to_string(),
                ("kernel", _) => stored.kernel_text().into(),
                ("expectation", _) => "auto".into(),
                ("inputs", _) => stored.treatment().to_string(),
                ("latent_inputs", _) => "0".into(),
                ("init", _) => Init::default().to_string(),
                ("inducing_init", _) => InducingInit::default().to_string(),
                ("scale", _) => stored.scale().to_string(),
                ("effort", _) => stored.effort().to_string(),
                ("restarts", _) => format!("a search of {} effort", stored.effort()),
                ("noise", _) => NoiseKind::Shared.to_string(),
                _ => "none".into(),
            }
        };
        OPTIONS.into_iter().find_map(|option| {
            let asked = text(self, option)?;
            let has = text(stored, option).unwrap_or_else(|| usual(option));
            (asked != has).then_some((option, asked, has))
        })
    }
}
