//! Recipes compared: how well each predicts rows that it has not seen, with more iterations for the better ones.
//!
//! ```text
//! rows ──▶ four fifths to learn from, one fifth held out; of series the last fifth
//! round 1: every recipe, few iterations ──▶ round 2: the better half, more ──▶ round 3: the best quarter, to the end
//! ```
//!
//! A round continues the fits of the one before. Recipes are compared by the mean log density of the held-out
//! rows, which is comparable between models of any kind; the evidence of the training rows is reported beside
//! it. Everything follows from the data, the recipes and the seed; only a time limit can change how far a
//! contest gets.

use super::{Data, Family, Learnt, Recipe, family_of};
use crate::error::{Error, Result};
use crate::fit::{OnIteration, Run};
use crate::mat::Mat;
use crate::metrics::kfold;
use crate::model::narx::{Score, Simulation};
use crate::optim::StopReason;
use serde::Serialize;
use std::time::Instant;

/// The rows are divided into this many parts, one of which is held out.
const PARTS: usize = 5;
/// The limit of iterations of a run in each round.
const ROUNDS: [usize; 3] = [30, 120, 1000];
/// Points of the importance sampling behind the density of a row, where a model has no closed form.
const SAMPLES: usize = 64;

/// The result of one recipe.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// The recipe.
    pub recipe: Recipe,
    /// Rounds that it took part in; 0 where the budget ran out first.
    pub rounds: usize,
    /// The log evidence of the training rows, or its bound.
    pub evidence: Option<f64>,
    /// The mean log density of a row held out.
    pub density: Option<f64>,
    /// Iterations of its fit.
    pub iterations: usize,
    /// Seconds of its fits.
    pub seconds: f64,
    /// Why the fit failed.
    pub failure: Option<String>,
    #[serde(skip)]
    left: Option<Run>,
}

/// A contest of recipes over the same data.
pub struct Contest {
    learnt: Data,
    held: Data,
    standings: Vec<Standing>,
}

impl Contest {
    /// A contest of these recipes; the seed divides the rows.
    ///
    /// Errs when there are too few rows, or a recipe does not suit the data.
    pub fn new(data: &Data, recipes: Vec<Recipe>, seed: u64) -> Result<Self> {
        let (learnt, held) = divided(data, seed)?;
        for recipe in &recipes {
            recipe.check()?;
        }
        if recipes.is_empty() {
            return Err(Error::invalid("recipes to compare", "at least 1", 0));
        }
        let new = |recipe| Standing {
            recipe,
            rounds: 0,
            evidence: None,
            density: None,
            iterations: 0,
            seconds: 0.0,
            failure: None,
            left: None,
        };
        Ok(Contest { learnt, held, standings: recipes.into_iter().map(new).collect() })
    }

    /// The number of fits if nothing stops them.
    pub fn fits(&self) -> usize {
        let n = self.standings.len();
        (0..ROUNDS.len()).map(|round| n.div_ceil(1 << round)).sum()
    }

    /// Fits round after round. `more` is asked before each fit, with the recipe and the number of its round;
    /// `watch` sees the iterations. Returns the number of fits.
    pub fn run(&mut self, more: &mut dyn FnMut(&Recipe, usize) -> bool, watch: &OnIteration<'_>) -> usize {
        let mut fits = 0;
        for (round, limit) in ROUNDS.into_iter().enumerate() {
            let alive = self.order().into_iter().take(self.standings.len().div_ceil(1 << round));
            let mut alive: Vec<usize> =
                if round == 0 { (0..self.standings.len()).collect() } else { alive.collect() };
            alive.sort_unstable();
            for k in alive {
                if self.standings[k].failure.is_some() {
                    continue;
                }
                if !more(&self.standings[k].recipe, round + 1) {
                    return fits;
                }
                self.fit(k, limit, watch);
                fits += 1;
            }
        }
        fits
    }

    /// The indices of the recipes, the highest density first; those without a density come last.
    fn order(&self) -> Vec<usize> {
        let density = |k: &usize| self.standings[*k].density.unwrap_or(f64::NEG_INFINITY);
        let mut order: Vec<usize> = (0..self.standings.len()).collect();
        order.sort_by(|a, b| density(b).total_cmp(&density(a)).then(a.cmp(b)));
        order
    }

    /// The recipes, best first.
    pub fn standings(&self) -> Vec<&Standing> {
        self.order().into_iter().map(|k| &self.standings[k]).collect()
    }

    /// The best one; `None` where none could be fitted.
    pub fn winner(&self) -> Option<&Standing> {
        self.standings().into_iter().find(|s| s.density.is_some())
    }

    /// Continues the fit of a recipe up to `limit` iterations; a finished fit stays as it is.
    fn fit(&mut self, k: usize, limit: usize, watch: &OnIteration<'_>) {
        let began = Instant::now();
        let standing = &mut self.standings[k];
        let limit = standing.recipe.max_iterations.unwrap_or(limit).min(limit);
        let done = one(&standing.recipe, &self.learnt, &self.held, limit, standing.left.take(), watch);
        standing.seconds += began.elapsed().as_secs_f64();
        standing.rounds += 1;
        match done {
            Ok(One { evidence, density, iterations, left }) => {
                (standing.evidence, standing.density) = (Some(evidence), density.filter(|d| d.is_finite()));
                (standing.iterations, standing.left) = (iterations, left);
            }
            Err(e) => standing.failure = Some(e.to_string()),
        }
    }
}

/// The result of one fit.
struct One {
    evidence: f64,
    density: Option<f64>,
    iterations: usize,
    left: Option<Run>,
}

fn one(
    recipe: &Recipe,
    learnt: &Data,
    held: &Data,
    limit: usize,
    left: Option<Run>,
    watch: &OnIteration<'_>,
) -> Result<One> {
    let short = Recipe { max_iterations: Some(limit), ..recipe.by_one_run() };
    let mut stored: Vec<Run> = left.into_iter().collect();
    stored.iter_mut().for_each(Run::allow_more);
    let fitted = short.job(learnt.clone(), None)?.fit(stored, watch)?;
    // An interrupted fit is not compared.
    let density = match fitted.stop_reason {
        StopReason::Asked => None,
        _ => Some(density(&fitted.model, learnt, held, recipe.seed)?),
    };
    Ok(One { evidence: fitted.evidence, density, iterations: fitted.iterations, left: fitted.best })
}

/// The mean log density of a row held out.
fn density(model: &Learnt, learnt: &Data, held: &Data, seed: u64) -> Result<f64> {
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    match (model, held, learnt) {
        (Learnt::Space(space), Data::Table { y, .. }, _) => Ok(mean(&space.log_density(y, SAMPLES, seed)?)),
        (Learnt::Regression(model), Data::Pairs { x, x_std, y, .. }, _) => {
            let var = x_std.as_ref().map(|s| s.map(|v| v * v));
            let scores = model.predict(x, var.as_ref())?.scores(y)?;
            let each: Vec<f64> = scores.iter().flatten().filter_map(|s| s.nlpd.or(s.log_loss)).collect();
            Ok(-each.iter().sum::<f64>())
        }
        (
            Learnt::Series(model),
            Data::Series { series, exogenous: ahead },
            Data::Series { series: history, exogenous },
        ) => {
            let inputs = match (exogenous, ahead) {
                (Some(past), Some(ahead)) => Some(stacked(past, ahead)),
                _ => None,
            };
            let steps = series.rows();
            let run = model.simulate(history, inputs.as_ref(), steps, &Simulation::default())?;
            let each = |j: usize| Score::new(&series.col(j), &run.mean.col(j), &run.var.col(j));
            let scores: Vec<Score> = (0..series.cols()).map(each).collect::<Result<_>>()?;
            Ok(-scores.iter().map(|s| s.nlpd).sum::<f64>())
        }
        _ => Err(Error::invalid("data held out", "those of the model", "others")),
    }
}

fn stacked(above: &Mat, below: &Mat) -> Mat {
    let n = above.rows();
    Mat::from_fn(n + below.rows(), above.cols(), |i, j| if i < n { above[(i, j)] } else { below[(i - n, j)] })
}

/// The training part and the held-out part.
fn divided(data: &Data, seed: u64) -> Result<(Data, Data)> {
    let n = match data {
        Data::Table { y, .. } | Data::Pairs { y, .. } => y.rows(),
        Data::Series { series, .. } => series.rows(),
    };
    if n < 2 * PARTS {
        let reason = format!("a comparison holds a fifth of at least {} rows out; there are {n}", 2 * PARTS);
        return Err(Error::data("the data", reason));
    }
    let held = match data {
        Data::Series { .. } => (n - n / PARTS..n).collect(),
        _ => kfold(n, PARTS, seed)?.swap_remove(0),
    };
    let rest: Vec<usize> = (0..n).filter(|i| held.binary_search(i).is_err()).collect();
    let part = |rows: &[usize]| {
        let of = |m: &Option<Mat>| m.as_ref().map(|m| m.select_rows(rows));
        match data {
            Data::Table { y, known } => Data::Table { y: y.select_rows(rows), known: of(known) },
            Data::Pairs { x, x_std, y, classes } => Data::Pairs {
                x: x.select_rows(rows),
                x_std: of(x_std),
                y: y.select_rows(rows),
                classes: *classes,
            },
            Data::Series { series, exogenous } => {
                Data::Series { series: series.select_rows(rows), exogenous: of(exogenous) }
            }
        }
    };
    Ok((part(&rest), part(&held)))
}

/// The largest number of rows for which an exact regression is compared.
const EXACT: usize = 2000;

impl Recipe {
    /// Recipes worth comparing on such data: kernels × Q × M, or the given values alone; the cheapest first.
    pub fn worth_comparing(
        &self,
        data: &Data,
        kernels: &[String],
        latent_dims: &[usize],
        inducing: &[usize],
    ) -> Result<Vec<Recipe>> {
        let (n, columns) = match data {
            Data::Table { y, .. } => (y.rows(), y.cols()),
            Data::Pairs { x, .. } => (x.rows(), x.cols()),
            Data::Series { series, .. } => (series.rows(), series.cols()),
        };
        let family = family_of(&self.model)?;
        let usual: &[&str] = match family {
            Family::Latent => &["rbf", "matern32", "linear", "rbf + linear"],
            Family::Regression => &["rbf", "matern32", "rational_quadratic", "rbf + linear", "linear"],
            Family::Series => &["rbf", "rbf + linear", "matern32 + linear", "linear"],
        };
        let usual: Vec<String> = usual.iter().map(|k| k.to_string()).collect();
        let takes = |option: Recipe| option.check().is_ok();
        let choices = |given: &[usize], usual: &[usize], most: usize, works: bool| -> Vec<Option<usize>> {
            let mut all: Vec<usize> = if given.is_empty() { usual.to_vec() } else { given.to_vec() };
            if given.is_empty() {
                all.iter_mut().for_each(|v| *v = (*v).min(most.max(1)));
                all.dedup();
            }
            if works || !given.is_empty() { all.into_iter().map(Some).collect() } else { vec![None] }
        };
        // A plain exact regression has neither Q nor M; a series is exact unless M is given.
        let sparse = family == Family::Regression && self.model == "gp" && n > EXACT;
        let base =
            Recipe { model: if sparse { "sparse".into() } else { self.model.clone() }, ..self.clone() };
        let has_q = takes(Recipe { latent_dim: Some(1), ..base.clone() });
        let has_m = family != Family::Series && takes(Recipe { inducing: Some(1), ..base.clone() });
        let mut all = Vec::new();
        for m in choices(inducing, &[20, 50], n / 2, has_m) {
            for q in choices(latent_dims, &[2, 5], columns, has_q) {
                for kernel in if kernels.is_empty() { &usual } else { kernels } {
                    let recipe =
                        Recipe { kernel: Some(kernel.clone()), latent_dim: q, inducing: m, ..base.clone() };
                    recipe.check()?;
                    all.push(recipe);
                }
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::go_on;

    fn wave() -> Data {
        let x = Mat::from_fn(60, 1, |i, _| 0.1 * i as f64);
        let y = x.map(|v| (3.0 * v).sin() + 0.05 * (37.0 * v).cos());
        Data::Pairs { x, x_std: None, y, classes: 0 }
    }

    #[test]
    fn what_predicts_best_wins_and_the_others_are_left() {
        let kernels = ["linear", "rbf", "constant", "matern12"].map(String::from);
        let recipes = Recipe::of("gp").worth_comparing(&wave(), &kernels, &[], &[]).unwrap();
        let run = || {
            let mut contest = Contest::new(&wave(), recipes.clone(), 0).unwrap();
            assert_eq!((contest.run(&mut |_, _| true, &go_on), contest.fits()), (7, 7));
            contest
        };
        let contest = run();
        let order = contest.standings();
        assert_eq!(contest.winner().unwrap().recipe.kernel.as_deref(), Some("rbf"));
        assert_eq!(order.iter().map(|s| s.rounds).collect::<Vec<_>>(), [3, 2, 1, 1]);
        assert!(order.windows(2).all(|pair| pair[0].density >= pair[1].density));
        let (a, b) = (contest.standings(), run());
        assert!(
            a.iter()
                .zip(b.standings())
                .all(|(a, b)| a.density.map(f64::to_bits) == b.density.map(f64::to_bits))
        );
    }

    #[test]
    fn a_budget_ends_a_contest_and_what_fails_is_told() {
        let recipes = Recipe::of("gp").worth_comparing(&wave(), &[], &[], &[]).unwrap();
        let mut contest = Contest::new(&wave(), recipes, 0).unwrap();
        let mut left = 2;
        let mut some = |_: &Recipe, _: usize| {
            left -= 1;
            left >= 0
        };
        assert_eq!(contest.run(&mut some, &go_on), 2);
        assert_eq!(contest.standings().iter().filter(|s| s.density.is_some()).count(), 2);
        let bad = Recipe { kernel: Some("rbf(dims=[3])".into()), ..Recipe::of("gp") };
        let mut contest = Contest::new(&wave(), vec![bad], 0).unwrap();
        contest.run(&mut |_, _| true, &go_on);
        assert!(contest.winner().is_none() && contest.standings()[0].failure.is_some());
        let short = Data::Series { series: Mat::zeros(9, 1), exogenous: None };
        assert!(Contest::new(&short, vec![Recipe::of("narx")], 0).is_err());
    }

    #[test]
    fn latent_spaces_and_series_are_compared_too() {
        let y = crate::data::oil_flow::simulate(40, 1).y;
        let table = Data::Table { y, known: None };
        let of = Recipe { max_iterations: Some(20), ..Recipe::of("bayesian-gplvm") };
        let recipes = of.worth_comparing(&table, &["rbf".into(), "linear".into()], &[2], &[8]).unwrap();
        let series = Mat::from_fn(80, 1, |i, _| (0.5 * i as f64).sin());
        let series = Data::Series { series, exogenous: None };
        let of = Recipe { lags: Some(crate::data::lags::Lags::of_series(&[3])), ..Recipe::of("narx") };
        let both = [(table, recipes), (series.clone(), of.worth_comparing(&series, &[], &[], &[]).unwrap())];
        for (data, recipes) in both {
            let mut contest = Contest::new(&data, recipes, 0).unwrap();
            contest.run(&mut |_, _| true, &go_on);
            let winner = contest.winner().unwrap();
            assert!(
                winner.density.unwrap() > contest.standings().last().unwrap().density.unwrap(),
                "{winner:?}"
            );
        }
    }
}
