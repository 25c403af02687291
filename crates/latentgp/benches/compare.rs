//! One objective, fit or prediction on arrays that other programs read too: `compare TASK FOLDER`.
//!
//! `benches/compare/compare.py` at the root of the project writes the folders, runs this program and its peers
//! one after the other, and prints the ratios.

use latentgp::data::{Scale, Scaling, table::Table};
use latentgp::expectation::{Analytic, Expectation, Gaussians, Unscented};
use latentgp::kernel::{Kernel, Matern32, Rbf};
use latentgp::model::{
    self, BayesianGplvm, Jitter, Model, Outputs, Regression, RegressionOptions, SparseOptions,
    SparseRegression, Training,
};
use latentgp::optim::Lbfgs;
use latentgp::param;
use latentgp::posterior::Posterior;
use latentgp::{Mat, Result};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// That of the program and of the Python package.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NOISE: f64 = 0.05;
const JITTER: f64 = 1e-6;
const MAX_ITERATIONS: usize = 1000;
const WHILE: Duration = Duration::from_secs(3);

/// Seconds, value, and iterations where it is a fit.
type Measured = (f64, f64, Option<usize>);

/// On a thread of the pool, where fits run too.
fn main() -> Result<()> {
    rayon::scope(|_| compare())
}

fn compare() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [task, folder] = arguments.as_slice() else {
        println!("usage: compare TASK FOLDER; benches/compare/compare.py calls it");
        return Ok(());
    };
    let read = |name: &str| Table::read(&format!("{folder}/{name}.npy"))?.to_mat();
    let (seconds, value, iterations) = match task.as_str() {
        "bound_rbf" => evaluation(&mut gplvm(&read, Rbf::new, Box::new(Analytic))?)?,
        "bound_matern32" => evaluation(&mut gplvm(&read, Matern32::new, Box::new(Unscented))?)?,
        "fit" => fit(gplvm(&read, Rbf::new, Box::new(Analytic))?)?,
        "fit_default" => fit_default(&read)?,
        "exact" => exact(&read)?,
        "predict_exact" => predict(&regression(&read)?.posterior()?, &read("new")?)?,
        "predict_sparse" => predict(&sparse(&read)?.posterior()?, &read("new")?)?,
        _ => {
            println!("{{\"skipped\": \"no such task\"}}");
            return Ok(());
        }
    };
    let iterations = iterations.map_or(String::new(), |i| format!(", \"iterations\": {i}"));
    println!(
        "{{\"seconds\": {seconds:e}, \"value\": {value:?}, \"megabytes\": {:.1}{iterations}}}",
        peak_megabytes()
    );
    Ok(())
}

/// The shortest of as many evaluations as fit in a few seconds, after one that is not counted.
fn best(mut evaluate: impl FnMut() -> Result<f64>) -> Result<Measured> {
    let mut value = evaluate()?;
    let (began, mut shortest, mut count) = (Instant::now(), f64::INFINITY, 0);
    while count < 2 || began.elapsed() < WHILE {
        let start = Instant::now();
        value = evaluate()?;
        shortest = shortest.min(start.elapsed().as_secs_f64());
        count += 1;
    }
    Ok((shortest, value, None))
}

/// A value and its full gradient in the optimiser's variables, written back into the model as a step would be.
fn evaluation(model: &mut impl Model) -> Result<Measured> {
    let u = param::flatten(model);
    let mut grad = vec![0.0; param::count(model)];
    let mut free = vec![0.0; u.len()];
    best(|| {
        param::unflatten(model, &u);
        let value = model.log_evidence(Some(&mut grad))?;
        param::chain(model, &grad, &mut free);
        Ok(value)
    })
}

fn with_lengthscales<K: Kernel>(mut kernel: K, lengthscale: &Mat) -> K {
    for (name, p) in kernel.params_mut() {
        if name == "lengthscale" {
            p.value = lengthscale.clone();
        }
    }
    kernel
}

fn gplvm<K: Kernel + 'static>(
    read: &dyn Fn(&str) -> Result<Mat>,
    kernel: fn(usize) -> K,
    expectation: Box<dyn Expectation>,
) -> Result<BayesianGplvm> {
    let (y, lengthscale) = (read("y")?, read("lengthscale")?);
    let q = Gaussians { mean: read("mean")?, var: read("var")? };
    let kernel = with_lengthscales(kernel(q.dim()), &lengthscale);
    let scaling = Scaling::fit(&y, Scale::None)?;
    let mut model = BayesianGplvm::new(Outputs::new(y), scaling, kernel, expectation, q, read("z")?, NOISE)?;
    model.jitter = Jitter { kzz: JITTER, b: 0.0 };
    Ok(model)
}

/// A fit from the start that all programs are given.
fn fit(mut model: BayesianGplvm) -> Result<Measured> {
    let how = Lbfgs { max_iterations: MAX_ITERATIONS, ..Lbfgs::default() };
    let start = Instant::now();
    let report = model::fit(&mut model, &how, &mut |_| ControlFlow::Continue(()))?;
    Ok((start.elapsed().as_secs_f64(), -report.value, Some(report.iterations)))
}

/// The library's own fit, from its own start.
fn fit_default(read: &dyn Fn(&str) -> Result<Mat>) -> Result<Measured> {
    let (y, z) = (read("y")?, read("z")?);
    let training =
        Training { latent_dim: z.cols(), inducing: z.rows(), scale: Scale::None, ..Training::default() };
    let start = Instant::now();
    let fit = training.fit(&y, &Rbf::new(z.cols()), &|_| ControlFlow::Continue(()))?;
    Ok((start.elapsed().as_secs_f64(), fit.evidence, Some(fit.iterations)))
}

fn regression(read: &dyn Fn(&str) -> Result<Mat>) -> Result<Regression> {
    let (x, y) = (read("x")?, read("y")?);
    let kernel = with_lengthscales(Rbf::new(x.cols()), &read("lengthscale")?);
    let options = RegressionOptions { scale: Scale::None, ..Default::default() };
    let mut model = Regression::with(x, y, kernel, &options)?;
    model.noise.set(NOISE);
    Ok(model)
}

fn exact(read: &dyn Fn(&str) -> Result<Mat>) -> Result<Measured> {
    evaluation(&mut regression(read)?)
}

fn sparse(read: &dyn Fn(&str) -> Result<Mat>) -> Result<SparseRegression> {
    let (x, y, z) = (read("x")?, read("y")?, read("z")?);
    let kernel = with_lengthscales(Rbf::new(x.cols()), &read("lengthscale")?);
    let options = SparseOptions {
        inducing: z.rows(),
        scale: Scale::None,
        jitter: Jitter { kzz: JITTER, b: 0.0 },
        ..Default::default()
    };
    let mut model = SparseRegression::new(x, None, y, kernel, &options)?;
    model.z.value = z;
    model.noise.set(NOISE);
    Ok(model)
}

fn predict(posterior: &Posterior, new: &Mat) -> Result<Measured> {
    best(|| Ok(posterior.predict(new)?.var.as_slice().iter().sum()))
}

/// The peak of the resident memory, where the system tells it.
fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    line.and_then(|l| l.split_whitespace().nth(1)?.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}
