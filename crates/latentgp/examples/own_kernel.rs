//! A kernel of one's own, from one generic function: its gradients come from dual numbers, and it works
//! in every model. Here it learns a latent space of simulated oil-flow measurements.
//!
//! `cargo run --release --example own_kernel`

use latentgp::data::oil_flow;
use latentgp::expectation::Unscented;
use latentgp::kernel::{Auto, Formula, Linear, Scalar};
use latentgp::metrics::{kfold, knn_accuracy};
use latentgp::model::{Model, Training};
use latentgp::param::Param;
use latentgp::{Mat, Result, check};
use std::ops::ControlFlow;

/// k(x, z) = σ² / (1 + Σ_q ((x_q − z_q)/ℓ_q)²), heavier in its tails than an rbf.
#[derive(Clone)]
struct Cauchy {
    dim: usize,
}

impl Formula for Cauchy {
    fn name(&self) -> &str {
        "cauchy"
    }

    fn params(&self) -> Vec<(&'static str, Param)> {
        vec![("variance", Param::scalar(1.0)), ("lengthscale", Param::row(self.dim, 1.5))]
    }

    fn k<S: Scalar>(&self, x: &[S], z: &[S], theta: &[S]) -> S {
        let (variance, lengthscale) = (theta[0], &theta[1..]);
        let r2: S = (0..self.dim).map(|q| ((x[q] - z[q]) / lengthscale[q]).powi(2)).sum();
        variance / (r2 + 1.0)
    }
}

fn main() -> Result<()> {
    let dim = 3;
    let cauchy = Auto::new(Cauchy { dim }, dim);

    // The laws that every kernel must obey, gradients included.
    let x = Mat::from_fn(6, dim, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin());
    let z = Mat::from_fn(4, dim, |i, j| (1.3 * i as f64 - 0.7 * j as f64).cos());
    check::kernel(&cauchy, &x, &z, 1e-7)?;
    println!("symmetric, positive semi-definite, and its gradients agree with differences");

    let data = oil_flow::simulate(120, 1);
    let training = Training {
        latent_dim: dim,
        inducing: 20,
        expectation: Box::new(Unscented),
        max_iterations: 300,
        ..Training::default()
    };
    let kernel = cauchy + Linear::new(dim);
    let fit = training.fit(&data.y, &kernel, &|_| ControlFlow::Continue(()))?;
    println!("bound {:.1} after {} iterations ({})", fit.evidence, fit.iterations, fit.stop_reason);

    let relevance = fit.model.relevance(&fit.model.posterior()?)?;
    let mut order: Vec<usize> = (0..dim).collect();
    order.sort_by(|a, b| relevance[*b].total_cmp(&relevance[*a]));
    let plane = fit.model.mean.value.select_cols(&order[..2]);
    let accuracy = knn_accuracy(&plane, &data.regime, 1, &kfold(120, 5, 0)?)?;
    println!(
        "flow regime by the nearest neighbour in the latent plane: {:.0} % right",
        100.0 * accuracy.mean
    );
    if let Some(warning) = fit.model.certificate()?.warning() {
        println!("{warning}");
    }
    Ok(())
}
