//! C classes: p(y = c | f) = π_c = exp f_c / Σ_k exp f_k, one latent value a class.
//!
//! ```text
//! ∂ ln π_y/∂f_c = δ_yc − π_c      −∂² = W = diag π − ππᵀ
//! ∂W_ab/∂f_c = δ_ab π_a(δ_ac − π_c) − π_aπ_b(δ_ac + δ_bc − 2π_c)
//! ```
//!
//! Expectations under f ~ N(m, TTᵀ) are means over the nodes m + Tξ_s of quasi-Monte Carlo.

use super::Kind;
use super::names::{Entry, Parsed};
use crate::error::{Error, Result};
use crate::expectation::{QuasiMonteCarlo, Rule};
use crate::mat::Mat;
use crate::scratch::Buffer;

/// Below this variance the node-wise derivative in it would drown in rounding; its limit takes over.
const SMALL_VARIANCE: f64 = 1e-16;

pub(super) const ENTRY: Entry = Entry {
    name: "categorical",
    about: "one of several classes, by the softmax of one function a class",
    example: "categorical(classes=3)",
    options: &[("classes", "")],
    kind: Kind::Classes,
    make: |asked| {
        let classes = match asked.call.text("classes") {
            "" if asked.classes == 0 => return Err(asked.call.wrong("classes", "the number of classes")),
            "" => asked.classes,
            _ => asked.call.get("classes", "a whole number")?,
        };
        match asked.classes {
            0 => {}
            n if n == classes => {}
            n => return Err(Error::invalid("classes of a categorical likelihood", classes, n)),
        }
        Ok(Parsed::Classes(Categorical::new(classes)?))
    },
};

/// The softmax likelihood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Categorical {
    /// C.
    pub classes: usize,
}

impl Categorical {
    /// Errs for fewer than two classes, and for more than there are Sobol dimensions.
    pub fn new(classes: usize) -> Result<Self> {
        if classes < 2 {
            return Err(Error::invalid("classes", "at least 2", classes));
        }
        QuasiMonteCarlo::default().check_rule(classes)?;
        Ok(Categorical { classes })
    }

    /// Its name, with the number of classes.
    pub fn expression(&self) -> String {
        format!("categorical(classes={})", self.classes)
    }

    /// Overwrites f by π; returns ln Σ exp f.
    pub fn softmax(f: &mut [f64]) -> f64 {
        let top = f.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        if !top.is_finite() {
            f.fill(f64::NAN);
            return f64::NAN;
        }
        let mut sum = 0.0;
        for v in f.iter_mut() {
            *v = (*v - top).exp();
            sum += *v;
        }
        f.iter_mut().for_each(|v| *v /= sum);
        top + sum.ln()
    }

    /// ln π_y, overwriting f by π.
    pub fn log_density(&self, y: usize, f: &mut [f64]) -> f64 {
        let own = f[y];
        own - Self::softmax(f)
    }

    /// −½ tr(S ∂W/∂f_c) for every c: how the log determinant of a Laplace approximation feels the latent
    /// values of one point, whose posterior covariance is S.
    ///
    /// ```text
    /// −½ π_c (S_cc − Σ_a S_aa π_a − 2 (Sπ)_c + 2 πᵀSπ)
    /// ```
    pub(crate) fn implicit(pi: &[f64], s: &[f64], out: &mut [f64]) {
        let classes = pi.len();
        let times_pi = |row: &[f64]| row.iter().zip(pi).map(|(s, p)| s * p).sum::<f64>();
        let s_pi = Buffer::of(s.chunks_exact(classes).map(times_pi));
        let trace: f64 = pi.iter().enumerate().map(|(a, p)| s[a * classes + a] * p).sum();
        let square: f64 = pi.iter().zip(&s_pi).map(|(p, s)| p * s).sum();
        for c in 0..classes {
            out[c] = -0.5 * pi[c] * (s[c * classes + c] - trace - 2.0 * s_pi[c] + 2.0 * square);
        }
    }

    /// Nodes for N(0, I_C), one a row.
    pub fn nodes(&self, samples: usize, seed: u64) -> Result<Mat> {
        let rule = QuasiMonteCarlo::new(samples, seed);
        rule.check_rule(self.classes)?;
        Ok(rule.nodes(self.classes))
    }

    /// E[ln π_y] under independent f_c ~ N(mean_c, var_c) by the nodes; *sets* the derivatives of that mean
    /// over nodes in means and variances.
    pub fn expected(
        &self,
        y: usize,
        mean: &[f64],
        var: &[f64],
        nodes: &Mat,
        mean_bar: &mut [f64],
        var_bar: &mut [f64],
    ) -> f64 {
        let weight = 1.0 / nodes.rows() as f64;
        let std = Buffer::of(var.iter().map(|v| v.max(0.0).sqrt()));
        let mut f = Buffer::filled(0.0, self.classes);
        mean_bar.fill(0.0);
        var_bar.fill(0.0);
        let mut value = 0.0;
        for s in 0..nodes.rows() {
            let xi = nodes.row(s);
            for c in 0..self.classes {
                f[c] = mean[c] + std[c] * xi[c];
            }
            value += weight * self.log_density(y, &mut f);
            for c in 0..self.classes {
                let first = f64::from(c == y) - f[c];
                mean_bar[c] += weight * first;
                var_bar[c] += weight
                    * match var[c] > SMALL_VARIANCE {
                        true => first * xi[c] / (2.0 * std[c]),
                        false => -0.5 * f[c] * (1.0 - f[c]),
                    };
            }
        }
        value
    }

    /// E[π] under f ~ N(mean, TTᵀ), T lower triangular, by the nodes; sums to 1.
    pub fn averaged(&self, mean: &[f64], root: &Mat, nodes: &Mat) -> Vec<f64> {
        let mut sum = vec![0.0; self.classes];
        let mut f = vec![0.0; self.classes];
        for s in 0..nodes.rows() {
            let xi = nodes.row(s);
            for c in 0..self.classes {
                f[c] = mean[c] + root.row(c)[..=c].iter().zip(xi).map(|(t, x)| t * x).sum::<f64>();
            }
            Self::softmax(&mut f);
            sum.iter_mut().zip(&f).for_each(|(a, p)| *a += p);
        }
        let total: f64 = sum.iter().sum();
        sum.iter_mut().for_each(|a| *a /= total);
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{differences, relative_error};
    use crate::likelihood::Bernoulli;

    fn density(y: usize, f: &[f64]) -> f64 {
        Categorical { classes: f.len() }.log_density(y, &mut f.to_vec())
    }

    fn w(f: &[f64]) -> Mat {
        let mut pi = f.to_vec();
        Categorical::softmax(&mut pi);
        Mat::from_fn(f.len(), f.len(), |a, b| f64::from(a == b) * pi[a] - pi[a] * pi[b])
    }

    #[test]
    fn derivatives_agree_with_differences() {
        let f = [0.4, -1.2, 0.9, 0.1];
        let mut pi = f;
        Categorical::softmax(&mut pi);
        let first: Vec<f64> = (0..4).map(|c| f64::from(c == 2) - pi[c]).collect();
        assert!(relative_error(&first, &differences(&f, |f| density(2, f)), 0.0) < 1e-9);
        for c in 0..4 {
            let slow = differences(&f, |f| f64::from(c == 2) - (density(c, f)).exp());
            let row: Vec<f64> = w(&f).row(c).iter().map(|v| -v).collect();
            assert!(relative_error(&row, &slow, 0.0) < 1e-9);
        }
        let root = Mat::from_fn(4, 4, |i, j| ((i * 4 + j) as f64).sin());
        let s = crate::linalg::mul_nt(&root, &root);
        let mut ours = [0.0; 4];
        Categorical::implicit(&pi, s.as_slice(), &mut ours);
        let slow = differences(&f, |f| -0.5 * s.dot(&w(f)));
        assert!(relative_error(&ours, &slow, 0.0) < 1e-8, "{ours:?} {slow:?}");
    }

    #[test]
    fn expectations_have_the_gradient_of_their_sum() {
        let (mean, var) = ([0.3, -0.8, 1.1], [0.5, 1.4, 0.02]);
        let likelihood = Categorical::new(3).unwrap();
        let nodes = likelihood.nodes(64, 0).unwrap();
        let value =
            |u: &[f64]| likelihood.expected(1, &u[..3], &u[3..], &nodes, &mut [0.0; 3], &mut [0.0; 3]);
        let (mut mean_bar, mut var_bar) = ([0.0; 3], [0.0; 3]);
        likelihood.expected(1, &mean, &var, &nodes, &mut mean_bar, &mut var_bar);
        let slow = differences(&[mean, var].concat(), value);
        assert!(relative_error(&[mean_bar, var_bar].concat(), &slow, 0.0) < 1e-7);
    }

    #[test]
    fn extremes_are_numbers() {
        assert_eq!(density(0, &[1e3, 0.0, -1e3]), 0.0);
        assert_eq!(density(2, &[1e3, 0.0, -1e3]), -2e3);
        assert_eq!(density(1, &[-1e300, 0.0]), 0.0);
    }

    #[test]
    fn two_classes_are_a_bernoulli_of_the_difference() {
        let likelihood = Categorical::new(2).unwrap();
        let nodes = likelihood.nodes(4096, 0).unwrap();
        let root = Mat::from_rows(&[[0.8, 0.0], [0.3, 0.9]]);
        let found = likelihood.averaged(&[0.2, -0.5], &root, &nodes);
        let var = (0.8f64 - 0.3).powi(2) + 0.81;
        let truth = Bernoulli::logit().averaged(0.7, var);
        assert!((found[0] - truth).abs() < 1e-3 && (found[0] + found[1] - 1.0).abs() < 1e-15, "{found:?}");
        assert!(Categorical::new(1).is_err() && Categorical::new(100_000).is_err());
    }
}
