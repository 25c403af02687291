//! The sinc toy of Titsias & Lázaro-Gredilla (2013), supplement: one direction hidden in 25 inputs.
//!
//! VDMGP finds it among twenty in a single run: `cargo run --release --example sinc`. Ten splits and the other
//! models, beside the supplement's numbers, are `latentgp reproduce sinc`.

use latentgp::Result;
use latentgp::data::sinc;
use latentgp::kernel::Rbf;
use latentgp::metrics::{nlpd, nmse};
use latentgp::model::{Model, VdmgpTraining};
use std::ops::ControlFlow;

fn main() -> Result<()> {
    let all = sinc::simulate(400, 0);
    let (x, y) = (all.x.slice_rows(0, 100), all.y.slice_rows(0, 100));
    let how = VdmgpTraining { latent_dim: 20, inducing: 20, ..Default::default() };
    let model = how.fit(&x, &y, &Rbf::new(20), &|_| ControlFlow::Continue(()))?.model;

    let posterior = model.posterior()?;
    let found = posterior.predict(&all.x.slice_rows(100, 400))?;
    let var = found.var.map(|v| v + posterior.noise_variance()[0]);
    let truth = all.y.slice_rows(100, 400);
    println!("NMSE {:.3}", nmse(truth.as_slice(), found.mean.as_slice())?);
    println!("NLPD {:.3}", nlpd(truth.as_slice(), found.mean.as_slice(), var.as_slice())?);

    let report = model.relevance()?;
    println!("{} of 20 directions kept; shares of the inputs:", report.useful());
    for (k, input) in report.inputs.iter().enumerate().take(7) {
        println!("  input {:<2} {:>5.1} %", k + 1, 100.0 * input.share);
    }
    Ok(())
}
