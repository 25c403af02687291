//! The columns of uncertain inputs: their moments, their units, and the variances of their errors.

use crate::data::{Scale, Scaling};
use crate::error::{Error, Result};
use crate::mat::Mat;

/// Rounds in which the moments of a column and the weights of its cells follow from each other.
const ROUNDS: usize = 30;

/// x with `latent` columns of missing cells after its own.
pub(crate) fn with_latent(x: &Mat, latent: usize) -> Mat {
    let q = x.cols();
    match latent {
        0 => x.clone(),
        k => Mat::from_fn(x.rows(), q + k, |i, j| if j < q { x[(i, j)] } else { f64::NAN }),
    }
}

/// The units of `q` observed columns, and of latent ones after them, which have their own.
pub(crate) fn with_latent_units(of: Scaling, latent: usize) -> Scaling {
    let Scaling { mut mean, mut scale } = of;
    mean.extend(std::iter::repeat_n(0.0, latent));
    scale.extend(std::iter::repeat_n(1.0, latent));
    Scaling { mean, scale }
}

/// The units of the observed columns alone.
pub(crate) fn without_latent_units(of: &Scaling, latent: usize) -> Scaling {
    let observed = of.mean.len() - latent;
    Scaling { mean: of.mean[..observed].to_vec(), scale: of.scale[..observed].to_vec() }
}

/// Mean and standard deviation of every column of X; a cell counts less the larger its error is.
pub(super) fn moments(x: &Mat, var: &Mat) -> Result<Scaling> {
    if x.cols() == 0 {
        return Ok(Scaling { mean: Vec::new(), scale: Vec::new() });
    }
    let mut all = Scaling::fit(x, Scale::Standardize)?;
    for j in 0..x.cols() {
        let seen: Vec<(f64, f64)> =
            (0..x.rows()).map(|i| (x[(i, j)], var[(i, j)])).filter(|(x, _)| !x.is_nan()).collect();
        if seen.iter().all(|(_, a)| *a == 0.0) {
            continue;
        }
        for _ in 0..ROUNDS {
            let v = all.scale[j] * all.scale[j];
            let mean_of = |of: &dyn Fn(f64) -> f64| {
                let (sum, total) = seen.iter().fold((0.0, 0.0), |(sum, total), (x, a)| {
                    let weight = 1.0 / (1.0 + a / v);
                    (sum + weight * of(*x), total + weight)
                });
                sum / total
            };
            let mean = mean_of(&|x| x);
            let scale = mean_of(&|x| (x - mean) * (x - mean)).sqrt();
            if !(mean.is_finite() && (scale * scale).is_normal()) {
                break;
            }
            (all.mean[j], all.scale[j]) = (mean, scale);
        }
    }
    Ok(all)
}

/// Errs unless standard deviations fit X and are finite and not negative where X is known.
pub(super) fn variances(x: &Mat, std: Option<&Mat>) -> Result<Mat> {
    let (n, q) = (x.rows(), x.cols());
    let mut var = Mat::zeros(n, q);
    let Some(std) = std else { return Ok(var) };
    if std.shape() != x.shape() {
        return Err(Error::shape("standard deviations of the inputs", x.shape(), std.shape()));
    }
    for (at, (v, &s)) in var.as_mut_slice().iter_mut().zip(std.as_slice()).enumerate() {
        if x.as_slice()[at].is_nan() {
            continue;
        }
        *v = s * s;
        if !(s >= 0.0 && v.is_finite()) {
            let what =
                format!("standard deviation of row {}, column {} of the inputs", at / q + 1, at % q + 1);
            return Err(Error::invalid(what, "a finite number, not negative", s));
        }
    }
    Ok(var)
}
