//! Some of the inputs q(x_n), one a column: a coordinate of all of them is contiguous.

use crate::expectation::Gaussians;
use crate::mat::Mat;
use std::ops::Range;

/// Some points: μ, √S and their gradients, Q×B. Where B is more than there are points, the last is repeated, and its
/// copies have the adjoint 0.
#[derive(Default)]
pub(crate) struct Points {
    pub points: Range<usize>,
    pub mean: Mat,
    pub std: Mat,
    pub mean_bar: Mat,
    pub std_bar: Mat,
}

impl Points {
    /// Copies some points; B is the next multiple of `together`.
    pub fn load(&mut self, points: Range<usize>, q: &Gaussians, together: usize) {
        let (dim, width, last) = (q.dim(), points.len().next_multiple_of(together), points.end - 1);
        self.mean.resize(dim, width);
        self.std.resize(dim, width);
        for i in 0..width {
            let n = (points.start + i).min(last);
            for (d, (mean, var)) in q.mean.row(n).iter().zip(q.var.row(n)).enumerate() {
                self.mean[(d, i)] = *mean;
                self.std[(d, i)] = var.sqrt();
            }
        }
        self.points = points;
    }

    /// Sets the gradients to 0.
    pub fn clear_bars(&mut self) {
        for bar in [&mut self.mean_bar, &mut self.std_bar] {
            bar.resize(self.mean.rows(), self.mean.cols());
            bar.fill(0.0);
        }
    }

    /// B.
    pub fn width(&self) -> usize {
        self.mean.cols()
    }

    /// Adds the gradients to rows of μ̄ and S̄; S̄ = ∂F/∂√S / 2√S.
    pub fn add_bars_to(&self, mean: &mut [f64], var: &mut [f64]) {
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
