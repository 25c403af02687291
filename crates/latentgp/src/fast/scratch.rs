//! Buffers that are used again.
//!
//! An optimiser evaluates the same shapes thousands of times, and asking the system for memory takes longer than filling it. A
//! buffer goes back to a pool when it is dropped: one pool for each thread, and a shared one for what those do not keep. Small
//! buffers are sorted into size classes, four to each power of two. The contents of a new buffer are arbitrary.

use crate::fast::vmath::{CACHE_LINE, Numbers};
use crate::mat::Mat;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A buffer of at most this many numbers, 4 MB, is small: it always goes back to a pool.
const SMALL: usize = 1 << 19;
const CLASSES: usize = size_class(SMALL) + 1;
/// A thread keeps no buffer of more than this many numbers for itself.
const MAX_LOCAL: usize = 1 << 16;
/// A thread keeps about this many numbers of each size class: a few megabytes of all classes together.
const LOCAL_NUMBERS: usize = 1 << 15;
/// The shared pool keeps at most this many large buffers, and this many small ones of a size class.
const MAX_LARGE_BUFFERS: usize = 256;
const MAX_PER_CLASS: usize = 1 << 14;
/// The shared pool keeps at most this many numbers in large buffers, 34 MB, and in small ones, 67 MB: half as much again as a
/// rule keeps for its backward pass.
const MAX_LARGE_NUMBERS: usize = 1 << 22;
const MAX_SMALL_NUMBERS: usize = 1 << 23;

/// The free buffers of each size class.
type Free = [Vec<Vec<f64>>; CLASSES];
const NOTHING_FREE: Free = [const { Vec::new() }; CLASSES];

thread_local! {
    static LOCAL: RefCell<Free> = const { RefCell::new(NOTHING_FREE) };
}
static SHARED: Mutex<Shared> = Mutex::new(Shared::EMPTY);

/// The pool that all threads share.
struct Shared {
    small: Free,
    /// When a buffer of each size class was last asked for, by `clock`.
    asked: [u64; CLASSES],
    clock: u64,
    small_numbers: usize,
    large: Vec<Vec<f64>>,
    large_numbers: usize,
}

/// Buffers that the pool does not keep, to be freed after its lock is released.
type Refused = SmallVec<[Vec<f64>; 4]>;

impl Shared {
    const EMPTY: Shared = Shared {
        small: NOTHING_FREE,
        asked: [0; CLASSES],
        clock: 0,
        small_numbers: 0,
        large: Vec::new(),
        large_numbers: 0,
    };

    fn lock() -> MutexGuard<'static, Shared> {
        SHARED.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of a size class.
    fn small(&mut self, class: usize) -> Option<Vec<f64>> {
        self.clock += 1;
        self.asked[class] = self.clock;
        self.pop(class)
    }

    fn pop(&mut self, class: usize) -> Option<Vec<f64>> {
        self.small[class].pop().inspect(|buffer| self.small_numbers -= buffer.capacity())
    }

    /// Makes room for this many numbers of a size class: drops buffers of classes that were last asked for before it was.
    fn evict(&mut self, class: usize, numbers: usize) -> Refused {
        let mut evicted = Refused::new();
        while self.small_numbers + numbers > MAX_SMALL_NUMBERS {
            let occupied = (0..CLASSES).filter(|at| !self.small[*at].is_empty());
            let oldest = occupied.min_by_key(|at| self.asked[*at]);
            let Some(oldest) = oldest.filter(|at| self.asked[*at] < self.asked[class]) else { break };
            evicted.extend(self.pop(oldest));
        }
        evicted
    }

    /// A buffer with the capacity for `len` numbers, but not for more than twice as many.
    fn large(&mut self, len: usize) -> Option<Vec<f64>> {
        let fits = self.large.iter().rposition(|b| (len..=2 * len).contains(&b.capacity()));
        fits.map(|at| self.large.swap_remove(at)).inspect(|buffer| self.large_numbers -= buffer.capacity())
    }

    /// Keeps a buffer; returns it where the pool is full, or those that make room for it.
    fn put(&mut self, buffer: Vec<f64>) -> Refused {
        let (size, mut refused) = (buffer.capacity(), Refused::new());
        let (free, max_buffers, numbers, max_numbers) = match class_of(&buffer) {
            Some(class) => {
                if self.small[class].len() < MAX_PER_CLASS {
                    refused = self.evict(class, size);
                }
                (&mut self.small[class], MAX_PER_CLASS, &mut self.small_numbers, MAX_SMALL_NUMBERS)
            }
            None => (&mut self.large, MAX_LARGE_BUFFERS, &mut self.large_numbers, MAX_LARGE_NUMBERS),
        };
        if free.len() >= max_buffers || *numbers + size > max_numbers {
            refused.push(buffer);
        } else {
            *numbers += size;
            free.push(buffer);
        }
        refused
    }
}

/// The last size class whose buffers need no more than this capacity: class 4i + k has those of 2ⁱ (1 + k/4) numbers.
const fn size_class(capacity: usize) -> usize {
    let log = capacity.ilog2() as usize;
    4 * log + ((4 * (capacity - (1 << log))) >> log)
}

/// The capacity of the smallest size class that has room for `len` numbers.
fn class_capacity(len: usize) -> usize {
    len.next_multiple_of((len.next_power_of_two() / 8).max(1))
}

/// The size class of a buffer, if it is small.
fn class_of(buffer: &Vec<f64>) -> Option<usize> {
    (1..=SMALL).contains(&buffer.capacity()).then(|| size_class(buffer.capacity()))
}

/// A buffer with the capacity for `len` numbers, if that is small. Its length is that of its last use.
fn small(len: usize) -> Option<Vec<f64>> {
    if len == 0 || len > SMALL {
        return (len == 0).then(Vec::new);
    }
    let capacity = class_capacity(len);
    let class = size_class(capacity);
    // A thread that ends has lost its pool.
    let own = LOCAL.try_with(|local| local.borrow_mut()[class].pop()).ok().flatten();
    Some(own.or_else(|| Shared::lock().small(class)).unwrap_or_else(|| Vec::with_capacity(capacity)))
}

/// Keeps a buffer for later, or frees it.
fn put(buffer: Vec<f64>, keep_large: bool) {
    let Some(class) = class_of(&buffer) else {
        if keep_large && buffer.capacity() > 0 {
            let refused = Shared::lock().put(buffer);
            drop(refused);
        }
        return;
    };
    let max =
        if buffer.capacity() > MAX_LOCAL { 0 } else { (LOCAL_NUMBERS / buffer.capacity()).clamp(2, 64) };
    let mut left = Some(buffer);
    // A thread that ends has lost its pool.
    let _ = LOCAL.try_with(|local| {
        let free = &mut local.borrow_mut()[class];
        if free.len() < max {
            free.extend(left.take());
        }
    });
    if let Some(buffer) = left {
        let refused = Shared::lock().put(buffer);
        drop(refused);
    }
}

/// A vector whose memory goes back to a pool when it is dropped, unless it is large and did not come from there: a user's table
/// is freed.
#[derive(Default)]
pub(crate) struct Pooled {
    numbers: Vec<f64>,
    keep_large: bool,
}

impl Pooled {
    /// An empty vector with the capacity for `len` numbers.
    pub fn with_capacity(len: usize) -> Self {
        let mut numbers = small(len).unwrap_or_else(|| Vec::with_capacity(len));
        numbers.clear();
        numbers.into()
    }

    /// `len` equal numbers.
    pub fn filled(len: usize, value: f64) -> Self {
        if len > SMALL {
            // Fresh pages of zeros cost nothing until they are used.
            return vec![value; len].into();
        }
        let mut buffer = Self::with_capacity(len);
        buffer.resize(len, value);
        buffer
    }

    /// A copy.
    pub fn copied(from: &[f64]) -> Self {
        let mut buffer = Self::with_capacity(from.len());
        buffer.extend_from_slice(from);
        buffer
    }

    /// `len` arbitrary numbers. The memory goes back to a pool even if it is large.
    fn any(len: usize) -> Self {
        let found = if len > SMALL { Shared::lock().large(len) } else { small(len) };
        let mut numbers = found.unwrap_or_else(|| vec![0.0; len]);
        numbers.resize(len, 0.0);
        Pooled { numbers, keep_large: true }
    }

    /// Makes it `len` numbers long, in the memory that it has where that suffices; the numbers are arbitrary.
    pub fn resize_any(&mut self, len: usize) {
        if len > self.capacity() {
            *self = if self.keep_large { Self::any(len) } else { Self::with_capacity(len) };
        }
        self.resize(len, 0.0);
    }

    pub fn into_vec(mut self) -> Vec<f64> {
        std::mem::take(&mut self.numbers)
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        put(std::mem::take(&mut self.numbers), self.keep_large);
    }
}

impl From<Vec<f64>> for Pooled {
    fn from(numbers: Vec<f64>) -> Self {
        Pooled { numbers, keep_large: false }
    }
}

impl Deref for Pooled {
    type Target = Vec<f64>;
    #[inline(always)]
    fn deref(&self) -> &Vec<f64> {
        &self.numbers
    }
}

impl DerefMut for Pooled {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Vec<f64> {
        &mut self.numbers
    }
}

impl PartialEq for Pooled {
    fn eq(&self, other: &Self) -> bool {
        self.numbers == other.numbers
    }
}

impl fmt::Debug for Pooled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.numbers.fmt(f)
    }
}

/// A matrix of arbitrary numbers.
pub(crate) fn any(rows: usize, cols: usize) -> Mat {
    Mat::from_pooled(rows, cols, Pooled::any(rows * cols))
}

/// A matrix of zeros, in memory that goes back to a pool even if it is large.
pub(crate) fn zeros(rows: usize, cols: usize) -> Mat {
    let len = rows * cols;
    let mut data = match if len > SMALL { Shared::lock().large(len) } else { None } {
        Some(mut numbers) => {
            numbers.clear();
            numbers.resize(len, 0.0);
            numbers.into()
        }
        None => Pooled::filled(len, 0.0),
    };
    data.keep_large = true;
    Mat::from_pooled(rows, cols, data)
}

/// Gives a matrix a shape, as [`any`] does if it is empty; its numbers are arbitrary.
pub(crate) fn shape(mat: &mut Mat, rows: usize, cols: usize) {
    match mat.is_empty() {
        true => *mat = any(rows, cols),
        false => mat.resize(rows, cols),
    }
}

/// Copies a matrix to another, which gets its [`shape`].
pub(crate) fn copy(from: &Mat, to: &mut Mat) {
    shape(to, from.rows(), from.cols());
    to.as_mut_slice().copy_from_slice(from.as_slice());
}

/// A copy of a matrix, in memory that goes back to a pool even if it is large.
pub(crate) fn copied(from: &Mat) -> Mat {
    let mut to = Mat::default();
    copy(from, &mut to);
    to
}

/// An array that begins at a line of the cache, so that no register is read from two; its memory goes back to a pool when it
/// is dropped.
pub(crate) struct Buffer<T> {
    memory: Pooled,
    /// Where the array begins.
    from: usize,
    of: PhantomData<T>,
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Buffer { memory: Pooled::default(), from: 0, of: PhantomData }
    }
}

impl<T: Numbers> Buffer<T> {
    /// `count` arbitrary elements.
    pub fn any(count: usize) -> Self {
        let len = count * T::SIZE;
        if len == 0 {
            return Self::default();
        }
        let mut memory = Pooled::any(len + CACHE_LINE - 1);
        // Without such an offset, which the language allows, any other does.
        let from = memory.as_ptr().align_offset(CACHE_LINE * size_of::<f64>()).min(CACHE_LINE - 1);
        memory.truncate(from + len);
        Buffer { memory, from, of: PhantomData }
    }

    /// `count` equal elements.
    pub fn filled(value: T, count: usize) -> Self {
        let mut buffer = Self::any(count);
        buffer.fill(value);
        buffer
    }

    /// As many elements as the iterator has.
    pub fn of(values: impl ExactSizeIterator<Item = T>) -> Self {
        let mut buffer = Self::any(values.len());
        buffer.iter_mut().zip(values).for_each(|(to, value)| *to = value);
        buffer
    }
}

impl<T: Numbers> Deref for Buffer<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        T::read(&self.memory[self.from..])
    }
}

impl<T: Numbers> DerefMut for Buffer<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        T::read_mut(&mut self.memory[self.from..])
    }
}

impl<'a, T: Numbers> IntoIterator for &'a Buffer<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Numbers> IntoIterator for &'a mut Buffer<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_zeros_in_memory_that_was_used() {
        let cols = SMALL / 7 + 1;
        any(7, cols).fill(1.0);
        assert_eq!(zeros(7, cols), Mat::zeros(7, cols));
        for len in [1, 3, 77, SMALL] {
            Buffer::<f64>::any(len).fill(1.0);
            assert_eq!(Mat::zeros(1, len).as_slice(), vec![0.0; len]);
        }
    }

    #[test]
    fn buffers_have_the_length_asked_for_and_go_back() {
        for len in [0, 1, 1000, 10, SMALL, SMALL + 1, 100_000] {
            let mut own = Buffer::<f64>::any(len);
            let other = Buffer::<f64>::any(len);
            own.fill(1.0);
            assert_eq!((own.len(), other.len()), (len, len));
            assert!(
                len == 0
                    || own.as_ptr().addr().is_multiple_of(64) && other.as_ptr().addr().is_multiple_of(64)
            );
            let empty = Pooled::with_capacity(len);
            assert!(empty.is_empty() && empty.capacity() >= len);
        }
        let mut mat = Mat::default();
        shape(&mut mat, 3, 4);
        assert_eq!((mat.rows(), mat.cols()), (3, 4));
        let shared = Shared::lock();
        assert!(shared.large.len() <= MAX_LARGE_BUFFERS && shared.large_numbers <= MAX_LARGE_NUMBERS);
        assert!(shared.small.iter().all(|free| free.len() <= MAX_PER_CLASS));
        assert!(shared.small_numbers <= MAX_SMALL_NUMBERS);
        assert_eq!(shared.large.iter().map(Vec::capacity).sum::<usize>(), shared.large_numbers);
        assert_eq!(shared.small.iter().flatten().map(Vec::capacity).sum::<usize>(), shared.small_numbers);
    }

    #[test]
    fn a_small_buffer_is_the_one_dropped_last() {
        for len in [1, 5, 700, MAX_LOCAL / 2 + 1, MAX_LOCAL + 1 - CACHE_LINE] {
            let one = Buffer::<f64>::any(len);
            let at = one.as_ptr();
            drop(one);
            assert_eq!(Buffer::<f64>::any(len).as_ptr(), at);
        }
    }

    #[test]
    fn size_classes_that_nobody_asks_for_make_room() {
        let of = |len: usize| Vec::with_capacity(class_capacity(len));
        let mut shared = Shared::EMPTY;
        let classes = [SMALL, SMALL / 2].map(size_class);
        assert!(shared.small(classes[0]).is_none());
        while shared.put(of(SMALL)).is_empty() {}
        assert_eq!(shared.small[classes[0]].len(), MAX_SMALL_NUMBERS / SMALL);
        assert_eq!(shared.put(of(SMALL / 2))[0].capacity(), SMALL / 2, "nobody asked for it");
        assert!(shared.small(classes[1]).is_none());
        assert_eq!(shared.put(of(SMALL / 2))[0].capacity(), SMALL);
        assert_eq!(classes.map(|at| shared.small[at].len()), [MAX_SMALL_NUMBERS / SMALL - 1, 1]);
        assert!(shared.small_numbers <= MAX_SMALL_NUMBERS);
    }

    #[test]
    fn a_buffer_of_a_size_class_has_the_capacity_of_the_class() {
        for len in 1..3000 {
            let capacity = class_capacity(len);
            assert!((len..=len + len / 4).contains(&capacity), "{len}: {capacity}");
            let least = (1..=capacity).rev().take_while(|c| size_class(*c) == size_class(capacity)).last();
            assert_eq!(least, Some(capacity), "{len}");
        }
        assert_eq!(class_capacity(SMALL), SMALL);
    }

    #[test]
    fn buffers_are_arrays_of_numbers() {
        let buffer = Buffer::<[[f64; 3]; 2]>::filled([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], 5);
        assert_eq!((buffer.len(), buffer[4][1][2]), (5, 6.0));
        let buffer = Buffer::<f64>::of((0..7).map(f64::from));
        assert_eq!(&buffer[..], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert!(Buffer::<[f64; 4]>::filled([0.0; 4], 0).is_empty());
    }
}
