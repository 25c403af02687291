//! Blocks of stationary kernels at many points, one lane a point: nothing is summed across lanes until the end.
//!
//! ```text
//! H = K̄ ∘ σ²κ'(r²)     d = x − z     x̄ = 2 Σ_m H d/ℓ²     z̄ = −2 Σ_n H d/ℓ²     ℓ̄ = −2 Σ H d²/ℓ³
//! ```
//!
//! κ and its slope are kept from a block to its adjoint. Inputs of many columns have theirs by products of matrices,
//! see [`Wide`].

use super::wide::{WIDE, Wide};
use super::{Shape, Stationary};
use crate::kernel::blocks::{CrossBlocks, at};
use crate::mat::Mat;
use crate::vmath::{Vectorized, fma, vectorize};

/// Points side by side: enough independent sums to hide how long each takes.
const WIDTH: usize = 16;
/// As many as have all their sums in registers on the way back.
const HALF: usize = 8;
type Lanes = [f64; WIDTH];

/// What a block keeps for its adjoint.
#[derive(Default)]
struct Kept {
    /// The points: Q for each group of [`WIDTH`].
    x: Vec<Lanes>,
    /// What κ is computed from, of all groups where the shape has an α; κ and σ²∂κ/∂r². M for each group.
    arguments: Vec<Lanes>,
    kappa: Vec<Lanes>,
    slope: Vec<Lanes>,
}

/// The blocks of a kernel with some Z.
pub(super) struct Tile<'a, S: Shape> {
    kernel: &'a Stationary<S>,
    z: Mat,
    inverse: Vec<f64>,
    kept: Vec<Kept>,
    /// H of a group.
    h: Vec<Lanes>,
    /// Σ H d: M for each column.
    z_bar: Vec<Lanes>,
    /// Σ H d² of each column.
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
            kept: Vec::new(),
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
    fn cross(&mut self, place: usize, x: &Mat, out: &mut Mat) {
        let kept = at(&mut self.kept, place);
        vectorize(Cross { kernel: self.kernel, z: &self.z, inverse: &self.inverse, kept, x, out });
    }

    fn cross_adjoint(&mut self, place: usize, x: &Mat, bar: &Mat, x_bar: &mut Mat) {
        match self.wide.take() {
            Some(mut wide) => {
                vectorize(Slopes { tile: self, place, bar, h: wide.room(x.rows()) });
                wide.adjoint(x, &self.inverse, x_bar);
                self.wide = Some(wide);
            }
            None => vectorize(Adjoint { tile: self, place, bar, x_bar }),
        }
    }

    fn kept(&self) -> usize {
        self.kernel.dim + (2 + usize::from(S::HAS_ALPHA)) * self.z.rows()
    }

    fn finish(&mut self, theta: &mut [f64], z_bar: &mut Mat) {
        let (m, dim) = (self.z.rows(), self.kernel.dim);
        let mut l_bar = vec![0.0; dim];
        match &mut self.wide {
            Some(wide) => wide.finish(&self.inverse, &mut l_bar, z_bar),
            None => {
                for q in 0..dim {
                    let scale = 2.0 * self.inverse[q] * self.inverse[q];
                    l_bar[q] = -scale * self.inverse[q] * self.l_bar[q].iter().sum::<f64>();
                    for m in 0..m {
                        let sum: f64 = self.z_bar[q * self.z.rows() + m].iter().sum();
                        z_bar[(m, q)] -= scale * sum;
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

struct Cross<'t, S: Shape> {
    kernel: &'t Stationary<S>,
    z: &'t Mat,
    inverse: &'t [f64],
    kept: &'t mut Kept,
    x: &'t Mat,
    out: &'t mut Mat,
}

impl<S: Shape> Vectorized for Cross<'_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Cross { kernel, z, inverse, kept: Kept { x, arguments, kappa, slope }, .. } = self;
        let (rows, m, dim) = (self.x.rows(), z.rows(), kernel.dim);
        let groups = rows.div_ceil(WIDTH);
        let (variance, alpha) = (kernel.variance.get(), kernel.alpha());
        x.resize(groups * dim, [0.0; WIDTH]);
        for kept in [&mut *arguments, &mut *kappa, &mut *slope] {
            kept.clear();
            kept.reserve_exact(groups * m);
        }
        for (g, x) in x.chunks_exact_mut(dim).enumerate().take(groups) {
            let (from, to) = (g * WIDTH, (g * WIDTH + WIDTH).min(rows));
            for k in 0..WIDTH {
                // Lanes without a point repeat the last one; their H is 0.
                let row = self.x.row((from + k).min(rows - 1));
                x.iter_mut().zip(row).for_each(|(x, v)| x[k] = *v);
            }
            if !S::HAS_ALPHA {
                arguments.clear();
            }
            let first = arguments.len();
            for z in z.as_slice().chunks_exact(dim) {
                let mut sum = [0.0; WIDTH];
                for ((x, z), inverse) in x.iter().zip(z).zip(inverse) {
                    for k in 0..WIDTH {
                        let e = (x[k] - z) * inverse;
                        sum[k] = fma::<FMA>(e, e, sum[k]);
                    }
                }
                arguments.push(sum.map(S::argument));
            }
            for argument in &arguments[first..] {
                let (mut values, mut rates) = ([0.0; WIDTH], [0.0; WIDTH]);
                for k in 0..WIDTH {
                    let (value, rate) = S::kappa_at::<FMA>(argument[k], alpha);
                    (values[k], rates[k]) = (value, variance * rate);
                }
                kappa.push(values);
                slope.push(rates);
            }
            let kappa = &kappa[g * m..];
            for (k, out) in self.out.as_mut_slice()[from * m..to * m].chunks_exact_mut(m).enumerate() {
                out.iter_mut().zip(kappa).for_each(|(out, kappa)| *out = variance * kappa[k]);
            }
        }
    }
}

impl<S: Shape> Tile<'_, S> {
    /// H of a group, with σ̄² and ᾱ.
    #[inline(always)]
    fn slopes<const FMA: bool>(&mut self, place: usize, g: usize, bar: &Mat) {
        let (m, kept) = (self.z.rows(), &self.kept[place]);
        let (from, to) = (g * WIDTH, (g * WIDTH + WIDTH).min(bar.rows()));
        self.h.fill([0.0; WIDTH]);
        for (k, bar) in bar.as_slice()[from * m..to * m].chunks_exact(m).enumerate() {
            self.h.iter_mut().zip(bar).for_each(|(h, bar)| h[k] = *bar);
        }
        let mut sum = [0.0; WIDTH];
        let both = kept.kappa[g * m..(g + 1) * m].iter().zip(&kept.slope[g * m..(g + 1) * m]);
        for (i, (h, (kappa, slope))) in self.h.iter_mut().zip(both).enumerate() {
            for k in 0..WIDTH {
                if S::HAS_ALPHA {
                    let (variance, alpha) = (self.kernel.variance.get(), self.kernel.alpha());
                    self.alpha_bar += h[k] * variance * S::kappa_alpha(kept.arguments[g * m + i][k], alpha);
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
    place: usize,
    bar: &'t Mat,
    h: &'t mut Mat,
}

impl<S: Shape> Vectorized for Slopes<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (rows, m) = (self.bar.rows(), self.tile.z.rows());
        for g in 0..rows.div_ceil(WIDTH) {
            self.tile.slopes::<FMA>(self.place, g, self.bar);
            let (from, to) = (g * WIDTH, (g * WIDTH + WIDTH).min(rows));
            for (k, out) in self.h.as_mut_slice()[from * m..to * m].chunks_exact_mut(m).enumerate() {
                out.iter_mut().zip(&self.tile.h).for_each(|(out, h)| *out = h[k]);
            }
        }
    }
}

struct Adjoint<'t, 'a, S: Shape> {
    tile: &'t mut Tile<'a, S>,
    place: usize,
    bar: &'t Mat,
    x_bar: &'t mut Mat,
}

impl<S: Shape> Vectorized for Adjoint<'_, '_, S> {
    type Out = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (rows, m, dim) = (self.bar.rows(), self.tile.z.rows(), self.tile.kernel.dim);
        for g in 0..rows.div_ceil(WIDTH) {
            self.tile.slopes::<FMA>(self.place, g, self.bar);
            let Tile { z, inverse, kept, h, z_bar, l_bar, .. } = &mut *self.tile;
            let x = &kept[self.place].x;
            let z = z.as_slice();
            let live = (rows - g * WIDTH).min(WIDTH);
            for q in 0..dim {
                let (scale, mut x_sums) = (2.0 * inverse[q] * inverse[q], [0.0; WIDTH]);
                for from in (0..WIDTH).step_by(HALF) {
                    let part = |of: &Lanes| -> [f64; HALF] { std::array::from_fn(|k| of[from + k]) };
                    let (x, mut x_sum, mut l_sum) = (part(&x[g * dim + q]), [0.0; HALF], part(&l_bar[q]));
                    for (i, (h, z_bar)) in h.iter().zip(&mut z_bar[q * m..(q + 1) * m]).enumerate() {
                        let (h, z, mut z_sum) = (part(h), z[i * dim + q], part(z_bar));
                        for k in 0..HALF {
                            let d = x[k] - z;
                            let hd = h[k] * d;
                            x_sum[k] += hd;
                            z_sum[k] += hd;
                            l_sum[k] = fma::<FMA>(hd, d, l_sum[k]);
                        }
                        z_bar[from..from + HALF].copy_from_slice(&z_sum);
                    }
                    l_bar[q][from..from + HALF].copy_from_slice(&l_sum);
                    x_sums[from..from + HALF].copy_from_slice(&x_sum);
                }
                for (k, sum) in x_sums.iter().enumerate().take(live) {
                    self.x_bar.as_mut_slice()[(g * WIDTH + k) * dim + q] += scale * sum;
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
        let ranges = [0..rows[0], rows[0]..n];
        for _twice in 0..2 {
            for (place, range) in ranges.iter().enumerate() {
                let (points, mut own) = (x.slice_rows(range.start, range.end), Mat::zeros(range.len(), m));
                blocks.cross(place, &points, &mut own);
                near(own.as_slice(), k.slice_rows(range.start, range.end).as_slice(), "k");
            }
            for (place, range) in ranges.iter().enumerate() {
                let (points, mut x_bar) =
                    (x.slice_rows(range.start, range.end), Mat::zeros(range.len(), dim));
                blocks.cross_adjoint(place, &points, &bar.slice_rows(range.start, range.end), &mut x_bar);
                near(x_bar.as_slice(), gx.slice_rows(range.start, range.end).as_slice(), "x");
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
