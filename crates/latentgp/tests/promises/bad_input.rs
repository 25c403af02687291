//! Bad input gives a model or a clear error: no panic, no NaN in any output.

use latentgp::kernel::Matern32;
use latentgp::model::{Model, Training};
use latentgp::{Error, Mat};
use std::ops::ControlFlow;

fn wave(n: usize, d: usize) -> Mat {
    Mat::from_fn(n, d, |i, j| (0.7 * i as f64 + 1.1 * j as f64).sin())
}

/// Fits, projects, reconstructs and imputes; every number must be finite.
fn use_all(y: &Mat, training: &Training) -> Result<(), Error> {
    let go = |_: &latentgp::fit::Run| ControlFlow::Continue(());
    let fit = training.fit(y, &Matern32::new(training.latent_dim), &go)?;
    assert!(fit.evidence.is_finite() && fit.trace.iter().all(|b| b.is_finite()));
    let model = &fit.model;
    for (name, p) in latentgp::param::Parameterized::params(model) {
        assert!(p.value.is_finite(), "{name}");
    }
    let posterior = model.posterior()?;
    let back = posterior.predict_uncertain(&model.latent())?;
    assert!(back.mean.is_finite() && back.var.is_finite());
    let imputed = model.impute(&posterior, &y.map(|v| v * 1.01))?;
    assert!(
        imputed.y.is_finite()
            && imputed.var.is_finite()
            && imputed.latent.bound.iter().all(|b| b.is_finite())
    );
    assert!(model.relevance(&posterior)?.iter().all(|r| r.is_finite()));
    let c = fit.model.certificate().unwrap();
    assert!(c.psi1.is_finite() && c.psi2.is_finite() && c.bound.is_finite());
    Ok(())
}

fn quick() -> Training {
    Training { inducing: 6, max_iterations: 40, hold: 10, ..Training::default() }
}

#[test]
fn what_cannot_be_learnt_from_is_refused_in_words() {
    let mut all_missing = wave(8, 3);
    (0..8).for_each(|i| all_missing[(i, 1)] = f64::NAN);
    let mut infinite = wave(8, 3);
    infinite[(4, 2)] = f64::INFINITY;
    for (what, y, part) in [
        ("empty", Mat::zeros(0, 3), "nothing to learn"),
        ("no columns", Mat::zeros(3, 0), "nothing to learn"),
        ("one row", wave(1, 3), "at least two rows"),
        ("a column of NaN", all_missing, "column"),
        ("an infinity", infinite, "infinite"),
    ] {
        let message = use_all(&y, &quick()).expect_err(what).to_string();
        assert!(message.contains(part), "{what}: {message}");
    }
    let message = use_all(&wave(8, 3), &Training { latent_dim: 0, ..quick() }).unwrap_err().to_string();
    assert!(message.contains("at least 1"), "{message}");
    let message = use_all(&wave(8, 3), &Training { inducing: 0, ..quick() }).unwrap_err().to_string();
    assert!(message.contains("at least 1"), "{message}");
}

#[test]
fn odd_data_still_give_a_model() {
    let mut constant = wave(15, 4);
    (0..15).for_each(|i| constant[(i, 2)] = 3.25);
    let mut holes = wave(15, 4);
    (0..15).for_each(|i| holes[(i, i % 4)] = f64::NAN);
    (0..4).for_each(|j| holes[(3, j)] = f64::NAN);
    let duplicates = Mat::from_fn(15, 4, |i, j| wave(3, 4)[(i % 3, j)]);
    for (what, y) in [
        ("two rows", wave(2, 3)),
        ("one column", wave(12, 1)),
        ("constant column", constant),
        ("all constant", Mat::filled(10, 3, 7.0)),
        ("all zero", Mat::zeros(10, 3)),
        ("holes in every row", holes),
        ("duplicate rows", duplicates),
        ("fewer rows than inducing inputs", wave(4, 6)),
        ("1e150", wave(12, 3).map(|v| v * 1e150)),
        ("1e-150", wave(12, 3).map(|v| v * 1e-150)),
        ("1e150 beside 1e-150", Mat::from_fn(12, 2, |i, j| wave(12, 2)[(i, j)] * [1e150, 1e-150][j])),
        ("an outlier", Mat::from_fn(12, 3, |i, j| if (i, j) == (5, 1) { 1e12 } else { wave(12, 3)[(i, j)] })),
    ] {
        use_all(&y, &quick()).unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    use_all(&wave(12, 2), &Training { latent_dim: 5, ..quick() }).expect("Q > D");
    use_all(&wave(12, 3), &Training { restarts: 3, ..quick() }).expect("restarts");
}

#[test]
fn unscaled_extremes_are_a_model_or_an_error() {
    use latentgp::data::Scale;
    for size in [1e150, 1e-150, 1e8, 1e-8] {
        for scale in [Scale::None, Scale::Center, Scale::Global] {
            let y = wave(12, 3).map(|v| v * size);
            if let Err(e) = use_all(&y, &Training { scale, ..quick() }) {
                assert!(!e.to_string().is_empty());
            }
        }
    }
}
