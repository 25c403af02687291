//! The first stage of a fit, in which the noise and the kernel's variances are held.

use crate::param::Parameterized;

/// Fixes the noise and the kernel's variances; returns the names of those that were free.
pub(super) fn hold(model: &mut (impl Parameterized + ?Sized)) -> Vec<String> {
    let mut held = Vec::new();
    for (name, p) in model.params_mut() {
        let own = name.rsplit('.').next().is_some_and(|own| ["variance", "weight"].contains(&own));
        let is_scale = name == "noise" || (name.starts_with("kernel.") && own);
        if is_scale && !p.fixed {
            p.fixed = true;
            held.push(name);
        }
    }
    held
}

/// Frees what [`hold`] fixed.
pub(super) fn release(model: &mut (impl Parameterized + ?Sized), held: &[String]) {
    for (name, p) in model.params_mut() {
        if held.contains(&name) {
            p.fixed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::parse;
    use crate::mat::Mat;
    use crate::model::Training;

    #[test]
    fn scales_are_held_and_nothing_else() {
        for (kernel, expected) in [
            ("rbf + linear", vec!["kernel.0.variance", "kernel.1.variance"]),
            ("spectral_mixture(components=2)", vec!["kernel.weight"]),
            ("arc_sine", vec!["kernel.variance"]),
        ] {
            let mut model = Training { latent_dim: 2, inducing: 3, ..Training::default() }
                .start(&Mat::from_fn(9, 3, |i, j| ((i * 3 + j) as f64).sin()), &*parse(kernel, 2).unwrap(), 0)
                .unwrap();
            let held = hold(&mut model);
            let kernel: Vec<&String> = held.iter().filter(|name| *name != "noise").collect();
            assert_eq!(kernel, expected);
            assert!(held.iter().any(|name| name == "noise"));
            release(&mut model, &held);
            assert!(model.params().iter().all(|(_, p)| !p.fixed));
        }
    }
}
