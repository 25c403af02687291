//! Fifth-degree cubature.

use super::rule::Rule;
use crate::mat::Mat;
use crate::scratch::Pooled;

/// The fully symmetric rule of degree 5 with 2Q² + 1 nodes: exact for polynomials of degree 5.
///
/// With r² = Q + 2: the centre with weight 2/(Q+2), ±r e_q with weight (4−Q)/(2(Q+2)²), and
/// (±r e_p ± r e_q)/√2, p < q, with weight 1/(Q+2)². For Q > 4 the weights of ±r e_q are negative: Ψ2 may
/// then fail to be positive, and Ψ0 < tr Kzz⁻¹Ψ2 can happen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cubature5;

impl Rule for Cubature5 {
    fn expression(&self) -> String {
        "cubature5".into()
    }
    fn count(&self, dim: usize) -> f64 {
        2.0 * (dim as f64).powi(2) + 1.0
    }
    fn weights(&self, dim: usize) -> Vec<f64> {
        let q = dim as f64;
        let pairs = 2 * dim * dim.saturating_sub(1);
        let mut weights = Pooled::filled(1 + 2 * dim + pairs, 1.0 / (q + 2.0).powi(2));
        weights[0] = 2.0 / (q + 2.0);
        weights[1..=2 * dim].fill((4.0 - q) / (2.0 * (q + 2.0).powi(2)));
        weights.into_vec()
    }
    fn nodes(&self, dim: usize) -> Mat {
        let radius = (dim as f64 + 2.0).sqrt();
        let (mut nodes, mut last) = (Mat::zeros(2 * dim * dim + 1, dim), 0);
        let mut push = |at: &[(usize, f64)]| {
            last += 1;
            at.iter().for_each(|&(q, v)| nodes[(last, q)] = v);
        };
        for q in 0..dim {
            push(&[(q, radius)]);
            push(&[(q, -radius)]);
        }
        let r = radius / std::f64::consts::SQRT_2;
        for p in 0..dim {
            for q in p + 1..dim {
                for (a, b) in [(r, r), (r, -r), (-r, r), (-r, -r)] {
                    push(&[(p, a), (q, b)]);
                }
            }
        }
        nodes
    }
}
