//! Model files of version 0.1: every kind is read, gives the evidence that it tells, and is written to the same bytes.
//!
//! The files in `version_0_1` were written by the program of that version from every fourth row of `latentgp dataset
//! iris` (`unfinished.lgp`: every ninth, killed in the middle of its fit).

use latentgp::file::{ModelFile, Store, TrainedRegression, TrainedSpace};
use latentgp::fit;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/promises/version_0_1").join(format!("{name}.lgp"))
}

fn read<S: Store>(name: &str) -> S {
    let bytes = std::fs::read(path(name)).expect("a file of the repository");
    let read = S::from_file(ModelFile::from_bytes(&bytes).unwrap()).unwrap();
    assert_eq!(read.to_file().unwrap().to_bytes().unwrap(), bytes, "{name} is written differently");
    read
}

fn close(name: &str, told: f64, found: f64) {
    assert!((told - found).abs() <= 1e-9 * told.abs(), "{name}: {found}, the file says {told}");
}

#[test]
fn latent_spaces_of_version_0_1_are_read() {
    for name in ["bayesian-gplvm", "gplvm", "ppca"] {
        let space: TrainedSpace = read(name);
        close(name, space.report.evidence, space.model.evidence().unwrap());
    }
}

#[test]
fn regressions_of_version_0_1_are_read() {
    for name in ["gp", "sparse", "fitc", "spgp-dr", "vdmgp", "laplace", "svgp"] {
        let trained: TrainedRegression = read(name);
        close(name, trained.report.evidence, trained.model.log_evidence(None).unwrap());
        let (x, _) = trained.model.data().unwrap();
        assert_eq!(trained.model.predict(&x, None).unwrap().rows(), 37);
    }
}

/// The bound that the program of version 0.1 ends at when it resumes the file.
const RESUMED: f64 = -68.073977942297;

#[test]
fn a_fit_that_version_0_1_left_goes_on_to_the_same_bound() {
    let bytes = std::fs::read(path("unfinished")).expect("a file of the repository");
    let trained = TrainedSpace::from_file(ModelFile::from_bytes(&bytes).unwrap()).unwrap();
    let left = trained.unfinished.expect("an unfinished fit");
    let job = left.recipe.job(left.data, None).unwrap();
    let rest = job.fit(left.runs, &fit::go_on).unwrap();
    // Rounding differs between processors, and a fit of some hundred steps carries it on.
    assert!((rest.evidence - RESUMED).abs() < 1e-3, "{}", rest.evidence);
}
