use super::*;
use crate::check::{differences, relative_error};
use crate::mat::Mat;
use crate::param::{self, Parameterized};

fn table() -> (Mat, Mat) {
    let mut x = Mat::from_fn(9, 2, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin() * 2.0 + 1.0);
    x[(4, 1)] = f64::NAN;
    (x, Mat::from_fn(9, 2, |i, j| if j == 0 { 0.1 * (i % 3) as f64 } else { 0.0 }))
}

#[test]
fn a_cell_that_was_read_with_a_boundless_error_is_missing() {
    let (x, mut std) = table();
    let mut holed = x.clone();
    holed[(2, 0)] = f64::NAN;
    std[(2, 0)] = 1e150;
    let how = InputOptions::default();
    let mut wide = UncertainInputs::with(&x, Some(&std), &how).unwrap();
    let place = wide.read.cells.iter().position(|at| *at == (2, 0)).unwrap();
    wide.read.ratio.value[(0, place)] = START;
    let none = UncertainInputs::with(&holed, Some(&std), &how).unwrap();
    let (a, b) = (wide.gaussians(), none.gaussians());
    let close = |a: &Mat, b: &Mat| a.as_slice().iter().zip(b.as_slice()).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(close(&a.mean, &b.mean) && close(&a.var, &b.var));
    assert!((wide.kl().unwrap() - none.kl().unwrap()).abs() < 1e-12);
    let new = Mat::from_rows(&[[0.3, 0.9]]);
    let var = Mat::from_rows(&[[1e300, 0.0]]);
    let (a, b) = (
        wide.priors(&new, Some(&var)).unwrap(),
        none.priors(&new.map(|v| if v == 0.3 { f64::NAN } else { v }), None).unwrap(),
    );
    assert!(close(&a.mean, &b.mean) && close(&a.var, &b.var));
}

#[test]
fn what_was_given_comes_back() {
    let (x, std) = table();
    for how in [
        InputOptions::default(),
        InputOptions { treatment: Treatment::Averaged, ..Default::default() },
        InputOptions { learn: vec![1], ..Default::default() },
        InputOptions { latent: 2, ..Default::default() },
    ] {
        let all = UncertainInputs::with(&x, Some(&std), &how).unwrap();
        assert_eq!(all.options(), how);
        assert_eq!(all.given().dim(), 2);
        let again = UncertainInputs::of_given(all.given(), all.prior.clone(), &all.options()).unwrap();
        assert_eq!(again, all);
    }
    let mut twice = UncertainInputs::new(&x, Some(&std)).unwrap();
    assert_eq!(twice.params().len(), 2);
    twice = UncertainInputs::with(&x, Some(&std), &InputOptions { learn: vec![1, 1], ..Default::default() })
        .unwrap();
    let names: Vec<String> = twice.params().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["missing.mean", "missing.var", "errors.offset", "errors.ratio", "errors.std"]);
    assert_eq!((twice.learnt().count(), twice.read.offset.len()), (1, 6 + 8));
    crate::check::order(&mut twice).unwrap();
}

#[test]
fn gradients_of_the_parameters_agree_with_differences() {
    let (x, std) = table();
    let how = InputOptions { learn: vec![1], latent: 1, ..Default::default() };
    let mut at = UncertainInputs::with(&x, Some(&std), &how).unwrap();
    let n = at.read.offset.len();
    at.read.offset.value = Mat::from_fn(1, n, |_, c| (1.7 * c as f64).sin());
    at.read.ratio.value = Mat::from_fn(1, n, |_, c| 0.3 + 0.1 * (c % 5) as f64);
    let weight = |k: usize| Mat::from_fn(9, 3, |i, j| ((3 * i + j + 7 * k) as f64).cos());
    let (a, b) = (weight(0), weight(1));
    let value = |at: &UncertainInputs| {
        let q = at.gaussians();
        a.dot(&q.mean) + b.dot(&q.var) - at.kl().unwrap()
    };
    let mut grad = vec![0.0; param::count(&at)];
    let kl = at.pull(&a, &b, &mut grad).unwrap();
    assert!((kl - at.kl().unwrap()).abs() < 1e-12);
    let mut moved = at.clone();
    let slow = differences(&param::values(&at), |theta| {
        param::set_values(&mut moved, theta);
        value(&moved)
    });
    assert!(relative_error(&grad, &slow, 1e-3) < 1e-7);
}

#[test]
fn what_cannot_be_is_refused() {
    let (x, std) = table();
    let error = |how: InputOptions| UncertainInputs::with(&x, Some(&std), &how).err().unwrap().to_string();
    assert!(error(InputOptions { learn: vec![2], ..Default::default() }).contains("below 2"));
    let both = InputOptions { learn: vec![0], treatment: Treatment::Averaged, ..Default::default() };
    assert!(error(both).contains("inferred"));
    assert!("mean".parse::<Treatment>().unwrap_err().to_string().contains("inferred or averaged"));
    assert_eq!("averaged".parse::<Treatment>().unwrap().to_string(), "averaged");
    let inputs = UncertainInputs::with(&x, None, &InputOptions::default()).unwrap();
    assert!(inputs.priors(&Mat::zeros(1, 3), None).is_err());
    assert!(inputs.priors(&Mat::zeros(1, 2), Some(&Mat::zeros(2, 2))).is_err());
}
