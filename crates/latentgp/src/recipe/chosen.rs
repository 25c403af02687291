//! Options chosen from the data where they are not given, each with the reason.
//!
//! ```text
//! M = min(N, 2√N between 20 and 60), less where N M² is large
//! Q = how many dimensions matter to a first short fit with more of them; for a map 2 where a third matters much,
//!     which is then learnt into these two
//! ```

use super::Recipe;
use crate::data::Scale;
use crate::fit::Effort;
use crate::mat::Mat;

/// M lies between these, given enough rows.
const INDUCING: (f64, f64) = (20.0, 60.0);
/// The limit of N M², which keeps one step below a tenth of a second.
const WORK: f64 = 1e8;
/// Latent dimensions of the first short fit.
const DIMENSIONS: usize = 5;
/// The iterations of that fit.
const ITERATIONS: usize = 300;
/// A dimension matters when its relevance is at least this part of the largest.
const MATTERS: f64 = 1e-3;
/// Latent dimensions of a map.
const MAP: usize = 2;
/// A map of two dimensions hides much when the third has at least this part of the largest relevance.
const HIDDEN: f64 = 0.1;
/// A column is nearly constant when this part of its cells share one value.
const CONSTANT: f64 = 0.9;

/// What was chosen, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The option, as a field of a [`Recipe`].
    pub option: &'static str,
    /// Its value.
    pub value: String,
    /// The reason, in one line.
    pub reason: String,
}

impl Choice {
    fn new(option: &'static str, value: impl ToString, reason: impl Into<String>) -> Self {
        Choice { option, value: value.to_string(), reason: reason.into() }
    }
}

impl Recipe {
    /// The recipe of a Bayesian GPLVM of Y, with M, the scaling and the kernel chosen where they are not
    /// given. Recipes of other models are left as they are.
    pub fn chosen(&self, y: &Mat) -> (Recipe, Vec<Choice>) {
        let (mut recipe, mut all) = (self.clone(), Vec::new());
        if self.model != "bayesian-gplvm" {
            return (recipe, all);
        }
        let n = y.rows();
        if self.inducing.is_none() && self.inducing_init.as_ref().is_none_or(|z| z.inducing().is_none()) {
            let (usual, quick) =
                ((2.0 * (n as f64).sqrt()).clamp(INDUCING.0, INDUCING.1), (WORK / n.max(1) as f64).sqrt());
            let m = (usual.min(quick.max(INDUCING.0)) as usize).clamp(1, n.max(1));
            let reason = match m {
                m if m == n => "as many inducing inputs as there are rows".to_string(),
                m if (m as f64) < usual.floor() => format!("fewer than usual, as {n} rows take their time"),
                _ => format!("twice the root of {n} rows, between {} and {}", INDUCING.0, INDUCING.1),
            };
            recipe.inducing = Some(m);
            all.push(Choice::new("inducing", m, reason));
        }
        if self.kernel.is_none() {
            recipe.kernel = Some(self.kernel_text().into());
            all.push(Choice::new(
                "kernel",
                self.kernel_text(),
                "smooth functions, whose Ψ-statistics are exact",
            ));
        }
        if self.scale.is_none() {
            let constant = (0..y.cols()).filter(|j| is_nearly_constant(&y.col(*j))).count();
            let reason = match constant {
                0 => "every column counts alike, whatever its units".to_string(),
                k => format!(
                    "every column counts alike, also {k} of {} that are nearly constant, whose few other cells become huge; \
                     `global` keeps them small where all columns have the same units",
                    y.cols()
                ),
            };
            recipe.scale = Some(Scale::Standardize);
            all.push(Choice::new("scale", Scale::Standardize, reason));
        }
        (recipe, all)
    }

    /// The recipe of the first short fit that decides on Q; `None` where Q is given.
    pub fn pilot(&self, y: &Mat) -> Option<Recipe> {
        let given = self.latent_dim.or_else(|| self.init.as_ref()?.latent_dim());
        if self.model != "bayesian-gplvm" || given.is_some() {
            return None;
        }
        let most = DIMENSIONS.min(y.cols()).min(y.rows().saturating_sub(1)).max(1);
        let max_iterations = Some(self.max_iterations.unwrap_or(ITERATIONS).min(ITERATIONS));
        let effort = Some(Effort::Quick);
        Some(Recipe { latent_dim: Some(most), effort, restarts: None, max_iterations, ..self.clone() })
    }

    /// The recipe with the number of dimensions that matter in the [`pilot`](Self::pilot) fit, at least two.
    /// With `map` it is two where a third dimension matters much, so that a picture hides nothing.
    pub fn with_relevant(&self, relevance: &[f64], map: bool) -> (Recipe, Choice) {
        let mut sorted = relevance.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let (largest, of) = (sorted.first().copied().unwrap_or(0.0), relevance.len());
        let matter = relevance.iter().filter(|r| **r > MATTERS * largest).count();
        let hidden = map && sorted.get(MAP).is_some_and(|third| *third > HIDDEN * largest);
        let q = if hidden { MAP } else { matter.max(MAP).min(of.max(1)) };
        let reason = match (matter, of) {
            _ if hidden => format!("a map; {matter} of {of} in a first short fit matter, which `auto` keeps"),
            (matter, of) if matter >= of && of >= DIMENSIONS => {
                format!("all {of} of a first short fit matter; more may explain more")
            }
            (matter, of) if matter < q => {
                format!("{matter} of {of} in a first short fit matters, and a map has {q}")
            }
            _ => format!("so many of {of} in a first short fit matter"),
        };
        (Recipe { latent_dim: Some(q), ..self.clone() }, Choice::new("latent_dim", q, reason))
    }
}

/// Whether nearly all observed cells have one value, but not all of them.
fn is_nearly_constant(column: &[f64]) -> bool {
    let mut seen: Vec<f64> = column.iter().copied().filter(|v| !v.is_nan()).collect();
    seen.sort_by(f64::total_cmp);
    let most = seen.chunk_by(|a, b| a == b).map(<[f64]>::len).max().unwrap_or(0);
    most < seen.len() && most as f64 > CONSTANT * seen.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::oil_flow;
    use crate::fit::go_on;
    use crate::recipe::{Data, Learnt};

    fn value<'a>(all: &'a [Choice], option: &str) -> Option<&'a str> {
        all.iter().find(|c| c.option == option).map(|c| c.value.as_str())
    }

    #[test]
    fn what_is_given_is_kept_and_the_rest_follows_from_the_sizes() {
        let of = |n: usize| Recipe::of("bayesian-gplvm").chosen(&Mat::from_fn(n, 3, |i, j| (i * j) as f64));
        for (n, m) in [(10, 10), (50, 20), (400, 40), (1000, 60), (100_000, 31)] {
            let (recipe, all) = of(n);
            assert_eq!((recipe.inducing, value(&all, "inducing")), (Some(m), Some(&*m.to_string())), "{n}");
        }
        let given = Recipe {
            inducing: Some(7),
            kernel: Some("matern32".into()),
            scale: Some(Scale::Global),
            latent_dim: Some(4),
            ..Recipe::of("bayesian-gplvm")
        };
        let y = Mat::zeros(30, 3);
        assert_eq!((given.chosen(&y), given.pilot(&y)), ((given.clone(), vec![]), None));
        assert_eq!(Recipe::of("ppca").chosen(&y).1, []);
    }

    #[test]
    fn nearly_constant_columns_are_told_of() {
        let y = Mat::from_fn(40, 3, |i, j| if j == 1 { f64::from(i == 7) } else { (i * (j + 1)) as f64 });
        let (_, all) = Recipe::of("bayesian-gplvm").chosen(&y);
        let reason = &all.iter().find(|c| c.option == "scale").unwrap().reason;
        assert!(reason.contains("1 of 3") && reason.contains("global"), "{reason}");
        let (_, all) = Recipe::of("bayesian-gplvm").chosen(&y.select_cols(&[0, 2]));
        assert!(!all.iter().any(|c| c.reason.contains("constant")));
    }

    #[test]
    fn the_dimensions_are_those_that_matter() {
        let y = oil_flow::simulate(40, 1).y;
        let recipe = Recipe { inducing: Some(8), max_iterations: Some(60), ..Recipe::of("bayesian-gplvm") };
        let pilot = recipe.pilot(&y).unwrap();
        assert_eq!((pilot.latent_dim, pilot.max_iterations), (Some(5), Some(60)));
        let fitted = pilot.job(Data::Table { y, known: None }, None).unwrap().fit(vec![], &go_on).unwrap();
        let Learnt::Space(space) = fitted.model else { panic!("a latent space") };
        let (settled, choice) = recipe.with_relevant(&space.relevance().unwrap(), false);
        assert!((2..=5).contains(&settled.latent_dim.unwrap()));
        assert_eq!(choice.value, settled.latent_dim.unwrap().to_string());
        for (relevance, all, map) in [
            (vec![0.9, 1e-9, 1e-12], 2, 2),
            (vec![0.01, 1.0, 0.5], 3, 3),
            (vec![0.5, 0.3, 1.0], 3, 2),
            (vec![1.0], 1, 1),
        ] {
            let q = |map| recipe.with_relevant(&relevance, map).0.latent_dim;
            assert_eq!((q(false), q(true)), (Some(all), Some(map)), "{relevance:?}");
        }
    }
}
