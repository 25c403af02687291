//! What was observed, together with the likelihood it came from: the y of a model.

use super::names::{named, names, parse};
use super::{Bernoulli, Categorical, Kind, Latents, Likelihood, Link, Poisson, Rates, check_labels};
use crate::error::{Error, Result};
use crate::mat::Mat;
use crate::param::{Param, Parameterized};

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
        Self::of(y, Box::new(likelihood), false)
    }

    /// The same; where it is lenient, observations only need a density.
    pub(super) fn of(y: Vec<f64>, mut likelihood: Box<dyn Likelihood>, lenient: bool) -> Result<Self> {
        match lenient {
            true => likelihood.check_density(&y)?,
            false => likelihood.check(&y)?,
        }
        likelihood.set_units(&y);
        Ok(Observations::One { y, likelihood })
    }

    /// Observations in a column, N×1, of a likelihood that is named as in [`names`](super::names); classes are their
    /// numbers, and `classes` how many there are, or 0.
    ///
    /// Errs for an expression that cannot be read, and for observations that the likelihood refuses.
    ///
    /// ```
    /// use latentgp::{Mat, likelihood::Observations};
    /// let y = Mat::column(&[0.0, 3.0, 1.0]);
    /// assert_eq!(Observations::from_expression("poisson", &y, 0)?.latents(), 1);
    /// assert!(Observations::from_expression("bernoulli", &y, 2).is_err());
    /// # Ok::<(), latentgp::Error>(())
    /// ```
    pub fn from_expression(expression: &str, y: &Mat, classes: usize) -> Result<Self> {
        parse(expression, classes)?.observe(y)
    }

    /// What [`expression`](Self::expression) and [`column`](Self::column) say: observations that were accepted once.
    pub fn restored(expression: &str, y: &Mat, classes: usize) -> Result<Self> {
        parse(expression, classes)?.restore(y)
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
        Self::of(y.to_vec(), Box::new(Poisson), true)
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
            Observations::Classes { likelihood, .. } => likelihood.expression(),
        }
    }

    /// The likelihood's name without its options; `other` where it is one's own.
    pub fn name(&self) -> &'static str {
        named(&self.expression()).map_or("other", |entry| entry.name)
    }

    /// What is observed.
    pub fn kind(&self) -> Kind {
        match self {
            Observations::One { likelihood, .. } => likelihood.kind(),
            Observations::Classes { .. } => Kind::Classes,
        }
    }

    /// The observations as numbers, N×1.
    pub fn column(&self) -> Mat {
        match self {
            Observations::One { y, .. } => Mat::column(y),
            Observations::Classes { labels, .. } => {
                Mat::column(&labels.iter().map(|l| *l as f64).collect::<Vec<_>>())
            }
        }
    }

    /// The likelihood, where there is one latent function.
    pub fn likelihood(&self) -> Option<&dyn Likelihood> {
        match self {
            Observations::One { likelihood, .. } => Some(&**likelihood),
            Observations::Classes { .. } => None,
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

    /// What the log density of all observations lacks to be that of the data as given.
    pub fn log_jacobian(&self) -> f64 {
        self.likelihood().map_or(0.0, |l| self.n() as f64 * l.log_jacobian())
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
            Observations::One { likelihood, .. } if likelihood.kind() == Kind::Classes => {
                of.probabilities(&**likelihood)
            }
            _ => Err(self.unlike(Kind::Classes)),
        }
    }

    /// Class probabilities at the means of the latent values, N×C.
    ///
    /// Errs where there are no classes.
    pub fn probabilities_at_mean(&self, of: &Latents) -> Result<Mat> {
        match self {
            Observations::Classes { .. } => Ok(of.categorical_at_mean()),
            Observations::One { likelihood, .. } if likelihood.kind() == Kind::Classes => {
                of.probabilities_at_mean(&**likelihood)
            }
            _ => Err(self.unlike(Kind::Classes)),
        }
    }

    /// Rates and counts at every row; errs where no counts are observed, or where they overflow.
    pub fn rates(&self, of: &Latents) -> Result<Rates> {
        match self.likelihood().filter(|l| l.kind() == Kind::Counts) {
            Some(likelihood) => of.rates(likelihood),
            None => Err(self.unlike(Kind::Counts)),
        }
    }

    fn unlike(&self, kind: Kind) -> Error {
        let known: Vec<&str> = names().iter().filter(|e| e.kind == kind).map(|e| e.name).collect();
        Error::invalid(format!("likelihood of {kind}"), known.join(" or "), self.expression())
    }
}

impl Parameterized for Observations {
    /// The parameters of the likelihood.
    fn params(&self) -> Vec<(String, &Param)> {
        match self {
            Observations::One { likelihood, .. } => likelihood.params(),
            Observations::Classes { .. } => vec![],
        }
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        match self {
            Observations::One { likelihood, .. } => likelihood.params_mut(),
            Observations::Classes { .. } => vec![],
        }
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        if let Observations::One { likelihood, .. } = self {
            likelihood.each_param(visit);
        }
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        if let Observations::One { likelihood, .. } = self {
            likelihood.each_param_mut(visit);
        }
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
