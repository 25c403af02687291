//! The picture of a trained model: latent map, relevance bars and the trace of the bound.

use crate::failure::Outcome;
use crate::figure::{self, Background, Coordinate, Figure, LatentMap, Panel, Relevance};
use crate::summary::objective;
use crate::trained::Ready;
use latentgp::Mat;
use latentgp::expectation::Gaussians;

/// Columns and rows of the grid on which the model's uncertainty is shown.
const GRID: usize = 48;

/// The latent map of the two most relevant dimensions, on the predictive variance.
pub fn map(ready: &Ready, title: &str) -> Outcome<LatentMap> {
    let model = &ready.trained.model;
    let shown = ready.shown();
    let coordinate = |k: usize| Coordinate {
        mean: ready.latent.mean.col(k),
        variance: if model.is_certain() { Vec::new() } else { ready.latent.var.col(k) },
        title: figure::axis_title(k, &ready.relevance),
    };
    let mut map = LatentMap {
        title: title.into(),
        x: coordinate(shown[0]),
        y: shown.get(1).map(|&k| coordinate(k)),
        labels: ready.trained.labels.as_ref().map_or(Vec::new(), |l| l.of.clone()),
        ..LatentMap::default()
    };
    if let ([a, b], Some(z)) = (shown, model.inducing()) {
        map.inducing = (0..z.rows()).map(|m| [z[(m, *a)], z[(m, *b)]]).collect();
        map.background = Some(uncertainty(ready, [*a, *b], map.limits())?);
    }
    Ok(map)
}

/// The predictive variance, averaged over the scaled columns, with the other dimensions at their means.
fn uncertainty(ready: &Ready, [a, b]: [usize; 2], limits: [(f64, f64); 2]) -> Outcome<Background> {
    let mean = &ready.latent.mean;
    let n = mean.rows() as f64;
    let centre: Vec<f64> = (0..mean.cols()).map(|k| mean.col(k).iter().sum::<f64>() / n).collect();
    let at = |(from, to): (f64, f64), k: usize| from + (to - from) * k as f64 / (GRID - 1) as f64;
    let x = Mat::from_fn(GRID * GRID, mean.cols(), |i, k| match k {
        _ if k == a => at(limits[0], i % GRID),
        _ if k == b => at(limits[1], i / GRID),
        _ => centre[k],
    });
    let var = ready.trained.model.reconstruct(&Gaussians::certain(x))?.var;
    let scale = &ready.trained.model.scaling().scale;
    let average =
        |i: usize| var.row(i).iter().zip(scale).map(|(v, s)| v / s / s).sum::<f64>() / scale.len() as f64;
    Ok(Background {
        x: limits[0],
        y: limits[1],
        columns: GRID,
        values: (0..GRID * GRID).map(average).collect(),
        label: "variance".into(),
    })
}

/// The relevance bars.
pub fn relevance(ready: &Ready, title: &str) -> Relevance {
    Relevance { title: title.into(), values: ready.relevance.clone(), shown: ready.shown().to_vec() }
}

/// Map, bars and trace side by side; just map and bars where there is no trace.
pub fn panel(ready: &Ready) -> Outcome<Figure> {
    let mut trace = ready.trained.report.trace.clone();
    if trace.is_empty() {
        trace.push(ready.trained.report.evidence);
    }
    Ok(figure::panel(&Panel {
        map: map(ready, "Latent map")?,
        relevance: relevance(ready, "Relevance"),
        trace,
        trace_of: objective(ready),
        trace_title: "Bound".into(),
    })?)
}
