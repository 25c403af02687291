//! One HTML page about a model, with everything in it: no script, no font and no picture from elsewhere.

use crate::failure::Outcome;
use crate::figure::{
    self,
    page::{document, escape, prose},
};
use crate::picture;
use crate::regress;
use crate::summary::{self, maximised};
use crate::trained::Ready;
use crate::words::{bar, short};
use latentgp::file::TrainedRegression;
use latentgp::param::Parameterized;
use std::fmt::Write;

/// The page of a latent space.
pub fn page(ready: &Ready, title: &str, source: &str) -> Outcome<String> {
    let (model, report) = (&ready.trained.model, &ready.trained.report);
    let (n, d, q) = model.sizes();
    let mut body = String::new();
    let mut put = |text: String| body.push_str(&(text + "\n"));
    put(format!("<h1>{}</h1>", escape(title)));
    let (inducing, rule) = match model.inducing() {
        None => Default::default(),
        Some(z) => (
            format!(", {} inducing inputs", z.rows()),
            format!(", expectation <code>{}</code>", escape(&model.expectation())),
        ),
    };
    put(format!(
        "<p class=\"lead\">A {} of {n} rows × {d} columns: {q} latent dimensions{inducing}, kernel <code>{}</code>{rule}.</p>",
        model.title(),
        escape(&report.kernel)
    ));
    let what = model.objective();
    let mut facts = vec![
        (
            short(report.evidence),
            if what == "bound" { "bound of the log evidence".to_string() } else { what.to_string() },
        ),
        (
            report.iterations.to_string(),
            format!("iterations, {:.1} s: {}", report.seconds, report.stop_reason),
        ),
        (
            short(summary::mean(model.noise())),
            match model.noise().len() {
                1 => "noise variance of the scaled data".to_string(),
                _ => "noise variance of the scaled data, the mean over the columns".to_string(),
            },
        ),
    ];
    if let Some(accuracy) = ready.accuracy()? {
        facts.push((
            format!("{:.1} %", 100.0 * accuracy.mean),
            format!(
                "1-NN accuracy on the two most relevant dimensions, ± {:.1} over 5 folds",
                100.0 * accuracy.std
            ),
        ));
    }
    let facts: Vec<String> = facts
        .iter()
        .map(|(b, s)| format!("<div><b>{}</b><span>{}</span></div>", escape(b), escape(s)))
        .collect();
    put(format!("<section class=\"facts\">{}</section>", facts.join("")));
    for warning in summary::warnings(&ready.trained) {
        put(format!("<p class=\"warning\">{}</p>", prose(&warning)));
    }
    let caption = match model.inducing() {
        None => "Each mark is a training row.",
        Some(_) => {
            "Each mark is a row at its posterior mean, each ellipse one standard deviation. Crosses are inducing inputs; \
             dark ground is where predictions are uncertain, the other dimensions being at their means."
        }
    };
    put(format!(
        "<h2>Latent map</h2><figure>{}<figcaption>{caption}</figcaption></figure>",
        figure::latent_map(&picture::map(ready, "")?)?.svg()
    ));
    put("<h2>Relevance of the latent dimensions</h2><table><tr><th>dimension</th><th></th>\
         <th class=\"n\">relevance</th></tr>"
        .into());
    let most = ready.relevance.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (k, r) in ready.relevance.iter().enumerate() {
        put(format!(
            "<tr><td>{}</td><td class=\"bar\">{}</td><td class=\"n\">{}</td></tr>",
            k + 1,
            bar(r / most),
            short(*r)
        ));
    }
    put("</table>".into());
    if !report.trace.is_empty() {
        put(format!(
            "<h2>The {what} while fitting</h2><figure>{}</figure>",
            figure::trace(&summary::objective(ready), &report.trace)?.svg()
        ));
    }
    if model.inducing().is_some() {
        let certificate = prose(&summary::certificate(report));
        put(format!("<h2>How good the approximation is</h2><p>{certificate}.</p>"));
    }
    if let Some((_, parameters)) = model.parameters() {
        put(columns(ready)?);
        put(self::parameters(parameters));
    }
    put(format!(
        "<h2>Use it</h2><pre>latentgp transform {source} NEW.csv      # where new rows lie\n\
         latentgp reconstruct {source} LATENT.csv # data at latent positions\n\
         latentgp impute {source} HOLES.csv       # fill missing cells\n\
         latentgp plot {source} --out FIG.svg     # this picture</pre>",
        source = escape(source)
    ));
    Ok(document(title, &body))
}

/// The page of a regression.
pub fn regression(of: &TrainedRegression, title: &str, source: &str) -> Outcome<String> {
    let report = &of.report;
    let mut body = format!("<h1>{}</h1>\n", escape(title));
    let _ = writeln!(
        body,
        "<p class=\"lead\">{} on {}: kernel <code>{}</code>.</p>",
        escape(&of.targets.join(", ")),
        escape(&of.inputs.join(", ")),
        escape(&report.kernel)
    );
    let fact = |b: String, s: &str| format!("<div><b>{}</b><span>{}</span></div>", escape(&b), escape(s));
    let iterations = format!("iterations, {:.1} s: {}", report.seconds, report.stop_reason);
    let mut facts = fact(short(report.evidence), "log evidence")
        + &fact(report.iterations.to_string(), &iterations)
        + &fact(of.model.sizes().0.to_string(), "rows");
    for (name, s) in of.targets.iter().zip(&report.scores) {
        let Some(s) = s else { continue };
        for (value, what) in [(s.rmse, "RMSE"), (s.nmse, "NMSE"), (s.nlpd, "NLPD"), (s.log_loss, "log loss")]
        {
            facts += &value.map_or(String::new(), |v| fact(short(v), &format!("{what} of {name}, held out")));
        }
        let accuracy = s.accuracy.map(|v| fact(format!("{:.1} %", 100.0 * v), "accuracy, held out"));
        facts += &accuracy.unwrap_or_default();
    }
    let _ = writeln!(body, "<section class=\"facts\">{facts}</section>");
    for name in &of.targets {
        let _ = writeln!(
            body,
            "<h2>{}</h2><figure>{}<figcaption>{}</figcaption></figure>",
            escape(name),
            regress::picture::draw(of, Some(name), "")?.svg(),
            regress::picture::caption(of)
        );
    }
    if !report.trace.is_empty() {
        let what = maximised("log evidence", of.model.kernel());
        let trace = figure::trace(&what, &report.trace)?;
        let _ = writeln!(body, "<h2>The fit</h2><figure>{}</figure>", trace.svg());
    }
    let _ = writeln!(body, "<h2>In words</h2><pre>{}</pre>", escape(&regress::summary(of)?));
    let _ = writeln!(
        body,
        "<h2>Use it</h2><pre>latentgp predict {source} NEW.csv    # means and variances, or probabilities\n\
         latentgp inspect {source}           # every parameter</pre>",
        source = escape(source)
    );
    Ok(document(title, &body))
}

/// How well each column is explained at the latent positions of the training rows.
fn columns(ready: &Ready) -> Outcome<String> {
    let model = &ready.trained.model;
    let fitted = model.reconstruct(&ready.latent)?;
    let y = model.scaling().undo_mean(model.y())?;
    let noise = model.noise_variance();
    let mut text =
        "<h2>Columns</h2><table><tr><th>column</th><th class=\"n\">observed</th><th class=\"n\">mean</th>\
                    <th class=\"n\">standard deviation</th><th class=\"n\">noise, std</th>\
                    <th class=\"n\">explained</th></tr>"
            .to_string();
    for (j, name) in ready.trained.columns.iter().enumerate() {
        let rows: Vec<usize> = (0..y.rows()).filter(|&i| !y[(i, j)].is_nan()).collect();
        let n = rows.len().max(1) as f64;
        let mean = rows.iter().map(|&i| y[(i, j)]).sum::<f64>() / n;
        let square = |f: &dyn Fn(usize) -> f64| rows.iter().map(|&i| f(i).powi(2)).sum::<f64>() / n;
        let spread = square(&|i| y[(i, j)] - mean);
        let rest = square(&|i| y[(i, j)] - fitted.mean[(i, j)]);
        let explained =
            if spread > 0.0 { format!("{:.1} %", 100.0 * (1.0 - rest / spread)) } else { "–".into() };
        let _ = write!(
            text,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{explained}</td></tr>",
            escape(name),
            rows.len(),
            short(mean),
            short(spread.sqrt()),
            short(noise[j].sqrt())
        );
    }
    Ok(text + "</table>")
}

/// The parameters that are few enough to be read.
fn parameters(of: &dyn Parameterized) -> String {
    const MAX_LISTED: usize = 20;
    let mut text = "<h2>Parameters</h2><table><tr><th>name</th><th>shape</th><th>value</th></tr>".to_string();
    for (name, p) in of.params() {
        let values = match p.len() {
            0..=MAX_LISTED => p.as_slice().iter().map(|v| short(*v)).collect::<Vec<_>>().join(", "),
            _ => {
                let lo = p.as_slice().iter().copied().fold(f64::INFINITY, f64::min);
                let hi = p.as_slice().iter().copied().fold(f64::NEG_INFINITY, f64::max);
                format!("from {} to {}", short(lo), short(hi))
            }
        };
        let fixed = if p.fixed { " (fixed)" } else { "" };
        let _ = write!(
            text,
            "<tr><td><code>{}</code></td><td>{}</td><td>{values}{fixed}</td></tr>",
            escape(&name),
            p.value.shape()
        );
    }
    text + "</table>"
}
