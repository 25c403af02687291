//! The sinc toy of Titsias & Lázaro-Gredilla (2013), supplement: one direction hidden in 25 inputs.
//!
//! 100 training and 300 test points, 20 inducing inputs, ten splits, one run each:
//! `cargo run --release --example sinc [splits]`.

use latentgp::data::{Scale, sinc};
use latentgp::kernel::Rbf;
use latentgp::metrics::{nlpd, nmse};
use latentgp::model::{
    Model, Regression, RegressionOptions, Restarts, SpgpDrTraining, VdmgpTraining, WeightPrior,
};
use latentgp::{Error, Mat, Result};
use std::ops::ControlFlow;
use std::time::Instant;

const TRAIN: usize = 100;
const TEST: usize = 300;
const INDUCING: usize = 20;

struct Split {
    x: Mat,
    y: Mat,
    x_test: Mat,
    y_test: Vec<f64>,
}

/// A row of the table: NMSE, NLPD, directions kept.
type Scores = (f64, f64, Option<usize>);

fn main() -> Result<()> {
    let splits = match std::env::args().nth(1) {
        None => 10,
        Some(text) => text.parse().map_err(|_| Error::Invalid {
            what: "the number of splits".into(),
            expected: "a whole number".into(),
            found: text,
        })?,
    };
    let splits: Vec<Split> = (0..splits).map(split).collect();
    println!("{:<24} {:>7} {:>8}  {:<20} {:>8}", "model", "NMSE", "NLPD", "directions kept", "seconds");
    row("VDMGP K=20, type II", &splits, |s, n| vdmgp(s, n, WeightPrior::TypeII))?;
    let gamma = WeightPrior::Gamma { shape: 1.0, rate: 1e-6 };
    row("VDMGP K=20, Gamma", &splits, |s, n| vdmgp(s, n, gamma.clone()))?;
    for k in [5, 10, 15, 20] {
        row(&format!("SPGP-DR K={k}"), &splits, |s, n| spgp_dr(s, n, k))?;
    }
    for start in [1.0, 5.0] {
        row(&format!("GP, lengthscales from {start}"), &splits, |s, _| full_gp(s, start))?;
    }
    Ok(())
}

fn split(seed: u64) -> Split {
    let all = sinc::simulate(TRAIN + TEST, seed);
    Split {
        x: all.x.slice_rows(0, TRAIN),
        y: all.y.slice_rows(0, TRAIN),
        x_test: all.x.slice_rows(TRAIN, TRAIN + TEST),
        y_test: all.y.slice_rows(TRAIN, TRAIN + TEST).into_vec(),
    }
}

fn vdmgp(split: &Split, seed: u64, prior: WeightPrior) -> Result<Scores> {
    let how = VdmgpTraining { latent_dim: 20, inducing: INDUCING, prior, seed, ..Default::default() };
    let fit = how.fit(&split.x, &split.y, &Rbf::new(20), &|_| ControlFlow::Continue(()))?;
    let (nmse, nlpd) = score(&fit.model, split)?;
    Ok((nmse, nlpd, Some(fit.model.relevance()?.useful())))
}

fn spgp_dr(split: &Split, seed: u64, k: usize) -> Result<Scores> {
    let how = SpgpDrTraining { latent_dim: k, inducing: INDUCING, seed, ..Default::default() };
    let fit = how.fit(&split.x, &split.y, &Rbf::new(k), &|_| ControlFlow::Continue(()))?;
    let (nmse, nlpd) = score(&fit.model, split)?;
    Ok((nmse, nlpd, None))
}

fn full_gp(split: &Split, lengthscale: f64) -> Result<Scores> {
    let mut kernel = Rbf::new(sinc::INPUTS);
    kernel.lengthscale.set(lengthscale);
    let options = RegressionOptions { scale_inputs: Scale::Standardize, ..Default::default() };
    let start = Regression::with(split.x.clone(), split.y.clone(), kernel, &options)?;
    let fit = Restarts::default().fit(&start, &|_| ControlFlow::Continue(()))?;
    let (nmse, nlpd) = score(&fit.model, split)?;
    Ok((nmse, nlpd, None))
}

fn score(model: &dyn Model, split: &Split) -> Result<(f64, f64)> {
    let posterior = model.posterior()?;
    let found = posterior.predict(&split.x_test)?;
    let noise = posterior.noise_variance()[0];
    let var: Vec<f64> = found.var.as_slice().iter().map(|v| v + noise).collect();
    let mean = found.mean.as_slice();
    Ok((nmse(&split.y_test, mean)?, nlpd(&split.y_test, mean, &var)?))
}

fn row(name: &str, splits: &[Split], run: impl Fn(&Split, u64) -> Result<Scores>) -> Result<()> {
    let start = Instant::now();
    let scores = splits.iter().zip(0..).map(|(s, seed)| run(s, seed)).collect::<Result<Vec<_>>>()?;
    let n = scores.len().max(1) as f64;
    let nmse = scores.iter().map(|s| s.0).sum::<f64>() / n;
    let nlpd = scores.iter().map(|s| s.1).sum::<f64>() / n;
    let kept: Vec<String> = scores.iter().filter_map(|s| s.2).map(|k| k.to_string()).collect();
    let seconds = start.elapsed().as_secs_f64() / n;
    println!("{name:<24} {nmse:>7.3} {nlpd:>8.3}  {:<20} {seconds:>8.2}", kept.join(" "));
    Ok(())
}
