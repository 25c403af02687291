//! Test vectors from an independent implementation: every JSON case in `tests/vectors/`, or in the folder
//! that `LATENTGP_VECTORS` names. One line a case with its largest relative error.

mod bayesian_gplvm;
mod gplvm;
mod laplace;
mod named;
mod ppca;
mod projection;
mod read;
mod regression;
mod simulation;

use std::path::PathBuf;

/// The largest relative errors of a case, and what they were compared with.
pub struct Errors {
    worst: f64,
    worst_of: String,
    failed: Vec<String>,
    compared: usize,
}

impl Errors {
    fn new() -> Self {
        Errors { worst: 0.0, worst_of: String::new(), failed: Vec::new(), compared: 0 }
    }

    /// Compares relative to the largest entry, with an absolute floor of 1e-9.
    pub fn compare(&mut self, what: &str, ours: &[f64], theirs: &[f64], tolerance: f64) {
        self.compared += 1;
        if ours.len() != theirs.len() {
            self.failed.push(format!("{what}: {} numbers, expected {}", ours.len(), theirs.len()));
            return;
        }
        let error = latentgp::check::relative_error(ours, theirs, 1e-9 / tolerance);
        if error >= self.worst {
            (self.worst, self.worst_of) = (error, what.to_string());
        }
        if error > tolerance {
            self.failed.push(format!("{what}: relative error {error:.2e} above {tolerance:.0e}"));
        }
    }
}

#[test]
fn every_vector_agrees() {
    let folder = match std::env::var_os("LATENTGP_VECTORS") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"),
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|f| f.expect("a readable folder").path())
        .filter(|f| f.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no case in {}", folder.display());
    let mut failed = Vec::new();
    for file in &files {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(file).expect("a readable file");
        let case: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let mut errors = Errors::new();
        match kind(&name, &case) {
            Some(run) => run(&case, &mut errors),
            None => errors.failed.push("a kind of case that this test does not know".into()),
        }
        if errors.compared == 0 && errors.failed.is_empty() {
            errors.failed.push("nothing was compared".into());
        }
        println!(
            "{name:<36} {:>4} comparisons, worst {:.2e} ({})",
            errors.compared, errors.worst, errors.worst_of
        );
        failed.extend(errors.failed.iter().map(|f| format!("{name}: {f}")));
    }
    println!("{} cases", files.len());
    assert!(failed.is_empty(), "{} failures:\n{}", failed.len(), failed.join("\n"));
}

/// What a case is, by its fields and the prefix of its name.
fn kind(name: &str, case: &serde_json::Value) -> Option<fn(&serde_json::Value, &mut Errors)> {
    let has = |key: &str| case.get(key).is_some();
    let model = case.get("model").and_then(|m| m.as_str());
    match model {
        _ if has("cases") && has("mu") => Some(bayesian_gplvm::run),
        _ if has("propagated") && has("start_window") => Some(simulation::run),
        _ if has("models") && has("n_train") => Some(simulation::airline),
        Some("gpr") => Some(regression::run_named),
        Some("laplace") => Some(laplace::run),
        Some("ppca") => Some(ppca::run),
        Some("gplvm") => Some(gplvm::run),
        Some("spgp_dr") => Some(projection::spgp_dr),
        Some("vdmgp") => Some(projection::vdmgp),
        _ if name.starts_with("gp_regression") => Some(regression::run_nested),
        _ => None,
    }
}
