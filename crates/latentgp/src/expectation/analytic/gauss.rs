//! Pairs of pure Gaussian terms, forward: all Ψ-statistics of an rbf kernel.
//!
//! ```text
//! E = √∏D exp(Σ_q −½D(aδ² + bδ'² + S ab(δ − δ')²))
//! ```

use super::pair::{Factor, PairAt};
use super::tile::{BLOCK, Group, HALF, Rows, Tile, add_squares};
use crate::fast::vmath::{Instructions, Laned, Lanes, exp2_decay_lanes, exp2_m1_lanes, groups};
use crate::mat::Mat;
use crate::scratch::Buffer;
use std::f64::consts::LOG2_E;
use std::ops::Range;

/// Called with each point n and the values of a term there.
pub(super) type Visit<'v> = dyn FnMut(usize, &[f64]) + 'v;

/// 1/√product, with 0 beyond the first `count` lanes.
#[inline(always)]
fn roots<I: Instructions, const L: usize>(product: Lanes<I, L>, count: usize) -> Lanes<I, L> {
    let mut roots = Lanes::ONE / product.sqrt();
    if count < L {
        roots.0[count..].fill(0.0);
    }
    roots
}

/// Loads some points, with the `EXPONENTS` of 2 or δ alone, and returns √∏D, with 0 in lanes without a point.
#[inline(always)]
pub(super) fn load<I: Instructions, const EXPONENTS: bool, const L: usize>(
    group: &mut Group<I, L>,
    at: &PairAt<'_>,
    points: Range<usize>,
) -> Lanes<I, L> {
    let (a, b) = (&at.pair.t.precision[..], &at.pair.u.precision[..]);
    let (all, count) = (Lanes::<I, L>::all, points.len());
    let mut product = Lanes::ONE;
    group.load(at.q, points);
    for (((a, b), var), e) in a.iter().zip(b).zip(&group.var).zip(&mut group.exponents) {
        let grown = all(1.0) + *var * (a + b);
        product = product * grown;
        if EXPONENTS {
            let (d, sab) = (all(LOG2_E) / grown, *var * (a * b));
            *e = [d * -0.5 * (all(*a) + sab), d * -0.5 * (all(*b) + sab), d * sab];
        }
    }
    group.compute_deltas::<EXPONENTS>();
    roots(product, count)
}

/// A term by itself at the points of a group: √∏D exp(Σ_q −½Dbδ²).
pub(super) struct Single<'t, I: Instructions, const L: usize> {
    precision: &'t [f64],
    /// The factor of δ² of each dimension in the exponent of 2.
    sides: Buffer<Lanes<I, L>>,
    /// A number for each inducing input, point after point: values, or their F̄.
    pub lines: Buffer<f64>,
}

impl<'t, I: Instructions, const L: usize> Single<'t, I, L> {
    pub fn new(precision: &'t [f64], group: &Group<I, L>) -> Self {
        let sides = Buffer::filled(Lanes::ZERO, precision.len());
        Single { precision, sides, lines: Buffer::filled(0.0, L * group.right.len() * BLOCK) }
    }

    /// Loads the points of the group, and returns √∏D, with 0 in lanes without a point.
    #[inline(always)]
    pub fn load(&mut self, group: &Group<I, L>, count: usize) -> Lanes<I, L> {
        let mut product = Lanes::ONE;
        for ((b, var), side) in self.precision.iter().zip(&group.var).zip(&mut self.sides) {
            let grown = Lanes::ONE + *var * *b;
            *side = Lanes::all(-0.5 * LOG2_E * b) / grown;
            product = product * grown;
        }
        roots(product, count)
    }

    /// The exponentials of block `c`.
    #[inline(always)]
    pub fn values(&self, group: &Group<I, L>, c: usize) -> Rows<I, L> {
        let mut exponents = [Lanes::ZERO; BLOCK];
        for (side, delta) in self.sides.iter().zip(&group.delta[c * (group.dim + 1)..]) {
            add_squares(&mut exponents, *side, delta);
        }
        exp2_decay_lanes(&mut exponents);
        exponents
    }

    /// Calls `visit(n, values)` for each point of the group, with √∏D in the values. Without that factor they are also written to
    /// `kept`, block by block, unless it is empty.
    #[inline(always)]
    fn each_row(
        &mut self,
        group: &Group<I, L>,
        points: Range<usize>,
        kept: &mut [Rows<I, L>],
        visit: &mut Visit<'_>,
    ) {
        let (factor, width) = (self.load(group, points.len()), self.lines.len() / L);
        for c in 0..group.right.len() {
            let mut values = self.values(group, c);
            if let Some(kept) = kept.get_mut(c) {
                *kept = values;
            }
            for r in 0..BLOCK {
                values[r] = values[r] * factor;
            }
            let lines: [[f64; BLOCK]; L] = std::array::from_fn(|l| std::array::from_fn(|r| values[r].0[l]));
            for (to, line) in self.lines.chunks_exact_mut(width).zip(lines) {
                to[c * BLOCK..(c + 1) * BLOCK].copy_from_slice(&line);
            }
        }
        let cols = group.shape.cols;
        points.zip(self.lines.chunks_exact(width)).for_each(|(n, line)| visit(n, &line[..cols]));
    }
}

/// Returns the values of a pair, summed over points: rows × cols, the upper triangle unset where the terms are the same.
pub(super) struct Sum<'t, 'v> {
    pub at: PairAt<'t>,
    /// Where the values themselves, √∏D not in them, are kept. Where the terms are the same, those of the term by itself are
    /// kept too.
    pub kept: Option<&'t mut [f64]>,
    /// Gets the values of the second term by itself.
    pub visit: Option<&'t mut Visit<'v>>,
}

impl Laned for Sum<'_, '_> {
    type Out = Buffer<f64>;
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) -> Buffer<f64> {
        let shape = self.at.pair.shape();
        debug_assert!(self.kept.as_ref().is_none_or(|kept| {
            kept.len() >= shape.numbers(self.at.points.len()) && (!shape.same || self.visit.is_some())
        }));
        let mut group = Group::<I, L>::new(self.at.z, shape);
        let mut single = self.visit.map(|visit| (Single::new(&self.at.pair.u.precision, &group), visit));
        let mut sums: Buffer<Tile<I, L>> = Buffer::filled([[Lanes::ZERO; HALF]; BLOCK], shape.tiles());
        let mut kept = self.kept.map(|kept| kept.chunks_exact_mut(shape.kept::<L>()));
        for points in groups(self.at.points.clone(), L) {
            let factor = load::<I, true, L>(&mut group, &self.at, points.clone());
            let kept = kept.as_mut().and_then(Iterator::next).unwrap_or_default();
            let (blocks, tiles) = shape.split_kept_mut::<I, L>(kept);
            if let Some((single, visit)) = &mut single {
                single.each_row(&group, points, blocks, visit);
            }
            let (mut sums, mut tiles) = (sums.iter_mut(), tiles.iter_mut());
            for b in 0..shape.row_blocks() {
                for c in 0..shape.reach(b) {
                    for (h, sum) in (0..shape.halves(c)).zip(&mut sums) {
                        let values = match shape.top(b, c, h) {
                            0 => group.values::<0>(b, c, h),
                            _ => group.values::<HALF>(b, c, h),
                        };
                        if let Some(kept) = tiles.next() {
                            *kept = values;
                        }
                        for r in 0..BLOCK {
                            for w in 0..HALF {
                                sum[r][w] = factor.mul_add(values[r][w], sum[r][w]);
                            }
                        }
                    }
                }
            }
        }
        let mut out = Buffer::filled(0.0, shape.rows * shape.cols);
        shape.each_pair(|i, j, tile, r, w| out[i * shape.cols + j] = sums[tile][r][w].sum());
        out
    }
}

/// Writes the rows of Ψ1 of one Gaussian term and adds the lower triangle of Σ_n E[k kᵀ] − ψ1ψ1ᵀ.
///
/// E[k_m k_m'] = ψ1_m ψ1_m' exp(δ), with D₁ = 1/(1 + aS), D₂ = 1/(1 + 2aS) and
/// δ = Σ_q ½ ln(1 + a²S²D₂) − ½ a³S²D₁D₂ (δ_m² + δ_m'²) + a²S D₂ δ_m δ_m'.
pub(super) struct Covariance<'t> {
    /// The term's pair with itself.
    pub at: PairAt<'t>,
    /// Where the values are kept, as those of [`Sum`].
    pub kept: Option<&'t mut [f64]>,
    pub psi1: &'t mut [f64],
    pub out: &'t mut Mat,
}

impl Laned for Covariance<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Instructions, const L: usize>(self) {
        let PairAt { pair, q, z, points } = self.at;
        let (m, shape) = (z.rows(), pair.shape());
        debug_assert!(self.kept.as_ref().is_none_or(|kept| kept.len() >= shape.numbers(points.len())));
        let Factor { precision: a, scale, .. } = pair.u;
        let mut group = Group::<I, L>::new(z, shape);
        let mut single = Single::new(a, &group);
        let mut sums: Buffer<Tile<I, L>> = Buffer::filled([[Lanes::ZERO; HALF]; BLOCK], shape.tiles());
        // ψ1 of a kernel of variance 1.
        let mut plain: Buffer<Rows<I, L>> = Buffer::filled([Lanes::ZERO; BLOCK], shape.row_blocks());
        let mut kept = self.kept.map(|kept| kept.chunks_exact_mut(shape.kept::<L>()));
        let from = points.start;
        for points in groups(points, L) {
            group.load(q, points.clone());
            // ∏(1 + a²S²D₂) − 1, which keeps its digits where S is small, and ∏(1 + 2aS).
            let (mut grown, mut product) = (Lanes::ZERO, Lanes::ONE);
            for ((a, var), e) in a.iter().zip(&group.var).zip(&mut group.exponents) {
                let pair = Lanes::ONE + *var * (2.0 * a);
                let link = *var * (a * a) / pair;
                let own = link * *var;
                let side = own * (-0.5 * LOG2_E * a) / (Lanes::ONE + *var * *a);
                grown += own + grown * own;
                product = product * pair;
                *e = [side, side, link * LOG2_E];
            }
            group.compute_deltas::<true>();
            group.add_to_exponents(Lanes::of(grown.0.map(|g| 0.5 * LOG2_E * g.ln_1p())));
            let kept = kept.as_mut().and_then(Iterator::next).unwrap_or_default();
            let (blocks, tiles) = shape.split_kept_mut::<I, L>(kept);
            // Lanes without a point have 0.
            plain.fill([Lanes::ZERO; BLOCK]);
            let first = points.start;
            single.each_row(&group, points, blocks, &mut |n, values| {
                let row = &mut self.psi1[(n - from) * m..(n - from + 1) * m];
                row.iter_mut().zip(values).for_each(|(out, v)| *out = scale * v);
                values.iter().enumerate().for_each(|(j, v)| plain[j / BLOCK][j % BLOCK].0[n - first] = *v);
            });
            // From E[kk'] to values, which are without √∏D.
            let back = product.sqrt();
            let (mut sums, mut tiles) = (sums.iter_mut(), tiles.iter_mut());
            for b in 0..shape.row_blocks() {
                for c in 0..shape.reach(b) {
                    for (h, sum) in (0..shape.halves(c)).zip(&mut sums) {
                        let mut values = group.exponents::<0>(b, c, h);
                        exp2_m1_lanes(values.as_flattened_mut());
                        let (left, right) = (&plain[b], &plain[c]);
                        for r in 0..BLOCK {
                            for w in 0..HALF {
                                // Far away the product is 0, and the power is finite.
                                let both = left[r] * right[h * HALF + w];
                                let own = both * values[r][w];
                                sum[r][w] += own;
                                values[r][w] = back * (both + own);
                            }
                        }
                        if let Some(kept) = tiles.next() {
                            *kept = values;
                        }
                    }
                }
            }
        }
        let scale = scale * scale;
        shape.each_pair(|i, j, tile, r, w| self.out[(i, j)] += scale * sums[tile][r][w].sum());
    }
}
