//! Points in lanes: a coordinate of all of them is contiguous. Where there are more lanes than points, the last is repeated,
//! and counts nothing.

use super::Gaussians;
use crate::mat::Mat;
use std::ops::Range;

/// Some points in lanes: μ, √S and their gradients, Q×B.
#[derive(Default)]
pub(super) struct Points {
    pub points: Range<usize>,
    pub mean: Mat,
    pub std: Mat,
    pub mean_bar: Mat,
    pub std_bar: Mat,
}

impl Points {
    /// Takes some points, in a multiple of `together` lanes.
    pub fn place(&mut self, points: Range<usize>, q: &Gaussians, together: usize) {
        let (dim, lanes, last) = (q.dim(), points.len().next_multiple_of(together), points.end - 1);
        self.mean.resize(dim, lanes);
        self.std.resize(dim, lanes);
        for i in 0..lanes {
            let n = (points.start + i).min(last);
            for (d, (mean, var)) in q.mean.row(n).iter().zip(q.var.row(n)).enumerate() {
                self.mean[(d, i)] = *mean;
                self.std[(d, i)] = var.sqrt();
            }
        }
        self.points = points;
    }

    pub fn clear_bars(&mut self) {
        for bar in [&mut self.mean_bar, &mut self.std_bar] {
            bar.resize(self.mean.rows(), self.mean.cols());
            bar.fill(0.0);
        }
    }

    /// B.
    pub fn lanes(&self) -> usize {
        self.mean.cols()
    }

    /// Adds the gradients to rows of μ̄ and S̄; S̄ = ∂F/∂√S / 2√S.
    pub fn hand_out(&self, mean: &mut [f64], var: &mut [f64]) {
        let dim = self.mean.rows();
        let rows = mean.chunks_exact_mut(dim).zip(var.chunks_exact_mut(dim));
        for (i, (mean, var)) in rows.enumerate() {
            for d in 0..dim {
                mean[d] += self.mean_bar[(d, i)];
                let std = self.std[(d, i)];
                if std > 0.0 {
                    var[d] += self.std_bar[(d, i)] / (2.0 * std);
                }
            }
        }
    }
}
