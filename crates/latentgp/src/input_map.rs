//! What stands between scaled inputs and those that enter the kernel.
//!
//! ```text
//! as is        x
//! projected    xPᵀ                                                       SPGP-DR
//! random       N(xWᵀ, diag (x∘x)Vᵀ), with q(w_kd) = N(W_kd, V_kd)        VDMGP
//! ```
//!
//! x is the scaled input.

use crate::error::{Error, Result};
use crate::expectation::Gaussians;
use crate::linalg;
use crate::mat::Mat;

/// How scaled inputs become those of the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum InputMap {
    /// They are the same.
    #[default]
    AsIs,
    /// A known projection.
    Projected {
        /// P, K×D.
        p: Mat,
    },
    /// An uncertain projection, its entries independent and normal.
    Random {
        /// W, K×D: the means.
        mean: Mat,
        /// V, K×D: the variances.
        var: Mat,
    },
}

impl InputMap {
    /// Whether an input has one certain place in the kernel's space.
    pub fn is_certain(&self) -> bool {
        !matches!(self, InputMap::Random { .. })
    }

    /// D, the columns of the inputs, for a kernel of `dim` columns.
    pub fn input_dim(&self, dim: usize) -> usize {
        match self {
            InputMap::AsIs => dim,
            InputMap::Projected { p } => p.cols(),
            InputMap::Random { mean, .. } => mean.cols(),
        }
    }

    /// The places in the kernel's space of scaled inputs, N×D; variances are 0 where they are certain.
    ///
    /// Errs when the columns differ in number from those that the map was made for, and when a number is
    /// not finite.
    pub fn apply(&self, x: &Mat) -> Result<Gaussians> {
        if x.cols() != self.input_dim(x.cols()) {
            return Err(Error::shape("columns of the inputs", self.input_dim(x.cols()), x.cols()));
        }
        let q = match self {
            InputMap::AsIs => Gaussians::certain(x.clone()),
            InputMap::Projected { p } => Gaussians::certain(linalg::mul_nt(x, p)),
            InputMap::Random { mean, var } => {
                Gaussians { mean: linalg::mul_nt(x, mean), var: linalg::mul_nt(&x.map(|v| v * v), var) }
            }
        };
        let finite = |i: &usize| q.mean.row(*i).iter().chain(q.var.row(*i)).all(|v| v.is_finite());
        if let Some(row) = (0..q.n()).find(|i| !finite(i)) {
            return Err(Error::not_finite(format!("the projection of row {} of the inputs", row + 1)));
        }
        Ok(q)
    }
}

/// The points of the unscented rule around one input that is uncertain in r columns: x ± √(r S_d) along each of them, x
/// itself where there are none.
pub(crate) fn sigma_points(mean: &[f64], var: &[f64], uncertain: &[usize]) -> Mat {
    let r = uncertain.len();
    Mat::from_fn((2 * r).max(1), mean.len(), |s, j| {
        let own = r > 0 && uncertain[s % r] == j;
        let step = if own { (r as f64 * var[j]).sqrt() } else { 0.0 };
        if s < r { mean[j] + step } else { mean[j] - step }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation::correlated::uncertain_columns;

    #[test]
    fn inputs_are_projected() {
        let x = Mat::from_rows(&[[1.0, 1.0], [0.0, 0.0]]);
        let p = Mat::from_rows(&[[2.0, -1.0]]);
        assert_eq!(InputMap::AsIs.apply(&x).unwrap(), Gaussians::certain(x.clone()));
        let map = InputMap::Projected { p: p.clone() };
        assert!(map.is_certain());
        assert_eq!(map.apply(&x).unwrap(), Gaussians::certain(Mat::column(&[1.0, 0.0])));
        let map = InputMap::Random { mean: p, var: Mat::from_rows(&[[0.25, 0.5]]) };
        let q = map.apply(&x).unwrap();
        assert!(!map.is_certain());
        assert_eq!((q.mean.as_slice(), q.var.as_slice()), (&[1.0, 0.0][..], &[0.75, 0.0][..]));
        assert!(matches!(map.apply(&Mat::zeros(1, 3)), Err(Error::Shape { .. })));
        for bad in [f64::NAN, f64::INFINITY, 1e300] {
            assert!(matches!(map.apply(&Mat::filled(1, 2, bad)), Err(Error::NotFinite { .. })));
        }
    }

    #[test]
    fn sigma_points_have_the_moments() {
        for (var, columns) in [([0.3, 0.0, 0.2], vec![0, 2]), ([0.3, 0.0, 0.0], vec![0]), ([0.0; 3], vec![])]
        {
            assert_eq!(uncertain_columns(&var), columns);
            let points = sigma_points(&[1.0, 2.0, 3.0], &var, &columns);
            let average =
                |of: &dyn Fn(usize) -> f64| (0..points.rows()).map(of).sum::<f64>() / points.rows() as f64;
            for j in 0..3 {
                let mean = average(&|s| points[(s, j)]);
                let spread = average(&|s| (points[(s, j)] - mean).powi(2));
                assert!((mean - 1.0 - j as f64).abs() < 1e-15 && (spread - var[j]).abs() < 1e-15);
            }
        }
    }
}
