//! A trained latent space in plain words and as JSON with stable keys.

use crate::failure::Outcome;
use crate::trained::Ready;
use crate::words::{bar, count, short};
use latentgp::file::{Report, TrainedSpace};
use latentgp::kernel::Kernel;
use serde_json::{Value, json};

/// How the fit ended, in a few words.
fn ending(report: &Report) -> String {
    let state = match report.converged && report.iterations > 0 {
        true => "converged".to_string(),
        false => report.stop_reason.to_string(),
    };
    format!(
        "{state} after {}, {:.1} s{}",
        count(report.iterations, "iteration"),
        report.seconds,
        gradient(report)
    )
}

/// The largest gradient where the fit stopped.
pub fn gradient(report: &Report) -> String {
    report.gradient_norm.map_or(String::new(), |g| format!(", largest gradient {g:.0e}"))
}

/// What the certificate says, whether that is good or not.
pub fn certificate(report: &Report) -> String {
    let Some(c) = report.known_certificate() else {
        return "not known yet: the fit is not over".into();
    };
    if c.expectation == c.reference {
        return format!("the Ψ-statistics are exact (`{}`)", c.expectation);
    }
    format!(
        "`{}` is {:.2} % off in Ψ1, {:.2} % in Ψ2 and {:.2} % in the bound against `{}`, on {} rows",
        c.expectation,
        100.0 * c.psi1,
        100.0 * c.psi2,
        100.0 * c.bound,
        c.reference,
        c.rows
    )
}

/// What a fit maximises: `what`, and the log prior of the kernel where it has one.
pub fn maximised(what: &str, kernel: &dyn Kernel) -> String {
    match kernel.params().iter().any(|(_, p)| p.prior.is_some()) {
        true => format!("{what} + log prior"),
        false => what.into(),
    }
}

/// What the fit of a latent space maximised.
pub fn objective(ready: &Ready) -> String {
    let model = &ready.trained.model;
    model
        .parameters()
        .map_or_else(|| model.objective().into(), |(kernel, _)| maximised(model.objective(), kernel))
}

/// The model in plain words.
pub fn text(ready: &Ready) -> Outcome<String> {
    let (model, report) = (&ready.trained.model, &ready.trained.report);
    let (n, d, q) = model.sizes();
    let missing = match model.missing() {
        0 => String::new(),
        cells => format!(", {cells} cells missing"),
    };
    let (rule, inducing) = match model.inducing() {
        None => Default::default(),
        Some(z) => (
            format!(", expectation {}", model.expectation()),
            format!(", {}", count(z.rows(), "inducing input")),
        ),
    };
    let mut lines = vec![
        format!("{} of {} × {}{missing}", model.title(), count(n, "row"), count(d, "column")),
        format!("  kernel        {}{rule}, {}{inducing}", report.kernel, count(q, "latent dimension")),
        format!("  {:<13} {} ({})", model.objective(), short(report.evidence), ending(report)),
        noise(model.noise()),
    ];
    lines.extend(report.agreement().map(|text| format!("  starts        {text}")));
    let most = ready.relevance.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let total: f64 = ready.relevance.iter().sum();
    for (k, r) in ready.relevance.iter().enumerate() {
        let head = if k == 0 { "relevance" } else { "" };
        let part = if total > 0.0 { 100.0 * r / total } else { 0.0 };
        lines.push(format!("  {head:<13} {:>2} {} {} ({part:.1} %)", k + 1, bar(r / most), short(*r)));
    }
    if let Some(accuracy) = ready.accuracy()? {
        let dims: Vec<String> = ready.shown().iter().map(|k| (k + 1).to_string()).collect();
        lines.push(format!(
            "  1-NN accuracy {:.1} % ± {:.1} (5 folds, latent dimension{} {})",
            100.0 * accuracy.mean,
            100.0 * accuracy.std,
            if dims.len() > 1 { "s" } else { "" },
            dims.join(" and ")
        ));
    }
    if let Some(all) = ready.accuracy_of_all()? {
        let (mean, std) = (100.0 * all.mean, 100.0 * all.std);
        lines.push(format!("  {:<13} {mean:.1} % ± {std:.1} (on all {q} dimensions)", ""));
    }
    lines.extend(model.inducing().map(|_| format!("  certificate   {}", certificate(report))));
    Ok(lines.join("\n"))
}

/// One sentence for each thing that deserves a warning.
pub fn warnings(trained: &TrainedSpace) -> Vec<String> {
    let (model, report) = (&trained.model, &trained.report);
    let mut all: Vec<String> = report.certificate.iter().filter_map(|c| c.warning()).collect();
    if let Some(jitter) = report.extra_jitter.filter(|j| *j > 0.0) {
        all.push(format!("Kzz needed {jitter:.1e} more on its diagonal; try fewer inducing inputs"));
    }
    all.extend(model.collapses());
    let unused: Vec<String> = model.unused().iter().map(|q| (q + 1).to_string()).collect();
    if !unused.is_empty() {
        let left = model.latent_dim() - unused.len();
        let which = if unused.len() > 1 { "dimensions" } else { "dimension" };
        all.push(format!(
            "latent {which} {}: switched off; `--latent-dim {left}` does as well",
            unused.join(", ")
        ));
    }
    all.extend(report.not_converged());
    all.extend(model.noise_at_floor().then(|| NOISELESS.to_string()));
    all
}

/// Said of a latent space whose noise ended at its floor.
pub const NOISELESS: &str = "the noise ended at its floor, a thousandth of the standard deviation of the data: they have \
                             no noise, or the model follows every cell of them (fewer latent dimensions, or more rows, \
                             then help)";

/// The line about the noise of all columns, or of each.
pub fn noise(of: &[f64]) -> String {
    let what = match of {
        [one] => short(*one),
        each => {
            let lo = each.iter().copied().fold(f64::INFINITY, f64::min);
            let hi = each.iter().copied().fold(0.0, f64::max);
            format!("of each column, from {} to {}", short(lo), short(hi))
        }
    };
    format!("  noise         variance {what}, in the units of the scaled data")
}

/// Puts the noise into JSON: `noise_variance` is a number, the mean where every column has its own; these are
/// `noise_variances`.
pub fn put_noise(all: &mut Value, of: &[f64]) {
    all["noise_variance"] = json!(mean(of));
    if of.len() > 1 {
        all["noise_variances"] = json!(of);
    }
}

/// The only number, or the mean.
pub fn mean(of: &[f64]) -> f64 {
    if of.len() == 1 { of[0] } else { of.iter().sum::<f64>() / of.len() as f64 }
}

/// The model as JSON, with the keys that every `fit` has.
pub fn json(ready: &Ready) -> Outcome<Value> {
    let (model, report) = (&ready.trained.model, &ready.trained.report);
    let (n, d, q) = model.sizes();
    let mut all = json!({
        "model": model.name(),
        "kernel": report.kernel,
        "expectation": model.inducing().map(|_| model.expectation()),
        "latent_dim": q,
        "inducing": model.inducing().map(|z| z.rows()),
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
        "relevance": ready.relevance,
        "most_relevant": ready.shown(),
        "restarts": report.restarts,
        "seed": report.seed,
        "scale": report.scale,
        "warnings": warnings(&ready.trained),
    });
    put_noise(&mut all, model.noise());
    if let Some((kernel, _)) = model.parameters() {
        all["kernel_fitted"] = json!(kernel.expression());
    }
    if model.inducing().is_some() {
        all["extra_jitter"] = json!(report.extra_jitter);
        all["certificate"] = json!(report.certificate);
    }
    for (key, accuracy) in
        [("knn_accuracy", ready.accuracy()?), ("knn_accuracy_all", ready.accuracy_of_all()?)]
    {
        if let Some(of) = accuracy {
            all[key] = json!({ "mean": of.mean, "std": of.std, "folds": of.folds });
        }
    }
    Ok(all)
}
