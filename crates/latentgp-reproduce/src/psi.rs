//! Random inputs of the experiments on Ψ-statistics, and Ψ1 by itself.

use latentgp::expectation::{Gaussians, MonteCarlo, Rule};
use latentgp::kernel::Kernel;
use latentgp::{Mat, Result};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

const POINTS: usize = 40;
const INDUCING: usize = 20;

/// Uncertain inputs and inducing inputs.
pub struct Sample {
    /// q(x_n), N = 40.
    pub q: Gaussians,
    /// Z, M = 20.
    pub z: Mat,
}

impl Sample {
    /// μ and Z from N(0, I) by the seed, every variance S the same.
    pub fn new(dim: usize, variance: f64, seed: u64) -> Result<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(dim as u64);
        let mut normal = |rows| Mat::from_fn(rows, dim, |_, _| StandardNormal.sample(&mut rng));
        let (mean, z) = (normal(POINTS), normal(INDUCING));
        Ok(Sample { q: Gaussians::new(mean, Mat::filled(POINTS, dim, variance))?, z })
    }
}

/// Monte Carlo that draws anew at every step.
pub fn fresh(samples: usize, seed: u64) -> MonteCarlo {
    let mut rule = MonteCarlo::new(samples, seed);
    rule.fresh = true;
    rule
}

/// Ψ1 = Σ_s w_s k(μ + √S ∘ ξ_s, Z), node by node on one thread.
pub fn psi1(rule: &impl Rule, kernel: &dyn Kernel, sample: &Sample) -> Mat {
    let (q, z) = (&sample.q, &sample.z);
    let (n, dim, m) = (q.n(), q.dim(), z.rows());
    let (weights, mut own) = (rule.weights(dim), Vec::new());
    if rule.has_own_nodes() {
        own = vec![vec![0.0; weights.len() * dim]; n];
        own.iter_mut().enumerate().for_each(|(row, out)| rule.draw(dim, row, 0, out));
    }
    let shared = if own.is_empty() { Some(rule.nodes(dim)) } else { None };
    let (mut x, mut k, mut out) = (Mat::zeros(n, dim), Mat::zeros(n, m), Mat::zeros(n, m));
    let mut xi = vec![0.0; dim];
    for (s, w) in weights.into_iter().enumerate() {
        for i in 0..n {
            match &shared {
                Some(nodes) => xi.copy_from_slice(nodes.row(s)),
                None => xi.copy_from_slice(&own[i][s * dim..(s + 1) * dim]),
            }
            for j in 0..dim {
                x[(i, j)] = q.mean[(i, j)] + q.var[(i, j)].sqrt() * xi[j];
            }
        }
        kernel.cross(&x, z, &mut k);
        out.add_scaled(w, &k);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use latentgp::expectation::{Expectation, Unscented};
    use latentgp::kernel::Matern32;

    #[test]
    fn it_is_the_librarys() {
        let sample = Sample::new(3, 0.1, 5).unwrap();
        let kernel = Matern32::new(3);
        let near =
            |a: &Mat, b: &Mat| a.as_slice().iter().zip(b.as_slice()).all(|(a, b)| (a - b).abs() < 1e-12);
        let psi = Unscented.psi(&kernel, &sample.q, &sample.z).unwrap();
        assert!(near(&psi1(&Unscented, &kernel, &sample), &psi.psi1));
        let draws = MonteCarlo::new(7, 3);
        let psi = draws.psi(&kernel, &sample.q, &sample.z).unwrap();
        assert!(near(&psi1(&draws, &kernel, &sample), &psi.psi1));
    }
}
