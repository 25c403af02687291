//! Series as they are, or their logarithms.
//!
//! Where a series grows, its ups and downs often grow with it; the logarithm has ups and downs of one size,
//! which is what a noise of one variance can describe. With ln y ~ N(m, v)
//!
//! ```text
//! E y = exp(m + v/2)     Var y = (exp v − 1) exp(2m + v)     ln p(y) = ln N(ln y; m, v) − ln y
//! ```
//!
//! and quantiles go through exp. Evidences are those of the data as given: that of the logarithms, less the
//! sum of ln y.

use crate::failure::{Failure, Outcome};
use latentgp::Mat;
use latentgp::metrics;
use latentgp::model::narx::{Forecast, LEVELS, Score};

/// Blocks of changes that the spread is looked at in, at least.
const BLOCKS: usize = 4;
/// Changes of a block, at least.
const SHORTEST: usize = 6;
/// Levels must differ by this factor for the spread to show how it depends on them.
const LEVELS_APART: f64 = 1.5;
/// The spread grows as a power of the level: 0 is a series as it is, 1 its logarithm, and this the middle.
const MIDDLE: f64 = 0.5;

/// What the model sees of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    Plain,
    Log,
}

/// A forecast in the units of the data, with what it was made from.
pub struct View {
    /// What the model sees.
    pub units: Units,
    /// In the units of the model.
    inner: Forecast,
    /// In the units of the data.
    pub forecast: Forecast,
    /// The ends of the central intervals of [`LEVELS`].
    pub bands: [(Mat, Mat); 3],
}

/// Forecast values beside the truth.
#[derive(Default)]
pub struct Cells {
    y: Vec<f64>,
    mean: Vec<f64>,
    /// In the units of the model: truth, mean and variance.
    inner: [Vec<f64>; 3],
    inside: [usize; 3],
    /// Σ ln |dy/dinner|.
    jacobian: f64,
}

impl Units {
    /// The name of the choice.
    pub fn name(self) -> &'static str {
        match self {
            Units::Plain => "none",
            Units::Log => "log",
        }
    }

    /// The logarithm where all values are positive and, in the rows known, the spread of the changes of every
    /// series grows at least as the square root of its level; blocks are as long as the longest lag.
    pub fn suitable(values: &Mat, known: usize, longest: usize) -> Self {
        let positive = values.as_slice().iter().all(|y| y.is_nan() || *y > 0.0);
        let seen =
            |d: usize| values.col(d)[..known].iter().copied().filter(|y| !y.is_nan()).collect::<Vec<_>>();
        let grows = |d: usize| exponent(&seen(d), longest).is_some_and(|p| p > MIDDLE);
        if positive && (0..values.cols()).all(grows) { Units::Log } else { Units::Plain }
    }

    /// What no value can be below, where there is such a number.
    pub fn least(self) -> Option<f64> {
        (self == Units::Log).then_some(0.0)
    }

    fn enter(self, y: f64) -> f64 {
        if self == Units::Log { y.ln() } else { y }
    }

    fn leave(self, z: f64) -> f64 {
        if self == Units::Log { z.exp() } else { z }
    }

    /// What the model sees.
    pub fn apply(self, values: &Mat) -> Mat {
        values.map(|y| self.enter(y))
    }

    /// What the evidence of the model's data is more than that of the data as given.
    pub fn jacobian(self, values: &Mat) -> f64 {
        match self {
            Units::Plain => 0.0,
            Units::Log => values.as_slice().iter().filter(|y| !y.is_nan()).map(|y| y.ln()).sum(),
        }
    }

    fn undo(self, of: &Forecast) -> Forecast {
        if self == Units::Plain {
            return of.clone();
        }
        let paths: Vec<Mat> = of.trajectories.iter().map(|t| t.map(f64::exp)).collect();
        let (rows, cols) = (of.mean.rows(), of.mean.cols());
        let moments = |h: usize, d: usize| match paths.len() {
            0 => {
                let (m, v) = (of.mean[(h, d)], of.var[(h, d)]);
                ((m + 0.5 * v).exp(), v.exp_m1() * (2.0 * m + v).exp())
            }
            n => {
                let mean = paths.iter().map(|p| p[(h, d)]).sum::<f64>() / n as f64;
                let square = paths.iter().map(|p| (p[(h, d)] - mean).powi(2)).sum::<f64>();
                (mean, square / (n - 1) as f64)
            }
        };
        Forecast {
            mean: Mat::from_fn(rows, cols, |h, d| moments(h, d).0),
            var: Mat::from_fn(rows, cols, |h, d| moments(h, d).1),
            trajectories: paths,
            evaluations: of.evaluations,
        }
    }
}

impl View {
    /// Of a forecast in the units of the model; errs where the data's units have no number for it.
    pub fn new(units: Units, inner: Forecast) -> Outcome<Self> {
        let forecast = units.undo(&inner);
        let mut bands = Vec::new();
        for level in LEVELS {
            let (lower, upper) = inner.band(level)?;
            bands.push((lower.map(|v| units.leave(v)), upper.map(|v| units.leave(v))));
        }
        let bands: [(Mat, Mat); 3] = bands.try_into().expect("as many bands as levels");
        let ends = bands.iter().all(|(lo, hi)| lo.is_finite() && hi.is_finite());
        if !(forecast.mean.is_finite() && forecast.var.is_finite() && ends) {
            return Err(Failure::work(
                "the forecast of logarithms grows beyond the range of numbers; try --transform none or a shorter \
                 --horizon",
            ));
        }
        Ok(View { units, inner, forecast, bands })
    }
}

impl Cells {
    /// Step `h` of series `d` beside its truth, unless that is missing.
    pub fn push(&mut self, of: &View, h: usize, d: usize, y: f64) {
        if y.is_nan() {
            return;
        }
        self.y.push(y);
        self.mean.push(of.forecast.mean[(h, d)]);
        let inner = [of.units.enter(y), of.inner.mean[(h, d)], of.inner.var[(h, d)]];
        self.inner.iter_mut().zip(inner).for_each(|(to, v)| to.push(v));
        for (count, (lo, hi)) in self.inside.iter_mut().zip(&of.bands) {
            *count += usize::from(lo[(h, d)] <= y && y <= hi[(h, d)]);
        }
        self.jacobian += if of.units == Units::Log { y.ln() } else { 0.0 };
    }

    /// RMSE of the mean, NLPD in the units of the data, coverage by the bands.
    pub fn score(&self) -> Outcome<Score> {
        let n = self.y.len();
        let [y, mean, var] = &self.inner;
        Ok(Score {
            rmse: metrics::rmse(&self.y, &self.mean)?,
            nlpd: metrics::nlpd(y, mean, var)? + self.jacobian / n as f64,
            coverage: self.inside.map(|k| k as f64 / n as f64),
            count: n,
        })
    }
}

/// p of spread ∝ level^p, by least squares through the logarithms of the blocks' standard deviations of
/// changes and of their mean levels; `None` where the levels hardly differ or blocks are few.
fn exponent(values: &[f64], longest: usize) -> Option<f64> {
    let size = longest.max(SHORTEST);
    let block = |of: &[f64]| {
        let n = (of.len() - 1) as f64;
        let drift = (of[of.len() - 1] - of[0]) / n;
        let square = of.windows(2).map(|w| (w[1] - w[0] - drift).powi(2)).sum::<f64>() / n;
        let level = of.iter().sum::<f64>() / of.len() as f64;
        (level.ln(), 0.5 * square.ln())
    };
    // The end of one block is the beginning of the next, so that no change is left out.
    let blocks: Vec<(f64, f64)> = (0..)
        .map(|k| k * size)
        .take_while(|from| from + size < values.len())
        .map(|from| block(&values[from..=from + size]))
        .filter(|(level, spread)| level.is_finite() && spread.is_finite())
        .collect();
    let n = blocks.len() as f64;
    let (lo, hi) = blocks.iter().fold((f64::MAX, f64::MIN), |(lo, hi), b| (lo.min(b.0), hi.max(b.0)));
    if blocks.len() < BLOCKS || hi - lo < LEVELS_APART.ln() {
        return None;
    }
    let (level, spread) =
        (blocks.iter().map(|b| b.0).sum::<f64>() / n, blocks.iter().map(|b| b.1).sum::<f64>() / n);
    let cov: f64 = blocks.iter().map(|b| (b.0 - level) * (b.1 - spread)).sum();
    let var: f64 = blocks.iter().map(|b| (b.0 - level).powi(2)).sum();
    Some(cov / var)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latentgp::data::airline;

    #[test]
    fn the_spread_tells_which_units_suit() {
        let air = Mat::column(&airline::PASSENGERS);
        assert_eq!(Units::suitable(&air, 109, 13), Units::Log);
        let power = exponent(&airline::PASSENGERS, 12).unwrap();
        assert!((0.8..1.6).contains(&power), "{power}");
        // A season of one size on a trend is best as it is; so is what is not positive, short or level.
        let trend = Mat::from_fn(100, 1, |t, _| 50.0 + t as f64 + 5.0 * (0.5 * t as f64).sin());
        assert_eq!(Units::suitable(&trend, 100, 12), Units::Plain);
        assert_eq!(Units::suitable(&air.map(|v| v - 200.0), 144, 12), Units::Plain);
        assert_eq!(Units::suitable(&air, 40, 13), Units::Plain);
        assert_eq!(Units::suitable(&air.map(|v| v + 1e4), 144, 13), Units::Plain);
        assert_eq!(Units::suitable(&Mat::filled(100, 1, 3.0), 100, 12), Units::Plain);
        let mixed = Mat::from_fn(100, 2, |t, d| if d == 0 { air[(t, 0)] } else { trend[(t, 0)] });
        assert_eq!(Units::suitable(&mixed, 100, 12), Units::Plain);
    }

    fn inner() -> Forecast {
        Forecast {
            mean: Mat::filled(1, 1, 1.0),
            var: Mat::filled(1, 1, 0.25),
            trajectories: Vec::new(),
            evaluations: 0.0,
        }
    }

    #[test]
    fn logarithms_come_back_as_a_lognormal() {
        let view = View::new(Units::Log, inner()).unwrap();
        assert!((view.forecast.mean[(0, 0)] - 1.125f64.exp()).abs() < 1e-12);
        assert!((view.forecast.var[(0, 0)] - (0.25f64.exp() - 1.0) * 2.25f64.exp()).abs() < 1e-12);
        let mut cells = Cells::default();
        cells.push(&view, 0, 0, 3.0);
        let score = cells.score().unwrap();
        let z = (3f64.ln() - 1.0) / 0.5;
        let density = (-0.5 * z * z).exp() / (3.0 * 0.5 * (2.0 * std::f64::consts::PI).sqrt());
        assert!((score.nlpd + density.ln()).abs() < 1e-12);
        assert_eq!((score.coverage, score.count), ([1.0; 3], 1));
        let plain = View::new(Units::Plain, inner()).unwrap();
        assert_eq!(plain.forecast, inner());
    }

    #[test]
    fn paths_have_their_own_moments_and_quantiles() {
        let mut of = inner();
        of.trajectories = (0..=10).map(|i| Mat::filled(1, 1, i as f64 / 10.0)).collect();
        let view = View::new(Units::Log, of).unwrap();
        let mean = (0..=10).map(|i| (i as f64 / 10.0).exp()).sum::<f64>() / 11.0;
        assert!((view.forecast.mean[(0, 0)] - mean).abs() < 1e-12);
        assert!((view.bands[0].0[(0, 0)] - 0.25f64.exp()).abs() < 1e-12);
    }
}
