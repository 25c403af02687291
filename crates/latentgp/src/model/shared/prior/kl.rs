//! The KL divergence of independent normal distributions.

use crate::fast::vmath::{Instructions, LnSum, Vectorized, vectorize};

/// Σ KL(N(μ, S) ‖ N(m, p)) = ½ Σ ((μ − m)²/p + S/p − ln(S/p) − 1); adds −∂KL to the gradients of μ and S.
///
/// All slices have the same length.
pub fn gaussian_kl(
    mean: &[f64],
    var: &[f64],
    m: &[f64],
    p: &[f64],
    grads: Option<(&mut [f64], &mut [f64])>,
) -> f64 {
    vectorize(Kl { mean, var, m, p, grads })
}

struct Kl<'a> {
    mean: &'a [f64],
    var: &'a [f64],
    m: &'a [f64],
    p: &'a [f64],
    grads: Option<(&'a mut [f64], &'a mut [f64])>,
}

impl Vectorized for Kl<'_> {
    type Out = f64;
    #[inline(always)]
    fn run<I: Instructions>(self) -> f64 {
        const LANES: usize = LnSum::LANES;
        let len = self.mean.len();
        let (mean, var, m, p) = (self.mean, &self.var[..len], &self.m[..len], &self.p[..len]);
        if let Some((mean_bar, var_bar)) = self.grads {
            let (mean_bar, var_bar) = (&mut mean_bar[..len], &mut var_bar[..len]);
            for i in 0..len {
                let precision = 1.0 / p[i];
                mean_bar[i] -= (mean[i] - m[i]) * precision;
                var_bar[i] -= 0.5 * (precision - 1.0 / var[i]);
            }
        }
        let (mut sums, mut logs) = ([0.0; LANES], LnSum::new());
        for from in (0..len).step_by(LANES) {
            // Beyond the end, a Gaussian that is its prior adds nothing.
            let at = |x: &[f64], none: f64| match x[from..].first_chunk::<LANES>() {
                Some(all) => *all,
                None => std::array::from_fn(|l| x.get(from + l).copied().unwrap_or(none)),
            };
            let (mean, var, m, p) = (at(mean, 0.0), at(var, 1.0), at(m, 0.0), at(p, 1.0));
            let precision: [f64; LANES] = std::array::from_fn(|l| 1.0 / p[l]);
            let ratio: [f64; LANES] = std::array::from_fn(|l| var[l] * precision[l]);
            for l in 0..LANES {
                sums[l] += (mean[l] - m[l]) * (mean[l] - m[l]) * precision[l] + ratio[l] - 1.0;
            }
            logs.add(ratio);
        }
        0.5 * (sums.iter().sum::<f64>() - logs.total())
    }
}
