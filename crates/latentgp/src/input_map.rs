//! What stands between the inputs a user gives and those that enter the kernel.
//!
//! ```text
//! as is        x
//! projected    x̃Pᵀ, with x̃ = (x − mean)/scale                             SPGP-DR
//! random       N(x̃Wᵀ, diag (x̃∘x̃)Vᵀ), with q(w_kd) = N(W_kd, V_kd)        VDMGP
//! ```

use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::expectation::Gaussians;
use crate::linalg;
use crate::mat::Mat;

/// How given inputs become those of the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum InputMap {
    /// They are the same.
    #[default]
    AsIs,
    /// A known projection of the scaled inputs.
    Projected {
        /// The units of the inputs.
        scaling: Scaling,
        /// P, K×D.
        p: Mat,
    },
    /// An uncertain projection of the scaled inputs, its entries independent and normal.
    Random {
        /// The units of the inputs.
        scaling: Scaling,
        /// W, K×D: the means.
        mean: Mat,
        /// V, K×D: the variances.
        var: Mat,
    },
}

impl InputMap {
    /// Whether a given input has one certain place in the kernel's space.
    pub fn is_certain(&self) -> bool {
        !matches!(self, InputMap::Random { .. })
    }

    /// The places in the kernel's space of given inputs (N×D, finite); variances are 0 where they are certain.
    ///
    /// Errs when the columns differ in number from those that the map was made for, and when a number is
    /// not finite.
    pub fn apply(&self, x: &Mat) -> Result<Gaussians> {
        if !x.is_finite() {
            return Err(Error::not_finite("an input"));
        }
        let scaled = |scaling: &Scaling| {
            if scaling.mean.len() != x.cols() {
                return Err(Error::shape("columns of the inputs", scaling.mean.len(), x.cols()));
            }
            scaling.apply(x)
        };
        let q = match self {
            InputMap::AsIs => Gaussians::certain(x.clone()),
            InputMap::Projected { scaling, p } => Gaussians::certain(linalg::mul_nt(&scaled(scaling)?, p)),
            InputMap::Random { scaling, mean, var } => {
                let x = scaled(scaling)?;
                Gaussians { mean: linalg::mul_nt(&x, mean), var: linalg::mul_nt(&x.map(|v| v * v), var) }
            }
        };
        if !(q.mean.is_finite() && q.var.is_finite()) {
            return Err(Error::not_finite("a projected input"));
        }
        Ok(q)
    }
}

/// The 2D points of the unscented rule around one uncertain input: x ± √(D S_d) along each column.
pub(crate) fn sigma_points(mean: &[f64], var: &[f64]) -> Mat {
    let d = mean.len();
    Mat::from_fn(2 * d, d, |s, j| {
        let step = if s % d == j { (d as f64 * var[j]).sqrt() } else { 0.0 };
        if s < d { mean[j] + step } else { mean[j] - step }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaling() -> Scaling {
        Scaling { mean: vec![1.0, -1.0], scale: vec![2.0, 0.5] }
    }

    #[test]
    fn inputs_are_scaled_then_projected() {
        let x = Mat::from_rows(&[[3.0, -0.5], [1.0, -1.0]]);
        let p = Mat::from_rows(&[[2.0, -1.0]]);
        assert_eq!(InputMap::AsIs.apply(&x).unwrap(), Gaussians::certain(x.clone()));
        let map = InputMap::Projected { scaling: scaling(), p: p.clone() };
        assert!(map.is_certain());
        assert_eq!(map.apply(&x).unwrap(), Gaussians::certain(Mat::column(&[1.0, 0.0])));
        let map = InputMap::Random { scaling: scaling(), mean: p, var: Mat::from_rows(&[[0.25, 0.5]]) };
        let q = map.apply(&x).unwrap();
        assert!(!map.is_certain());
        assert_eq!((q.mean.as_slice(), q.var.as_slice()), (&[1.0, 0.0][..], &[0.75, 0.0][..]));
        assert!(matches!(map.apply(&Mat::zeros(1, 3)), Err(Error::Shape { .. })));
        for bad in [f64::NAN, f64::INFINITY] {
            assert!(matches!(map.apply(&Mat::filled(1, 2, bad)), Err(Error::NotFinite { .. })));
        }
        assert!(matches!(map.apply(&Mat::filled(1, 2, 1e300)), Err(Error::NotFinite { .. })));
    }

    #[test]
    fn sigma_points_have_the_moments() {
        let points = sigma_points(&[1.0, 2.0], &[0.3, 0.0]);
        let mean = |j: usize| points.col(j).iter().sum::<f64>() / 4.0;
        let var = |j: usize| points.col(j).iter().map(|v| (v - mean(j)).powi(2)).sum::<f64>() / 4.0;
        assert!((mean(0) - 1.0).abs() < 1e-15 && (var(0) - 0.3).abs() < 1e-15);
        assert!((mean(1) - 2.0).abs() < 1e-15 && var(1) == 0.0);
    }
}
