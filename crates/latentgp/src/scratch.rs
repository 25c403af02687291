//! Room to work in that is used again.
//!
//! An optimiser evaluates the same shapes thousands of times, and the machine takes longer to hand out fresh pages than
//! they take to fill. What is in a buffer when it is taken is arbitrary.

use crate::mat::Mat;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Buffers that nobody has, and the numbers in all of them.
static FREE: Mutex<(Vec<Vec<f64>>, usize)> = Mutex::new((Vec::new(), 0));
/// So many are kept at the most, and so many numbers in all.
const MOST_BUFFERS: usize = 256;
const MOST_NUMBERS: usize = 1 << 22;

/// A buffer, given back when dropped.
#[derive(Default)]
pub(crate) struct Scratch(Vec<f64>);

/// Gives a matrix a shape, with room from here if it has none yet; its numbers are arbitrary.
pub(crate) fn shape(mat: &mut Mat, rows: usize, cols: usize) {
    if mat.is_empty() {
        let room = std::mem::take(&mut Scratch::take(rows * cols).0);
        *mat = Mat::from_vec(rows, cols, room).expect("rows × cols numbers");
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

/// A buffer that has room for so many numbers and not twice as many.
fn take(len: usize) -> Option<Vec<f64>> {
    let (free, numbers) = &mut *FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = free.iter().rposition(|b| (len..=2 * len).contains(&b.capacity()));
    fits.map(|at| free.swap_remove(at)).inspect(|buffer| *numbers -= buffer.capacity())
}

/// A matrix of zeros, with room from here if there is any.
pub(crate) fn zeros(rows: usize, cols: usize) -> Mat {
    let len = rows * cols;
    match take(len) {
        Some(mut buffer) => {
            buffer.clear();
            buffer.resize(len, 0.0);
            Mat::from_vec(rows, cols, buffer).expect("rows × cols numbers")
        }
        None => Mat::zeros(rows, cols),
    }
}

/// Takes back the room of a matrix.
pub(crate) fn give(mat: &mut Mat) {
    drop(Scratch(std::mem::take(mat).into_vec()));
}

impl Scratch {
    /// `len` numbers, whatever they are.
    pub fn take(len: usize) -> Self {
        Scratch(match take(len) {
            Some(mut buffer) => {
                buffer.resize(len, 0.0);
                buffer
            }
            None => vec![0.0; len],
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        if buffer.capacity() == 0 {
            return;
        }
        let (free, numbers) = &mut *FREE.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < MOST_BUFFERS && *numbers + buffer.capacity() <= MOST_NUMBERS {
            *numbers += buffer.capacity();
            free.push(buffer);
        }
    }
}

impl Deref for Scratch {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        &self.0
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_zeros_where_others_were() {
        drop(Scratch(vec![1.0; 77_777]));
        assert_eq!(zeros(7, 11_111), Mat::zeros(7, 11_111));
    }

    #[test]
    fn buffers_have_the_length_asked_for_and_come_back() {
        for len in [0, 1, 1000, 10, 100_000] {
            let mut own = Scratch::take(len);
            let other = Scratch::take(len);
            own.fill(1.0);
            assert_eq!((own.len(), other.len()), (len, len));
        }
        let mut mat = Mat::default();
        shape(&mut mat, 3, 4);
        assert_eq!((mat.rows(), mat.cols()), (3, 4));
        give(&mut mat);
        assert!(mat.is_empty());
        let (free, numbers) = &*FREE.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(free.len() <= MOST_BUFFERS && *numbers <= MOST_NUMBERS);
        assert_eq!(free.iter().map(Vec::capacity).sum::<usize>(), *numbers);
    }
}
