//! Latent spaces by the papers' protocol, scored by nearest neighbours: Tables 1 and 2.

use super::alone;
use super::context::Context;
use super::part::Picture;
use super::psi::fresh;
use super::table::{Estimate, Measure, Row};
use latentgp::expectation::Expectation;
use latentgp::kernel::Kernel;
use latentgp::metrics::knn_accuracy;
use latentgp::model::{BayesianGplvm, Fitted, PapersTraining};
use latentgp::optim::StopReason;
use latentgp::{Mat, numpy};
use latentgp_figure::{self as figure, Coordinate, LatentMap};
use latentgp_terminal::failure::Outcome;
use latentgp_terminal::words;
use std::time::Instant;

/// What the tables compare.
pub const ACCURACY: Measure = Measure { name: "1-NN, %", key: "accuracy", decimals: 1 };
/// Folds and their seed in the published experiments.
const FOLDS: (usize, u32) = (5, 42);
/// Apart, so that two seeds of the command share no draws.
const STRIDE: u64 = 1_000_000;

/// How far the starts of twins lie apart, relatively.
const ROUNDING: f64 = 1e-13;
/// Iterations after which the bounds of several starts are compared.
pub const TRIAL: usize = 250;
/// Draws of the lines that take long: they go on where lines of fewer draws ended.
pub const MANY: usize = 200;
/// They take one step where the line before took so many.
const SHARE: usize = 10;

/// Rows, and what they are.
pub struct Data {
    /// N×D.
    pub y: Mat,
    /// The class of each row.
    pub labels: Vec<usize>,
    /// What figures call the classes.
    pub names: Vec<String>,
    folds: Vec<Vec<usize>>,
}

/// How Ψ-statistics are computed.
pub enum Method {
    /// The same at every step.
    Fixed(Box<dyn Expectation>),
    /// So many draws, anew at every step, in several runs.
    MonteCarlo(usize),
}

/// A line of the table to come.
pub struct Case {
    /// How the table calls the method.
    pub method: String,
    /// How it calls the kernel.
    pub name: &'static str,
    /// The kernel of a run.
    pub kernel: Box<dyn Fn(u64) -> latentgp::Result<Box<dyn Kernel>> + Sync>,
    /// The method itself.
    pub by: Method,
    /// The protocol.
    pub how: PapersTraining,
    /// Fits from starts that differ by rounding, of which the best bound is kept.
    pub twins: usize,
    /// Seeds of the kernel, of which that with the best bound after [`TRIAL`] iterations goes on.
    pub starts: usize,
    /// The papers' accuracy in per cent.
    pub theirs: Option<Estimate>,
}

/// A fitted line.
pub struct Found {
    /// The line.
    pub row: Row,
    /// The model of each of its runs, or of the best of its twins.
    pub models: Vec<BayesianGplvm>,
}

/// A method that is the same at every step.
pub fn fixed(rule: impl Expectation + 'static) -> Method {
    Method::Fixed(Box::new(rule))
}

/// A line that was not run, and why.
pub fn skipped(case: &Case, why: &str) -> Row {
    let (method, kernel) = (case.method.clone(), case.name.into());
    Row { method, kernel, theirs: vec![case.theirs], note: why.into(), ..Row::default() }
}

/// The line of each kernel that lines of [`MANY`] draws go on from.
#[derive(Default)]
pub struct Ends(Vec<Found>);

impl Ends {
    /// Takes out the line that this one goes on from, if it does, and leaves it a share of its steps.
    pub fn before(&mut self, case: &mut Case, context: &Context) -> Option<Found> {
        let goes_on = matches!(case.by, Method::MonteCarlo(MANY)) && !context.long;
        let at = self.0.iter().position(|end| goes_on && end.row.kernel == case.name)?;
        case.how.adam_iterations = case.how.adam_iterations.div_ceil(SHARE);
        Some(self.0.swap_remove(at))
    }

    /// Keeps a line that others may go on from, in the place of an earlier one.
    pub fn keep(&mut self, case: &Case, found: Found, context: &Context) {
        if matches!(case.by, Method::MonteCarlo(samples) if samples < MANY) && !context.long {
            self.0.retain(|end| end.row.kernel != case.name);
            self.0.push(found);
        }
    }
}

impl Data {
    /// Rows with the folds of the papers.
    pub fn new(y: Mat, labels: Vec<usize>, names: Vec<String>) -> Outcome<Self> {
        let folds = numpy::kfold(y.rows(), FOLDS.0, FOLDS.1)?;
        Ok(Data { y, labels, names, folds })
    }

    /// Accuracy in each fold, in per cent.
    fn score(&self, x: &Mat) -> Outcome<Vec<f64>> {
        let found = knn_accuracy(x, &self.labels, 1, &self.folds)?;
        Ok(found.folds.iter().map(|a| 100.0 * a).collect())
    }

    /// The line of principal components, and where they put the rows.
    pub fn pca(&self, how: &PapersTraining, theirs: Option<Estimate>) -> Outcome<(Row, Mat)> {
        let clock = Instant::now();
        let two = PapersTraining { latent_dim: 2, ..how.clone() };
        let rule = Box::new(latentgp::expectation::Unscented);
        let x = two.start(&self.y, &latentgp::kernel::Rbf::new(2), rule)?.mean.value;
        let row = Row {
            method: "PCA".into(),
            ours: vec![Estimate::over(&self.score(&x)?)],
            theirs: vec![theirs],
            seconds: clock.elapsed().as_secs_f64(),
            ..Row::default()
        };
        Ok((row, x))
    }

    /// Fits and scores a line, whose runs begin where those of another ended, if there is one.
    pub fn fit(&self, case: &Case, before: Option<&Found>, context: &Context) -> Outcome<Found> {
        let clock = Instant::now();
        let label = format!("{}, {}", case.method, case.name);
        context.doing(&label)?;
        let watch = context.watch(&label);
        let runs: Vec<Box<dyn Expectation>> = match &case.by {
            Method::Fixed(rule) => vec![rule.clone(); case.twins],
            Method::MonteCarlo(samples) => (0..context.runs as u64)
                .map(|run| Box::new(fresh(*samples, context.seed * STRIDE + run)) as Box<dyn Expectation>)
                .collect(),
        };
        let drawn = matches!(case.by, Method::MonteCarlo(_));
        let first = context.seed * STRIDE;
        let chosen = match &case.by {
            Method::Fixed(rule) if case.starts > 1 => {
                let trial = PapersTraining { max_iterations: TRIAL, ..case.how.clone() };
                let bounds = alone::each(case.starts, |start| {
                    let kernel = (case.kernel)(first + start as u64)?;
                    Ok(trial.fit(&self.y, &*kernel, rule.clone(), &watch)?.evidence)
                });
                let bounds = bounds.into_iter().collect::<Outcome<Vec<f64>>>()?;
                context.go_on()?;
                highest(&bounds)
            }
            _ => 0,
        };
        let one = |run: usize, rule: Box<dyn Expectation>| -> Outcome<Fitted<BayesianGplvm>> {
            if let Some(before) = before {
                let model = BayesianGplvm { expectation: rule, ..before.models[run].clone() };
                return Ok(case.how.go_on(model, &watch)?);
            }
            let seed = first + if drawn { run } else { chosen } as u64;
            let y = if drawn { self.y.clone() } else { shaken(&self.y, run) };
            Ok(case.how.fit(&y, &*(case.kernel)(seed)?, rule, &watch)?)
        };
        let mut fits = match &runs[..] {
            // A fit by itself has all threads.
            [rule] => vec![one(0, rule.clone())?],
            _ => alone::each(runs.len(), |run| one(run, runs[run].clone()))
                .into_iter()
                .collect::<Outcome<_>>()?,
        };
        context.go_on()?;
        let mut scores = Vec::new();
        for fit in &fits {
            scores.push(self.score(&shown(&fit.model))?);
        }
        let mut note = note(&fits, drawn);
        if case.twins > 1 && !drawn {
            let best = highest(&fits.iter().map(|f| f.evidence).collect::<Vec<_>>());
            let means: Vec<f64> = scores.iter().map(|s| Estimate::over(s).mean).collect();
            let (lo, hi) = means.iter().fold((100f64, 0f64), |(lo, hi), m| (lo.min(*m), hi.max(*m)));
            (fits, scores) = (vec![fits.swap_remove(best)], vec![scores.swap_remove(best)]);
            let scores = if lo == hi { format!("all {lo:.0} %") } else { format!("{lo:.0} to {hi:.0} %") };
            note = format!("the best bound of {} fits, {scores}", case.twins);
        }
        if case.starts > 1 && !drawn {
            note = format!("{note}; the best of {} starts", case.starts);
        }
        if let Some(before) = before {
            note = format!("{note}; from the ends of {}", before.row.method);
        }
        let scores = scores.concat();
        let bounds: Vec<f64> = fits.iter().map(|f| f.evidence).collect();
        let row = Row {
            method: case.method.clone(),
            kernel: case.name.into(),
            ours: vec![Estimate::over(&scores)],
            theirs: vec![case.theirs],
            bound: Some(Estimate::over(&bounds).mean),
            seconds: clock.elapsed().as_secs_f64(),
            note,
            ..Row::default()
        };
        context.done(&format!(
            "{label}: {:.1} %, bound {:.2}, {:.1} s",
            row.ours[0].mean,
            row.bound.unwrap_or(f64::NAN),
            row.seconds
        ));
        Ok(Found { row, models: fits.into_iter().map(|f| f.model).collect() })
    }

    /// Figure 2: where the rows lie, along the two dimensions with the smallest lengthscales.
    pub fn picture(&self, found: &Found, slug: &str) -> Outcome<Picture> {
        let model = &found.models[0];
        let dims = two_dimensions(model);
        let coordinate = |k: usize| Coordinate {
            mean: model.mean.value.col(k),
            variance: model.var.value.col(k),
            title: figure::axis_title(k, &[]),
        };
        self.map(&found.row, slug, [coordinate(dims[0]), coordinate(dims[1])])
    }

    /// The same of principal components.
    pub fn components(&self, row: &Row, x: &Mat, slug: &str) -> Outcome<Picture> {
        let coordinate = |k: usize, title: &str| Coordinate {
            mean: x.col(k),
            variance: Vec::new(),
            title: format!("{title} component"),
        };
        self.map(row, slug, [coordinate(1, "first"), coordinate(0, "second")])
    }

    fn map(&self, row: &Row, slug: &str, [x, y]: [Coordinate; 2]) -> Outcome<Picture> {
        let labels = self.labels.iter().map(|l| self.names[*l].clone()).collect();
        let title = format!("{}: {:.1} %", row.label(), row.ours[0].mean);
        let ellipses = if x.variance.is_empty() { "" } else { " Ellipses are one standard deviation." };
        let caption = format!("As Figure 2: {}.{ellipses}", row.label());
        let map = LatentMap { title, x, y: Some(y), labels, ..LatentMap::default() };
        Ok(Picture { slug: slug.into(), caption, figure: figure::latent_map(&map)? })
    }
}

/// Where the highest of some numbers is.
fn highest(values: &[f64]) -> usize {
    (0..values.len()).max_by(|a, b| values[*a].total_cmp(&values[*b])).unwrap_or(0)
}

/// The data with the last digits moved: a start that differs from the first, run 0, by rounding.
fn shaken(y: &Mat, run: usize) -> Mat {
    let part = |k: usize| 1.0 + ROUNDING * run as f64 * (k as f64).sin();
    Mat::from_fn(y.rows(), y.cols(), |i, j| y[(i, j)] * part(i * y.cols() + j))
}

/// The two dimensions with the smallest lengthscales; the first two where the kernel has none.
fn two_dimensions(model: &BayesianGplvm) -> Vec<usize> {
    let q = model.mean.value.cols();
    let relevance = model.kernel.relevance().unwrap_or(vec![1.0; q]);
    let mut order: Vec<usize> = (0..q).collect();
    order.sort_by(|a, b| relevance[*b].total_cmp(&relevance[*a]));
    order.truncate(2);
    order
}

/// The positions that are scored.
fn shown(model: &BayesianGplvm) -> Mat {
    model.mean.value.select_cols(&two_dimensions(model))
}

/// How many iterations, of how many runs where nodes are drawn, and why no more.
fn note(fits: &[Fitted<BayesianGplvm>], drawn: bool) -> String {
    let iterations = fits.iter().map(|f| f.iterations).sum::<usize>() / fits.len().max(1);
    let runs = if drawn { format!("{} of ", words::count(fits.len(), "run")) } else { String::new() };
    let end = match fits[0].stop_reason {
        StopReason::Gradient | StopReason::Value => "",
        StopReason::LineSearch => ", line search ended",
        _ => ", limit",
    };
    format!("{runs}{iterations} iterations{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use latentgp::data::oil_flow;
    use latentgp::expectation::Unscented;
    use latentgp::kernel::{Bias, Matern32, Mlp, Rbf};

    fn small() -> Data {
        let flow = oil_flow::simulate(40, 0);
        Data::new(flow.y, flow.regime, oil_flow::REGIMES.map(String::from).to_vec()).unwrap()
    }

    #[test]
    fn threads_do_not_change_the_bits() {
        let data = small();
        let context = Context::new(None, true, 3, 0, true);
        let how = PapersTraining { latent_dim: 2, inducing: 6, max_iterations: 8, ..Default::default() };
        let case = |by, twins, starts| Case {
            method: "m".into(),
            name: "k",
            kernel: Box::new(|seed| Ok(Box::new(Mlp::with(2, &[4, 3], Rbf::new(3), Bias::Layer, seed)?))),
            by,
            how: PapersTraining { adam_iterations: 5, ..how.clone() },
            twins,
            starts,
            theirs: None,
        };
        for case in
            [case(fixed(Unscented), 1, 3), case(fixed(Unscented), 2, 1), case(Method::MonteCarlo(4), 1, 1)]
        {
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let found = pool.install(|| data.fit(&case, None, &context)).unwrap();
                (found.row.ours, found.row.bound, found.models[0].mean.value.clone())
            };
            assert_eq!(run(1), run(3));
        }
    }

    #[test]
    fn many_draws_go_on_from_the_last_line_of_their_kernel() {
        let found = |method: &str, kernel: &str| Found {
            row: Row { method: method.into(), kernel: kernel.into(), ..Row::default() },
            models: Vec::new(),
        };
        let case = |name, samples| Case {
            method: String::new(),
            name,
            kernel: Box::new(|_| Ok(Box::new(Rbf::new(2)))),
            by: Method::MonteCarlo(samples),
            how: PapersTraining { adam_iterations: 45, ..Default::default() },
            twins: 1,
            starts: 1,
            theirs: None,
        };
        let mut context = Context::new(None, false, 1, 0, true);
        for long in [false, true] {
            context.long = long;
            let mut ends = Ends::default();
            for (name, samples) in [("a", 10), ("b", 10), ("a", 32), ("b", 32)] {
                let mut own = case(name, samples);
                assert!(ends.before(&mut own, &context).is_none() && own.how.adam_iterations == 45);
                ends.keep(&own, found(&samples.to_string(), name), &context);
            }
            for name in ["a", "b"] {
                let mut own = case(name, MANY);
                let before = ends.before(&mut own, &context).map(|f| (f.row.method, f.row.kernel));
                assert_eq!(before, (!long).then(|| ("32".to_string(), name.to_string())));
                assert_eq!(own.how.adam_iterations, if long { 45 } else { 5 });
                ends.keep(&own, found("200", name), &context);
            }
            assert!(ends.0.is_empty());
        }
    }

    #[test]
    fn lines_have_scores_and_the_runs_of_monte_carlo() {
        let data = small();
        let how = PapersTraining {
            latent_dim: 2,
            inducing: 6,
            max_iterations: 5,
            adam_iterations: 4,
            ..Default::default()
        };
        let context = Context::new(None, true, 3, 0, true);
        let case = |by| Case {
            method: "m".into(),
            name: "k",
            kernel: Box::new(|_| Ok(Box::new(Matern32::new(2)))),
            by,
            how: how.clone(),
            twins: 1,
            starts: 1,
            theirs: Some(Estimate::of(50.0)),
        };
        let found = data.fit(&case(fixed(Unscented)), None, &context).unwrap();
        assert_eq!((found.row.note.as_str(), found.row.ours.len()), ("5 iterations, limit", 1));
        assert!(found.row.difference(0).is_some() && found.row.bound.is_some());
        data.picture(&found, "x").unwrap();
        let twins = data.fit(&Case { twins: 3, ..case(fixed(Unscented)) }, None, &context).unwrap();
        assert!(twins.row.note.starts_with("the best bound of 3 fits"), "{}", twins.row.note);
        assert!(twins.row.bound >= found.row.bound);
        let starts = data.fit(&Case { starts: 2, ..case(fixed(Unscented)) }, None, &context).unwrap();
        assert_eq!(starts.row.note, "5 iterations, limit; the best of 2 starts");
        let drawn = data.fit(&case(Method::MonteCarlo(3)), None, &context).unwrap();
        assert_eq!((drawn.row.note.as_str(), drawn.models.len()), ("3 runs of 4 iterations, limit", 3));
        let anew = data.fit(&case(Method::MonteCarlo(5)), None, &context).unwrap();
        let more = data.fit(&case(Method::MonteCarlo(5)), Some(&drawn), &context).unwrap();
        assert_eq!(more.row.note, "3 runs of 4 iterations, limit; from the ends of m");
        assert!(more.row.bound > anew.row.bound, "{:?} beside {:?}", more.row.bound, anew.row.bound);
        let (pca, x) = data.pca(&how, None).unwrap();
        assert!((0.0..=100.0).contains(&pca.ours[0].mean) && pca.ours[0].std.is_some() && x.cols() == 2);
        assert!(skipped(&case(Method::MonteCarlo(3)), "why").ours.is_empty());
    }
}
