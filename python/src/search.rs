//! Recipes compared within a budget.

use crate::convert::{Array, to_dict, to_mat};
use crate::error::Outcome;
use crate::{settings, work};
use latentgp::recipe::{Contest, Data, Recipe, Standing};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is compared.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Candidates {
    pub kernels: Vec<String>,
    pub latent_dims: Vec<usize>,
    pub inducing: Vec<usize>,
    pub budget: Option<f64>,
    pub fits: Option<usize>,
}

fn entry(s: &Standing) -> Value {
    json!({
        "model": s.recipe.model,
        "kernel": s.recipe.kernel_text(),
        "n_components": s.recipe.latent_dim,
        "n_inducing": s.recipe.inducing,
        "rounds": s.rounds,
        "density": s.density,
        "evidence": s.evidence,
        "n_iter": s.iterations,
        "seconds": s.seconds,
        "failure": s.failure,
    })
}

/// The standings, best first, of latent spaces of y, of regressions on x, or of series. Ctrl-C ends it after an iteration.
#[pyfunction]
pub fn search<'py>(
    py: Python<'py>,
    y: Array<'py>,
    x: Option<Array<'py>>,
    series: bool,
    recipe: &str,
    of: Candidates,
) -> Outcome<Bound<'py, PyDict>> {
    let (y, x) = (to_mat(&y)?, x.as_ref().map(to_mat).transpose()?);
    let data = match (x, series) {
        (Some(x), _) => Data::Pairs { x, x_std: None, y, classes: 0 },
        (None, true) => Data::Series { series: y, exogenous: None },
        (None, false) => Data::Table { y, known: None },
    };
    let base = settings::recipe(recipe)?;
    let recipes = base.worth_comparing(&data, &of.kernels, &of.latent_dims, &of.inducing)?;
    let (seconds, most) = (of.budget.map(Duration::from_secs_f64), of.fits.unwrap_or(usize::MAX));
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    let done = work::run(py, move || {
        let mut contest = Contest::new(&data, recipes, base.seed)?;
        let (began, mut begun) = (Instant::now(), 0);
        let mut more = |_: &Recipe, _: usize| {
            let spent = seconds.is_some_and(|s| began.elapsed() >= s) || begun >= most;
            let goes = !spent && !asked.load(Ordering::Relaxed);
            begun += usize::from(goes);
            goes
        };
        let fits = contest.run(&mut more, &|_| match asked.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        let candidates: Vec<Value> = contest.standings().into_iter().map(entry).collect();
        Ok(json!({ "candidates": candidates, "fits": fits, "fits_of": contest.fits() }))
    });
    // Nobody waits for the rest after an exception.
    stop.store(true, Ordering::Relaxed);
    to_dict(py, &done?)
}
