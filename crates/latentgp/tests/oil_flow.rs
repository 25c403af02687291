//! The oil-flow data of the papers: `LATENTGP_DATA` names a folder with `three_phase_oil_flow.npz`.
//!
//! Without the folder these tests say so and compare nothing.

use latentgp::Mat;
use latentgp::data::Scale;
use latentgp::data::table::Table;
use latentgp::expectation::{Analytic, Expectation, GaussHermite, Unscented};
use latentgp::kernel::{Kernel, Matern32, Rbf};
use latentgp::metrics::{kfold, knn_accuracy};
use latentgp::model::{Model, PapersTraining, Training};
use std::ops::ControlFlow;

fn oil_flow() -> Option<(Mat, Vec<usize>)> {
    let Some(folder) = std::env::var_os("LATENTGP_DATA") else {
        println!("skipped: set LATENTGP_DATA to a folder with three_phase_oil_flow.npz");
        return None;
    };
    let file = std::path::Path::new(&folder).join("three_phase_oil_flow.npz");
    let read = |key: &str| Table::read(&format!("{}:{key}", file.display())).unwrap().to_mat().unwrap();
    let labels = read("labels").as_slice().iter().map(|l| *l as usize).collect();
    Some((read("Y"), labels))
}

#[test]
fn the_papers_start_has_the_documented_bounds() {
    let Some((y, _)) = oil_flow() else { return };
    let start = |kernel: &dyn Kernel, rule: &dyn Expectation| {
        let model = PapersTraining::default().start(&y, kernel, rule.boxed()).unwrap();
        model.log_evidence(None).unwrap()
    };
    let (rbf, matern) = (Rbf::new(5), Matern32::new(5));
    for (what, found, expected) in [
        ("analytic rbf", start(&rbf, &Analytic), -23047.08),
        ("unscented rbf", start(&rbf, &Unscented), -23360.55),
        ("Gauss-Hermite rbf", start(&rbf, &GaussHermite::new(2)), -23401.66),
        ("unscented Matérn 3/2", start(&matern, &Unscented), -36097.05),
        ("Gauss-Hermite Matérn 3/2", start(&matern, &GaussHermite::new(2)), -36370.12),
    ] {
        println!("{what:<26} {found:.4} (expected {expected})");
        assert!((found - expected).abs() < 1e-6 * expected.abs(), "{what}: {found} against {expected}");
    }
}

#[test]
fn fits_reach_their_bounds_and_separate_the_regimes() {
    let Some((y, labels)) = oil_flow() else { return };
    type Case = (&'static str, Box<dyn Kernel>, Box<dyn Expectation>, f64, f64);
    let cases: [Case; 3] = [
        ("rbf analytic", Box::new(Rbf::new(5)), Box::new(Analytic), 155.3, 0.98),
        ("rbf unscented", Box::new(Rbf::new(5)), Box::new(Unscented), 155.1, 0.98),
        ("Matérn 3/2 unscented", Box::new(Matern32::new(5)), Box::new(Unscented), 150.0, 0.95),
    ];
    for (what, kernel, expectation, bound, accuracy) in cases {
        let training =
            Training { latent_dim: 5, inducing: 20, expectation, scale: Scale::None, ..Training::default() };
        let fit = training.fit(&y, &*kernel, &|_| ControlFlow::Continue(())).unwrap();
        let relevance = fit.model.relevance(&fit.model.posterior().unwrap()).unwrap();
        let mut order: Vec<usize> = (0..5).collect();
        order.sort_by(|a, b| relevance[*b].total_cmp(&relevance[*a]));
        let x = fit.model.mean.value.select_cols(&order[..2]);
        let found = knn_accuracy(&x, &labels, 1, &kfold(100, 5, 0).unwrap()).unwrap();
        println!(
            "{what:<22} bound {:.2}, 1-NN {:.1} ± {:.1} %, {} iterations, {} evaluations, {}",
            fit.evidence,
            100.0 * found.mean,
            100.0 * found.std,
            fit.iterations,
            fit.evaluations,
            fit.stop_reason
        );
        assert!(fit.evidence >= bound, "{what}: bound {}", fit.evidence);
        assert!(fit.evaluations < 1500, "{what}: {} evaluations", fit.evaluations);
        assert!(found.mean >= accuracy - 1e-12, "{what}: {}", found.mean);
    }
}
