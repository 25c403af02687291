//! Probabilistic PCA: the maximum likelihood solution, its posterior and reconstruction, any rotation of
//! it, and the gradients away from it.

use super::Errors;
use super::read::{mat, number, numbers};
use latentgp::Mat;
use latentgp::data::Scale;
use latentgp::linalg;
use latentgp::model::{Ppca, PpcaOptions};
use serde_json::Value;

const VALUE: f64 = 1e-8;
const GRADIENT: f64 = 1e-6;

pub fn run(file: &Value, errors: &mut Errors) {
    let y = mat(&file["Y"]);
    let q = number(&file["q"]) as usize;
    let options = PpcaOptions { latent_dim: q, scale: Scale::None, ..Default::default() };
    let model = Ppca::fit(&y, &options).expect("a model");
    let has = |key: &str| file.get(key).is_some();
    errors.compare("mean", &model.mean, &numbers(&file["mean"]), VALUE);
    let mut eigenvalues = model.eigenvalues.clone();
    eigenvalues.resize(y.cols(), 0.0);
    errors.compare("eigenvalues", &eigenvalues, &numbers(&file["eigenvalues"]), VALUE);
    errors.compare("sigma2", &model.noise, &numbers(&file["sigma2"]), VALUE);
    let theirs = mat(&file["W"]);
    let outer = |w: &Mat| linalg::mul_nt(w, w);
    errors.compare("WWᵀ", outer(&model.w).as_slice(), outer(&theirs).as_slice(), VALUE);
    let value = model.log_likelihood(&y).expect("a likelihood");
    errors.compare("log_likelihood", &[value], &numbers(&file["log_likelihood"]), VALUE);
    if has("marginal_cov") {
        let mut c = outer(&model.w);
        (0..c.rows()).for_each(|i| c[(i, i)] += model.noise[0]);
        errors.compare("marginal_cov", c.as_slice(), &numbers(&file["marginal_cov"]), VALUE);
    }

    // Their W: the same up to the signs of its columns.
    let same = Ppca { w: theirs.clone(), ..model.clone() };
    posterior(&same, &y, &file["posterior_mean"], "posterior_mean", errors);
    let latent = same.transform(&y).expect("positions");
    errors.compare("posterior_cov", latent.cov[0].as_slice(), &numbers(&file["posterior_cov"]), VALUE);
    if has("reconstruction") {
        let own = model.transform(&y).expect("positions");
        let back = model.reconstruct(&own.mean).expect("a reconstruction");
        errors.compare("reconstruction", back.as_slice(), &numbers(&file["reconstruction"]), VALUE);
    }
    if has("rotation") {
        let turned = Ppca { w: linalg::mul(&theirs, &mat(&file["rotation"])), ..model.clone() };
        let value = turned.log_likelihood(&y).expect("a likelihood");
        errors.compare("rotated_log_likelihood", &[value], &numbers(&file["rotated_log_likelihood"]), VALUE);
        posterior(&turned, &y, &file["rotated_posterior_mean"], "rotated_posterior_mean", errors);
    }
    if let Some(off) = file.get("off_optimum") {
        let away = Ppca { w: mat(&off["W"]), noise: vec![number(&off["sigma2"])], ..model.clone() };
        let grad = away.gradient(&y).expect("a gradient");
        errors.compare("off_optimum log_likelihood", &[grad.value], &numbers(&off["log_likelihood"]), VALUE);
        errors.compare("off_optimum grad_W", grad.w.as_slice(), &numbers(&off["grad_W"]), GRADIENT);
        errors.compare("off_optimum grad_sigma2", &grad.noise, &numbers(&off["grad_sigma2"]), GRADIENT);
    }
}

fn posterior(model: &Ppca, y: &Mat, theirs: &Value, what: &str, errors: &mut Errors) {
    let mean = model.transform(y).expect("positions").mean;
    errors.compare(what, mean.as_slice(), &numbers(theirs), VALUE);
}
