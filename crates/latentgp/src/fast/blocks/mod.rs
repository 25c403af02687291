//! Work over blocks of rows, on all threads, with the same digits on any number of them.
//!
//! Rows are split into parts, which threads take one at a time. The parts follow from the shapes alone, and so does the order in
//! which sums over them are added.

mod team;

use crate::fast::vmath::{CACHE_LINE, groups};
use crate::linalg::tall::{self, Packed};
use crate::mat::Mat;
use crate::scratch;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Rows are split into at most this many parts.
pub(crate) const PARTS: usize = 32;
/// A part has at most this many rows, unless that would be more than [`PARTS`] parts.
const PART_ROWS: usize = 64;
/// All parts but the last have a multiple of this many rows: the numbers in a register of most machines.
const ROW_MULTIPLE: usize = 4;

/// One value for each part, stored inline.
pub(crate) type Parts<T> = SmallVec<[T; PARTS]>;

/// How many parts N rows have.
pub(crate) fn parts(n: usize) -> usize {
    n.div_ceil(part_rows(n))
}

/// The rows of each part but the last.
pub(crate) fn part_rows(n: usize) -> usize {
    n.div_ceil(n.div_ceil(PART_ROWS).clamp(1, PARTS)).next_multiple_of(ROW_MULTIPLE).max(ROW_MULTIPLE)
}

/// Work of fewer operations, some ten microseconds, is done sooner by one thread: waking others costs more than they save.
const MIN_OPERATIONS: usize = 1 << 17;

/// Runs `work`, of about `cost` operations, on a thread of the pool. As many other threads as that is worth stay awake for its
/// parallel pieces, so that none of these has to wake them; inside [`steps`], those threads are the helpers. They do nothing
/// else meanwhile: work that uses the pool by other means than this module belongs in [`together`].
pub(crate) fn step<T: Send>(cost: usize, work: impl FnOnce() -> T + Send) -> T {
    match cost / MIN_OPERATIONS {
        0 => work(),
        threads => team::step(threads.min(PARTS - 1), work),
    }
}

/// Runs `work` on a thread of the pool, with no helpers waiting: it may use all threads in any way.
pub(crate) fn together<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    team::dismiss();
    rayon::scope(|_| work())
}

/// Runs `work`, which does many a [`step`] of `parts` parts in a row. If it is called in a pool, other threads of it stay awake
/// between the steps too, at most one for each part.
pub(crate) fn steps<T>(parts: usize, work: impl FnOnce() -> T) -> T {
    match in_a_pool() {
        true => team::steps(parts.saturating_sub(1), work),
        false => work(),
    }
}

/// Runs both, at the same time if they belong to a [`step`] of so many operations that it has helpers.
pub(crate) fn join<A: Send, B: Send>(
    cost: usize,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    if cost < MIN_OPERATIONS || team::is_busy() {
        return (first(), second());
    }
    let slots = (Mutex::new((Some(first), None)), Mutex::new((Some(second), None)));
    let shared = team::share(2, &|part| match part {
        0 => finish(&slots.0, |first| first()),
        _ => finish(&slots.1, |second| second()),
    });
    if !shared {
        rayon::join(|| finish(&slots.0, |first| first()), || finish(&slots.1, |second| second()));
    }
    (taken(slots.0), taken(slots.1))
}

/// The input of a piece of work, and its result.
type Slot<I, T> = Mutex<(Option<I>, Option<T>)>;

/// Does the work of a slot.
fn finish<I, T>(slot: &Slot<I, T>, work: impl FnOnce(I) -> T) {
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    slot.1 = slot.0.take().map(work);
}

/// The result in a slot.
fn taken<I, T>(slot: Slot<I, T>) -> T {
    slot.into_inner().unwrap_or_else(PoisonError::into_inner).1.expect("every part is done")
}

/// Copying fewer numbers, some ten microseconds, is done sooner by one thread.
pub(crate) const MIN_NUMBERS: usize = 1 << 14;

/// Whether this thread belongs to a pool of several.
pub(crate) fn in_a_pool() -> bool {
    rayon::current_thread_index().is_some() && rayon::current_num_threads() > 1
}

/// Calls `work` for pieces of `out`, whose every number depends on its index alone: on all threads of the pool that it is
/// called in, if any. It starts no pool.
pub(crate) fn each_piece(out: &mut [f64], work: impl Fn(Range<usize>, &mut [f64]) + Sync) {
    const PIECE: usize = MIN_NUMBERS / 4;
    let alone = out.len() < MIN_NUMBERS || !in_a_pool();
    let size = if alone { out.len().max(1) } else { PIECE };
    each_chunk(out, size, alone, |i, piece| work(i * size..i * size + piece.len(), piece));
}

/// Calls `work` with the number of each chunk of `size` elements and the chunk; on this thread if `alone`.
pub(crate) fn each_chunk<T: Send>(
    all: &mut [T],
    size: usize,
    alone: bool,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    // Each part has several chunks where there are more chunks than parts.
    let together = all.len().div_ceil(size).div_ceil(PARTS).max(1);
    each_of(all.chunks_mut(together * size).enumerate(), alone, |(i, some)| {
        some.chunks_mut(size).enumerate().for_each(|(k, chunk)| work(i * together + k, chunk));
    });
}

/// Copies numbers, by several threads where there are many.
pub(crate) fn copy(from: &[f64], to: &mut [f64]) {
    each_piece(to, |at, to| to.copy_from_slice(&from[at]));
}

/// Calls `work` for every part of the rows of `out`, which are N of each matrix, with the part's own rows; returns what it
/// returns, in order. `cost` is the number of operations a row, roughly.
pub(crate) fn each_part<T: Send, const K: usize>(
    n: usize,
    cost: usize,
    out: [&mut Mat; K],
    work: impl Fn(Range<usize>, [&mut [f64]; K]) -> T + Sync,
) -> Parts<T> {
    let rows = part_rows(n);
    let mut rest = out.map(|m| {
        debug_assert_eq!(m.rows(), n);
        let cols = m.cols();
        (m.as_mut_slice(), cols)
    });
    let parts = (0..n).step_by(rows).map(|from| {
        let points = from..(from + rows).min(n);
        let own = rest.each_mut().map(|(slice, cols)| {
            let (own, others) = std::mem::take(slice).split_at_mut(points.len() * *cols);
            *slice = others;
            own
        });
        (points, own)
    });
    each_of(parts, is_small(n, cost), |(points, own)| work(points, own))
}

/// Whether N rows of `cost` operations each are done sooner by one thread.
fn is_small(n: usize, cost: usize) -> bool {
    n.saturating_mul(cost) < MIN_OPERATIONS || rayon::current_num_threads() == 1
}

/// The results of `work` for each part, in order; on this thread if `alone`.
pub(crate) fn each_of<I: Send, T: Send>(
    parts: impl Iterator<Item = I>,
    alone: bool,
    work: impl Fn(I) -> T + Sync,
) -> Parts<T> {
    if alone || team::is_busy() {
        return parts.map(work).collect();
    }
    let all: Parts<Slot<I, T>> = parts.map(|part| Mutex::new((Some(part), None))).collect();
    if !team::share(all.len(), &|i| finish(&all[i], &work)) {
        fill(&all, &work);
    }
    all.into_iter().map(taken).collect()
}

/// Does the work of all slots, half of them by another thread.
fn fill<I: Send, T: Send>(all: &[Slot<I, T>], work: &(impl Fn(I) -> T + Sync)) {
    match all {
        [] => {}
        [one] => finish(one, work),
        _ => {
            let (left, right) = all.split_at(all.len() / 2);
            rayon::join(|| fill(left, work), || fill(right, work));
        }
    }
}

/// Calls `work` for every part of N > 0 rows, and `add`s the results pair by pair, then pairs of pairs. `cost` is the number of
/// operations a row, roughly.
pub(crate) fn sum_parts<T: Send>(
    n: usize,
    cost: usize,
    work: impl Fn(Range<usize>) -> T + Sync,
    add: impl Fn(&mut T, T) + Sync,
) -> T {
    debug_assert!(n > 0);
    let parts: Parts<_> = groups(0..n, part_rows(n)).collect();
    let alone = is_small(n, cost) || team::is_busy();
    if !alone {
        let sums = Sums::new(parts.len());
        if team::share(parts.len(), &|i| sums.put(i, work(parts[i].clone()), &add)) {
            return sums.all();
        }
    }
    sum_some(&parts, alone, &work, &add)
}

/// Adds results that arrive in any order, in the order of [`sum_some`].
struct Sums<T> {
    /// The sum of some neighbouring parts, at the index of the first of them.
    of: Parts<Mutex<Option<T>>>,
    /// At the index where a range of parts is split: whether the sum of one half is there.
    half: Parts<AtomicBool>,
}

impl<T> Sums<T> {
    fn new(parts: usize) -> Self {
        Sums {
            of: (0..parts).map(|_| Mutex::new(None)).collect(),
            half: (0..parts).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    fn at(&self, part: usize) -> std::sync::MutexGuard<'_, Option<T>> {
        self.of[part].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the result of a part, and adds the halves that are complete.
    fn put(&self, part: usize, own: T, add: &impl Fn(&mut T, T)) {
        *self.at(part) = Some(own);
        // The ranges that the part is in, from all parts down to two: where they begin and where they are split.
        let mut halves = SmallVec::<[(usize, usize); 8]>::new();
        let (mut from, mut to) = (0, self.of.len());
        while to - from > 1 {
            let split = from + (to - from) / 2;
            halves.push((from, split));
            if part < split { to = split } else { from = split }
        }
        while let Some((from, split)) = halves.pop() {
            // The thread that completes the second half adds both.
            if !self.half[split].swap(true, Ordering::AcqRel) {
                return;
            }
            let other = self.at(split).take().expect("the second half");
            add(self.at(from).as_mut().expect("the first half"), other);
        }
    }

    fn all(self) -> T {
        let first =
            self.of.into_iter().next().and_then(|of| of.into_inner().unwrap_or_else(PoisonError::into_inner));
        first.expect("the sum of all parts")
    }
}

fn sum_some<T: Send>(
    parts: &[Range<usize>],
    alone: bool,
    work: &(impl Fn(Range<usize>) -> T + Sync),
    add: &(impl Fn(&mut T, T) + Sync),
) -> T {
    if let [only] = parts {
        return work(only.clone());
    }
    let (left, right) = parts.split_at(parts.len() / 2);
    let some = |parts| sum_some(parts, alone, work, add);
    let (mut sum, other) = match alone {
        true => (some(left), some(right)),
        false => rayon::join(|| some(left), || some(right)),
    };
    add(&mut sum, other);
    sum
}

/// Products aᵀb are split into parts of about this many columns of b, so that fewer parts of rows are needed: each of these has
/// M×D numbers of its own to be summed. Rows of fewer columns stay whole, as contiguous memory is read faster.
const PRODUCT_COLUMNS: usize = 256;
/// They are split into at least this many parts of rows, where there are enough rows.
const PRODUCT_PARTS: usize = 8;

/// The parts of a product aᵀb of N rows and D columns: their rows and columns.
fn product_parts(n: usize, d: usize) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let across = d.div_ceil(PRODUCT_COLUMNS).max(1);
    let width = d.div_ceil(across).next_multiple_of(CACHE_LINE).max(CACHE_LINE);
    let down = PARTS.div_ceil(across).max(PRODUCT_PARTS);
    let rows = n.div_ceil(down).max(part_rows(n));
    groups(0..d, width).flat_map(move |c| groups(0..n, rows).map(move |r| (r, c.clone())))
}

/// aᵀ · b, where both have many rows.
pub(crate) fn mul_tn(a: &Mat, b: &Mat) -> Mat {
    let (n, d) = (a.rows(), b.cols());
    let one = |(rows, columns): &(Range<usize>, Range<usize>)| {
        let of = |mat: &Mat| rows.start * mat.cols()..rows.end * mat.cols();
        tall::mul_tn(&a.as_slice()[of(a)], a.cols(), &b.as_slice()[of(b)], d, columns.clone())
    };
    let mut sum = Mat::zeros(a.cols(), d);
    let mut parts = product_parts(n, d);
    loop {
        let some: Parts<_> = parts.by_ref().take(PARTS).collect();
        if some.is_empty() {
            return sum;
        }
        let found = each_of(some.iter(), is_small(n, a.cols() * d / 4), one);
        each_part(sum.rows(), some.len() * d, [&mut sum], |rows, [sum]| {
            for (i, sum) in rows.zip(sum.chunks_exact_mut(d)) {
                for ((_, columns), part) in some.iter().zip(&found) {
                    sum[columns.clone()].iter_mut().zip(part.row(i)).for_each(|(sum, part)| *sum += part);
                }
            }
        });
    }
}

/// scale · a · bᵀ, where a has many rows.
pub(crate) fn mul_nt(scale: f64, a: &Mat, b: &Mat) -> Mat {
    let mut out = scratch::any(a.rows(), b.rows());
    if a.cols() == 0 {
        out.fill(0.0);
    } else if !out.is_empty() {
        let (packed, d) = (Packed::new(b), a.cols());
        let cost = b.rows() * d / 4;
        each_part(a.rows(), cost, [&mut out], |rows, [out]| {
            packed.mul(scale, &a.as_slice()[rows.start * d..rows.end * d], out);
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg;

    #[test]
    fn parts_make_the_whole() {
        let a = Mat::from_fn(1000, 3, |i, j| ((i * 3 + j) as f64).sin());
        for d in [2, PRODUCT_COLUMNS, 2 * PRODUCT_COLUMNS + 3, 5 * PRODUCT_COLUMNS] {
            let b = Mat::from_fn(1000, d, |i, j| ((i + 5 * j) as f64).cos());
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| mul_tn(&a, &b))
            };
            let (fast, slow) = (on(1), linalg::mul_tn(&a, &b));
            assert!(fast.as_slice().iter().zip(slow.as_slice()).all(|(x, y)| (x - y).abs() < 1e-11));
            assert_eq!(on(3), fast);
        }
        let c = Mat::from_fn(4, 3, |i, j| (i + j) as f64);
        let (fast, slow) = (mul_nt(2.0, &a, &c), linalg::mul_nt(&a, &c));
        assert!(fast.as_slice().iter().zip(slow.as_slice()).all(|(x, y)| (x - 2.0 * y).abs() < 1e-13));
    }

    #[test]
    fn both_are_done_and_parts_keep_their_places() {
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let all = || {
                let squares = each_of(0..29, false, |i| i * i);
                (join(MIN_OPERATIONS, || 1, || "two"), join(0, || 1, || "two"), squares)
            };
            let squares: Parts<_> = (0..29).map(|i| i * i).collect();
            // Work that has the pool to itself has no helpers.
            let apart = || steps(PARTS, || (together(all), all()));
            let (first, second) = pool.install(apart);
            for found in [pool.install(all), pool.install(|| step(MIN_OPERATIONS, all)), first, second] {
                assert_eq!(found, ((1, "two"), (1, "two"), squares.clone()));
            }
        }
    }

    #[test]
    fn pieces_make_the_whole() {
        for len in [0, 5, MIN_NUMBERS - 1, MIN_NUMBERS, 3 * MIN_NUMBERS + 7] {
            let from: Vec<f64> = (0..len).map(|i| i as f64).collect();
            for threads in [1, 3] {
                let mut to = vec![f64::NAN; len];
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| copy(&from, &mut to));
                assert_eq!(to, from);
            }
        }
    }

    #[test]
    fn chunks_have_their_numbers() {
        for (len, size) in [(0, 3), (5, 3), (1000, 7)] {
            for threads in [1, 3] {
                let mut all = vec![usize::MAX; len];
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| steps(PARTS, || each_chunk(&mut all, size, false, |i, chunk| chunk.fill(i))));
                assert!(all.iter().enumerate().all(|(at, i)| *i == at / size), "{len} {size} {threads}");
            }
        }
    }

    #[test]
    fn sums_over_parts_are_the_same_on_any_number_of_threads() {
        let work = |rows: Range<usize>| (rows.clone().map(|i| (i as f64).sin()).sum::<f64>(), vec![rows]);
        let add = |sum: &mut (f64, Vec<Range<usize>>), other: (f64, Vec<Range<usize>>)| {
            sum.0 += other.0;
            sum.1.extend(other.1);
        };
        for n in [1, 64, 1000, 4321] {
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let plain = sum_parts(n, MIN_OPERATIONS, work, add);
                    let in_a_step = step(MIN_OPERATIONS, || sum_parts(n, MIN_OPERATIONS, work, add));
                    assert_eq!(plain, in_a_step);
                    plain
                })
            };
            let (sum, parts) = on(1);
            for threads in [2, 3, 7] {
                assert_eq!(on(threads), (sum, parts.clone()));
            }
            assert!((sum - (0..n).map(|i| (i as f64).sin()).sum::<f64>()).abs() < 1e-12);
            assert_eq!(parts.into_iter().flatten().collect::<Vec<_>>(), (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn parts_of_products_cover_everything_once() {
        for (n, d) in [(1, 1), (7, 65), (100, 12), (5000, 256), (20_000, 50), (3000, 4096), (9, 0)] {
            let parts: Vec<_> = product_parts(n, d).collect();
            assert_eq!(parts.iter().map(|(r, c)| r.len() * c.len()).sum::<usize>(), n * d);
            assert!(parts.iter().all(|(r, c)| r.end <= n && c.end <= d));
            let first: Vec<_> = parts.iter().map(|(r, c)| (r.start, c.start)).collect();
            assert!(first.iter().enumerate().all(|(i, a)| !first[..i].contains(a)), "{n} {d}");
        }
    }
}
