//! A trained regression in plain words and as JSON with stable keys.

use crate::failure::Outcome;
use crate::summary::gradient;
use crate::words::{bar, count, short};
use latentgp::file::TrainedRegression;
use latentgp::model::Scores;
use serde_json::{Value, json};

/// The likelihood, with its link where there is a choice.
fn likelihood(of: &TrainedRegression) -> String {
    match of.model.observations() {
        Some(o) if of.model.likelihood() == "bernoulli" => o.expression(),
        _ => of.model.likelihood().into(),
    }
}

/// One sentence for each thing that deserves a warning.
pub fn warnings(of: &TrainedRegression) -> Vec<String> {
    let floor = "the noise ended at its floor, a thousandth of the standard deviation of the targets: they have no \
                 noise, or the model follows every row of them (fewer inducing inputs or directions, or more rows, \
                 then help)";
    let floor = of.model.noise_at_floor().then(|| floor.to_string());
    floor.into_iter().chain(unclear(of)).chain(of.report.not_converged()).collect()
}

/// Errors of inputs that were learnt but that the data do not tell.
fn unclear(of: &TrainedRegression) -> impl Iterator<Item = String> + '_ {
    let learnt = of.model.learnt_errors();
    of.model.error_evidence().iter().filter(|e| !e.is_clear()).map(move |e| {
        let std = learnt.iter().find(|(j, _)| *j == e.column).map_or(f64::NAN, |(_, std)| *std);
        format!(
            "the error of `{}` was learnt as {}, but the data do not tell it: without it the log evidence is lower by {}, \
             with twice as much by {}; give a column with its standard deviation if it is known",
            of.inputs[e.column],
            short(std),
            short(e.without.max(0.0)),
            short(e.doubled.max(0.0))
        )
    })
}

/// Root mean squares of the errors of an input as they were read or learnt, and as they are once the targets are known.
struct Narrowed {
    column: usize,
    read: f64,
    left: f64,
    learnt: bool,
}

/// The inputs with errors that were inferred.
fn narrowed(of: &TrainedRegression) -> Outcome<Vec<Narrowed>> {
    let (Some(x), Some(q)) =
        (of.model.uncertain_inputs().filter(|x| x.has_errors()), of.model.inputs_posterior()?)
    else {
        return Ok(Vec::new());
    };
    let learnt = of.model.learnt_errors();
    let one = |j: usize| {
        let unit = of.model.input_units().map_or(1.0, |s| s.scale[j]);
        let rows: Vec<usize> =
            (0..q.n()).filter(|&i| x.read_std(i, j) > 0.0 && !x.is_missing(i, j)).collect();
        let mean =
            |of: &dyn Fn(usize) -> f64| (rows.iter().map(|&i| of(i)).sum::<f64>() / rows.len() as f64).sqrt();
        (!rows.is_empty()).then(|| Narrowed {
            column: j,
            read: mean(&|i| (unit * x.read_std(i, j)).powi(2)),
            left: mean(&|i| q.var[(i, j)]),
            learnt: learnt.iter().any(|(l, _)| *l == j),
        })
    };
    Ok((0..of.inputs.len()).filter_map(one).collect())
}

/// The model in plain words.
pub fn summary(of: &TrainedRegression) -> Outcome<String> {
    let report = &of.report;
    let (n, q, _) = of.model.sizes();
    let state = if report.converged { "converged".to_string() } else { report.stop_reason.to_string() };
    let mut kernel = vec![report.kernel.clone()];
    kernel.extend(of.model.latent_dim().filter(|_| !of.model.is_fitc()).map(|k| count(k, "direction")));
    kernel.extend(of.model.inducing().map(|m| count(m, "inducing input")));
    let mut lines = vec![
        format!(
            "{} of {} on {}, {}",
            of.model.title(),
            of.targets.join(", "),
            count(q, "input"),
            count(n, "row")
        ),
        format!("  kernel        {}", kernel.join(", ")),
        format!(
            "  log evidence  {} ({state} after {}, {:.1} s{})",
            short(report.evidence),
            count(report.iterations, "iteration"),
            report.seconds,
            gradient(report)
        ),
    ];
    lines.extend(report.agreement().map(|text| format!("  starts        {text}")));
    match of.model.noise_variance() {
        Some(noise) => {
            let all: Vec<String> = noise.iter().map(|v| short(v.sqrt())).collect();
            lines.push(format!("  noise         standard deviation {}", all.join(", ")));
        }
        None => lines.push(format!("  likelihood    {}", likelihood(of))),
    }
    for (k, e) in narrowed(of)?.iter().enumerate() {
        let (head, how) = (if k == 0 { "inferred" } else { "" }, if e.learnt { "learnt as" } else { "of" });
        lines.push(format!(
            "  {head:<13} {}: errors {how} {}, {} once the targets are known",
            of.inputs[e.column],
            short(e.read),
            short(e.left)
        ));
    }
    if of.model.latent_inputs() > 0 {
        lines.push(format!("  latent        {}", count(of.model.latent_inputs(), "input")));
    }
    if !of.classes.is_empty() {
        lines.push(format!("  classes       {}", of.classes.join(", ")));
    }
    if let Some(relevance) = of.model.weight_relevance()? {
        let useful = count(relevance.useful(), "direction");
        lines.push(format!("  useful        {useful} of {}", relevance.directions.len()));
        let mut order: Vec<usize> = (0..q).collect();
        order.sort_by(|&a, &b| relevance.inputs[b].share.total_cmp(&relevance.inputs[a].share));
        for (k, &j) in order.iter().take(10).enumerate() {
            let head = if k == 0 { "share" } else { "" };
            let share = relevance.inputs[j];
            lines.push(format!(
                "  {head:<13} {} {} {:.1} % ± {:.1}",
                of.inputs[j],
                bar(share.share),
                100.0 * share.share,
                100.0 * share.std
            ));
        }
    }
    lines.extend(scores_text("  held out      ", &report.scores, &of.targets));
    Ok(lines.join("\n"))
}

/// One line for every target that was scored, with `head` in front.
pub fn scores_text(head: &str, scores: &[Option<Scores>], targets: &[String]) -> Vec<String> {
    let one = |(s, name): (&Option<Scores>, &String)| {
        let s = s.as_ref()?;
        let mut parts = Vec::new();
        let number = |v: Option<f64>, what: &str| v.map(|v| format!("{what} {}", short(v)));
        parts.extend(number(s.rmse, "RMSE"));
        parts.extend(number(s.nmse, "NMSE"));
        parts.extend(number(s.nlpd, "NLPD"));
        if let Some(c) = s.coverage {
            let [a, b, c] = c.map(|v| format!("{:.0} %", 100.0 * v));
            parts.push(format!("inside 50/90/95 %: {a}, {b}, {c}"));
        }
        parts.extend(s.accuracy.map(|v| format!("accuracy {:.1} %", 100.0 * v)));
        parts.extend(number(s.log_loss, "log loss"));
        Some(format!("{head}{name}: {} ({})", parts.join(", "), count(s.n, "row")))
    };
    scores.iter().zip(targets).filter_map(one).collect()
}

/// Puts the scores into a JSON document: averages over the targets under the usual keys, and each target's.
pub fn put_scores(all: &mut Value, scores: &[Option<Scores>], targets: &[String]) {
    let known: Vec<&Scores> = scores.iter().flatten().collect();
    if known.is_empty() {
        return;
    }
    let mean = |of: &dyn Fn(&Scores) -> Option<f64>| -> Option<f64> {
        let values: Option<Vec<f64>> = known.iter().map(|s| of(s)).collect();
        values.map(|v| v.iter().sum::<f64>() / v.len() as f64)
    };
    let of_values = known[0].rmse.is_some();
    if of_values {
        all["rmse"] = json!(mean(&|s| s.rmse));
        all["nmse"] = json!(mean(&|s| s.nmse));
        all["nlpd"] = json!(mean(&|s| s.nlpd));
    }
    if known[0].coverage.is_some() {
        let level = |k: usize| mean(&|s| s.coverage.map(|c| c[k]));
        all["coverage"] = json!({ "50": level(0), "90": level(1), "95": level(2) });
    }
    if known[0].accuracy.is_some() {
        all["accuracy"] = json!(mean(&|s| s.accuracy));
        all["log_loss"] = json!(mean(&|s| s.log_loss));
    }
    all["scored"] = json!(known.iter().map(|s| s.n).sum::<usize>());
    if targets.len() > 1 {
        let named = scores.iter().zip(targets).map(|(s, name)| (name.clone(), json!(s)));
        all["scores"] = named.collect::<serde_json::Map<_, _>>().into();
    }
}

/// The model as JSON.
pub fn summary_json(of: &TrainedRegression) -> Outcome<Value> {
    let report = &of.report;
    let (n, q, d) = of.model.sizes();
    let mut all = json!({
        "model": of.model.name(),
        "likelihood": of.model.likelihood(),
        "kernel": report.kernel,
        "kernel_fitted": of.model.kernel().expression(),
        "inputs": of.inputs,
        "targets": of.targets,
        "n": n,
        "q": q,
        "d": d,
        "log_evidence": report.evidence,
        "iterations": report.iterations,
        "evaluations": report.evaluations,
        "converged": report.converged,
        "stop_reason": report.stop_reason,
        "gradient_norm": report.gradient_norm,
        "begun": report.begun,
        "seconds": report.seconds,
        "restarts": report.restarts,
        "seed": report.seed,
        "scale": report.scale,
    });
    if let Some(noise) = of.model.noise_variance() {
        all["noise_variance"] = json!(noise);
    }
    if of.model.is_fitc() {
        all["approximation"] = json!("fitc");
    }
    if let Some(m) = of.model.inducing() {
        all["inducing"] = json!(m);
    }
    if let Some(k) = of.model.latent_dim() {
        all["latent_dim"] = json!(k);
    }
    let errors = narrowed(of)?;
    if !errors.is_empty() {
        let evidence = |j: usize| of.model.error_evidence().iter().find(|e| e.column == j);
        all["inferred_inputs"] = errors
            .iter()
            .map(|e| {
                json!({
                    "input": of.inputs[e.column],
                    "std": e.read,
                    "posterior_std": e.left,
                    "learnt": e.learnt,
                    "clear": evidence(e.column).map(|e| e.is_clear()),
                    "lost_without": evidence(e.column).map(|e| e.without),
                    "lost_doubled": evidence(e.column).map(|e| e.doubled),
                })
            })
            .collect();
    }
    if of.model.latent_inputs() > 0 {
        all["latent_inputs"] = json!(of.model.latent_inputs());
    }
    if !of.classes.is_empty() {
        all["classes"] = json!(of.classes);
    }
    if let Some(relevance) = of.model.weight_relevance()? {
        all["useful_directions"] = json!(relevance.useful());
        all["directions"] = relevance
            .directions
            .iter()
            .map(|d| json!({ "index": d.index, "contribution": d.contribution, "useful": d.useful }))
            .collect();
        all["input_shares"] = relevance
            .inputs
            .iter()
            .zip(&of.inputs)
            .map(|(s, name)| json!({ "input": name, "share": s.share, "std": s.std, "low": s.low, "high": s.high }))
            .collect();
    }
    put_scores(&mut all, &report.scores, &of.targets);
    Ok(all)
}
