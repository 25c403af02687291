//! Ψ0 − tr Kzz⁻¹Ψ2 ≥ 0 for every rule with non-negative weights, over thousands of random cases.

use latentgp::Mat;
use latentgp::expectation::{self, Gaussians};
use latentgp::kernel;
use latentgp::linalg::Cholesky;
use proptest::prelude::*;

const KERNELS: [&str; 8] = [
    "rbf",
    "matern12",
    "matern32",
    "matern52 + linear",
    "rbf + linear + constant",
    "periodic",
    "rational_quadratic",
    "rbf * polynomial",
];
const RULES: [&str; 9] = [
    "analytic",
    "unscented",
    "scaled_unscented(alpha=1.1, kappa=1)",
    "minimal_skew",
    "gauss_hermite(points=2)",
    "gauss_hermite(points=3)",
    "cubature5",
    "monte_carlo(samples=5)",
    "quasi_monte_carlo(samples=8)",
];

fn numbers(count: usize, range: std::ops::Range<f64>) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(range, count)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]
    #[test]
    fn the_residual_variance_is_not_negative(
        which in (0..KERNELS.len(), 0..RULES.len(), 1usize..4, 1usize..6, 1usize..5),
        means in numbers(15, -3.0..3.0),
        vars in numbers(15, 0.0..4.0),
        inducing in numbers(12, -3.0..3.0),
        log_lengthscale in -1.5f64..1.5,
    ) {
        let (k, rule, dim, n, m) = which;
        let k = {
            let mut k = kernel::parse(KERNELS[k], dim).unwrap();
            for (name, p) in latentgp::param::Parameterized::params_mut(&mut k) {
                if name.ends_with("lengthscale") {
                    p.set(log_lengthscale.exp());
                }
            }
            k
        };
        let rule = expectation::parse(RULES[rule]).unwrap();
        prop_assume!(rule.check(&*k, dim).is_ok() && rule.nonnegative(dim));
        let q = Gaussians::new(
            Mat::from_fn(n, dim, |i, j| means[i * 3 + j]),
            Mat::from_fn(n, dim, |i, j| vars[i * 3 + j]),
        ).unwrap();
        let z = Mat::from_fn(m, dim, |i, j| inducing[i * 3 + j]);
        let mut kzz = Mat::zeros(m, m);
        k.gram(&z, &mut kzz);
        let chol = match Cholesky::new(&kzz, "kzz") {
            Ok(chol) if chol.condition() < 1e8 => chol,
            _ => return Ok(()),
        };
        let psi = rule.psi_whitened(&*k, &q, &z, &chol).unwrap();
        let residual = psi.psi0 - psi.psi2.trace();
        let rounding = 1e-15 * chol.condition() * psi.psi0.abs() + 1e-9 * psi.psi0.abs();
        prop_assert!(residual >= -rounding, "{k} by {rule}: Ψ0 = {}, residual {residual:e}", psi.psi0);
        let eigenvalues = latentgp::linalg::eigh(&psi.psi2).unwrap().0;
        prop_assert!(eigenvalues[0] >= -1e-9 * psi.psi0.abs(), "Ψ2 is positive semi-definite");
    }
}
