//! The picture of a regression: a curve with bands of one input, else predicted against observed values; of classes
//! their probabilities along one input, else how often each is taken for which.

use crate::failure::{Failure, Outcome};
use crate::figure::{
    self, Band, Bands, Confusion, Figure, Observation, ObservedPredicted, Probabilities, Spread,
};
use latentgp::Mat;
use latentgp::file::TrainedRegression;
use latentgp::likelihood::Likelihood;
use latentgp::metrics::most_probable;
use latentgp::model::Answers;
use latentgp::posterior::Prediction;

/// Places of the curve.
const PLACES: usize = 300;
/// How far the curve goes beyond the data on either side, as a part of their range.
const BEYOND: f64 = 0.08;

/// Draws one target; the first unless it is named.
pub fn draw(of: &TrainedRegression, target: Option<&str>, title: &str) -> Outcome<Figure> {
    let d = match target {
        None => 0,
        Some(name) => of.targets.iter().position(|t| t == name).ok_or_else(|| {
            Failure::usage(format!("--target: expected one of {}, found `{name}`", of.targets.join(", ")))
        })?,
    };
    let (x, y) = of.model.data()?;
    match x.cols() {
        1 if !of.classes.is_empty() => chances(of, title, &x, &y),
        _ if !of.classes.is_empty() => matrix(of, title, &x, &y),
        1 => curve(of, d, title, &x, &y),
        _ => against(of, d, title, &x, &y),
    }
}

/// Places that cover the inputs and a little more.
fn places(x: &Mat) -> Vec<f64> {
    let seen = || x.as_slice().iter().copied().filter(|v| v.is_finite());
    let (lo, hi) = (seen().fold(f64::INFINITY, f64::min), seen().fold(f64::NEG_INFINITY, f64::max));
    let room = if hi > lo { BEYOND * (hi - lo) } else { 1.0 };
    (0..PLACES).map(|k| lo - room + (hi - lo + 2.0 * room) * k as f64 / (PLACES - 1) as f64).collect()
}

fn class_probabilities(of: &TrainedRegression, x: &Mat) -> Outcome<Mat> {
    match of.model.predict(x, None)? {
        Answers::Classes(p) => Ok(p),
        _ => Err(Failure::work("classes have probabilities")),
    }
}

fn chances(of: &TrainedRegression, title: &str, x: &Mat, y: &Mat) -> Outcome<Figure> {
    let places = places(x);
    Ok(figure::probabilities(&Probabilities {
        title: title.into(),
        x_title: of.inputs[0].clone(),
        quantity: of.targets[0].clone(),
        classes: of.classes.clone(),
        p: class_probabilities(of, &Mat::column(&places))?,
        x: places,
        observed: (0..x.rows()).map(|i| (x[(i, 0)], y[(i, 0)] as usize)).collect(),
    })?)
}

fn matrix(of: &TrainedRegression, title: &str, x: &Mat, y: &Mat) -> Outcome<Figure> {
    let (p, count) = (class_probabilities(of, x)?, of.classes.len());
    let (mut share, mut rows) = (Mat::zeros(count, count), Mat::zeros(count, count));
    for (i, best) in most_probable(&p).into_iter().enumerate() {
        let class = y[(i, 0)] as usize;
        rows[(class, best)] += 1.0;
        share.row_mut(class).iter_mut().zip(p.row(i)).for_each(|(sum, p)| *sum += p);
    }
    for c in 0..count {
        let all: f64 = rows.row(c).iter().sum();
        share.row_mut(c).iter_mut().for_each(|s| *s /= all.max(1.0));
    }
    let (title, quantity, classes) = (title.into(), of.targets[0].clone(), of.classes.clone());
    Ok(figure::confusion(&Confusion { title, quantity, of: "training rows".into(), classes, share, rows })?)
}

/// The 90 % and 50 % bands of counts: quantiles of what is predicted.
fn count_bands(likelihood: &dyn Likelihood, latent: &Prediction) -> Vec<Band> {
    let edge = |p: f64| -> Vec<f64> {
        let at = latent.mean.as_slice().iter().zip(latent.var.as_slice());
        at.map(|(m, v)| likelihood.predictive_quantile(p, *m, *v)).collect()
    };
    let band = |label: &str, p: f64| Band { label: label.into(), lower: edge(p), upper: edge(1.0 - p) };
    vec![band("90 % band", 0.05), band("50 % band", 0.25)]
}

/// Means and variances of a target.
fn predicted(of: &TrainedRegression, x: &Mat, d: usize) -> Outcome<(Vec<f64>, Vec<f64>)> {
    Ok(match of.model.predict(x, None)? {
        Answers::Values(p) => (p.mean.col(d), p.var.col(d)),
        Answers::Counts { mean, var, .. } => (mean, var),
        Answers::Classes(_) => return Err(Failure::work("classes have no means")),
    })
}

fn curve(of: &TrainedRegression, d: usize, title: &str, x: &Mat, y: &Mat) -> Outcome<Figure> {
    let places = places(x);
    let inferred = of.model.uncertain_inputs().filter(|u| u.has_errors());
    let uncertain = |i: &usize| inferred.is_some_and(|u| !u.is_missing(*i, 0) && u.read_std(*i, 0) > 0.0);
    let (wide, certain): (Vec<usize>, Vec<usize>) = (0..x.rows()).partition(uncertain);
    let observed = certain.into_iter().map(|i| Observation { x: x[(i, 0)], y: y[(i, d)] });
    let mut bars = Vec::new();
    if let (Some(u), Some(q)) = (inferred, of.model.inputs_posterior()?) {
        let unit = of.model.input_units().map_or(1.0, |s| s.scale[0]);
        bars.extend(wide.into_iter().filter(|&i| y[(i, d)].is_finite()).map(|i| Spread {
            y: y[(i, d)],
            read: (x[(i, 0)], unit * u.read_std(i, 0)),
            inferred: (q.mean[(i, 0)], q.var[(i, 0)].sqrt()),
        }));
    }
    let bands = match of.model.predict(&Mat::column(&places), None)? {
        Answers::Values(p) => Bands::gaussian(&places, &p.mean.col(d), &p.var.col(d)),
        Answers::Counts { mean, latent, likelihood, .. } => {
            let bands = count_bands(&*likelihood, &latent);
            Bands { x: places, mean, bands, least: Some(0.0), ..Bands::default() }
        }
        Answers::Classes(_) => return Err(Failure::work("classes have no means")),
    };
    Ok(figure::bands(&Bands {
        title: title.into(),
        x_title: of.inputs[0].clone(),
        y_title: of.targets[d].clone(),
        observed: observed.filter(|o| o.x.is_finite() && o.y.is_finite()).collect(),
        spread: bars,
        ..bands
    })?)
}

/// Of an exact model every row as the others predict it; of the others the training rows.
fn against(of: &TrainedRegression, d: usize, title: &str, x: &Mat, y: &Mat) -> Outcome<Figure> {
    let rows: Vec<usize> =
        (0..x.rows()).filter(|&i| y[(i, d)].is_finite() && x.row(i).iter().all(|v| v.is_finite())).collect();
    let (mean, variance) = match of.model.left_out()? {
        Some(out) => {
            let noise = of.model.noise_variance().map_or(0.0, |v| v[d]);
            let pick = |of: &Mat, more: f64| rows.iter().map(|&i| of[(i, d)] + more).collect::<Vec<_>>();
            (pick(&out.mean, 0.0), pick(&out.var, noise))
        }
        None => predicted(of, &x.select_rows(&rows), d)?,
    };
    Ok(figure::scatter_observed_predicted(&ObservedPredicted {
        title: title.into(),
        quantity: of.targets[d].clone(),
        rows: if of.model.leaves_one_out() { "leave one out" } else { "training rows" }.into(),
        observed: rows.iter().map(|&i| y[(i, d)]).collect(),
        predicted: mean,
        variance,
    })?)
}

/// What the picture shows, in words.
pub fn caption(of: &TrainedRegression) -> &'static str {
    match of.inputs.len() {
        1 if !of.classes.is_empty() => {
            "The probability of each class, and below it the training rows of the class."
        }
        _ if !of.classes.is_empty() => {
            "Training rows of every class and what they are taken for; the darker, the more probable on average."
        }
        1 if of.model.uncertain_inputs().is_some_and(|u| u.has_errors()) => {
            "The predictive mean with its bands, which hold observations. Thin bars are the inputs of the training rows \
             as they were read, thick ones what is left of the errors once the targets are known."
        }
        1 => "The predictive mean with its bands, which hold observations, and the training rows.",
        _ if of.model.leaves_one_out() => {
            "Each row as the others predict it (leave one out), with two standard deviations of an observation."
        }
        _ => "The training rows, with two standard deviations of an observation.",
    }
}
