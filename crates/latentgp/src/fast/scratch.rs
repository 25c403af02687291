//! Room to work in that is used again.
//!
//! An optimiser evaluates the same shapes thousands of times, and asking the machine for memory takes longer than filling it
//! does. What is in a buffer when it is taken is arbitrary. Small buffers lie on shelves by their size, four to each power of
//! two, a few of each on the thread that used them last, the others where all threads find them.

use crate::fast::vmath::{CACHE_LINE, Numbers};
use crate::mat::Mat;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Buffers of so many numbers at the most, 4 MB, are small.
const SMALL: usize = 1 << 19;
/// Those of more than so many are no thread's own.
const OWN_MOST: usize = 1 << 16;
const SHELVES: usize = shelf(SMALL) + 1;
/// A thread keeps so many numbers on each of its shelves, about: some megabytes on all of them at the most.
const OWN_NUMBERS: usize = 1 << 15;
/// So many large buffers that are no thread's own are kept, or small ones of a size.
const MOST_BUFFERS: usize = 256;
const MOST_ALIKE: usize = 1 << 14;
/// So many numbers in all large ones, 34 MB, and in all small ones: 67 MB, half as much again as a rule keeps for the way back.
const MOST_LARGE: usize = 1 << 22;
const MOST_SMALL: usize = 1 << 23;

type Shelves = [Vec<Vec<f64>>; SHELVES];
const EMPTY: Shelves = [const { Vec::new() }; SHELVES];

thread_local! {
    static OWN: RefCell<Shelves> = const { RefCell::new(EMPTY) };
}
static COMMON: Mutex<Common> = Mutex::new(Common::EMPTY);

/// Buffers that no thread has, and the numbers in all of them.
struct Common {
    small: Shelves,
    /// When a buffer of each shelf was asked for last.
    asked: [u64; SHELVES],
    clock: u64,
    small_numbers: usize,
    large: Vec<Vec<f64>>,
    large_numbers: usize,
}

/// Buffers that are freed when no lock is held any more.
type Refused = SmallVec<[Vec<f64>; 4]>;

impl Common {
    const EMPTY: Common = Common {
        small: EMPTY,
        asked: [0; SHELVES],
        clock: 0,
        small_numbers: 0,
        large: Vec::new(),
        large_numbers: 0,
    };

    fn get() -> MutexGuard<'static, Common> {
        COMMON.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn small(&mut self, shelf: usize) -> Option<Vec<f64>> {
        self.clock += 1;
        self.asked[shelf] = self.clock;
        self.pop(shelf)
    }

    fn pop(&mut self, shelf: usize) -> Option<Vec<f64>> {
        self.small[shelf].pop().inspect(|buffer| self.small_numbers -= buffer.capacity())
    }

    /// Makes room for so many numbers by what was not asked for since a buffer of this shelf was.
    fn forget(&mut self, shelf: usize, numbers: usize) -> Refused {
        let mut forgotten = Refused::new();
        while self.small_numbers + numbers > MOST_SMALL {
            let full = (0..SHELVES).filter(|at| !self.small[*at].is_empty());
            let oldest = full.min_by_key(|at| self.asked[*at]);
            let Some(oldest) = oldest.filter(|at| self.asked[*at] < self.asked[shelf]) else { break };
            forgotten.extend(self.pop(oldest));
        }
        forgotten
    }

    /// A buffer that has room for so many numbers and not twice as many.
    fn large(&mut self, len: usize) -> Option<Vec<f64>> {
        let fits = self.large.iter().rposition(|b| (len..=2 * len).contains(&b.capacity()));
        fits.map(|at| self.large.swap_remove(at)).inspect(|buffer| self.large_numbers -= buffer.capacity())
    }

    /// Keeps a buffer; returns it, or those that it takes the place of, where there is no room for all.
    fn put(&mut self, buffer: Vec<f64>) -> Refused {
        let (size, mut refused) = (buffer.capacity(), Refused::new());
        let (on, alike, numbers, most) = match shelf_of(&buffer) {
            Some(shelf) => {
                if self.small[shelf].len() < MOST_ALIKE {
                    refused = self.forget(shelf, size);
                }
                (&mut self.small[shelf], MOST_ALIKE, &mut self.small_numbers, MOST_SMALL)
            }
            None => (&mut self.large, MOST_BUFFERS, &mut self.large_numbers, MOST_LARGE),
        };
        if on.len() >= alike || *numbers + size > most {
            refused.push(buffer);
        } else {
            *numbers += size;
            on.push(buffer);
        }
        refused
    }
}

/// The last shelf whose buffers need no more than so many numbers: shelf 4i + k has those of 2ⁱ (1 + k/4).
const fn shelf(capacity: usize) -> usize {
    let log = capacity.ilog2() as usize;
    4 * log + ((4 * (capacity - (1 << log))) >> log)
}

/// So many numbers, and those that are left on their shelf.
fn rounded(len: usize) -> usize {
    len.next_multiple_of((len.next_power_of_two() / 8).max(1))
}

/// The shelf where a buffer belongs, if it is small.
fn shelf_of(buffer: &Vec<f64>) -> Option<usize> {
    (1..=SMALL).contains(&buffer.capacity()).then(|| shelf(buffer.capacity()))
}

/// An empty buffer with room for so many numbers, if they are few.
fn small(len: usize) -> Option<Vec<f64>> {
    if len == 0 || len > SMALL {
        return (len == 0).then(Vec::new);
    }
    let room = rounded(len);
    let shelf = shelf(room);
    let own = OWN.try_with(|own| own.borrow_mut()[shelf].pop()).ok().flatten();
    let found = own.or_else(|| Common::get().small(shelf)).unwrap_or_else(|| Vec::with_capacity(room));
    Some(found)
}

/// A buffer to use again; a large one only where `keep_large` says so.
fn put(buffer: Vec<f64>, keep_large: bool) {
    let Some(shelf) = shelf_of(&buffer) else {
        if keep_large && buffer.capacity() > 0 {
            let refused = Common::get().put(buffer);
            drop(refused);
        }
        return;
    };
    let most = if buffer.capacity() > OWN_MOST { 0 } else { (OWN_NUMBERS / buffer.capacity()).clamp(2, 64) };
    let mut left = Some(buffer);
    // A thread that ends has no shelves any more.
    let _ = OWN.try_with(|own| {
        let own = &mut own.borrow_mut()[shelf];
        if own.len() < most {
            own.extend(left.take());
        }
    });
    if let Some(buffer) = left {
        let refused = Common::get().put(buffer);
        drop(refused);
    }
}

/// An empty vector with room for so many numbers, used again where they are few; [`recycle`] takes it back.
pub(crate) fn room(len: usize) -> Vec<f64> {
    match small(len) {
        Some(mut buffer) => {
            buffer.clear();
            buffer
        }
        None => Vec::with_capacity(len),
    }
}

/// So many of the same.
pub(crate) fn filled(len: usize, value: f64) -> Vec<f64> {
    if len > SMALL {
        // Zeros of fresh pages cost nothing until they are read.
        return vec![value; len];
    }
    let mut buffer = room(len);
    buffer.resize(len, value);
    buffer
}

/// A copy.
pub(crate) fn copied(from: &[f64]) -> Vec<f64> {
    let mut buffer = room(from.len());
    buffer.extend_from_slice(from);
    buffer
}

/// Takes back a small vector.
pub(crate) fn recycle(buffer: Vec<f64>) {
    put(buffer, false);
}

/// `len` numbers, whatever they are.
fn any_numbers(len: usize) -> Vec<f64> {
    let found = if len > SMALL { Common::get().large(len) } else { small(len) };
    let mut buffer = found.unwrap_or_else(|| vec![0.0; len]);
    buffer.resize(len, 0.0);
    buffer
}

/// Numbers that begin where a line of the cache does, so that no register is read from two; given back when dropped.
#[derive(Default)]
pub(crate) struct Scratch {
    buffer: Vec<f64>,
    from: usize,
}

/// Gives a matrix a shape, with room from here if it has none yet; its numbers are arbitrary.
pub(crate) fn shape(mat: &mut Mat, rows: usize, cols: usize) {
    if mat.is_empty() {
        *mat = Mat::from_vec(rows, cols, any_numbers(rows * cols)).expect("rows × cols numbers");
    }
    mat.resize(rows, cols);
}

/// Copies a matrix, with room from here if there is none yet.
pub(crate) fn copy(from: &Mat, to: &mut Mat) {
    shape(to, from.rows(), from.cols());
    to.as_mut_slice().copy_from_slice(from.as_slice());
}

/// A matrix whose numbers are arbitrary.
pub(crate) fn any(rows: usize, cols: usize) -> Mat {
    let mut mat = Mat::default();
    shape(&mut mat, rows, cols);
    mat
}

/// A matrix of zeros, with room from here if there is any.
pub(crate) fn zeros(rows: usize, cols: usize) -> Mat {
    let found = if rows * cols > SMALL { Common::get().large(rows * cols) } else { None };
    match found {
        Some(mut buffer) => {
            buffer.clear();
            buffer.resize(rows * cols, 0.0);
            Mat::from_vec(rows, cols, buffer).expect("rows × cols numbers")
        }
        None => Mat::zeros(rows, cols),
    }
}

/// Takes back the room of a matrix.
pub(crate) fn give(mat: &mut Mat) {
    put(std::mem::take(mat).into_vec(), true);
}

impl Scratch {
    /// `len` numbers, whatever they are.
    pub fn take(len: usize) -> Self {
        if len == 0 {
            return Self::default();
        }
        let mut buffer = any_numbers(len + CACHE_LINE - 1);
        let from = buffer.as_ptr().align_offset(CACHE_LINE * size_of::<f64>());
        // Where no such place is found, any other does.
        let from = from.min(CACHE_LINE - 1);
        buffer.truncate(from + len);
        Scratch { buffer, from }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        put(std::mem::take(&mut self.buffer), true);
    }
}

impl Deref for Scratch {
    type Target = [f64];
    #[inline(always)]
    fn deref(&self) -> &[f64] {
        &self.buffer[self.from..]
    }
}

impl DerefMut for Scratch {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.buffer[self.from..]
    }
}

/// Arrays of numbers in room that is used again.
#[derive(Default)]
pub(crate) struct Room<T>(Scratch, PhantomData<T>);

impl<T: Numbers> Room<T> {
    /// So many of the same.
    pub fn filled(value: T, count: usize) -> Self {
        let mut room = Room(Scratch::take(count * T::SIZE), PhantomData);
        room.fill(value);
        room
    }

    /// As many as there are.
    pub fn of(values: impl ExactSizeIterator<Item = T>) -> Self {
        let mut room = Room(Scratch::take(values.len() * T::SIZE), PhantomData);
        room.iter_mut().zip(values).for_each(|(to, value)| *to = value);
        room
    }
}

impl<T: Numbers> Deref for Room<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        T::read(&self.0)
    }
}

impl<T: Numbers> DerefMut for Room<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        T::read_mut(&mut self.0)
    }
}

impl<'a, T: Numbers> IntoIterator for &'a Room<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Numbers> IntoIterator for &'a mut Room<T> {
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
    fn zeros_are_zeros_where_others_were() {
        let cols = SMALL / 7 + 1;
        give(&mut Mat::filled(7, cols, 1.0));
        assert_eq!(zeros(7, cols), Mat::zeros(7, cols));
        for len in [1, 3, 77, SMALL] {
            Scratch::take(len).fill(1.0);
            assert_eq!(Mat::zeros(1, len).as_slice(), vec![0.0; len]);
        }
    }

    #[test]
    fn buffers_have_the_length_asked_for_and_come_back() {
        for len in [0, 1, 1000, 10, SMALL, SMALL + 1, 100_000] {
            let mut own = Scratch::take(len);
            let other = Scratch::take(len);
            own.fill(1.0);
            assert_eq!((own.len(), other.len()), (len, len));
            assert!(
                len == 0
                    || own.as_ptr().addr().is_multiple_of(64) && other.as_ptr().addr().is_multiple_of(64)
            );
            assert!(room(len).is_empty() && room(len).capacity() >= len);
        }
        let mut mat = Mat::default();
        shape(&mut mat, 3, 4);
        assert_eq!((mat.rows(), mat.cols()), (3, 4));
        give(&mut mat);
        assert!(mat.is_empty());
        let common = Common::get();
        assert!(common.large.len() <= MOST_BUFFERS && common.large_numbers <= MOST_LARGE);
        assert!(common.small.iter().all(|on| on.len() <= MOST_ALIKE) && common.small_numbers <= MOST_SMALL);
        assert_eq!(common.large.iter().map(Vec::capacity).sum::<usize>(), common.large_numbers);
        assert_eq!(common.small.iter().flatten().map(Vec::capacity).sum::<usize>(), common.small_numbers);
    }

    #[test]
    fn a_small_buffer_is_the_one_given_back_last() {
        for len in [1, 5, 700, OWN_MOST / 2 + 1, OWN_MOST + 1 - CACHE_LINE] {
            let one = Scratch::take(len);
            let at = one.as_ptr();
            drop(one);
            assert_eq!(Scratch::take(len).as_ptr(), at);
        }
    }

    #[test]
    fn what_nobody_asks_for_any_more_makes_room() {
        let of = |len: usize| Vec::with_capacity(rounded(len));
        let mut common = Common::EMPTY;
        let shelves = [SMALL, SMALL / 2].map(shelf);
        assert!(common.small(shelves[0]).is_none());
        while common.put(of(SMALL)).is_empty() {}
        assert_eq!(common.small[shelves[0]].len(), MOST_SMALL / SMALL);
        assert_eq!(common.put(of(SMALL / 2))[0].capacity(), SMALL / 2, "nobody asked for it");
        assert!(common.small(shelves[1]).is_none());
        assert_eq!(common.put(of(SMALL / 2))[0].capacity(), SMALL);
        assert_eq!(shelves.map(|at| common.small[at].len()), [MOST_SMALL / SMALL - 1, 1]);
        assert!(common.small_numbers <= MOST_SMALL);
    }

    #[test]
    fn what_lies_on_a_shelf_has_the_room_that_is_looked_for_there() {
        for len in 1..3000 {
            let room = rounded(len);
            assert!((len..=len + len / 4).contains(&room), "{len}: {room}");
            let least = (1..=room).rev().take_while(|c| shelf(*c) == shelf(room)).last();
            assert_eq!(least, Some(room), "{len}");
        }
        assert_eq!(rounded(SMALL), SMALL);
    }

    #[test]
    fn rooms_are_arrays_of_numbers() {
        let room = Room::<[[f64; 3]; 2]>::filled([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], 5);
        assert_eq!((room.len(), room[4][1][2]), (5, 6.0));
        let room = Room::<f64>::of((0..7).map(f64::from));
        assert_eq!(&room[..], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert!(Room::<[f64; 4]>::filled([0.0; 4], 0).is_empty());
    }
}
