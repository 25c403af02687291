//! The sinc toy: one direction hidden in 25 inputs is found in a single run, among twenty.

use latentgp::data::sinc;
use latentgp::kernel::Rbf;
use latentgp::metrics::{nlpd, nmse};
use latentgp::model::{Model, VdmgpTraining};
use std::ops::ControlFlow;

/// What the paper reports for its ten splits.
const NMSE: f64 = 0.09;
const NLPD: f64 = -0.54;

#[test]
fn the_variational_mahalanobis_process_finds_the_direction() {
    let all = sinc::simulate(400, 0);
    let how = VdmgpTraining { latent_dim: 20, inducing: 20, ..Default::default() };
    let (x, y) = (all.x.slice_rows(0, 100), all.y.slice_rows(0, 100));
    let fit = how.fit(&x, &y, &Rbf::new(20), &|_| ControlFlow::Continue(())).unwrap();

    let posterior = fit.model.posterior().unwrap();
    let found = posterior.predict(&all.x.slice_rows(100, 400)).unwrap();
    let var = found.var.map(|v| v + posterior.noise_variance()[0]);
    let truth = all.y.slice_rows(100, 400);
    let error = nmse(truth.as_slice(), found.mean.as_slice()).unwrap();
    let density = nlpd(truth.as_slice(), found.mean.as_slice(), var.as_slice()).unwrap();
    assert!(error <= NMSE && density <= NLPD, "NMSE {error}, NLPD {density}");

    let report = fit.model.relevance().unwrap();
    assert_eq!(report.useful(), 1);
    let relevant: f64 = report.inputs[..5].iter().map(|i| i.share).sum();
    assert!(relevant > 0.9, "{relevant}");
    let most = report.inputs[5..].iter().fold(0.0, |m: f64, i| m.max(i.share));
    assert!(report.inputs[..5].iter().all(|i| i.low > most), "{:?}", report.inputs);
}
