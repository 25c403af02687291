//! A GPLVM or a PPCA: its file, in words, as JSON and as a map.

use crate::failure::Outcome;
use crate::figure::{self, Coordinate, Figure, LatentMap, Relevance};
use crate::summary::{self, NOISELESS, gradient, maximised};
use crate::trained::accuracy;
use crate::words::{bar, count, short};
use latentgp::expectation::Gaussians;
use latentgp::file::TrainedSpace;
use latentgp::metrics::Accuracy;
use serde_json::{Value, json};

/// A latent space, ready to be shown.
pub struct Space {
    /// What the file holds.
    pub trained: TrainedSpace,
    /// The training rows.
    pub latent: Gaussians,
    /// How much each latent dimension matters.
    pub relevance: Vec<f64>,
    /// The dimensions, the most relevant first.
    pub order: Vec<usize>,
}

impl Space {
    /// Works out what follows from the parameters.
    pub fn new(trained: TrainedSpace) -> Outcome<Self> {
        let (latent, relevance) = (trained.model.latent()?, trained.model.relevance()?);
        let mut order: Vec<usize> = (0..relevance.len()).collect();
        order.sort_by(|&a, &b| relevance[b].total_cmp(&relevance[a]).then(a.cmp(&b)));
        Ok(Space { trained, latent, relevance, order })
    }

    /// The two most relevant dimensions, or the only one.
    pub fn shown(&self) -> &[usize] {
        &self.order[..self.order.len().min(2)]
    }

    fn accuracy(&self) -> Outcome<Option<Accuracy>> {
        accuracy(self.trained.labels.as_ref(), &self.latent.mean.select_cols(self.shown()))
    }

    /// The latent map of the two most relevant dimensions.
    pub fn map(&self) -> Outcome<Figure> {
        let certain = self.trained.model.is_certain();
        let coordinate = |k: usize| Coordinate {
            mean: self.latent.mean.col(k),
            variance: if certain { Vec::new() } else { self.latent.var.col(k) },
            title: figure::axis_title(k, Some(self.relevance[k])),
        };
        let shown = self.shown();
        Ok(figure::latent_map(&LatentMap {
            title: String::new(),
            x: coordinate(shown[0]),
            y: shown.get(1).map(|&k| coordinate(k)),
            labels: self.trained.labels.as_ref().map_or(Vec::new(), |l| l.of.clone()),
            ..LatentMap::default()
        })?)
    }

    /// What the fit maximised.
    pub fn objective(&self) -> String {
        let what = self.trained.model.objective();
        match self.trained.model.parameters() {
            Some((kernel, _)) => maximised(what, kernel),
            None => what.into(),
        }
    }

    /// The relevance bars.
    pub fn bars(&self) -> Outcome<Figure> {
        let (values, shown) = (self.relevance.clone(), self.shown().to_vec());
        Ok(figure::relevance_bars(&Relevance { title: String::new(), values, shown })?)
    }
}

/// One sentence for each thing that deserves a warning.
pub fn warnings(space: &Space) -> Vec<String> {
    let floor = space.trained.model.noise_at_floor().then(|| NOISELESS.to_string());
    floor.into_iter().chain(space.trained.report.not_converged()).collect()
}

/// In plain words.
pub fn text(space: &Space) -> Outcome<String> {
    let (trained, report) = (&space.trained, &space.trained.report);
    let (n, d, q) = trained.model.sizes();
    let missing = match trained.model.missing() {
        0 => String::new(),
        cells => format!(", {cells} cells missing"),
    };
    let (title, what) = (trained.model.title(), trained.model.objective());
    let state = match report.converged && report.iterations > 0 {
        true => "converged".to_string(),
        false => report.stop_reason.to_string(),
    };
    let mut lines = vec![
        format!("{title} of {} × {}{missing}", count(n, "row"), count(d, "column")),
        format!("  kernel        {}, {}", report.kernel, count(q, "latent dimension")),
        format!(
            "  {what:<13} {} ({state}, {}, {:.1} s{})",
            short(report.evidence),
            count(report.iterations, "iteration"),
            report.seconds,
            gradient(report)
        ),
        summary::noise(trained.model.noise()),
    ];
    lines.extend(report.agreement().map(|text| format!("  starts        {text}")));
    let most = space.relevance.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (k, r) in space.relevance.iter().enumerate() {
        let head = if k == 0 { "relevance" } else { "" };
        lines.push(format!("  {head:<13} {:>2} {} {}", k + 1, bar(r / most), short(*r)));
    }
    if let Some(a) = space.accuracy()? {
        lines.push(format!("  1-NN accuracy {:.1} % ± {:.1} (5 folds)", 100.0 * a.mean, 100.0 * a.std));
    }
    Ok(lines.join("\n"))
}

/// As JSON, with the keys that every `fit` has.
pub fn json(space: &Space) -> Outcome<Value> {
    let (trained, report) = (&space.trained, &space.trained.report);
    let (n, d, q) = trained.model.sizes();
    let mut all = json!({
        "model": trained.model.name(),
        "kernel": report.kernel,
        "expectation": null,
        "latent_dim": q,
        "inducing": null,
        "n": n,
        "d": d,
        "bound": report.evidence,
        "iterations": report.iterations,
        "evaluations": report.evaluations,
        "converged": report.converged,
        "stop_reason": report.stop_reason,
        "gradient_norm": report.gradient_norm,
        "begun": report.begun,
        "seconds": report.seconds,
        "relevance": space.relevance,
        "most_relevant": space.shown(),
        "restarts": report.restarts,
        "seed": report.seed,
        "scale": report.scale,
        "warnings": warnings(space),
    });
    summary::put_noise(&mut all, trained.model.noise());
    if let Some((kernel, _)) = trained.model.parameters() {
        all["kernel_fitted"] = json!(kernel.expression());
    }
    if let Some(a) = space.accuracy()? {
        all["knn_accuracy"] = json!({ "mean": a.mean, "std": a.std, "folds": a.folds });
    }
    Ok(all)
}
