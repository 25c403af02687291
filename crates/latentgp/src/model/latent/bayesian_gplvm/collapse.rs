//! Places that a fit should not end in, although they are optima: what they look like, and what leads out.

use super::BayesianGplvm;
use crate::linalg;
use crate::mat::Mat;
use crate::model::shared::noise::mean_square;
use std::fmt;

/// More than this part of the mean square in the noise: nothing is explained.
const NOISE: f64 = 0.9;
/// A variance so many times the mean square, with lengthscales so many times the spread of X: the kernel is used where it is
/// a straight line.
const LINEAR: (f64, f64) = (100.0, 10.0);
/// Inducing inputs whose function values correlate by more than this stand on one another.
const SAME: f64 = 1.0 - 1e-5;
/// A larger part of them than this is a waste.
const STACKED: f64 = 0.25;

/// A dimension whose relevance is a smaller part of the largest is switched off.
const UNUSED: f64 = 1e-6;

/// How a fit went wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Collapse {
    /// The noise explains this part of the variance.
    Noise(f64),
    /// The kernel's variance and its shortest lengthscale, both huge.
    Linear(f64, f64),
    /// So many of the inducing inputs stand on others.
    Stacked(usize, usize),
}

impl fmt::Display for Collapse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Collapse::Noise(part) => write!(
                f,
                "the noise explains {:.0} % of the variance, the latent space nothing: try more effort, another kernel, or \
                 check the scaling of the data",
                100.0 * part
            ),
            Collapse::Linear(variance, lengthscale) => write!(
                f,
                "the fit ended where the kernel is a straight line (variance {variance:.1e}, lengthscales from \
                 {lengthscale:.1e}): try more effort or another seed; if it ends there again, the kernel `linear` says the \
                 same with fewer parameters"
            ),
            Collapse::Stacked(stacked, of) => write!(
                f,
                "{stacked} of {of} inducing inputs stand where others are: {} of them do as well",
                of - stacked
            ),
        }
    }
}

impl BayesianGplvm {
    /// What went wrong, if anything did.
    pub fn collapses(&self) -> Vec<Collapse> {
        let square = mean_square(&self.outputs);
        let noise = self.noise.get() / square;
        let noise = (noise > NOISE && !self.noise.fixed).then_some(Collapse::Noise(noise));
        noise.into_iter().chain(self.linear(square)).chain(self.stacked()).collect()
    }

    /// A stationary part of the kernel whose variance and lengthscales are all huge.
    fn linear(&self, square: f64) -> Option<Collapse> {
        let params = self.kernel.params();
        let n = self.mean.value.rows() as f64;
        let spread = (0..self.mean.value.cols())
            .map(|q| (self.mean.value.col(q).iter().map(|v| v * v).sum::<f64>() / n).sqrt())
            .fold(0.0, f64::max);
        params.iter().find_map(|(name, p)| {
            let variance = p.value.as_slice().iter().copied().fold(0.0, f64::max);
            let own = name.strip_suffix("variance")?;
            let (_, lengthscale) =
                params.iter().find(|(name, _)| name.strip_suffix("lengthscale") == Some(own))?;
            let shortest = lengthscale.value.as_slice().iter().copied().fold(f64::INFINITY, f64::min);
            let huge = variance > LINEAR.0 * square && shortest > LINEAR.1 * spread;
            (huge && !p.fixed).then_some(Collapse::Linear(variance, shortest))
        })
    }

    /// Dimensions, counted from 0, that the lengthscales have switched off, where the kernel tells.
    pub fn unused(&self) -> Vec<usize> {
        let relevance = self.kernel.relevance().unwrap_or_default();
        let largest = relevance.iter().copied().fold(0.0, f64::max);
        (0..relevance.len()).filter(|q| relevance[*q] < UNUSED * largest).collect()
    }

    /// Inducing inputs that stand on earlier ones.
    fn stacked(&self) -> Option<Collapse> {
        let z = &self.z.value;
        let m = z.rows();
        let mut k = Mat::zeros(m, m);
        self.kernel.gram(z, &mut k);
        linalg::symmetrize(&mut k);
        let same = |i: usize, j: usize| k[(i, j)] > SAME * (k[(i, i)] * k[(j, j)]).sqrt();
        let stacked = (0..m).filter(|&i| (0..i).any(|j| same(i, j))).count();
        (stacked as f64 > STACKED * m as f64).then_some(Collapse::Stacked(stacked, m))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Rbf;
    use crate::model::Training;

    #[test]
    fn each_collapse_is_recognised_and_a_start_is_none() {
        let y = Mat::from_fn(30, 4, |i, j| (0.3 * i as f64 + j as f64).sin());
        let start = || Training { inducing: 8, ..Training::default() }.start(&y, &Rbf::new(2), 0).unwrap();
        assert_eq!(start().collapses(), []);
        let mut model = start();
        model.noise.set(0.97);
        assert!(matches!(model.collapses()[..], [Collapse::Noise(part)] if (part - 0.97).abs() < 0.01));
        let mut model = start();
        for (name, p) in model.kernel.params_mut() {
            p.value.as_mut_slice().fill(if name == "variance" { 4e4 } else { 50.0 });
        }
        assert!(matches!(model.collapses()[0], Collapse::Linear(..)));
        let mut model = start();
        let first = model.z.value.row(0).to_vec();
        (1..4).for_each(|j| model.z.value.row_mut(j).copy_from_slice(&first));
        assert_eq!(model.collapses(), [Collapse::Stacked(3, 8)]);
        assert!(Collapse::Stacked(3, 8).to_string().ends_with("5 of them do as well"));
        let mut model = start();
        for (name, p) in model.kernel.params_mut() {
            if name == "lengthscale" {
                p.value[(0, 1)] = 1e4;
            }
        }
        assert_eq!((model.unused(), start().unused()), (vec![1], vec![]));
    }
}
