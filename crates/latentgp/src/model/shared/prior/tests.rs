use super::*;
use crate::check;
use crate::data::Scaling;
use crate::expectation::Unscented;
use crate::kernel::{Kernel, KernelGrad, Matern32, Rbf};
use crate::linalg::{self, Cholesky};
use crate::model::{BayesianGplvm, Outputs};
use crate::param::{self, Param};

const GRADIENT: f64 = 1e-7;
const NAN: f64 = f64::NAN;

fn days() -> Vec<f64> {
    vec![3.0, 1.5, NAN, 8.0, 2.25, NAN, 5.0]
}

fn q(n: usize, dim: usize) -> Gaussians {
    let mean = Mat::from_fn(n, dim, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin());
    let var = Mat::from_fn(n, dim, |i, j| 0.3 + 0.25 * (1.7 * i as f64 - 0.4 * j as f64).cos());
    Gaussians::new(mean, var).unwrap()
}

/// Every prior of the list and some variants, bound to seven rows and three columns.
fn all() -> Vec<Box<dyn InputPrior>> {
    let mut all: Vec<Box<dyn InputPrior>> = names()
        .iter()
        .map(|entry| entry.example)
        .chain(["times(column=\"capture day, h\", std=0.7, dim=2, learn=true)"])
        .map(|expression| {
            let prior = parse(expression).unwrap();
            let columns = vec![days(); prior.columns().len()];
            prior.bind(7, 3, &columns).unwrap()
        })
        .collect();
    let own = Gaussians { mean: q(7, 3).var, var: Mat::from_fn(7, 3, |i, j| 0.2 + 0.1 * (i + j) as f64) };
    all.push(Box::new(Normal::new(own).unwrap()));
    all
}

#[test]
fn priors_obey_the_laws() {
    for prior in all() {
        check::prior(&*prior, &q(7, 3), GRADIENT).unwrap_or_else(|e| panic!("{prior}: {e}"));
    }
}

/// ∫ q ln(q/p) of one cell by the trapezium rule, which is exact to rounding for such integrands.
fn kl_by_quadrature(mean: f64, var: f64, m: f64, p: f64) -> f64 {
    const STEPS: usize = 4000;
    let log = |x: f64, m: f64, v: f64| -0.5 * ((x - m).powi(2) / v + (std::f64::consts::TAU * v).ln());
    let width = 24.0 * var.sqrt() / STEPS as f64;
    let at = |i: usize| mean + width * (i as f64 - 0.5 * STEPS as f64);
    (0..=STEPS)
        .map(|i| width * log(at(i), mean, var).exp() * (log(at(i), mean, var) - log(at(i), m, p)))
        .sum()
}

#[test]
fn the_kl_is_the_integral_it_stands_for() {
    let q = q(7, 3);
    for prior in all() {
        let of = prior.marginals();
        let cell = |i: usize| {
            let at = |x: &Mat| x.as_slice()[i];
            kl_by_quadrature(at(&q.mean), at(&q.var), at(&of.mean), at(&of.var))
        };
        let slow: f64 = (0..q.mean.len()).map(cell).sum();
        let fast = prior.kl(&q.mean, &q.var, None).unwrap();
        assert!((fast - slow).abs() < 1e-10 * slow, "{prior}: {fast} against {slow}");
        assert!(prior.kl(&of.mean, &of.var, None).unwrap().abs() < 1e-13, "{prior}");
    }
}

#[test]
fn priors_are_printed_stored_and_restored() {
    for prior in all() {
        let text = prior.expression();
        let read = parse(&text).unwrap();
        assert_eq!((read.expression(), read.columns()), (text, prior.columns()));
        assert_eq!(param::values(&*read), param::values(&*prior));
        let mut arrays = prior.arrays();
        let mut take = |name: &str, rows: usize, cols: usize| {
            let at = arrays.iter().position(|(own, _)| *own == name).expect("it was stored");
            let (_, found) = arrays.swap_remove(at);
            assert_eq!((found.rows(), found.cols()), (rows, cols), "{name}");
            Ok(found)
        };
        let back = read.restore(7, 3, &mut take).unwrap();
        assert!(arrays.is_empty());
        assert_eq!((back.marginals(), back.sizes()), (prior.marginals(), (7, 3)));
        assert_eq!(back.kl(&q(7, 3).mean, &q(7, 3).var, None), prior.kl(&q(7, 3).mean, &q(7, 3).var, None));
        let some = prior.select_rows(&[4, 2]);
        assert_eq!(some.marginals(), prior.marginals().select_rows(&[4, 2]));
    }
    let mut take =
        |name: &str, rows: usize, cols: usize| Ok(Mat::filled(rows, cols, -f64::from(name == "var")));
    assert!(parse("normal").unwrap().restore(2, 2, &mut take).is_err());
    let mut take = |_: &str, rows: usize, cols: usize| Ok(Mat::zeros(rows, cols));
    assert!(parse("times(column=t, std=1)").unwrap().restore(2, 2, &mut take).is_err());
}

#[test]
fn mistakes_are_named() {
    for (text, part) in [
        ("norml", "no prior is called `norml`; known are normal, times; did you mean `normal`?"),
        ("normal(std=1)", "it takes none"),
        ("times(column=day)", "`times` needs `std`, as in `times(column=day, std=0.1)`"),
        ("times(std=1)", "`times` needs `column`"),
        ("times(column=day, std=0)", "expected a number above 0, found 0"),
        ("times(column=day, std=wide)", "`std` must be a number above 0, not `wide`"),
        ("times(column=day, std=1, dim=-1)", "`dim` must be a whole number from 0"),
        ("times(column=day, std=1, dims=1)", "it takes column, std, dim, learn"),
        ("times(column=day, std=1, std=2)", "`std` is given twice"),
        ("times(column=, std=1)", "`column` must be a word or a text in quotes"),
        ("times(column=day, std=1", "not closed"),
        ("times(day, std=1)", "`day` is not of the form name=value"),
    ] {
        let message = parse(text).unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
    let times = parse("times(column=day, std=1, dim=3)").unwrap();
    for (q, columns, part) in [
        (4, vec![], "columns for the prior: expected 1, found 0"),
        (4, vec![vec![1.0; 6]], "column `day` for the prior: expected 7 rows, found 6"),
        (3, vec![days()], "`dim` of the prior `times`: expected a latent column from 0 to 2, found 3"),
        (4, vec![vec![NAN; 7]], "the column `day`: no time is observed"),
        (4, vec![vec![f64::INFINITY; 7]], "a time in the column `day` is not finite"),
        (4, vec![vec![0.0, 1e200, 0.0, 0.0, 0.0, 0.0, 0.0]], "a number on the scale of the times"),
    ] {
        let message = times.bind(7, q, &columns).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
    assert!(Times::new("a\"b", 1.0).is_err());
}

#[test]
fn times_are_standardised_and_new_rows_have_theirs() {
    let prior =
        parse("times(column=day, std=0.5, dim=1)").unwrap().bind(4, 2, &[vec![10.0, 14.0, NAN, 12.0]]);
    let prior = prior.unwrap();
    let of = prior.marginals();
    let scale = (8.0f64 / 3.0).sqrt();
    assert!(of.mean.col(1).iter().zip([-2.0, 2.0, 0.0, 0.0]).all(|(a, b)| (a - b / scale).abs() < 1e-14));
    assert!((of.var[(0, 1)] - (0.5 / scale).powi(2)).abs() < 1e-15 && of.var[(2, 1)] == 1.0);
    assert_eq!((of.mean.col(0), of.var.col(0)), (vec![0.0; 4], vec![1.0; 4]));
    let new = prior.new_rows(2, &[vec![14.0, NAN]]).unwrap();
    assert_eq!((new.mean.row(0), new.var.row(0)), (of.mean.row(1), of.var.row(1)));
    assert_eq!((new.mean.row(1), new.var.row(1)), (&[0.0, 0.0][..], &[1.0, 1.0][..]));
    assert_eq!(prior.new_rows(3, &[]).unwrap(), Normal::standard(3, 2).marginals());
    assert!(prior.new_rows(3, &[vec![1.0]]).is_err());
    // One time for all has no spread to divide by.
    let equal = parse("times(column=day, std=0.5)").unwrap().bind(2, 1, &[vec![7.0, 7.0]]).unwrap();
    assert_eq!(equal.marginals().mean.as_slice(), [0.0, 0.0]);
}

#[test]
fn the_start_is_at_the_times_and_on_their_line_where_one_is_missing() {
    let mut times: Vec<f64> = (0..9).map(|i| 3.0 + 2.0 * i as f64).collect();
    let whole = parse("times(column=t, std=0.1)").unwrap().bind(9, 2, &[times.clone()]).unwrap();
    times[4] = NAN;
    let holed = parse("times(column=t, std=0.1)").unwrap().bind(9, 2, &[times]).unwrap();
    let start =
        || (Mat::from_fn(9, 2, |i, k| if k == 0 { 0.3 } else { 1.0 - i as f64 }), Mat::filled(9, 2, 0.1));
    for (prior, missing) in [(whole, false), (holed, true)] {
        let (mut mean, mut var) = start();
        prior.start(&mut mean, &mut var).unwrap();
        let of = prior.marginals();
        for i in (0..9).filter(|i| !(missing && *i == 4)) {
            assert_eq!((mean[(i, 0)], var[(i, 0)]), (of.mean[(i, 0)], of.var[(i, 0)]));
        }
        // The times are linear in the other column, and row 4 is in the middle.
        assert!(mean[(4, 0)].abs() < 1e-4, "{}", mean[(4, 0)]);
        assert_eq!(var[(4, 0)], if missing { 0.1 } else { of.var[(4, 0)] });
        assert_eq!((mean.col(1), var.col(1)), (start().0.col(1), start().1.col(1)));
    }
}

/// Columns of X that are draws of a process over the rows' times: a covariance between rows, and the parameters of
/// its kernel.
#[derive(Clone)]
struct Paths {
    times: Mat,
    dim: usize,
    kernel: Matern32,
}

impl Paths {
    fn covariance(&self) -> Mat {
        let n = self.times.rows();
        let mut k = Mat::zeros(n, n);
        self.kernel.gram(&self.times, &mut k);
        k
    }
}

impl Parameterized for Paths {
    fn params(&self) -> Vec<(String, &Param)> {
        self.kernel.params()
    }
    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        self.kernel.params_mut()
    }
    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.kernel.each_param(visit);
    }
    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.kernel.each_param_mut(visit);
    }
}

impl InputPrior for Paths {
    fn expression(&self) -> String {
        "paths".into()
    }
    fn bind(&self, _: usize, _: usize, _: &[Vec<f64>]) -> Result<Box<dyn InputPrior>> {
        Ok(self.boxed())
    }
    fn sizes(&self) -> (usize, usize) {
        (self.times.rows(), self.dim)
    }
    fn kl(&self, mean: &Mat, var: &Mat, grads: Option<KlGrad<'_>>) -> Result<f64> {
        // ½ Σ_q (tr K⁻¹S + μᵀK⁻¹μ − N + ln|K| − Σ ln S)
        let (n, q) = self.sizes();
        let k = Cholesky::new(&self.covariance(), "the covariance of the paths")?;
        let (inverse, slope) = (k.inverse(), k.solve(mean));
        let spread: Vec<f64> = (0..n).map(|i| var.row(i).iter().sum()).collect();
        let logs: f64 = var.as_slice().iter().map(|s| s.ln()).sum();
        let trace: f64 = (0..n).map(|i| inverse[(i, i)] * spread[i]).sum();
        if let Some(to) = grads {
            for i in 0..n * q {
                to.mean[i] -= slope.as_slice()[i];
                to.var[i] -= 0.5 * (inverse[(i / q, i / q)] - 1.0 / var.as_slice()[i]);
            }
            let spread = Mat::from_fn(n, n, |i, j| inverse[(i, j)] * spread[i]);
            let mut bar = linalg::mul(&inverse, &spread);
            bar.add_scaled(1.0, &linalg::mul_nt(&slope, &slope));
            bar.add_scaled(-(q as f64), &inverse);
            bar.scale(0.5);
            self.kernel.gram_adjoint(&self.times, &bar, KernelGrad { theta: to.params, x: None, z: None });
        }
        Ok(0.5 * (trace + mean.dot(&slope) + q as f64 * k.log_det() - logs - (n * q) as f64))
    }
    fn marginals(&self) -> Gaussians {
        let k = self.covariance();
        let (n, q) = self.sizes();
        Gaussians { mean: Mat::zeros(n, q), var: Mat::from_fn(n, q, |i, _| k[(i, i)]) }
    }
    fn new_rows(&self, n: usize, _: &[Vec<f64>]) -> Result<Gaussians> {
        Ok(Normal::standard(n, self.dim).marginals())
    }
    fn select_rows(&self, rows: &[usize]) -> Box<dyn InputPrior> {
        Box::new(Paths { times: self.times.select_rows(rows), ..self.clone() })
    }
    fn arrays(&self) -> Vec<(&'static str, Mat)> {
        vec![("times", self.times.clone())]
    }
    fn restore(&self, n: usize, _: usize, take: &mut Take<'_>) -> Result<Box<dyn InputPrior>> {
        Ok(Box::new(Paths { times: take("times", n, 1)?, ..self.clone() }))
    }
}

#[test]
fn a_model_takes_any_prior_with_its_parameters() {
    let (n, dim) = (7, 2);
    let y = Mat::from_fn(n, 3, |i, j| ((i * 3 + j * j) as f64).sin());
    let z = Mat::from_fn(4, dim, |i, j| (1.3 * i as f64 - 0.7 * j as f64).cos());
    let scaling = Scaling { mean: vec![0.0; 3], scale: vec![1.0; 3] };
    let new = |z: Mat| {
        let outputs = Outputs::new(y.clone());
        BayesianGplvm::new(outputs, scaling.clone(), Rbf::new(dim), Box::new(Unscented), q(n, dim), z, 0.07)
    };
    let paths =
        Paths { times: Mat::column(&[0.0, 0.4, 1.1, 1.9, 2.0, 3.5, 4.0]), dim, kernel: Matern32::new(1) };
    check::prior(&paths, &q(n, dim), GRADIENT).unwrap();
    let mut model = new(z).unwrap();
    let normal = model.clone();
    for prior in
        [paths.boxed(), parse("times(column=t, std=1, learn=true)").unwrap().bind(n, dim, &[days()]).unwrap()]
    {
        model.set_prior(prior).unwrap();
        check::model(&model, 1e-6).unwrap_or_else(|e| panic!("{}: {e}", model.prior));
        let names: Vec<String> = model.params().into_iter().map(|(name, _)| name).collect();
        assert!(names.last().unwrap().starts_with("prior."), "{names:?}");
        assert!(param::count(&model) > param::count(&normal));
    }
    assert!(model.set_prior(Box::new(Normal::standard(n, 3))).is_err());
    let message = model.set_prior(parse("times(column=t, std=1)").unwrap()).unwrap_err().to_string();
    assert!(message.contains("expected 7 × 2, found 0 × 0"), "{message}");
}
