//! Latent spaces of handwritten digits: Table 2 and Figure 2 of the unscented GPLVM paper.

use super::context::Context;
use super::latent::{ACCURACY, Case, Data, Ends, MANY, Method, TRIAL, fixed, skipped};
use super::part::Part;
use super::table::{Estimate, Table};
use latentgp::Mat;
use latentgp::data::mat5;
use latentgp::expectation::{Analytic, GaussHermite, Unscented};
use latentgp::kernel::{Bias, Mlp, Rbf};
use latentgp::model::PapersTraining;
use latentgp_terminal::failure::{Failure, Outcome};

const FILE: &str = "usps_all.mat";
/// Images of each digit, in full and quickly.
const EACH: [usize; 2] = [500, 40];
/// Iterations of L-BFGS, in full and quickly.
const ITERATIONS: [usize; 2] = [5000, 500];
/// Steps of Adam with `--long`.
const STEPS: usize = 5000;
/// Draws and steps of Adam with rbf and with the network, of which lines of [`MANY`] that go on from others take a tenth.
const RBF_DRAWS: [(usize, usize); 3] = [(10, 2000), (32, 600), (MANY, 600)];
const NETWORK_DRAWS: [(usize, usize); 2] = [(4, 500), (MANY, 500)];
const PIXELS: usize = 256;
/// The digits in the order of the file.
const DIGITS: [usize; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0];
/// The network of the papers: two inputs, thirty hidden units, sixty features.
const WIDTHS: [usize; 2] = [30, 60];
/// Random weights that are tried.
const STARTS: usize = 4;
const NETWORK: &str = "network [2, 30, 60]";

/// Why it cannot run, where it cannot.
pub fn obstacle(context: &Context) -> Option<Failure> {
    match (&context.data, context.file(FILE)) {
        (_, Some(_)) => None,
        (None, None) => Some(Failure::usage(format!("usps needs the images: give `--data DIR` with {FILE}"))),
        (Some(folder), None) => {
            Some(Failure::data(format!("usps needs the images: {} has no {FILE}", folder.display())))
        }
    }
}

/// Runs the experiment.
pub fn run(context: &Context) -> Outcome<Part> {
    let quick = usize::from(context.quick);
    let path = match context.file(FILE) {
        Some(path) => path.display().to_string(),
        None => return Err(obstacle(context).unwrap_or(Failure::data("no images"))),
    };
    let data = read(&path, EACH[quick])?;
    let how = PapersTraining { noise: 0.001, max_iterations: ITERATIONS[quick], ..Default::default() };
    let full = !context.quick;
    let (pca, x) = data.pca(&how, Some(Estimate::with(35.6, 1.0)).filter(|_| full))?;
    let mut pictures = vec![data.components(&pca, &x, "pca")?];
    let (mut rows, mut interrupted) = (vec![pca], false);
    let mut ends = Ends::default();
    for (mut case, slug) in cases(&how) {
        case.theirs = case.theirs.filter(|_| full);
        let drawn = matches!(case.by, Method::MonteCarlo(_));
        if drawn && context.quick {
            rows.push(skipped(&case, "skipped"));
            continue;
        }
        if drawn {
            let all = context.steps.or(context.long.then_some(STEPS));
            case.how.adam_iterations = all.unwrap_or(case.how.adam_iterations);
        }
        let before = ends.before(&mut case, context);
        let found = match data.fit(&case, before.as_ref(), context) {
            Err(failure) if failure.is_interruption() => {
                rows.push(skipped(&case, "interrupted"));
                interrupted = true;
                continue;
            }
            found => found?,
        };
        if let Some(slug) = slug {
            pictures.push(data.picture(&found, slug)?);
        }
        rows.push(found.row.clone());
        ends.keep(&case, found, context);
    }
    Ok(Part {
        name: "usps",
        title: "USPS digits: Table 2 and Figure 2".into(),
        about: vec![format!(
            "The first {} images of each digit ({} × {PIXELS}), pixels divided by 256; 20 inducing inputs, rbf with five \
             latent dimensions and the network kernel with two. L-BFGS with at most {} iterations, Adam with rate \
             0.01 on new draws for Monte Carlo. 1-NN accuracy on two dimensions, mean ± sd over five folds, those of \
             all runs for Monte Carlo.",
            EACH[quick],
            10 * EACH[quick],
            how.max_iterations,
        )],
        tables: vec![Table {
            slug: "",
            title: "Table 2: nearest neighbours on two latent dimensions".into(),
            measures: vec![ACCURACY],
            rows,
        }],
        pictures,
        interrupted,
        notes: notes(context),
        ..Part::default()
    })
}

fn notes(context: &Context) -> Vec<String> {
    let mut notes = vec![format!(
        "Network weights start at random, from other draws than the papers', and the start matters: after {TRIAL} \
         iterations bounds are thousands apart, and they stay so. Of {STARTS} starts the one with the best bound after \
         {TRIAL} iterations goes on; ± is over folds, not over starts.",
    )];
    if context.quick {
        notes.push(format!(
            "Quick: {} images of each digit and {} iterations, so no paper numbers beside; Monte Carlo was skipped.",
            EACH[1], ITERATIONS[1]
        ));
    } else {
        notes.push(
            "Two of the five rbf dimensions, which the metric looks at, separate ten digits badly, whatever the rule. An \
             independent program by the same protocol has 36.4 % with the unscented rule and 35.6 % with the closed \
             form, at bounds of −89034 and −89016, where its line search ended; ours go on from there."
                .into(),
        );
    }
    if !(context.quick || context.long) {
        notes.push(format!(
            "Lines of {MANY} nodes go on where those of fewer nodes ended, run by run, for a tenth as many steps."
        ));
    }
    if !(context.quick || context.long || context.steps.is_some()) {
        notes.push(format!(
            "Monte Carlo with the {STEPS} steps of the released code takes hours: lines here have fewer and are \
             far from their optimum when they stop, so that what they score is no merit or fault of the rule. `--long` \
             runs them all in full.",
        ));
    }
    notes
}

/// The lines of the table, and the name of a figure where there is one.
fn cases(how: &PapersTraining) -> Vec<(Case, Option<&'static str>)> {
    let rbf = |method: &str, by, theirs| Case {
        method: method.into(),
        name: "rbf",
        kernel: Box::new(|_| Ok(Box::new(Rbf::new(5)))),
        by,
        how: PapersTraining { latent_dim: 5, ..how.clone() },
        twins: 1,
        starts: 1,
        theirs,
    };
    let network = |method: &str, by, theirs| Case {
        method: method.into(),
        name: NETWORK,
        kernel: Box::new(|seed| Ok(Box::new(Mlp::with(2, &WIDTHS, Rbf::new(WIDTHS[1]), Bias::Layer, seed)?))),
        by,
        how: PapersTraining { latent_dim: 2, ..how.clone() },
        twins: 1,
        starts: STARTS,
        theirs,
    };
    let known = |mean, std| Some(Estimate::with(mean, std));
    let grid = || fixed(GaussHermite::new(2));
    let mut all = vec![
        (network("unscented 4", fixed(Unscented), known(68.8, 1.3)), Some("unscented-network")),
        (rbf("unscented 10", fixed(Unscented), known(39.5, 1.6)), Some("unscented-rbf")),
        (rbf("analytic", fixed(Analytic), known(36.7, 1.4)), Some("analytic-rbf")),
        (network("Gauss-Hermite 4", grid(), None), None),
        (rbf("Gauss-Hermite 32", grid(), None), None),
    ];
    let drawn = |mut case: Case, steps| {
        case.how.adam_iterations = steps;
        (case, None)
    };
    for (samples, steps) in RBF_DRAWS {
        let name = format!("Monte Carlo {samples}");
        all.push(drawn(rbf(&name, Method::MonteCarlo(samples), None), steps));
    }
    for (samples, steps) in NETWORK_DRAWS {
        let name = format!("Monte Carlo {samples}");
        all.push(drawn(network(&name, Method::MonteCarlo(samples), None), steps));
    }
    all
}

fn read(path: &str, each: usize) -> Outcome<Data> {
    let (shape, pixels) = mat5::read_nd(&format!("{path}:data")).map_err(Failure::data)?;
    let &[PIXELS, images, 10] = &shape[..] else {
        return Err(Failure::data(format!(
            "{path}: expected `data` of {PIXELS} × images × 10, found {shape:?}"
        )));
    };
    if images < each {
        return Err(Failure::data(format!("{path}: expected {each} images of each digit, found {images}")));
    }
    let y = Mat::from_fn(10 * each, PIXELS, |row, p| {
        pixels[p + PIXELS * (row % each + images * (row / each))] / 256.0
    });
    let labels = (0..10 * each).map(|row| DIGITS[row / each]).collect();
    Data::new(y, labels, (0..10).map(|d| d.to_string()).collect())
}
