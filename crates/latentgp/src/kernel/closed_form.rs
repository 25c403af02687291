//! Kernels whose Ψ-statistics are known exactly, as sums of products of one-dimensional factors.
//!
//! ```text
//! k(x, z) = Σ_t  ∏_{i ∈ scale} θ_i · ∏_{(q, i) ∈ gauss} exp(−½ ((x_q − z_q)/θ_i)²) · ∏_{q ∈ powers} x_q z_q
//! ```
//!
//! rbf is one such term, linear one a dimension, constant a term without factors. Sums concatenate;
//! products of kernels on separate dimensions multiply out. Under independent Gaussian inputs every
//! expectation of a term, or of a product of two, factorises over the dimensions.

use smallvec::SmallVec;

/// A short list, stored inline: describing a kernel of few columns allocates nothing.
pub(crate) type InlineVec<T> = SmallVec<[T; 12]>;

/// One product of factors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Term {
    /// Parameters (their indices in θ) whose product multiplies the term.
    pub(crate) scale: InlineVec<usize>,
    /// Gaussian factors: input column, index of its lengthscale in θ.
    pub(crate) gauss: InlineVec<(usize, usize)>,
    /// Columns with a factor x_q z_q.
    pub(crate) powers: InlineVec<usize>,
    /// Whether the term is zero except between a point and itself (white noise).
    pub(crate) white: bool,
}

impl Term {
    /// A term by the indices in θ whose parameters multiply it, its Gaussian factors (input column, index of the
    /// lengthscale in θ), and the columns with a factor x_q z_q.
    pub fn new(scale: &[usize], gauss: &[(usize, usize)], powers: &[usize]) -> Self {
        Term { scale: scale.into(), gauss: gauss.into(), powers: powers.into(), white: false }
    }

    fn dims(&self) -> impl Iterator<Item = usize> + '_ {
        self.gauss.iter().map(|g| g.0).chain(self.powers.iter().copied())
    }

    fn times(&self, other: &Term) -> Option<Term> {
        if self.dims().any(|q| other.dims().any(|p| p == q)) {
            return None;
        }
        Some(Term {
            scale: self.scale.iter().chain(&other.scale).copied().collect(),
            gauss: self.gauss.iter().chain(&other.gauss).copied().collect(),
            powers: self.powers.iter().chain(&other.powers).copied().collect(),
            white: self.white || other.white,
        })
    }
}

/// A sum of [`Term`]s.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClosedForm {
    pub(crate) terms: InlineVec<Term>,
}

impl ClosedForm {
    /// The sum of the terms.
    pub fn new(terms: impl IntoIterator<Item = Term>) -> Self {
        ClosedForm { terms: terms.into_iter().collect() }
    }

    /// This form where the parameters start `by` indices later in θ.
    pub fn shifted(mut self, by: usize) -> Self {
        for term in &mut self.terms {
            term.scale.iter_mut().for_each(|i| *i += by);
            term.gauss.iter_mut().for_each(|(_, i)| *i += by);
        }
        self
    }

    /// This form on the input columns `dims` of a wider input.
    pub fn on_dims(mut self, dims: &[usize]) -> Self {
        for term in &mut self.terms {
            term.gauss.iter_mut().for_each(|(q, _)| *q = dims[*q]);
            term.powers.iter_mut().for_each(|q| *q = dims[*q]);
        }
        self
    }

    /// The product, multiplied out; `None` where two factors share a column.
    pub fn times(&self, other: &ClosedForm) -> Option<ClosedForm> {
        let mut terms = InlineVec::new();
        for a in &self.terms {
            for b in &other.terms {
                terms.push(a.times(b)?);
            }
        }
        Some(ClosedForm { terms })
    }
}
