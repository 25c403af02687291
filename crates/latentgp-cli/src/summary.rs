//! A trained model in plain words and as JSON with stable keys.

use crate::failure::Outcome;
use crate::trained::Ready;
use crate::words::{bar, count, short};
use latentgp::file::{Report, Trained};
use latentgp::kernel::Kernel;
use latentgp::model::noise_at_floor;
use serde_json::{Value, json};

/// How the fit ended, in a few words.
pub fn ending(trained: &Trained) -> String {
    let report = &trained.report;
    let state = if report.converged { "converged".to_string() } else { report.stop_reason.to_string() };
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
pub fn certificate(trained: &Trained) -> String {
    let Some(c) = trained.report.known_certificate() else {
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

/// The model in plain words.
pub fn text(ready: &Ready) -> Outcome<String> {
    let trained = &ready.trained;
    let report = &trained.report;
    let (n, d, q, m) = trained.model.sizes();
    let missing = trained.model.outputs.y.as_slice().iter().filter(|v| v.is_nan()).count();
    let missing = if missing > 0 { format!(", {missing} cells missing") } else { String::new() };
    let mut lines = vec![
        format!("Bayesian GPLVM of {} × {}{missing}", count(n, "row"), count(d, "column")),
        format!(
            "  kernel        {}, expectation {}, {}, {}",
            report.kernel,
            trained.model.expectation,
            count(q, "latent dimension"),
            count(m, "inducing input")
        ),
        format!("  bound         {} ({})", short(report.evidence), ending(trained)),
        noise(trained.model.noise.as_slice()),
    ];
    lines.extend(report.agreement().map(|text| format!("  starts        {text}")));
    let most = ready.relevance.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (k, r) in ready.relevance.iter().enumerate() {
        let head = if k == 0 { "relevance" } else { "" };
        lines.push(format!("  {head:<13} {:>2} {} {}", k + 1, bar(r / most), short(*r)));
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
    lines.push(format!("  certificate   {}", certificate(trained)));
    Ok(lines.join("\n"))
}

/// One sentence for each thing that deserves a warning.
pub fn warnings(trained: &Trained) -> Vec<String> {
    let report = &trained.report;
    let mut all: Vec<String> = report.certificate.iter().filter_map(|c| c.warning()).collect();
    if let Some(jitter) = report.extra_jitter.filter(|j| *j > 0.0) {
        all.push(format!("Kzz needed {jitter:.1e} more on its diagonal; try fewer inducing inputs"));
    }
    all.extend(trained.model.collapses().iter().map(ToString::to_string));
    all.extend(report.not_converged());
    all.extend(noise_at_floor(&trained.model.noise).then(|| NOISELESS.to_string()));
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

/// The model as JSON.
pub fn json(ready: &Ready) -> Outcome<Value> {
    let trained = &ready.trained;
    let report = &trained.report;
    let (n, d, q, m) = trained.model.sizes();
    let mut all = json!({
        "model": "bayesian-gplvm",
        "kernel": report.kernel,
        "kernel_fitted": trained.model.kernel.expression(),
        "expectation": trained.model.expectation.expression(),
        "latent_dim": q,
        "inducing": m,
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
        "extra_jitter": report.extra_jitter,
        "certificate": report.certificate,
        "warnings": warnings(trained),
    });
    put_noise(&mut all, trained.model.noise.as_slice());
    if let Some(accuracy) = ready.accuracy()? {
        all["knn_accuracy"] = json!({ "mean": accuracy.mean, "std": accuracy.std, "folds": accuracy.folds });
    }
    Ok(all)
}
