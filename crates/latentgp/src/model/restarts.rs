//! Fits from several starts, of which the best is kept.

use super::{Model, fit};
use crate::error::Result;
use crate::optim::{Optimizer, Report, quiet};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// How far kernel parameters are shaken, as a standard deviation of the unconstrained numbers: on the
/// logarithmic scale of variances and lengthscales a factor of e.
const SHAKE: f64 = 1.0;

/// Fits the model as it is and from `restarts` − 1 shaken kernels, in parallel; the highest evidence wins, and
/// the first of equal ones. The same seed gives the same bits on any number of threads.
///
/// Errs only when no run succeeds, with the error of the first.
pub fn fit_best<M: Model + Clone + Send + Sync>(
    model: &M,
    how: &dyn Optimizer,
    restarts: usize,
    seed: u64,
) -> Result<(M, Report)> {
    let run = |restart: usize| -> Result<(M, Report)> {
        let mut own = model.clone();
        if restart > 0 {
            shake(&mut own, seed, restart as u64);
        }
        let report = fit(&mut own, how, &mut quiet)?;
        Ok((own, report))
    };
    let runs: Vec<Result<(M, Report)>> = (0..restarts.max(1)).into_par_iter().map(run).collect();
    let better = |best: Result<(M, Report)>, next: Result<(M, Report)>| match (&best, &next) {
        (Ok((_, a)), Ok((_, b))) if b.value < a.value => next,
        (Err(_), Ok(_)) => next,
        _ => best,
    };
    runs.into_iter().reduce(better).expect("at least one run")
}

fn shake(model: &mut impl Model, seed: u64, stream: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    for (_, p) in model.params_mut().into_iter().filter(|(name, p)| name.starts_with("kernel.") && !p.fixed) {
        let transform = p.transform;
        for v in p.value.as_mut_slice() {
            let noise: f64 = StandardNormal.sample(&mut rng);
            *v = transform.forward(transform.inverse(*v) + SHAKE * noise);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Rbf;
    use crate::likelihood::Observations;
    use crate::mat::Mat;
    use crate::model::Laplace;
    use crate::optim::Lbfgs;
    use crate::param;

    #[test]
    fn more_starts_are_no_worse_and_repeatable() {
        let x = Mat::from_fn(20, 1, |i, _| i as f64 * 0.3);
        let counts: Vec<f64> = (0..20).map(|i| (3.0 + 3.0 * (i as f64).sin()).round()).collect();
        let mut model = Laplace::new(x, Observations::poisson(&counts).unwrap(), Rbf::new(1)).unwrap();
        model.kernel.params_mut()[1].1.set(30.0);
        let how = Lbfgs::default();
        let (_, one) = fit_best(&model, &how, 1, 3).unwrap();
        let (a, several) = fit_best(&model, &how, 4, 3).unwrap();
        let (b, again) = fit_best(&model, &how, 4, 3).unwrap();
        assert!(several.value <= one.value && several == again);
        assert_eq!(param::values(&a), param::values(&b));
        model.mean.set(f64::NAN);
        assert!(fit_best(&model, &how, 2, 3).is_err());
    }
}
