//! Latent spaces of oil flow: Table 1 and Figure 2 of the unscented GPLVM paper.

use super::alone;
use super::context::Context;
use super::latent::{ACCURACY, Case, Data, Ends, Found, MANY, Method, fixed, skipped};
use super::part::Part;
use super::table::{Estimate, Table};
use latentgp::data::{oil_flow, table};
use latentgp::expectation::{Analytic, GaussHermite, Unscented};
use latentgp::kernel::{Kernel, Matern32, Rbf};
use latentgp::model::PapersTraining;
use latentgp_terminal::failure::{Failure, Outcome};

const FILE: &str = "three_phase_oil_flow.npz";
/// Rows of the released file, and of the simulation in its place.
const ROWS: usize = 100;
/// Draws, and the papers' accuracies with Matérn 3/2 and with rbf.
const DRAWS: [(usize, f64, f64); 3] = [(10, 85.6, 98.2), (32, 87.9, 98.0), (MANY, 95.4, 97.0)];
/// Steps of Adam.
const STEPS: usize = 5000;
/// Fits of unscented Matérn 3/2, which ends in different places where starts differ by rounding.
const TWINS: usize = 5;
/// Steps of all of them, quickly.
const QUICK_STEPS: usize = 1000;

/// A kernel and how the table calls it.
type Named = (&'static str, fn(usize) -> Box<dyn Kernel>);
const RBF: Named = ("rbf", |q| Box::new(Rbf::new(q)));
const MATERN: Named = ("Matérn 3/2", |q| Box::new(Matern32::new(q)));

/// Runs the experiment.
pub fn run(context: &Context) -> Outcome<Part> {
    let file = context.file(FILE);
    let real = file.is_some();
    let data = match file {
        Some(path) => read(&path.display().to_string())?,
        None => simulated(context.seed)?,
    };
    let how = PapersTraining::default();
    let (pca, x) = data.pca(&how, Some(Estimate::with(79.0, 6.5)).filter(|_| real))?;
    let mut pictures = vec![data.components(&pca, &x, "pca")?];
    let (mut rows, mut wide, mut interrupted) = (vec![pca], Vec::new(), false);
    let mut cases = cases(&how);
    let steps = context.steps.unwrap_or(if context.quick { QUICK_STEPS } else { STEPS });
    for (case, _) in &mut cases {
        case.theirs = case.theirs.filter(|_| real);
        case.how.adam_iterations = steps;
    }
    let drawn = |case: &Case| matches!(case.by, Method::MonteCarlo(_));
    // What is drawn has its runs side by side; the other lines go beside each other.
    let mut fixed: Vec<usize> = (0..cases.len()).filter(|i| !drawn(&cases[*i].0)).collect();
    fixed.sort_by_key(|i| std::cmp::Reverse(cases[*i].0.twins));
    let found = alone::each(fixed.len(), |i| data.fit(&cases[fixed[i]].0, None, context));
    let mut found: Vec<Option<Outcome<Found>>> = found.into_iter().map(Some).collect();
    let mut ends = Ends::default();
    for (i, (case, slug)) in cases.iter_mut().enumerate() {
        if context.quick && matches!(case.by, Method::MonteCarlo(MANY)) {
            rows.push(skipped(case, "skipped by --quick"));
            continue;
        }
        let early = fixed.iter().position(|f| *f == i).and_then(|k| found[k].take());
        let before = ends.before(case, context);
        let found = match early.unwrap_or_else(|| data.fit(case, before.as_ref(), context)) {
            Err(failure) if failure.is_interruption() => {
                let to = if case.how.latent_dim == how.latent_dim { &mut rows } else { &mut wide };
                to.push(skipped(case, "interrupted"));
                interrupted = true;
                continue;
            }
            found => found?,
        };
        if let Some(slug) = slug {
            pictures.push(data.picture(&found, slug)?);
        }
        let to = if case.how.latent_dim == how.latent_dim { &mut rows } else { &mut wide };
        to.push(found.row.clone());
        ends.keep(case, found, context);
    }
    let table = |slug, title: &str, rows| Table { slug, title: title.into(), measures: vec![ACCURACY], rows };
    Ok(Part {
        name: "oil-flow",
        title: "Oil flow: Table 1 and Figure 2".into(),
        about: about(real, steps, !(context.long || context.quick)),
        tables: vec![
            table("", "Table 1: nearest neighbours on two of five latent dimensions", rows),
            table(
                "wide",
                "Beyond the paper: ten latent dimensions, for which Gauss-Hermite has 1024 nodes",
                wide,
            ),
        ],
        pictures,
        interrupted,
        notes: notes(real, context.quick),
        ..Part::default()
    })
}

/// The lines of the table, and the name of a figure where there is one.
fn cases(how: &PapersTraining) -> Vec<(Case, Option<&'static str>)> {
    let case = |method: &str, (name, kernel): Named, by, q: usize, theirs| Case {
        method: method.into(),
        name,
        kernel: Box::new(move |_| Ok(kernel(q))),
        by,
        how: PapersTraining { latent_dim: q, ..how.clone() },
        twins: 1,
        starts: 1,
        theirs,
    };
    let known = |mean, std| Some(Estimate::with(mean, std));
    let grid = || fixed(GaussHermite::new(2));
    let mut all = vec![
        (case("analytic", RBF, fixed(Analytic), 5, known(98.0, 2.7)), Some("analytic-rbf")),
        (case("Gauss-Hermite 32", MATERN, grid(), 5, known(95.0, 6.1)), Some("gauss-hermite-matern32")),
        (case("Gauss-Hermite 32", RBF, grid(), 5, known(98.0, 2.7)), None),
        (
            Case { twins: TWINS, ..case("unscented 10", MATERN, fixed(Unscented), 5, known(100.0, 0.0)) },
            Some("unscented-matern32"),
        ),
        (case("unscented 10", RBF, fixed(Unscented), 5, known(98.0, 2.7)), Some("unscented-rbf")),
    ];
    for (samples, matern, rbf) in DRAWS {
        for (kernel, mean) in [(MATERN, matern), (RBF, rbf)] {
            let (method, theirs) = (format!("Monte Carlo {samples}"), Some(Estimate::of(mean)));
            all.push((case(&method, kernel, Method::MonteCarlo(samples), 5, theirs), None));
        }
    }
    all.extend([MATERN, RBF].map(|k| (case("unscented 20", k, fixed(Unscented), 10, None), None)));
    all
}

fn read(path: &str) -> Outcome<Data> {
    let array = |key: &str| {
        let read = table::Table::read(&format!("{path}:{key}")).and_then(|t| t.to_mat());
        read.map_err(Failure::data)
    };
    let (y, labels) = (array("Y")?, array("labels")?);
    if labels.len() != y.rows() || labels.as_slice().iter().any(|l| ![0.0, 1.0, 2.0].contains(l)) {
        return Err(Failure::data(format!("{path}: expected a label 0, 1 or 2 for each row of `Y`")));
    }
    let least = PapersTraining::default().inducing;
    if y.rows() < least {
        return Err(Failure::data(format!(
            "{path}: expected at least {least} rows of `Y`, found {}",
            y.rows()
        )));
    }
    let labels = labels.as_slice().iter().map(|l| *l as usize).collect();
    Data::new(y, labels, ["0", "1", "2"].map(|n| format!("class {n}")).to_vec())
}

fn simulated(seed: u64) -> Outcome<Data> {
    let flow = oil_flow::simulate(ROWS, seed);
    let names = oil_flow::REGIMES.map(String::from).to_vec();
    Data::new(flow.y, flow.regime, names)
}

fn about(real: bool, steps: usize, goes_on: bool) -> Vec<String> {
    let data = match real {
        true => "The released 100 × 12 measurements.",
        false => "100 simulated measurements: numbers beside the papers' need `--data` with their file.",
    };
    let released = match steps {
        STEPS => String::new(),
        _ => format!(" (the released code has {STEPS})"),
    };
    let many = match goes_on {
        false => String::new(),
        true => format!(
            " Lines of {MANY} nodes go on where those of 32 ended, run by run, for a tenth as many steps, so that the \
             table is done within two minutes; with `--long` they take all their steps from the papers' start."
        ),
    };
    vec![
        data.into(),
        format!(
            "Five latent dimensions, 20 inducing inputs, the papers' start and transforms (`PapersTraining`); L-BFGS of \
             memory 10 with at most 5000 iterations. Monte Carlo draws new nodes at every step, {steps} steps of Adam \
             with rate 0.01{released}.{many} 1-NN accuracy on the two dimensions with the smallest lengthscales, mean ± sd over five folds, \
             those of all runs for Monte Carlo."
        ),
    ]
}

fn notes(real: bool, quick: bool) -> Vec<String> {
    let mut all = Vec::new();
    if real {
        all.push(
            "Lines that reach the limit of iterations end elsewhere where starts differ in the thirteenth digit. The \
             line of unscented Matérn 3/2 is the best bound of five such starts; with rbf such fits end at bounds near \
             155 with 98 %, as those of an independent program by the same protocol do, or near 233 with 100 %."
                .into(),
        );
        all.push(
            "Monte Carlo is still far from its optimum when it stops, as the bounds show, and its accuracy depends on \
             the number of steps as much as on that of nodes."
                .into(),
        );
    }
    if quick {
        all.push(format!("Quick: fewer Monte Carlo runs and steps; {MANY} nodes were skipped."));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_told_are_those_taken() {
        assert!(about(true, STEPS, false)[1].contains("step, 5000 steps of Adam with rate 0.01. 1-NN"));
        assert!(
            about(true, STEPS, true)[1].contains("rate 0.01. Lines of 200 nodes go on where those of 32")
        );
        assert!(
            about(true, 7, false)[1]
                .contains("step, 7 steps of Adam with rate 0.01 (the released code has 5000).")
        );
    }
}
