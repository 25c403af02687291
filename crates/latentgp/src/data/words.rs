//! Text columns: every distinct word once, and one code a row.

use std::collections::HashMap;

/// A column of text; four bytes a row and each distinct word once.
///
/// ```
/// use latentgp::data::words::Words;
/// let w: Words = ["b", "a", "b"].into_iter().collect();
/// assert_eq!((w.len(), w.get(2)), (3, "b"));
/// assert_eq!(w.distinct(), ["b", "a"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words {
    distinct: Vec<String>,
    codes: Vec<u32>,
}

impl Words {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The word of a row; a missing one is empty.
    pub fn get(&self, row: usize) -> &str {
        &self.distinct[self.codes[row] as usize]
    }

    /// The words, row by row.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.codes.iter().map(|&c| self.distinct[c as usize].as_str())
    }

    /// The distinct words, in order of first appearance.
    pub fn distinct(&self) -> &[String] {
        &self.distinct
    }

    /// For each row the position of its word in [`distinct`](Words::distinct).
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }
}

impl<S: AsRef<str>> FromIterator<S> for Words {
    fn from_iter<I: IntoIterator<Item = S>>(words: I) -> Self {
        let mut interner = Interner::default();
        words.into_iter().for_each(|w| interner.push(w.as_ref()));
        interner.finish()
    }
}

/// Collects [`Words`].
#[derive(Debug, Default)]
pub(crate) struct Interner {
    index: HashMap<Box<str>, u32>,
    codes: Vec<u32>,
}

impl Interner {
    #[cfg(feature = "files")]
    pub(crate) fn len(&self) -> usize {
        self.codes.len()
    }

    /// # Panics
    /// With more than 2³² distinct words, which no memory holds.
    pub(crate) fn push(&mut self, word: &str) {
        let code = match self.index.get(word) {
            Some(&code) => code,
            None => {
                let code = u32::try_from(self.index.len()).expect("fewer than 2^32 distinct words");
                self.index.insert(word.into(), code);
                code
            }
        };
        push_lean(&mut self.codes, code);
    }

    pub(crate) fn finish(mut self) -> Words {
        let mut distinct = vec![String::new(); self.index.len()];
        for (word, code) in self.index {
            distinct[code as usize] = word.into();
        }
        self.codes.shrink_to_fit();
        Words { distinct, codes: self.codes }
    }
}

/// Appends, growing by an eighth instead of doubling: a table of unknown length then never holds
/// much more than its numbers.
#[inline]
pub(crate) fn push_lean<T>(to: &mut Vec<T>, value: T) {
    if to.len() == to.capacity() {
        to.reserve_exact((to.len() / 8).max(4));
    }
    to.push(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_kept_once() {
        let w: Words = (0..1000).map(|i| ["x", "yy", ""][i % 3]).collect();
        assert_eq!(w.distinct(), ["x", "yy", ""]);
        assert_eq!(w.iter().nth(4), Some("yy"));
        assert_eq!((w.len(), w.is_empty(), w.codes()[5]), (1000, false, 2));
    }

    #[test]
    fn lean_growth_wastes_at_most_an_eighth() {
        let mut v = Vec::new();
        for i in 0..100_000 {
            push_lean(&mut v, i);
            assert!(v.capacity() <= v.len() + (v.len() / 8).max(4));
        }
    }
}
