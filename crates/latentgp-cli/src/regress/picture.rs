//! The picture of a regression: a curve with bands of one input, else predicted against observed values.

use crate::failure::{Failure, Outcome};
use crate::figure::{self, Band, Bands, Figure, Observation, ObservedPredicted};
use latentgp::Mat;
use latentgp::file::TrainedRegression;
use latentgp::model::{Answers, Regressor};

/// Places of the curve.
const PLACES: usize = 300;
/// How far the curve goes beyond the data on either side, as a part of their range.
const BEYOND: f64 = 0.08;

/// Draws one target; the first unless it is named.
pub fn draw(of: &TrainedRegression, target: Option<&str>, title: &str) -> Outcome<Figure> {
    if !of.classes.is_empty() {
        return Err(Failure::usage(format!(
            "`{}` is a class: there are no bands and no predicted values to draw; `latentgp predict` gives its \
             probabilities, and `--what trace` draws the fit",
            of.targets[0]
        )));
    }
    let d = match target {
        None => 0,
        Some(name) => of.targets.iter().position(|t| t == name).ok_or_else(|| {
            Failure::usage(format!("--target: expected one of {}, found `{name}`", of.targets.join(", ")))
        })?,
    };
    let (x, y) = of.model.data()?;
    match x.cols() {
        1 => curve(of, d, title, &x, &y),
        _ => against(of, d, title, &x, &y),
    }
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
    let seen = || x.as_slice().iter().copied().filter(|v| v.is_finite());
    let (lo, hi) = (seen().fold(f64::INFINITY, f64::min), seen().fold(f64::NEG_INFINITY, f64::max));
    let room = if hi > lo { BEYOND * (hi - lo) } else { 1.0 };
    let at = |k: usize| lo - room + (hi - lo + 2.0 * room) * k as f64 / (PLACES - 1) as f64;
    let places: Vec<f64> = (0..PLACES).map(at).collect();
    let (mean, var) = predicted(of, &Mat::column(&places), d)?;
    let observed = (0..x.rows()).map(|i| Observation { x: x[(i, 0)], y: y[(i, d)] });
    let mut bands = Bands::gaussian(&places, &mean, &var);
    if of.model.observations().is_some() {
        // Counts are not Gaussian: a band of so many standard deviations says so.
        bands.bands =
            vec![Band::around("± 2 sd", &mean, &var, 2.0), Band::around("± 1 sd", &mean, &var, 1.0)];
        let floor = |edge: &mut Vec<f64>| edge.iter_mut().for_each(|v| *v = v.max(0.0));
        bands.bands.iter_mut().for_each(|b| floor(&mut b.lower));
    }
    Ok(figure::bands(&Bands {
        title: title.into(),
        x_title: of.inputs[0].clone(),
        y_title: of.targets[d].clone(),
        observed: observed.filter(|o| o.x.is_finite() && o.y.is_finite()).collect(),
        ..bands
    })?)
}

/// Of an exact model every row as the others predict it; of the others the training rows.
fn against(of: &TrainedRegression, d: usize, title: &str, x: &Mat, y: &Mat) -> Outcome<Figure> {
    let rows: Vec<usize> =
        (0..x.rows()).filter(|&i| y[(i, d)].is_finite() && x.row(i).iter().all(|v| v.is_finite())).collect();
    let (mean, variance) = match &of.model {
        Regressor::Gp(m) => {
            let out = m.leave_one_out()?;
            let noise = of.model.noise_variance().map_or(0.0, |v| v[d]);
            let pick = |of: &Mat, more: f64| rows.iter().map(|&i| of[(i, d)] + more).collect::<Vec<_>>();
            (pick(&out.mean, 0.0), pick(&out.var, noise))
        }
        _ => predicted(of, &x.select_rows(&rows), d)?,
    };
    Ok(figure::scatter_observed_predicted(&ObservedPredicted {
        title: title.into(),
        quantity: of.targets[d].clone(),
        observed: rows.iter().map(|&i| y[(i, d)]).collect(),
        predicted: mean,
        variance,
    })?)
}

/// What the picture shows, in words.
pub fn caption(of: &TrainedRegression) -> &'static str {
    match (&of.model, of.inputs.len()) {
        (_, 1) => "The predictive mean with its bands, which hold observations, and the training rows.",
        (Regressor::Gp(_), _) => {
            "Each row as the others predict it (leave one out), with two standard deviations of an observation."
        }
        _ => "The training rows, with two standard deviations of an observation.",
    }
}
