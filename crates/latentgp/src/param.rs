//! Parameters: values where they are used, their constraints, and the flat vector an optimiser sees.
//!
//! The order of [`Parameterized::params`] is the only order: gradients, flat vectors and saved models
//! follow it. A *constrained* value θ is what formulas use; an optimiser moves the *unconstrained* u
//! with θ = [`Transform`]`(u)`.

use crate::blocks;
use crate::error::{Error, Result, number};
use crate::fast::vmath;
use crate::mat::Mat;
use serde::{Deserialize, Serialize};

/// How an unconstrained number becomes a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transform {
    /// θ = u.
    Identity,
    /// θ = exp u, positive.
    Exp,
    /// θ = lo + exp u, above `lo`.
    Above {
        /// The lower end, not reached.
        lo: f64,
    },
    /// θ = lo + ln(1 + exp u), above `lo`.
    Softplus {
        /// The lower end, not reached.
        lo: f64,
    },
    /// θ = lo + (hi − lo) / (1 + exp(−u)), strictly between the two.
    Interval {
        /// The lower end, not reached.
        lo: f64,
        /// The upper end, not reached.
        hi: f64,
    },
}

impl Transform {
    /// u ↦ θ, kept inside the open range where rounding would put it on an end.
    pub fn forward(self, u: f64) -> f64 {
        match self {
            Transform::Identity => u,
            Transform::Exp => u.exp().clamp(f64::MIN_POSITIVE, f64::MAX),
            Transform::Above { lo } => (lo + u.exp()).clamp(lo.next_up(), f64::MAX),
            Transform::Softplus { lo } => (lo + u.max(0.0) + (-u.abs()).exp().ln_1p()).max(lo.next_up()),
            Transform::Interval { lo, hi } => {
                (lo + (hi - lo) / (1.0 + (-u).exp())).clamp(lo.next_up(), hi.next_down())
            }
        }
    }

    /// u ↦ θ of many.
    fn forward_all(self, u: &[f64], theta: &mut [f64]) {
        blocks::each_piece(theta, |at, theta| match self {
            Transform::Identity => theta.copy_from_slice(&u[at]),
            Transform::Exp => {
                // So many stay in the nearest cache.
                const SOME: usize = 1024;
                for (theta, u) in theta.chunks_mut(SOME).zip(u[at].chunks(SOME)) {
                    theta.copy_from_slice(u);
                    vmath::exp_in_place(theta);
                    theta.iter_mut().for_each(|t| *t = t.clamp(f64::MIN_POSITIVE, f64::MAX));
                }
            }
            _ => theta.iter_mut().zip(&u[at]).for_each(|(theta, u)| *theta = self.forward(*u)),
        });
    }

    /// ∂F/∂θ ↦ ∂F/∂u of many.
    fn chain_all(self, theta: &[f64], grad: &[f64], out: &mut [f64]) {
        blocks::each_piece(out, |at, out| {
            let each = out.iter_mut().zip(&grad[at.clone()]).zip(&theta[at.clone()]);
            match self {
                Transform::Identity => out.copy_from_slice(&grad[at]),
                // The slope is θ itself: a vector's work.
                Transform::Exp => each.for_each(|((out, grad), theta)| *out = grad * theta),
                _ => each.for_each(|((out, grad), theta)| *out = grad * self.slope(*theta)),
            }
        });
    }

    /// θ ↦ u, the inverse of [`forward`](Self::forward).
    pub fn inverse(self, theta: f64) -> f64 {
        match self {
            Transform::Identity => theta,
            Transform::Exp => theta.ln(),
            Transform::Above { lo } => (theta - lo).ln(),
            Transform::Softplus { lo } => {
                let s = theta - lo;
                s + (-(-s).exp_m1()).ln()
            }
            Transform::Interval { lo, hi } => ((theta - lo) / (hi - theta)).ln(),
        }
    }

    /// ∂θ/∂u at the θ given.
    pub fn slope(self, theta: f64) -> f64 {
        match self {
            Transform::Identity => 1.0,
            Transform::Exp => theta,
            Transform::Above { lo } => theta - lo,
            Transform::Softplus { lo } => -(-(theta - lo)).exp_m1(),
            Transform::Interval { lo, hi } => (theta - lo) * (hi - theta) / (hi - lo),
        }
    }

    /// Whether θ lies in the open range of the transform.
    pub fn admits(self, theta: f64) -> bool {
        theta.is_finite()
            && match self {
                Transform::Identity => true,
                Transform::Exp => theta > 0.0,
                Transform::Above { lo } | Transform::Softplus { lo } => theta > lo,
                Transform::Interval { lo, hi } => lo < theta && theta < hi,
            }
    }

    fn domain(self) -> String {
        match self {
            Transform::Identity => "a finite number".into(),
            Transform::Exp => "a number above 0".into(),
            Transform::Above { lo } | Transform::Softplus { lo } => format!("a number above {}", number(lo)),
            Transform::Interval { lo, hi } => format!("a number between {} and {}", number(lo), number(hi)),
        }
    }
}

/// A prior on each entry of a parameter, in its constrained space: the fit maximises
/// log p(Y | θ) + Σ log p(θ).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prior {
    /// Gamma(θ | shape, rate), on positive θ.
    Gamma {
        /// Shape a > 0.
        shape: f64,
        /// Rate b > 0.
        rate: f64,
    },
    /// ln θ ~ N(mean, std²), on positive θ.
    LogNormal {
        /// Mean of ln θ.
        mean: f64,
        /// Standard deviation of ln θ.
        std: f64,
    },
    /// θ ~ N(mean, std²).
    Normal {
        /// Mean of θ.
        mean: f64,
        /// Standard deviation of θ.
        std: f64,
    },
}

impl Prior {
    /// log p(θ) and its derivative, up to a constant for the normaliser of the Gamma.
    pub fn log_density(self, theta: f64) -> (f64, f64) {
        const HALF_LN_2PI: f64 = 0.918_938_533_204_672_8;
        match self {
            Prior::Gamma { shape, rate } => {
                ((shape - 1.0) * theta.ln() - rate * theta + shape * rate.ln(), (shape - 1.0) / theta - rate)
            }
            Prior::LogNormal { mean, std } => {
                let z = (theta.ln() - mean) / std;
                (-0.5 * z * z - theta.ln() - std.ln() - HALF_LN_2PI, -(z / std + 1.0) / theta)
            }
            Prior::Normal { mean, std } => {
                let z = (theta - mean) / std;
                (-0.5 * z * z - std.ln() - HALF_LN_2PI, -z / std)
            }
        }
    }
}

/// A parameter: its value, how it is constrained, whether the fit may move it, and its prior.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The constrained value.
    pub value: Mat,
    /// The constraint.
    pub transform: Transform,
    /// Whether the fit leaves it alone.
    pub fixed: bool,
    /// A prior on each entry, if any.
    pub prior: Option<Prior>,
}

impl Param {
    /// A parameter without constraint.
    pub fn free(value: Mat) -> Self {
        Param { value, transform: Transform::Identity, fixed: false, prior: None }
    }

    /// A positive parameter, on a logarithmic scale.
    pub fn positive(value: Mat) -> Self {
        Param { value, transform: Transform::Exp, fixed: false, prior: None }
    }

    /// A positive scalar.
    pub fn scalar(value: f64) -> Self {
        Self::positive(Mat::filled(1, 1, value))
    }

    /// A positive row of `len` equal numbers.
    pub fn row(len: usize, value: f64) -> Self {
        Self::positive(Mat::filled(1, len, value))
    }

    /// The first entry, of a scalar the only one.
    #[inline]
    pub fn get(&self) -> f64 {
        self.value.as_slice()[0]
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.value.len()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// All entries.
    #[inline]
    pub fn as_slice(&self) -> &[f64] {
        self.value.as_slice()
    }

    /// Sets every entry to `value`.
    pub fn set(&mut self, value: f64) {
        self.value.fill(value);
    }

    /// Errs unless every entry is in the domain of the transform.
    pub fn check(&self, name: &str) -> Result<()> {
        match self.as_slice().iter().find(|v| !self.transform.admits(**v)) {
            Some(bad) => Err(Error::invalid(name, self.transform.domain(), bad)),
            None => Ok(()),
        }
    }
}

/// Something with parameters.
pub trait Parameterized {
    /// Names and parameters, in the one order that gradients and flat vectors follow.
    fn params(&self) -> Vec<(String, &Param)>;
    /// The same, in the same order, to write to.
    fn params_mut(&mut self) -> Vec<(String, &mut Param)>;

    /// Visits the parameters in that order. Overridden, it needs no names; an optimiser calls it at every step.
    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        self.params().into_iter().for_each(|(_, p)| visit(p));
    }
    /// The same, to write to.
    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        self.params_mut().into_iter().for_each(|(_, p)| visit(p));
    }
}

/// Number of entries of all parameters, fixed ones included: the length of a gradient θ̄.
pub fn count(of: &(impl Parameterized + ?Sized)) -> usize {
    let mut count = 0;
    of.each_param(&mut |p| count += p.len());
    count
}

/// The constrained values of all parameters, fixed ones included, one after the other: θ.
pub fn values(of: &(impl Parameterized + ?Sized)) -> Vec<f64> {
    let mut all = Vec::new();
    of.each_param(&mut |p| all.extend_from_slice(p.as_slice()));
    all
}

/// Writes them to where they are wanted, as many as [`count`] says.
pub(crate) fn copy_values(of: &(impl Parameterized + ?Sized), out: &mut [f64]) {
    let mut at = 0;
    of.each_param(&mut |p| {
        out[at..at + p.len()].copy_from_slice(p.as_slice());
        at += p.len();
    });
}

/// Writes the values of all parameters, fixed ones included: the inverse of [`values`].
pub fn set_values(of: &mut (impl Parameterized + ?Sized), theta: &[f64]) {
    let mut rest = theta;
    of.each_param_mut(&mut |p| {
        let (mine, others) = rest.split_at(p.len());
        p.value.as_mut_slice().copy_from_slice(mine);
        rest = others;
    });
    debug_assert!(rest.is_empty());
}

/// The free parameters, unconstrained, one after the other.
pub fn flatten(of: &(impl Parameterized + ?Sized)) -> Vec<f64> {
    let mut u = Vec::new();
    of.each_param(&mut |p| {
        if !p.fixed {
            u.extend(p.as_slice().iter().map(|&v| p.transform.inverse(v)));
        }
    });
    u
}

/// Writes the free parameters back: the inverse of [`flatten`].
pub fn unflatten(of: &mut (impl Parameterized + ?Sized), u: &[f64]) {
    let mut rest = u;
    of.each_param_mut(&mut |p| {
        if !p.fixed {
            let (mine, others) = rest.split_at(p.len());
            p.transform.forward_all(mine, p.value.as_mut_slice());
            rest = others;
        }
    });
    debug_assert!(rest.is_empty());
}

/// From ∂F/∂θ of all parameters to ∂F/∂u of the free ones.
pub fn chain(of: &(impl Parameterized + ?Sized), grad: &[f64], out: &mut [f64]) {
    let (mut from, mut to) = (0, 0);
    of.each_param(&mut |p| {
        if !p.fixed {
            let (out, grad) = (&mut out[to..to + p.len()], &grad[from..from + p.len()]);
            p.transform.chain_all(p.as_slice(), grad, out);
            to += p.len();
        }
        from += p.len();
    });
    debug_assert_eq!((from, to), (grad.len(), out.len()));
}

/// Σ log p(θ) over the parameters that have a prior; adds its gradient to `grad`.
pub fn log_prior(of: &(impl Parameterized + ?Sized), mut grad: Option<&mut [f64]>) -> f64 {
    let (mut sum, mut at) = (0.0, 0);
    of.each_param(&mut |p| {
        if let Some(prior) = p.prior {
            for (k, &v) in p.as_slice().iter().enumerate() {
                let (value, slope) = prior.log_density(v);
                sum += value;
                if let Some(grad) = grad.as_deref_mut() {
                    grad[at + k] += slope;
                }
            }
        }
        at += p.len();
    });
    sum
}

/// The parameters of a part of a whole, with the part's name in front: `"0.lengthscale"`.
pub(crate) fn prefixed<P>(prefix: &str, of: Vec<(String, P)>) -> Vec<(String, P)> {
    of.into_iter().map(|(name, p)| (format!("{prefix}.{name}"), p)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Transform; 5] = [
        Transform::Identity,
        Transform::Exp,
        Transform::Above { lo: 1e-6 },
        Transform::Softplus { lo: 1e-6 },
        Transform::Interval { lo: -1.0, hi: 3.0 },
    ];

    #[test]
    fn transforms_invert_and_their_slopes_are_derivatives() {
        for t in ALL {
            for u in [-20.0, -3.0, -0.1, 0.0, 0.7, 5.0, 20.0] {
                let theta = t.forward(u);
                assert!(t.admits(theta), "{t:?} at {u}");
                assert!((t.inverse(theta) - u).abs() < 1e-6 * (1.0 + u.abs()), "{t:?} at {u}");
                let h = 1e-6;
                let fd = (t.forward(u + h) - t.forward(u - h)) / (2.0 * h);
                assert!((t.slope(theta) - fd).abs() < 1e-6 * (1.0 + fd.abs()), "{t:?} at {u}");
            }
        }
    }

    #[test]
    fn many_numbers_go_in_pieces_to_the_same_bits() {
        const LEN: usize = 2 * blocks::MIN_NUMBERS + 7;
        let u: Vec<f64> = (0..LEN).map(|i| 3.0 * (i as f64).sin()).collect();
        let grad: Vec<f64> = (0..LEN).map(|i| (0.7 * i as f64).cos()).collect();
        for t in ALL {
            let on = |threads: usize| {
                let (mut theta, mut out) = (vec![f64::NAN; LEN], vec![f64::NAN; LEN]);
                rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
                    t.forward_all(&u, &mut theta);
                    t.chain_all(&theta, &grad, &mut out);
                });
                (theta, out)
            };
            let (theta, out) = on(1);
            assert_eq!(on(3), (theta.clone(), out.clone()));
            for i in 0..LEN {
                assert!((theta[i] - t.forward(u[i])).abs() <= 1e-14 * theta[i].abs(), "{t:?} at {i}");
                assert_eq!(out[i], grad[i] * t.slope(theta[i]), "{t:?} at {i}");
            }
        }
    }

    #[test]
    fn priors_are_differentiated() {
        let all = [
            Prior::Gamma { shape: 2.0, rate: 3.0 },
            Prior::LogNormal { mean: 0.3, std: 0.7 },
            Prior::Normal { mean: 0.3, std: 0.7 },
        ];
        for p in all {
            let (x, h) = (0.8, 1e-6);
            let fd = (p.log_density(x + h).0 - p.log_density(x - h).0) / (2.0 * h);
            assert!((p.log_density(x).1 - fd).abs() < 1e-8, "{p:?}");
        }
    }
}
