//! Paths of low predictive variance: geodesics of the expected metric E[JᵀJ], for any kernel.
//!
//! ```text
//! E‖f(b) − f(a)‖² = δᵀHδ + D (k(a, a) + k(b, b) − 2k(a, b)),   δ = L⁻¹(k(Z, b) − k(Z, a))
//! H = vvᵀ − Σ_d C_d
//! ```
//!
//! in the units of the scaled data: the squared step of the mean plus the variance of the difference, which tends to
//! hᵀE[JᵀJ]h as b − a = h does to 0 (Tosi et al. 2014). The steps of a chain of points are so exact without derivatives of
//! J; the chain of least energy is found by L-BFGS with the adjoint of the kernel. It starts at the straight line and at the
//! shortest way over the training positions.

use latentgp::kernel::{Kernel, KernelGrad, PointGrad};
use latentgp::linalg;
use latentgp::optim::{Lbfgs, Optimizer, quiet};
use latentgp::param;
use latentgp::posterior::{Explained, Posterior};
use latentgp::{Mat, Result};

/// Steps of a path.
pub const STEPS: usize = 40;
/// Most training positions that the shortest way goes over.
const STOPS: usize = 600;
/// Neighbours of each of them.
const NEIGHBOURS: usize = 8;

/// The expected metric of a posterior.
pub struct Metric<'a> {
    of: &'a Posterior,
    h: Mat,
    outputs: f64,
}

/// A path between two positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Its points, from one end to the other.
    pub points: Mat,
    /// Its length: the sum of the square roots of the expected squared steps.
    pub length: f64,
}

impl<'a> Metric<'a> {
    /// Of a posterior whose inputs meet the kernel as they are.
    pub fn new(of: &'a Posterior) -> Self {
        let m = of.z.rows();
        let mut h = Mat::zeros(m, m);
        for f in &of.factors {
            linalg::gemm(1.0, f.v(), linalg::Op::N, f.v(), linalg::Op::T, &mut h);
            match &f.c {
                Explained::All => (0..m).for_each(|i| h[(i, i)] -= f.columns.len() as f64),
                Explained::Same(c) => h.add_scaled(-(f.columns.len() as f64), c),
                Explained::Each { u, c } => {
                    let sums: Vec<f64> = (0..c.rows()).map(|k| c.row(k).iter().sum()).collect();
                    let scaled = Mat::from_fn(u.rows(), u.cols(), |i, k| u[(i, k)] * sums[k]);
                    linalg::gemm(-1.0, &scaled, linalg::Op::N, u, linalg::Op::T, &mut h);
                }
            }
        }
        linalg::symmetrize(&mut h);
        Metric { of, h, outputs: of.outputs() as f64 }
    }

    fn kernel(&self) -> &dyn Kernel {
        &*self.of.kernel
    }

    /// L⁻¹k(Z, x) of every row x.
    fn white(&self, x: &Mat) -> Mat {
        let mut k = Mat::zeros(x.rows(), self.of.z.rows());
        self.kernel().cross(x, &self.of.z, &mut k);
        self.of.l.solve_rows(&mut k);
        k
    }

    fn prior(&self, a: &[f64], b: &[f64]) -> f64 {
        let k = self.kernel();
        self.outputs * (k.eval(a, a) + k.eval(b, b) - 2.0 * k.eval(a, b))
    }

    /// The expected squared steps of a chain of points.
    pub fn steps(&self, x: &Mat) -> Vec<f64> {
        let w = self.white(x);
        let hw = linalg::mul(&w, &self.h);
        (1..x.rows()).map(|i| self.step(x.row(i - 1), x.row(i), (&w, &hw), (i - 1, i))).collect()
    }

    fn step(&self, a: &[f64], b: &[f64], (w, hw): (&Mat, &Mat), (i, j): (usize, usize)) -> f64 {
        let along: f64 = (0..w.cols()).map(|m| (w[(j, m)] - w[(i, m)]) * (hw[(j, m)] - hw[(i, m)])).sum();
        (along + self.prior(a, b)).max(0.0)
    }

    /// The energy of a chain, its expected squared steps summed, and the gradient in its points.
    fn energy(&self, x: &Mat, grad: &mut Mat) -> f64 {
        let (n, m) = (x.rows(), self.of.z.rows());
        let w = self.white(x);
        let hw = linalg::mul(&w, &self.h);
        let mut bar = Mat::zeros(n, m);
        let (mut energy, mut theta) = (0.0, vec![0.0; param::count(&self.of.kernel)]);
        let mut other = vec![0.0; x.cols()];
        let mut add = |grad: &mut Mat, (i, j): (usize, usize), by: f64| {
            let mut own = vec![0.0; x.cols()];
            other.fill(0.0);
            let point = PointGrad { theta: &mut theta, x: &mut own, z: &mut other };
            self.kernel().eval_adjoint(x.row(i), x.row(j), by, point);
            grad.row_mut(i).iter_mut().zip(&own).for_each(|(g, v)| *g += v);
            grad.row_mut(j).iter_mut().zip(&other).for_each(|(g, v)| *g += v);
        };
        for j in 1..n {
            let i = j - 1;
            for c in 0..m {
                let step = hw[(j, c)] - hw[(i, c)];
                energy += (w[(j, c)] - w[(i, c)]) * step;
                bar[(j, c)] += 2.0 * step;
                bar[(i, c)] -= 2.0 * step;
            }
            energy += self.prior(x.row(i), x.row(j));
            for (at, by) in [((i, i), 1.0), ((j, j), 1.0), ((i, j), -2.0)] {
                add(grad, at, by * self.outputs);
            }
        }
        // Back through L⁻¹.
        let mut back = bar.t();
        self.of.l.solve_lt(&mut back);
        let mut theta = vec![0.0; param::count(&self.of.kernel)];
        let to = KernelGrad { theta: &mut theta, x: Some(grad), z: None };
        self.kernel().cross_adjoint(x, &self.of.z, &back.t(), to);
        energy
    }

    fn path(&self, points: Mat) -> Path {
        let length = self.steps(&points).iter().map(|s| s.sqrt()).sum();
        Path { points, length }
    }

    /// The straight line in the latent space.
    pub fn straight(&self, from: &[f64], to: &[f64]) -> Path {
        self.path(line(from, to))
    }

    /// The shortest path that is found, no longer than the straight line; `positions` are those of the training rows, and
    /// `weights` say how much a unit of each dimension is.
    pub fn geodesic(&self, from: &[f64], to: &[f64], positions: &Mat, weights: &[f64]) -> Result<Path> {
        let straight = self.straight(from, to);
        let over = self.over_positions(from, to, positions, weights);
        let starts = [straight.points.clone(), over];
        let mut best = straight;
        for start in starts {
            for found in [self.path(start.clone()), self.path(self.relaxed(start)?)] {
                if found.length < best.length {
                    best = found;
                }
            }
        }
        Ok(best)
    }

    /// The chain of least energy near the one given; its ends stay.
    fn relaxed(&self, start: Mat) -> Result<Mat> {
        let (n, q) = (start.rows(), start.cols());
        let mut u = start.as_slice()[q..(n - 1) * q].to_vec();
        let mut chain = start;
        let mut objective = |u: &[f64], out: &mut [f64]| {
            chain.as_mut_slice()[q..(n - 1) * q].copy_from_slice(u);
            let mut grad = Mat::zeros(n, q);
            let energy = self.energy(&chain, &mut grad);
            out.copy_from_slice(&grad.as_slice()[q..(n - 1) * q]);
            Ok(energy)
        };
        let how =
            Lbfgs { max_iterations: 150, max_evaluations: 250, value_tolerance: 1e-6, ..Lbfgs::default() };
        how.minimize(&mut u, &mut objective, &mut quiet)?;
        chain.as_mut_slice()[q..(n - 1) * q].copy_from_slice(&u);
        Ok(chain)
    }

    /// The shortest way over training positions, each joined to its nearest.
    fn over_positions(&self, from: &[f64], to: &[f64], positions: &Mat, weights: &[f64]) -> Mat {
        let every = positions.rows().div_ceil(STOPS).max(1);
        let mut rows = vec![from, to];
        rows.extend((0..positions.rows()).step_by(every).map(|i| positions.row(i)));
        let x = Mat::from_rows(&rows);
        let n = x.rows();
        let w = self.white(&x);
        let hw = linalg::mul(&w, &self.h);
        let apart = |i: usize, j: usize| -> f64 {
            (0..x.cols()).map(|k| weights[k] * (x[(i, k)] - x[(j, k)]).powi(2)).sum()
        };
        let mut edges: Vec<Vec<(usize, f64)>> = vec![Vec::new(); n];
        for i in 0..n {
            let mut near: Vec<(f64, usize)> = (0..n).filter(|j| *j != i).map(|j| (apart(i, j), j)).collect();
            let count = NEIGHBOURS.min(near.len());
            near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            for &(_, j) in &near[..count] {
                let cost = self.step(x.row(i), x.row(j), (&w, &hw), (i, j)).sqrt();
                edges[i].push((j, cost));
                edges[j].push((i, cost));
            }
        }
        let stops = shortest(&edges);
        resampled(&x.select_rows(&stops), weights)
    }
}

/// The straight line.
fn line(from: &[f64], to: &[f64]) -> Mat {
    Mat::from_fn(STEPS + 1, from.len(), |i, k| {
        let t = i as f64 / STEPS as f64;
        (1.0 - t) * from[k] + t * to[k]
    })
}

/// The nodes of the shortest way from node 0 to node 1 (Dijkstra); both alone where there is none.
fn shortest(edges: &[Vec<(usize, f64)>]) -> Vec<usize> {
    let n = edges.len();
    let (mut far, mut done, mut before) = (vec![f64::INFINITY; n], vec![false; n], vec![usize::MAX; n]);
    far[0] = 0.0;
    while let Some(i) =
        (0..n).filter(|i| !done[*i] && far[*i] < f64::INFINITY).min_by(|a, b| far[*a].total_cmp(&far[*b]))
    {
        done[i] = true;
        for &(j, cost) in &edges[i] {
            if far[i] + cost < far[j] {
                (far[j], before[j]) = (far[i] + cost, i);
            }
        }
    }
    let mut way = vec![1];
    while let Some(&at) = way.last().filter(|at| before[**at] != usize::MAX) {
        way.push(before[at]);
    }
    way.reverse();
    if way[0] == 0 { way } else { vec![0, 1] }
}

/// A chain of [`STEPS`] steps, evenly long, along one of any number.
fn resampled(x: &Mat, weights: &[f64]) -> Mat {
    let apart = |i: usize| -> f64 {
        (0..x.cols()).map(|k| weights[k] * (x[(i, k)] - x[(i - 1, k)]).powi(2)).sum::<f64>().sqrt()
    };
    let mut at = vec![0.0];
    (1..x.rows()).for_each(|i| at.push(at[i - 1] + apart(i)));
    let all = at[x.rows() - 1];
    let mut i = 1;
    Mat::from_rows(
        &(0..=STEPS)
            .map(|s| {
                let t = all * s as f64 / STEPS as f64;
                while i + 1 < x.rows() && at[i] < t {
                    i += 1;
                }
                let part = if at[i] > at[i - 1] {
                    ((t - at[i - 1]) / (at[i] - at[i - 1])).clamp(0.0, 1.0)
                } else {
                    1.0
                };
                (0..x.cols()).map(|k| (1.0 - part) * x[(i - 1, k)] + part * x[(i, k)]).collect::<Vec<f64>>()
            })
            .collect::<Vec<_>>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use latentgp::fit;
    use latentgp::kernel::parse;
    use latentgp::model::{Model, Training};

    /// A model of points on three quarters of a circle: between its ends there are no data.
    fn horseshoe(kernel: &str) -> (Posterior, Mat) {
        let y = Mat::from_fn(60, 6, |i, j| {
            let t = 4.7 * i as f64 / 59.0;
            [t.cos(), t.sin(), t.cos() + 0.3 * t.sin(), 2.0 * t.sin(), t.sin() - t.cos(), 1.5 * t.cos()][j]
        });
        let training = Training { latent_dim: 2, inducing: 15, max_iterations: 60, ..Training::default() };
        let fitted = fit_of(&training, &y, kernel);
        let positions = fitted.latent().mean;
        (fitted.posterior().unwrap(), positions)
    }

    fn fit_of(training: &Training, y: &Mat, kernel: &str) -> latentgp::model::BayesianGplvm {
        training.fit(y, &parse(kernel, 2).unwrap(), &fit::go_on).unwrap().model
    }

    #[test]
    fn steps_are_the_expected_squares_and_gradients_agree_with_differences() {
        for kernel in ["rbf", "matern32", "rbf * periodic(period=9.0) + linear + white(variance=0.1)"] {
            let (posterior, x) = horseshoe(kernel);
            let metric = Metric::new(&posterior);
            // By the joint covariance of each output at both ends.
            let ends = x.select_rows(&[3, 20]);
            let mean = posterior.predict(&ends).unwrap().mean;
            let slow: f64 = (0..6)
                .map(|d| {
                    let c = posterior.joint_covariance(&ends, d).unwrap();
                    let s = posterior.scaling.scale[d];
                    let white = if kernel.contains("white") { 0.1 } else { 0.0 };
                    let own = parameter(&posterior, "white").unwrap_or(white);
                    ((mean[(1, d)] - mean[(0, d)]).powi(2) + c[(0, 0)] + c[(1, 1)] - 2.0 * c[(0, 1)]) / s / s
                        - 2.0 * own
                })
                .sum();
            let fast = metric.steps(&ends)[0];
            assert!((fast - slow).abs() < 1e-8 * slow.abs().max(1.0), "{kernel}: {fast} {slow}");
            let chain = Mat::from_fn(5, 2, |i, k| x[(5 + 4 * i, k)] + 0.03 * (i as f64 - k as f64));
            let mut grad = Mat::zeros(5, 2);
            metric.energy(&chain, &mut grad);
            for i in 0..5 {
                for k in 0..2 {
                    let h = 1e-5;
                    let at = |by: f64| {
                        let mut moved = chain.clone();
                        moved[(i, k)] += by;
                        metric.energy(&moved, &mut Mat::zeros(5, 2))
                    };
                    let slope = (at(h) - at(-h)) / (2.0 * h);
                    assert!(
                        (slope - grad[(i, k)]).abs() < 1e-5 * slope.abs().max(1.0),
                        "{kernel}: {slope} {}",
                        grad[(i, k)]
                    );
                }
            }
        }
    }

    /// The variance of the white part of a kernel.
    fn parameter(of: &Posterior, part: &str) -> Option<f64> {
        let text = of.kernel.expression();
        let from = text.find(part)?;
        let digits = &text[from..][text[from..].find("variance=")? + 9..];
        digits[..digits.find([',', ')'])?].parse().ok()
    }

    #[test]
    fn a_geodesic_goes_where_there_are_data() {
        let (posterior, x) = horseshoe("rbf");
        let metric = Metric::new(&posterior);
        let (from, to) = (x.row(0).to_vec(), x.row(59).to_vec());
        let straight = metric.straight(&from, &to);
        let curved = metric.geodesic(&from, &to, &x, &[1.0, 1.0]).unwrap();
        assert_eq!((curved.points.row(0), curved.points.row(STEPS)), (&from[..], &to[..]));
        assert!(curved.length <= straight.length);
        let variance =
            |p: &Path| -> f64 { posterior.predict(&p.points).unwrap().var.as_slice().iter().sum() };
        assert!(variance(&curved) < variance(&straight), "{} {}", variance(&curved), variance(&straight));
    }

    #[test]
    fn the_shortest_way_and_its_points() {
        let edges = vec![vec![(1, 5.0), (2, 1.0)], vec![], vec![(3, 1.0)], vec![(1, 1.0)]];
        assert_eq!(shortest(&edges), [0, 2, 3, 1]);
        assert_eq!(shortest(&[vec![], vec![]]), [0, 1]);
        let bent = Mat::from_rows(&[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]);
        let even = resampled(&bent, &[1.0, 1.0]);
        assert_eq!(
            (even.row(0), even.row(STEPS / 2), even.row(STEPS)),
            (bent.row(0), bent.row(1), bent.row(2))
        );
        assert!((even[(1, 0)] - 2.0 / STEPS as f64).abs() < 1e-12);
    }
}
