//! Blocks of stationary kernels at many points, one lane a point: nothing is summed across lanes until the end.
//!
//! ```text
//! H = K̄ ∘ σ²κ'(r²)     e = (x − z)/ℓ     x̄ = 2 Σ_m H e/ℓ     z̄ = −2 Σ_n H e/ℓ     ℓ̄ = −2 Σ H e²/ℓ
//! ```
//!
//! κ and its slope are kept from a block to its adjoint. Inputs of many columns have theirs by products of matrices,
//! see [`Wide`].

use super::wide::{WIDE, Wide};
use super::{Shape, Stationary};
use crate::kernel::CrossBlocks;
use crate::mat::Mat;
use crate::vmath::{Vectorized, fma, vectorize};

/// Points side by side: enough independent sums to hide how long each takes.
const WIDTH: usize = 16;
/// As many as have all their sums in registers on the way back.
const HALF: usize = 8;
type Lanes = [f64; WIDTH];

/// The blocks of a kernel with some Z.
pub(super) struct Tile<'a, S: Shape> {
    kernel: &'a Stationary<S>,
    z: Mat,
    inverse: Vec<f64>,
    /// The points of the last block: Q for each group of [`WIDTH`].
    x: Vec<Lanes>,
    /// r², κ and σ²∂κ/∂r²: M for each group.
    r2: Vec<Lanes>,
    kappa: Vec<Lanes>,
    slope: Vec<Lanes>,
    /// H of a group.
    h: Vec<Lanes>,
    /// Σ H e: M for each column.
    z_bar: Vec<Lanes>,
    /// Σ H e² of each column.
    l_bar: Vec<Lanes>,
    variance_bar: f64,
    alpha_bar: f64,
    wide: Option<Wide>,
}

impl<'a, S: Shape> Tile<'a, S> {
    pub fn new(kernel: &'a Stationary<S>, z: &Mat) -> Self {
        let (m, dim) = (z.rows(), kernel.dim);
        let narrow = dim < WIDE;
        let zeros = |count: usize| vec![[0.0; WIDTH]; count];
        Tile {
            kernel,
            inverse: kernel.inverse_lengthscales(),
            x: Vec::new(),
            r2: Vec::new(),
            kappa: Vec::new(),
            slope: Vec::new(),
            h: zeros(m),
            z_bar: zeros(if narrow { m * dim } else { 0 }),
            l_bar: zeros(if narrow { dim } else { 0 }),
            variance_bar: 0.0,
            alpha_bar: 0.0,
            wide: (!narrow).then(|| Wide::new(z)),
            z: z.clone(),
        }
    }
}

impl<S: Shape> CrossBlocks for Tile<'_, S> {
    fn cross(&mut self, x: &Mat, out: &mut Mat) {
        vectorize(Cross { tile: self, x, out });
    }

    fn cross_adjoint(&mut self, x: &Mat, bar: &Mat, x_bar: &mut Mat) {
        match self.wide.take() {
            Some(mut wide) => {
                vectorize(Slopes { tile: self, bar, h: wide.room(x.rows()) });
                wide.adjoint(x, &self.inverse, x_bar);
                self.wide = Some(wide);
            }
            None => vectorize(Adjoint { tile: self, bar, x_bar }),
        }
    }

    fn finish(&mut self, theta: &mut [f64], z_bar: &mut Mat) {
        let (m, dim) = (self.z.rows(), self.kernel.dim);
        let mut l_bar = vec![0.0; dim];
        match &mut self.wide {
            Some(wide) => wide.finish(&self.inverse, &mut l_bar, z_bar),
            None => {
                for q in 0..dim {
                    l_bar[q] = -2.0 * self.inverse[q] * self.l_bar[q].iter().sum::<f64>();
                    for m in 0..m {
                        let sum: f64 = self.z_bar[q * self.z.rows() + m].iter().sum();
                        z_bar[(m, q)] -= 2.0 * self.inverse[q] * sum;
                    }
                }
            }
        }
        self.kernel.add_theta(theta, self.variance_bar, &l_bar, self.alpha_bar);
        (self.variance_bar, self.alpha_bar) = (0.0, 0.0);
        self.z_bar.fill([0.0; WIDTH]);
        self.l_bar.fill([0.0; WIDTH]);
    }
}

struct Cross<'t, 'a, S: Shape> {
    tile: &'t mut Tile<'a, S>,
    x: &'t Mat,
    out: &'t mut Mat,
}

impl<S: Shape> Vectorized for Cross<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Tile { kernel, z, inverse, x, r2, kappa, slope, .. } = self.tile;
        let (rows, m, dim) = (self.x.rows(), z.rows(), kernel.dim);
        let groups = rows.div_ceil(WIDTH);
        let (variance, alpha) = (kernel.variance.get(), kernel.alpha());
        x.resize(groups * dim, [0.0; WIDTH]);
        r2.resize(if S::HAS_ALPHA { groups * m } else { m }, [0.0; WIDTH]);
        kappa.resize(groups * m, [0.0; WIDTH]);
        slope.resize(groups * m, [0.0; WIDTH]);
        for (g, x) in x.chunks_exact_mut(dim).enumerate().take(groups) {
            let (from, to) = (g * WIDTH, (g * WIDTH + WIDTH).min(rows));
            for k in 0..WIDTH {
                // Lanes without a point repeat the last one; their H is 0.
                let row = self.x.row((from + k).min(rows - 1));
                x.iter_mut().zip(row).for_each(|(x, v)| x[k] = *v);
            }
            let r2 = if S::HAS_ALPHA { &mut r2[g * m..(g + 1) * m] } else { &mut r2[..] };
            for (r2, z) in r2.iter_mut().zip(z.as_slice().chunks_exact(dim)) {
                let mut sum = [0.0; WIDTH];
                for ((x, z), inverse) in x.iter().zip(z).zip(&*inverse) {
                    for k in 0..WIDTH {
                        let e = (x[k] - z) * inverse;
                        sum[k] = fma::<FMA>(e, e, sum[k]);
                    }
                }
                *r2 = sum;
            }
            let (kappa, slope) = (&mut kappa[g * m..(g + 1) * m], &mut slope[g * m..(g + 1) * m]);
            let both = kappa.as_flattened_mut().iter_mut().zip(slope.as_flattened_mut());
            for ((kappa, slope), r2) in both.zip(r2.as_flattened()) {
                let (value, rate) = S::kappa::<FMA>(*r2, alpha);
                (*kappa, *slope) = (value, variance * rate);
            }
            for (k, out) in self.out.as_mut_slice()[from * m..to * m].chunks_exact_mut(m).enumerate() {
                out.iter_mut().zip(&*kappa).for_each(|(out, kappa)| *out = variance * kappa[k]);
            }
        }
    }
}

impl<S: Shape> Tile<'_, S> {
    /// H of a group, with σ̄² and ᾱ.
    #[inline(always)]
    fn slopes<const FMA: bool>(&mut self, g: usize, bar: &Mat) {
        let m = self.z.rows();
        let (from, to) = (g * WIDTH, (g * WIDTH + WIDTH).min(bar.rows()));
        self.h.fill([0.0; WIDTH]);
        for (k, bar) in bar.as_slice()[from * m..to * m].chunks_exact(m).enumerate() {
            self.h.iter_mut().zip(bar).for_each(|(h, bar)| h[k] = *bar);
        }
        let mut sum = [0.0; WIDTH];
        let both = self.kappa[g * m..(g + 1) * m].iter().zip(&self.slope[g * m..(g + 1) * m]);
        for (i, (h, (kappa, slope))) in self.h.iter_mut().zip(both).enumerate() {
            for k in 0..WIDTH {
                if S::HAS_ALPHA {
                    let (variance, alpha) = (self.kernel.variance.get(), self.kernel.alpha());
                    self.alpha_bar += h[k] * variance * S::kappa_alpha(self.r2[g * m + i][k], alpha);
                }
                sum[k] = fma::<FMA>(h[k], kappa[k], sum[k]);
                h[k] *= slope[k];
            }
        }
        self.variance_bar += sum.iter().sum::<f64>();
    }
}

/// H of a block for [`Wide`], N×M.
struct Slopes<'t, 'a, S: Shape> {
    tile: &'t mut Tile<'a, S>,
    bar: &'t Mat,
    h: &'t mut Mat,
}

impl<S: Shape> Vectorized for Slopes<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (rows, m) = (self.bar.rows(), self.tile.z.rows());
        for g in 0..rows.div_ceil(WIDTH) {
            self.tile.slopes::<FMA>(g, self.bar);
            let (from, to) = (g * WIDTH, (g * WIDTH + WIDTH).min(rows));
            for (k, out) in self.h.as_mut_slice()[from * m..to * m].chunks_exact_mut(m).enumerate() {
                out.iter_mut().zip(&self.tile.h).for_each(|(out, h)| *out = h[k]);
            }
        }
    }
}

struct Adjoint<'t, 'a, S: Shape> {
    tile: &'t mut Tile<'a, S>,
    bar: &'t Mat,
    x_bar: &'t mut Mat,
}

impl<S: Shape> Vectorized for Adjoint<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (rows, m, dim) = (self.bar.rows(), self.tile.z.rows(), self.tile.kernel.dim);
        for g in 0..rows.div_ceil(WIDTH) {
            self.tile.slopes::<FMA>(g, self.bar);
            let Tile { z, inverse, x, h, z_bar, l_bar, .. } = &mut *self.tile;
            let z = z.as_slice();
            let live = (rows - g * WIDTH).min(WIDTH);
            for q in 0..dim {
                let (inverse, mut x_sums) = (inverse[q], [0.0; WIDTH]);
                for from in (0..WIDTH).step_by(HALF) {
                    let part = |of: &Lanes| -> [f64; HALF] { std::array::from_fn(|k| of[from + k]) };
                    let (x, mut x_sum, mut l_sum) = (part(&x[g * dim + q]), [0.0; HALF], part(&l_bar[q]));
                    for (i, (h, z_bar)) in h.iter().zip(&mut z_bar[q * m..(q + 1) * m]).enumerate() {
                        let (h, z, mut z_sum) = (part(h), z[i * dim + q], part(z_bar));
                        for k in 0..HALF {
                            let e = (x[k] - z) * inverse;
                            let he = h[k] * e;
                            x_sum[k] += he;
                            z_sum[k] += he;
                            l_sum[k] = fma::<FMA>(he, e, l_sum[k]);
                        }
                        z_bar[from..from + HALF].copy_from_slice(&z_sum);
                    }
                    l_bar[q][from..from + HALF].copy_from_slice(&l_sum);
                    x_sums[from..from + HALF].copy_from_slice(&x_sum);
                }
                for (k, sum) in x_sums.iter().enumerate().take(live) {
                    self.x_bar.as_mut_slice()[(g * WIDTH + k) * dim + q] += 2.0 * inverse * sum;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Kernel, KernelGrad, Matern32, Mlp, RationalQuadratic, Rbf};
    use crate::param;

    const TOLERANCE: f64 = 1e-12;

    /// Blocks of two sets of points beside `cross` and `cross_adjoint` of both together.
    fn compare(kernel: &dyn Kernel, rows: [usize; 2]) {
        let dim = kernel.input_dim().unwrap();
        let (n, m) = (rows[0] + rows[1], 5);
        let point = |by: f64| move |i: usize, j: usize| (by * (i * dim + j) as f64).sin();
        let (x, z) = (Mat::from_fn(n, dim, point(0.7)), Mat::from_fn(m, dim, point(1.3)));
        let bar = Mat::from_fn(n, m, |i, j| ((3 * i + j) as f64).cos());
        let count = param::count(kernel);
        let (mut k, mut theta) = (Mat::zeros(n, m), vec![0.0; count]);
        let (mut gx, mut gz) = (Mat::zeros(n, dim), Mat::zeros(m, dim));
        kernel.cross(&x, &z, &mut k);
        kernel.cross_adjoint(
            &x,
            &z,
            &bar,
            KernelGrad { theta: &mut theta, x: Some(&mut gx), z: Some(&mut gz) },
        );
        let near = |a: &[f64], b: &[f64], what: &str| {
            let close = |(a, b): (&f64, &f64)| (a - b).abs() < TOLERANCE * (1.0 + b.abs());
            assert!(a.len() == b.len() && a.iter().zip(b).all(close), "{what}: {a:?} {b:?}");
        };
        let mut blocks = kernel.blocks(&z).unwrap();
        for _twice in 0..2 {
            let mut from = 0;
            for rows in rows {
                let to = from + rows;
                let (points, mut own) = (x.slice_rows(from, to), Mat::zeros(rows, m));
                blocks.cross(&points, &mut own);
                near(own.as_slice(), k.slice_rows(from, to).as_slice(), "k");
                let mut x_bar = Mat::zeros(rows, dim);
                blocks.cross_adjoint(&points, &bar.slice_rows(from, to), &mut x_bar);
                near(x_bar.as_slice(), gx.slice_rows(from, to).as_slice(), "x");
                from = to;
            }
            let (mut own, mut z_bar) = (vec![0.0; count], Mat::zeros(m, dim));
            blocks.finish(&mut own, &mut z_bar);
            near(&own, &theta, "theta");
            near(z_bar.as_slice(), gz.as_slice(), "z");
        }
    }

    #[test]
    fn blocks_are_those_of_the_kernel() {
        let mut rbf = Rbf::new(3);
        rbf.lengthscale.value = Mat::from_fn(1, 3, |_, q| 0.5 + 0.3 * q as f64);
        rbf.variance.set(1.7);
        let mut wide = Matern32::new(WIDE);
        wide.lengthscale.set(4.0);
        let network = Mlp::new(2, &[7, WIDE + 1], Rbf::new(WIDE + 1)).unwrap();
        for rows in [[1, 40], [16, 17], [129, 3]] {
            compare(&rbf, rows);
            compare(&Matern32::isotropic(2), rows);
            compare(&RationalQuadratic::new(4), rows);
            compare(&wide, rows);
            compare(&network, rows);
            compare(&Mlp::new(2, &[6, 3], Rbf::new(3)).unwrap(), rows);
        }
    }
}
