//! What was observed, together with the likelihood it came from: the y of a model.

use super::{Bernoulli, Categorical, Kind, Latents, Likelihood, Link, Poisson, Rates, check_labels};
use crate::error::{Error, Result};
use crate::mat::Mat;

/// Observations and their likelihood, checked when they are made.
#[derive(Clone, Debug)]
pub enum Observations {
    /// One latent function: two classes, counts, or a likelihood of one's own.
    One {
        /// y.
        y: Vec<f64>,
        /// p(y | f).
        likelihood: Box<dyn Likelihood>,
    },
    /// One latent function a class.
    Classes {
        /// The class of every row.
        labels: Vec<usize>,
        /// p(y | f_1 … f_C).
        likelihood: Categorical,
    },
}

impl Observations {
    /// Observations of any likelihood of one latent value; errs as its `check` does.
    pub fn new(y: Vec<f64>, likelihood: impl Likelihood + 'static) -> Result<Self> {
        likelihood.check(&y)?;
        Ok(Observations::One { y, likelihood: Box::new(likelihood) })
    }

    /// Classes 0 and 1; errs for other labels, and when only one of the two is there.
    pub fn bernoulli(labels: &[usize], link: Link) -> Result<Self> {
        check_labels(labels, 2)?;
        Self::new(labels.iter().map(|l| *l as f64).collect(), Bernoulli { link })
    }

    /// Classes 0 to `classes` − 1; errs for other labels, and for a class without a row.
    pub fn categorical(labels: &[usize], classes: usize) -> Result<Self> {
        check_labels(labels, classes)?;
        Ok(Observations::Classes { labels: labels.to_vec(), likelihood: Categorical::new(classes)? })
    }

    /// Counts; errs for numbers that are negative, fractional or not finite.
    pub fn poisson(counts: &[f64]) -> Result<Self> {
        Self::new(counts.to_vec(), Poisson)
    }

    /// Numbers of 0 or more, whole or not, under the Poisson likelihood: averages of counts.
    ///
    /// Errs for numbers that are negative or not finite, and where there is none.
    pub fn intensities(y: &[f64]) -> Result<Self> {
        if y.is_empty() {
            return Err(Error::data("the counts", "there is none to learn from"));
        }
        match y.iter().position(|v| !(v.is_finite() && *v >= 0.0)) {
            Some(at) => Err(Error::invalid(format!("count of row {}", at + 1), "a number, 0 or more", y[at])),
            None => Ok(Observations::One { y: y.to_vec(), likelihood: Box::new(Poisson) }),
        }
    }

    /// Every observation so many times, one after the other.
    pub fn repeated(&self, times: usize) -> Self {
        fn each<T: Clone>(of: &[T], times: usize) -> Vec<T> {
            of.iter().flat_map(|v| std::iter::repeat_n(v.clone(), times)).collect()
        }
        match self {
            Observations::One { y, likelihood } => {
                Observations::One { y: each(y, times), likelihood: likelihood.clone() }
            }
            Observations::Classes { labels, likelihood } => {
                Observations::Classes { labels: each(labels, times), likelihood: *likelihood }
            }
        }
    }

    /// The likelihood's name, with its options.
    pub fn expression(&self) -> String {
        match self {
            Observations::One { likelihood, .. } => likelihood.expression(),
            Observations::Classes { likelihood, .. } => {
                format!("categorical(classes={})", likelihood.classes)
            }
        }
    }

    /// Number of rows.
    pub fn n(&self) -> usize {
        match self {
            Observations::One { y, .. } => y.len(),
            Observations::Classes { labels, .. } => labels.len(),
        }
    }

    /// Number of latent functions.
    pub fn latents(&self) -> usize {
        match self {
            Observations::One { .. } => 1,
            Observations::Classes { likelihood, .. } => likelihood.classes,
        }
    }

    /// Prior means to start from, one a latent function.
    pub fn start(&self) -> Vec<f64> {
        match self {
            Observations::One { y, likelihood } => vec![likelihood.start(y)],
            Observations::Classes { likelihood, .. } => vec![0.0; likelihood.classes],
        }
    }

    /// Class probabilities at every row, N×C, averaged over the latent values.
    ///
    /// Errs where there are no classes.
    pub fn probabilities(&self, of: &Latents) -> Result<Mat> {
        match self {
            Observations::Classes { likelihood, .. } => of.categorical(likelihood),
            Observations::One { likelihood, .. } => match likelihood.kind() {
                Kind::TwoClasses(bernoulli) => of.bernoulli(&bernoulli),
                _ => Err(self.unlike("bernoulli or categorical", "class probabilities")),
            },
        }
    }

    /// Class probabilities at the means of the latent values, N×C.
    ///
    /// Errs where there are no classes.
    pub fn probabilities_at_mean(&self, of: &Latents) -> Result<Mat> {
        match self {
            Observations::Classes { .. } => Ok(of.categorical_at_mean()),
            Observations::One { likelihood, .. } => match likelihood.kind() {
                Kind::TwoClasses(bernoulli) => of.bernoulli_at_mean(&bernoulli),
                _ => Err(self.unlike("bernoulli or categorical", "class probabilities")),
            },
        }
    }

    /// Rates and counts at every row; errs where no counts are observed, or where they overflow.
    pub fn rates(&self, of: &Latents) -> Result<Rates> {
        match self {
            Observations::One { likelihood, .. } if likelihood.kind() == Kind::Counts => of.poisson(),
            _ => Err(self.unlike("poisson", "rates")),
        }
    }

    fn unlike(&self, expected: &str, what: &str) -> Error {
        Error::invalid(format!("likelihood of {what}"), expected, self.expression())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intensities_need_not_be_whole() {
        let one = Observations::intensities(&[0.5, 2.0]).unwrap();
        assert_eq!((one.n(), one.expression().as_str()), (2, "poisson"));
        for bad in [&[][..], &[-0.5], &[f64::NAN], &[f64::INFINITY]] {
            assert!(Observations::intensities(bad).is_err(), "{bad:?}");
        }
        assert!(Observations::poisson(&[0.5]).is_err());
    }

    #[test]
    fn predictions_are_those_of_the_likelihood() {
        let at = Latents { mean: Mat::filled(1, 1, 0.3), var: Mat::filled(1, 1, 0.2), cov: None };
        let counts = Observations::poisson(&[1.0, 0.0]).unwrap();
        let classes = Observations::bernoulli(&[0, 1], Link::Probit).unwrap();
        counts.rates(&at).unwrap();
        assert!(matches!(counts.probabilities(&at), Err(Error::Invalid { .. })));
        assert!(matches!(counts.probabilities_at_mean(&at), Err(Error::Invalid { .. })));
        assert!(matches!(classes.rates(&at), Err(Error::Invalid { .. })));
        assert!(classes.probabilities(&at).unwrap()[(0, 1)] > 0.5);
        assert_eq!(classes.expression(), "bernoulli(link=probit)");
        assert!(Observations::categorical(&[0, 1, 3], 4).is_err());
        assert_eq!(Observations::categorical(&[0, 1, 2], 3).unwrap().latents(), 3);
    }
}
