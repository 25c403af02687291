//! The page as one file: styles, scripts and data in it, and decoding done by the page.
//!
//! Scripts are joined in their order: `import` lines go and `export` words too. The policy in the file allows its own style
//! and its own script by their hashes and nothing else; data stand in a block that is no script.

use crate::assets::{asset, scripts};
use crate::kernel_json::kernel_json;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use latentgp::posterior::{Explained, Factors, Posterior};
use latentgp::{Error, Mat, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Inducing inputs beyond which decoding would be slow in a page, and the file large.
const MOST_INDUCING: usize = 1500;

/// What the page would ask a server for.
pub struct Arrays {
    /// Positions by dimension, then variances.
    pub positions: Vec<f64>,
    /// The outlier score of every row.
    pub outlier: Vec<f64>,
    /// The training rows, unless they are too many.
    pub data: Option<Mat>,
    /// More columns of numbers.
    pub extra: Vec<(String, Vec<f64>)>,
    /// The process that decodes.
    pub decoder: Option<Posterior>,
    /// W and the mean of a linear model.
    pub loadings: Option<(Mat, Vec<f64>)>,
}

/// The page.
pub fn page(title: &str, about: &Value, arrays: &Arrays) -> Result<String> {
    let mut about = about.clone();
    about["geodesic"] = json!(false);
    let (decoder, why) = decoder(arrays);
    let data = json!({
        "about": about,
        "positions": floats(arrays.positions.iter().copied()),
        "outlier": floats(arrays.outlier.iter().copied()),
        "data": arrays.data.as_ref().map(|y| floats(y.as_slice().iter().copied())),
        "extra": arrays.extra.iter().map(|(name, v)| json!([name, floats(v.iter().copied())])).collect::<Value>(),
        "decoder": decoder,
        "no_decoder": why,
    });
    let part = |name: &str| asset(name).map(|a| a.text).ok_or_else(|| missing(name));
    let (style, script) = (part("style.css")?, joined());
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src blob: data:; base-uri 'none'; form-action 'none'",
        hash(&script),
        hash(style)
    );
    let head =
        format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n<style>{style}</style>");
    // A text that ends the block cannot be in it: `<` is written as its code.
    let data = data.to_string().replace('<', "\\u003c");
    let body = format!(
        "<script type=\"application/json\" id=\"data\">{data}</script>\n<script type=\"module\">{script}</script>"
    );
    Ok(part("index.html")?
        .replace("<link rel=\"stylesheet\" href=\"style.css\">", &head)
        .replace("<script type=\"module\" src=\"main.js\"></script>", &body)
        .replace("<title>latentgp</title>", &format!("<title>{}</title>", escape(title))))
}

fn missing(name: &str) -> Error {
    Error::data("the page", format!("its file `{name}` is missing"))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// All scripts as one module.
fn joined() -> String {
    let mut all = String::new();
    for script in scripts() {
        for line in script.text.lines().filter(|line| !line.starts_with("import ")) {
            all += line.strip_prefix("export ").unwrap_or(line);
            all.push('\n');
        }
    }
    all
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// 32-bit floats.
fn floats(values: impl Iterator<Item = f64>) -> String {
    STANDARD.encode(values.flat_map(|v| (v as f32).to_le_bytes()).collect::<Vec<u8>>())
}

/// 64-bit floats: differences of large numbers decide on variances.
fn doubles(m: &Mat) -> String {
    STANDARD.encode(m.as_slice().iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
}

/// What decodes in the page, or why nothing does.
fn decoder(of: &Arrays) -> (Value, Option<String>) {
    if let Some((w, mean)) = &of.loadings {
        return (json!({ "kind": "linear", "w": doubles(w), "mean": mean }), None);
    }
    let Some(p) = &of.decoder else {
        return (Value::Null, Some("this model has no process that a page could compute".into()));
    };
    if p.z.rows() > MOST_INDUCING {
        let why = format!("its process has {} points, which is too many for a page", p.z.rows());
        return (Value::Null, Some(why));
    }
    match kernel_json(&*p.kernel) {
        Err(part) => (Value::Null, Some(format!("pages cannot compute the kernel `{part}`"))),
        Ok(kernel) => {
            let told = json!({
                "kind": "process",
                "kernel": kernel,
                "m": p.z.rows(),
                "z": doubles(&p.z),
                "l": doubles(p.l.l()),
                "mean": p.scaling.mean,
                "scale": p.scaling.scale,
                "factors": p.factors.iter().map(factors).collect::<Value>(),
            });
            (told, None)
        }
    }
}

fn factors(f: &Factors) -> Value {
    let c = match &f.c {
        Explained::All => Value::Null,
        Explained::Same(c) => json!({ "c": doubles(c) }),
        Explained::Each { u, c } => json!({ "u": doubles(u), "k": u.cols(), "c": doubles(c) }),
    };
    json!({ "columns": f.columns, "v": doubles(f.v()), "explained": c })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_join_to_one_that_needs_no_other() {
        let all = joined();
        assert!(!all.lines().any(|l| l.starts_with("import ") || l.starts_with("export ")));
        // What a script imports comes before it, and imports are one line each.
        let mut before: Vec<&str> = Vec::new();
        for script in scripts() {
            for line in script.text.lines().filter(|l| l.trim_start().starts_with("import")) {
                let from = line.split('"').nth(1).expect("one line").trim_start_matches("./");
                assert!(before.contains(&from), "{} needs {from}", script.name);
            }
            before.push(script.name);
        }
        // Names at the outermost level are used once.
        let mut names: Vec<&str> = all
            .lines()
            .filter_map(|l| l.strip_prefix("async ").unwrap_or(l).split_once(' '))
            .filter(|(word, _)| ["function", "const", "let", "class"].contains(word))
            .map(|(_, rest)| {
                rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
            })
            .filter(|name| !name.is_empty())
            .collect();
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }
}
