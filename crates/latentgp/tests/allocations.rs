//! The loop of an optimiser allocates nothing: after the first steps, all that an evidence and its gradient need is in buffers
//! that are used again.

use latentgp::kernel::{Matern32, Rbf};
use latentgp::likelihood::{Link, Observations};
use latentgp::model::{
    GplvmTraining, Laplace, MeanKind, Model, PapersTraining, Regression, RegressionOptions, SparseOptions,
    SparseRegression, SpgpDrTraining, Svgp, Training, VdmgpTraining, WeightPrior,
};
use latentgp::optim::{Adam, Lbfgs, Objective};
use latentgp::{Mat, expectation, kernel, param};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

struct Counting;
thread_local! {
    /// The allocations of this thread.
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; they are only counted as well.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of `work`.
fn allocations(work: impl FnOnce()) -> usize {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

/// Calls `work` with the place where a model is, and with its negative evidence as an optimiser asks for it.
fn with_evidence(mut model: impl Model, work: impl FnOnce(&[f64], &mut Objective<'_>)) {
    let (u, mut bar) = (param::flatten(&model), vec![0.0; param::count(&model)]);
    let mut step = 0;
    work(&u, &mut |u, grad| {
        param::unflatten(&mut model, u);
        step += 1;
        model.renew(step);
        let value = model.varying_evidence(Some(&mut bar))? + param::log_prior(&model, Some(&mut bar));
        param::chain(&model, &bar, grad);
        grad.iter_mut().for_each(|g| *g = -*g);
        Ok(-value)
    });
}

/// Calls `work` as [`with_evidence`] does, with the bound of a Bayesian GPLVM at its start.
fn with_bound(
    of: &str,
    by: &str,
    [n, d, q, m]: [usize; 4],
    noise: f64,
    work: impl FnOnce(&[f64], &mut Objective<'_>),
) {
    let how = PapersTraining { latent_dim: q, inducing: m, noise, ..Default::default() };
    let (kernel, rule) = (kernel::parse(of, q).unwrap(), expectation::parse(by).unwrap());
    with_evidence(how.start(&some(n, d), &*kernel, rule).unwrap(), work);
}

fn some(rows: usize, cols: usize) -> Mat {
    Mat::from_fn(rows, cols, |i, j| ((7 * i + 13 * j) as f64 * 0.37).sin())
}

/// Y with missing cells: about every other column lacks rows that others have.
fn with_holes(mut y: Mat) -> Mat {
    for (i, j) in (0..y.rows()).flat_map(|i| (0..y.cols()).map(move |j| (i, j))).collect::<Vec<_>>() {
        if j % 2 == 1 && i % (j + 5) == 0 {
            y[(i, j)] = f64::NAN;
        }
    }
    y
}

/// Evaluates some times, and then once more without a single allocation.
fn check(what: &str, u: &[f64], evidence: &mut Objective<'_>) {
    let mut grad = vec![0.0; u.len()];
    let mut evaluate = || assert!(evidence(u, &mut grad).unwrap().is_finite());
    (0..3).for_each(|_| evaluate());
    assert_eq!(allocations(&mut evaluate), 0, "{what}");
}

/// One test at a time: all use the shared pool of buffers.
static ALONE: Mutex<()> = Mutex::new(());

fn on_one_thread(work: impl FnOnce() + Send) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(work);
}

/// Kernels and rules, by every way that Ψ-statistics are computed, and so little noise that those which can whiten Ψ2 block by
/// block do so.
const WAYS: [(&str, &str, f64); 15] = [
    ("rbf", "analytic", 1e-7),
    ("rbf", "auto", 1e-7),
    ("rbf + linear", "analytic", 1.0),
    ("rbf(dims=[0, 1]) * linear(dims=[2]) + white", "analytic", 1.0),
    ("matern32", "unscented", 1e-7),
    ("matern32(ard=false) + rational_quadratic", "scaled_unscented", 1e-7),
    ("matern52", "monte_carlo(samples=8)", 1e-3),
    ("matern52", "monte_carlo(samples=200, fresh=true)", 1e-3),
    ("rbf", "gauss_hermite(points=2)", 1e-3),
    ("matern32", "cubature5", 1e-3),
    ("matern12 * linear", "quasi_monte_carlo(samples=16)", 1.0),
    ("periodic + linear", "unscented", 1.0),
    ("matern32 * cosine", "minimal_skew", 1.0),
    ("mlp(hidden=[20, 30])", "unscented", 1e-3),
    ("spectral_mixture * arc_sine", "unscented", 1.0),
];

#[test]
fn a_step_allocates_nothing() {
    const MANY_ROWS: [usize; 4] = [3000, 12, 10, 50];
    const SIZES: [[usize; 4]; 2] = [[100, 12, 5, 20], [300, 256, 4, 70]];
    on_one_thread(|| {
        for (of, by, little) in WAYS {
            let sizes = match (of, by) {
                ("rbf", "analytic") | ("matern32", "unscented") => [SIZES[0], SIZES[1], MANY_ROWS].to_vec(),
                _ => SIZES.to_vec(),
            };
            for (size, noise) in sizes.into_iter().flat_map(|size| [(size, 1e6), (size, little)]) {
                with_bound(of, by, size, noise, |u, bound| {
                    check(&format!("{of} {by} {size:?}, noise {noise}"), u, bound);
                });
            }
        }
        for std in [None, Some(Mat::filled(500, 3, 0.1))] {
            let what = format!("sparse regression, uncertain inputs: {}", std.is_some());
            let (x, y, options) = (some(500, 3), some(500, 2), SparseOptions::default());
            let model = SparseRegression::new(x, std, y, Matern32::new(3), &options).unwrap();
            with_evidence(model, |u, evidence| check(&what, u, evidence));
        }
        with_bound("matern32", "unscented", SIZES[0], 0.1, |u, bound| {
            let (slow, fast) = (Adam::default(), Lbfgs::default());
            let mut adam = slow.start(u, bound).unwrap();
            let mut lbfgs = fast.start(u, bound).unwrap();
            let mut step = || {
                assert_eq!(slow.step(&mut adam, bound).unwrap(), None);
                assert_eq!(fast.step(&mut lbfgs, bound).unwrap(), None);
            };
            (0..3).for_each(|_| step());
            assert_eq!(allocations(|| (0..40).for_each(|_| step())), 0);
        });
    });
}

/// Checks a model at its start.
fn check_model(what: &str, model: impl Model) {
    with_evidence(model, |u, evidence| check(what, u, evidence));
}

#[test]
fn a_step_of_an_exact_process_allocates_nothing() {
    const KERNELS: [&str; 4] = [
        "rbf",
        "matern32 + linear * periodic + white",
        "mlp(hidden=[7, 5])",
        "polynomial + cosine(dims=[1])",
    ];
    on_one_thread(|| {
        for n in [100, 600] {
            for of in KERNELS {
                let model = Regression::new(some(n, 3), some(n, 2), kernel::parse(of, 3).unwrap()).unwrap();
                check_model(&format!("{n} rows, {of}"), model);
            }
            for mean in [MeanKind::Constant, MeanKind::Linear] {
                let options = RegressionOptions { mean, ..Default::default() };
                let model = Regression::with(some(n, 3), some(n, 2), Rbf::new(3), &options).unwrap();
                check_model(&format!("{n} rows, {mean:?}"), model);
            }
            let model = Regression::new(some(n, 3), with_holes(some(n, 4)), Rbf::new(3)).unwrap();
            check_model(&format!("{n} rows, cells missing"), model);
            for y in [some(n, 5), some(n, n + 20), with_holes(some(n, 5))] {
                let what = format!("GPLVM of {n} × {}", y.cols());
                check_model(&what, GplvmTraining::default().start(&y, &Matern32::new(2), 0).unwrap());
            }
        }
        check_model("1400 rows", Regression::new(some(1400, 3), some(1400, 2), Rbf::new(3)).unwrap());
    });
}

#[test]
fn a_step_with_a_projection_allocates_nothing() {
    let priors =
        || [WeightPrior::TypeII, WeightPrior::fixed(&[1.0; 3]), WeightPrior::Gamma { shape: 1.5, rate: 0.3 }];
    on_one_thread(|| {
        for (n, m, uncertain) in [(100, 20, false), (100, 20, true), (2100, 20, false), (400, 300, false)] {
            let (x, y) = (some(n, 6), some(n, 2));
            let std = uncertain.then(|| Mat::filled(n, 6, 0.1));
            for of in ["rbf", "matern32 + linear"] {
                let (what, kernel) = (format!("{of} {n} {m} {uncertain}"), kernel::parse(of, 3).unwrap());
                let how = SpgpDrTraining { latent_dim: 3, inducing: m, ..Default::default() };
                let model = how.start_uncertain(&x, std.as_ref(), &y, &*kernel, 0).unwrap();
                check_model(&format!("SPGP-DR, {what}"), model);
                for prior in priors() {
                    let how = VdmgpTraining { latent_dim: 3, inducing: m, prior, ..Default::default() };
                    let model = how.start_uncertain(&x, std.as_ref(), &y, &*kernel, 0).unwrap();
                    check_model(&format!("VDMGP, {what}"), model);
                }
            }
        }
    });
}

#[test]
fn a_step_with_cells_missing_allocates_nothing() {
    // Of 80 columns 40 lack rows of their own.
    const SIZES: [[usize; 4]; 2] = [[100, 12, 5, 20], [300, 80, 4, 40]];
    on_one_thread(|| {
        for (of, by, little) in WAYS {
            for ([n, d, q, m], noise) in SIZES.into_iter().flat_map(|size| [(size, 0.1), (size, little)]) {
                let (kernel, rule) = (kernel::parse(of, q).unwrap(), expectation::parse(by).unwrap());
                let how =
                    Training { latent_dim: q, inducing: m, noise, expectation: rule, ..Default::default() };
                let model = how.start(&with_holes(some(n, d)), &*kernel, 0).unwrap();
                check_model(&format!("{of} {by} {n} × {d}, cells missing, noise {noise}"), model);
            }
        }
        let (x, y, options) = (some(500, 3), with_holes(some(500, 4)), SparseOptions::default());
        check_model(
            "sparse regression, cells missing",
            SparseRegression::new(x, None, y, Matern32::new(3), &options).unwrap(),
        );
    });
}

#[test]
fn a_step_of_many_columns_or_inducing_inputs_allocates_nothing() {
    const MANY: [(&str, &str, [usize; 4]); 11] = [
        ("matern32", "unscented", [100, 40, 30, 20]),
        ("matern32 * linear", "unscented", [100, 40, 30, 20]),
        ("matern52", "monte_carlo(samples=8)", [100, 40, 30, 20]),
        ("matern32", "cubature5", [100, 40, 20, 20]),
        ("rbf + linear", "analytic", [100, 30, 11, 20]),
        ("rbf", "analytic", [300, 12, 3, 300]),
        ("rbf + linear", "analytic", [300, 12, 3, 300]),
        ("matern32", "unscented", [300, 12, 3, 300]),
        ("matern32 * linear", "scaled_unscented", [300, 300, 3, 300]),
        ("mlp(hidden=[20, 30])", "unscented", [300, 12, 3, 300]),
        ("matern52", "monte_carlo(samples=8)", [300, 12, 3, 300]),
    ];
    on_one_thread(|| {
        for ((of, by, size), noise) in MANY.into_iter().flat_map(|way| [(way, 1e3), (way, 1e-3)]) {
            with_bound(of, by, size, noise, |u, bound| {
                check(&format!("{of} {by} {size:?}, noise {noise}"), u, bound);
            });
        }
        let options = SparseOptions { inducing: 400, ..Default::default() };
        let model = SparseRegression::new(some(900, 3), None, some(900, 2), Matern32::new(3), &options);
        check_model("sparse regression, 400 inducing inputs", model.unwrap());
    });
}

#[test]
fn a_step_with_a_likelihood_allocates_nothing() {
    on_one_thread(|| {
        for n in [100, 400] {
            let x = some(n, 2);
            let two: Vec<usize> = (0..n).map(|i| usize::from(x[(i, 0)] > 0.1)).collect();
            let three: Vec<usize> = (0..n).map(|i| i * 7 % 3).collect();
            let counts: Vec<f64> = (0..n).map(|i| (1.0 + x[(i, 0)]).exp().round()).collect();
            let all = [
                Observations::bernoulli(&two, Link::Logit),
                Observations::bernoulli(&two, Link::Probit),
                Observations::poisson(&counts),
                Observations::categorical(&three, 3),
            ];
            for observations in all.map(Result::unwrap) {
                let what = format!("{} of {n}", observations.expression());
                let model = Laplace::new(x.clone(), observations.clone(), Rbf::new(2)).unwrap();
                check_model(&format!("Laplace, {what}"), model);
                let model = Svgp::new(x.clone(), observations, Matern32::new(2), 20, 0).unwrap();
                check_model(&format!("SVGP, {what}"), model);
            }
            let robust = Observations::from_expression("student_t", &x.select_cols(&[0]), 0).unwrap();
            let model = Svgp::new(x.clone(), robust, Matern32::new(2), 20, 0).unwrap();
            check_model(&format!("SVGP, student_t of {n}"), model);
        }
    });
}
