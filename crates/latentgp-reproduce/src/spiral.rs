//! A spiral in the plane, seen in ten dimensions with noise: the lab notes' figure of PPCA, and the GPLVM on it.

use super::context::Context;
use super::part::{Part, Picture};
use super::table::{Estimate, Measure, Row, Table};
use latentgp::data::{Scale, spiral};
use latentgp::kernel::{Kernel, Linear, Rbf};
use latentgp::linalg::{self, Cholesky};
use latentgp::model::{GplvmTraining, LatentPrior, Ppca, PpcaOptions, Training};
use latentgp::{Mat, Result};
use latentgp_figure::{self as figure, Coordinate, LatentMap};
use latentgp_terminal::failure::Outcome;
use std::time::Instant;

const ROWS: usize = 100;
const RECOVERED: Measure = Measure { name: "recovered, %", key: "recovered", decimals: 2 };

/// Positions that a method found, and its log likelihood or bound.
type Found = (Mat, f64);

/// Runs the experiment.
pub fn run(context: &Context) -> Outcome<Part> {
    let sample = spiral::simulate(ROWS, spiral::DIM, spiral::NOISE_STD, context.seed)?;
    let (mut rows, mut pictures) = (Vec::new(), vec![picture("the truth", "truth", &sample.x)?]);
    let mut line = |method: &str, kernel: &str, slug: &str, found: &dyn Fn() -> Outcome<Found>| -> Outcome {
        let clock = Instant::now();
        context.doing(method)?;
        let (x, bound) = found()?;
        context.go_on()?;
        let aligned = onto(&x, &sample.x)?;
        let row = Row {
            method: method.into(),
            kernel: kernel.into(),
            ours: vec![Estimate::of(100.0 * recovered(&aligned, &sample.x))],
            bound: Some(bound),
            seconds: clock.elapsed().as_secs_f64(),
            ..Row::default()
        };
        let label = row.label();
        context.done(&format!("{label}: {:.2} % recovered, {:.1} s", row.ours[0].mean, row.seconds));
        pictures.push(picture(&label, slug, &aligned)?);
        rows.push(row);
        Ok(())
    };
    line("PPCA", "", "ppca", &|| {
        let model = Ppca::fit(&sample.y, &PpcaOptions { scale: Scale::Center, ..Default::default() })?;
        Ok((model.transform(&sample.y)?.mean, model.log_likelihood(&sample.y)?))
    })?;
    let gplvm = |name: &str, kernel: &dyn Kernel| -> Outcome<Found> {
        let how =
            GplvmTraining { prior: LatentPrior::StandardNormal, scale: Scale::Center, ..Default::default() };
        let fitted = how.fit(&sample.y, kernel, &context.watch(name))?;
        Ok((fitted.model.x.value.clone(), fitted.model.log_likelihood()?))
    };
    line("GPLVM", "linear", "gplvm-linear", &|| gplvm("GPLVM, linear", &Linear::new(2)))?;
    line("GPLVM", "rbf", "gplvm-rbf", &|| gplvm("GPLVM, rbf", &Rbf::new(2)))?;
    line("Bayesian GPLVM", "rbf", "bayesian-gplvm-rbf", &|| {
        let how = Training { latent_dim: 2, scale: Scale::Center, ..Default::default() };
        let fit = how.fit(&sample.y, &Rbf::new(2), &context.watch("Bayesian GPLVM, rbf"))?;
        Ok((fit.model.mean.value.clone(), fit.evidence))
    })?;
    Ok(Part {
        name: "spiral",
        title: "The spiral: PPCA and the GPLVM".into(),
        about: vec![format!(
            "{ROWS} points (t sin t, t cos t), t from 0 to 3π, mapped to ten dimensions by a random matrix, with \
             unit noise. Latent positions are known up to a linear map only: they are shown, and compared with \
             the truth, after the best one. Of the bounds, log likelihoods or \
             what lies below them, those of different models do not compare."
        )],
        tables: vec![Table {
            slug: "",
            title: "Share of the variance of the true positions".into(),
            measures: vec![RECOVERED],
            rows,
        }],
        pictures,
        notes: vec![
            "The truth is linear, so PPCA and the linear GPLVM, which end in the same subspace, recover it; an rbf \
             kernel may bend what is straight."
                .into(),
        ],
        ..Part::default()
    })
}

/// x after the affine map that brings it closest to the truth.
fn onto(x: &Mat, truth: &Mat) -> Result<Mat> {
    let design = Mat::from_fn(x.rows(), x.cols() + 1, |i, j| if j == 0 { 1.0 } else { x[(i, j - 1)] });
    let square = Cholesky::with_jitter(&linalg::mul_tn(&design, &design), "the latent positions")?;
    Ok(linalg::mul(&design, &square.solve(&linalg::mul_tn(&design, truth))))
}

/// The share of the truth's variance that is explained.
fn recovered(x: &Mat, truth: &Mat) -> f64 {
    let (mut rest, mut spread) = (0.0, 0.0);
    for j in 0..truth.cols() {
        let column = truth.col(j);
        let mean = column.iter().sum::<f64>() / column.len() as f64;
        for (i, t) in column.iter().enumerate() {
            rest += (x[(i, j)] - t).powi(2);
            spread += (t - mean).powi(2);
        }
    }
    1.0 - rest / spread
}

fn picture(title: &str, slug: &str, x: &Mat) -> Outcome<Picture> {
    let n = x.rows();
    let third = |i: usize| ["1st third", "2nd third", "3rd third"][(3 * i / n).min(2)].to_string();
    let coordinate =
        |k: usize| Coordinate { mean: x.col(k), variance: Vec::new(), title: ["x₁", "x₂"][k].into() };
    let map = LatentMap {
        title: title.into(),
        x: coordinate(0),
        y: Some(coordinate(1)),
        labels: (0..n).map(third).collect(),
        one_scale: true,
        ..LatentMap::default()
    };
    Ok(Picture {
        slug: slug.into(),
        caption: format!(
            "The spiral: {title}{}.",
            if slug == "truth" { "" } else { ", after the best linear map" }
        ),
        figure: figure::latent_map(&map)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_map_is_undone() {
        let truth = Mat::from_fn(20, 2, |i, j| ((i * (j + 1)) as f64).sin());
        let seen = Mat::from_fn(20, 2, |i, j| 3.0 + truth[(i, 0)] * (1.0 + j as f64) - truth[(i, 1)]);
        assert!(recovered(&onto(&seen, &truth).unwrap(), &truth) > 1.0 - 1e-9);
        assert!(recovered(&onto(&Mat::zeros(20, 2), &truth).unwrap(), &truth) < 1e-6);
    }
}
