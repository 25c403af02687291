//! Predicted against observed values: on the diagonal both agree.

use latentgp::Result;

use super::axes::{Axes, Axis, Ticks};
use super::canvas::{Canvas, QUIET, Rect};
use super::legend::{Entry, Rows, Sample};
use super::marker::Shape;
use super::scale::Scale;
use super::{Figure, check};

/// Width and height of the figure.
const SIDE: (f64, f64) = (460.0, 486.0);
const POINT: &str = "fill=\"#0072b2\" stroke=\"#ffffff\" stroke-width=\"0.6\"";
const BAR: &str = "stroke=\"#0072b2\" stroke-opacity=\"0.35\" stroke-width=\"1.2\"";

/// Most error bars: more hide the points.
const MOST_BARS: usize = 300;

/// What the figure shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedPredicted {
    /// The title; may be empty.
    pub title: String,
    /// The quantity, for the axes: "observed …", "predicted …". May be empty.
    pub quantity: String,
    /// Which rows these are, or how they were predicted, for the axis: "training rows". May be empty.
    pub rows: String,
    /// The observed values, N.
    pub observed: Vec<f64>,
    /// The predicted means, N.
    pub predicted: Vec<f64>,
    /// The predictive variances, N, or empty if there are none.
    pub variance: Vec<f64>,
}

impl ObservedPredicted {
    /// Limits that cover the points, and the bars unless those are out of proportion.
    fn scale(&self) -> Scale {
        let points = Scale::covering(self.observed.iter().chain(&self.predicted).copied());
        let bars = self.predicted.iter().zip(&self.variance).flat_map(|(m, v)| {
            let reach = 2.0 * v.sqrt();
            [m - reach, m + reach]
        });
        let all = Scale::covering(bars.chain([points.lo, points.hi]));
        let allowed = points.padded(0.25);
        Scale::new(all.lo.max(allowed.lo), all.hi.min(allowed.hi)).padded(0.04)
    }

    fn check(&self) -> Result<()> {
        let n = self.observed.len();
        check::some("observed values", n)?;
        check::length("predicted values", n, self.predicted.len())?;
        check::finite("observed values", &self.observed)?;
        check::finite("predicted values", &self.predicted)?;
        if !self.variance.is_empty() {
            check::length("predictive variances", n, self.variance.len())?;
        }
        check::variances("predictive variances", &self.variance)
    }
}

/// Draws predicted against observed values, with bars of two standard deviations and the diagonal.
///
/// # Errors
/// If there is no value, lengths differ, a number is not finite or a variance is negative.
pub fn scatter_observed_predicted(data: &ObservedPredicted) -> Result<Figure> {
    data.check()?;
    let mut canvas =
        Canvas::new(SIDE.0, SIDE.1, &format!("Predicted against observed values. {}", data.title));
    let scale = data.scale();
    let every = data.variance.len().div_ceil(MOST_BARS).max(1);
    let mut entries = vec![Entry::new(Sample::Marker(Shape::Disc, POINT.into()), "prediction")];
    if !data.variance.is_empty() {
        let label = match every {
            1 => "± 2 sd".to_string(),
            _ => format!("± 2 sd of 1 in {every}"),
        };
        entries.push(Entry::new(Sample::Line(BAR.into()), &label));
    }
    let diagonal = format!("stroke=\"{QUIET}\" stroke-width=\"1\" stroke-dasharray=\"5 4\"");
    entries.push(Entry::new(Sample::Line(diagonal.clone()), "equal"));
    let legend = Rows::new(entries, SIDE.0 - 90.0);
    let title = |what: &str| format!("{what} {}", data.quantity).trim_end().to_owned();
    let which = match data.rows.is_empty() {
        true => title("predicted"),
        false => format!("{} ({})", title("predicted"), data.rows),
    };
    let axes = Axes::layout(
        Rect { x: 0.0, y: 0.0, w: SIDE.0, h: SIDE.1 },
        &data.title,
        Axis { scale, title: &title("observed"), ticks: Ticks::Names(scale.ticks(6)) },
        Axis { scale, title: &which, ticks: Ticks::Names(scale.ticks(6)) },
        legend.reserve(),
    );
    axes.grid(&mut canvas, true);
    canvas.clip(axes.area);
    canvas.line(axes.at(scale.lo, scale.lo), axes.at(scale.hi, scale.hi), &diagonal);
    canvas.open(BAR);
    for (n, variance) in data.variance.iter().enumerate().step_by(every) {
        let (x, y, reach) = (data.observed[n], data.predicted[n], 2.0 * variance.sqrt());
        canvas.line(axes.at(x, y - reach), axes.at(x, y + reach), "");
    }
    canvas.close();
    canvas.open(POINT);
    let r = (3.8 - 0.9 * (data.observed.len() as f64 / 60.0).max(1.0).log10()).max(1.2);
    for (x, y) in data.observed.iter().zip(&data.predicted) {
        canvas.ellipse(axes.at(*x, *y), (r, r));
    }
    canvas.close();
    canvas.unclip();
    axes.frame(&mut canvas);
    legend.draw(&mut canvas, axes.area.x, axes.legend_top());
    Ok(canvas.finish())
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_sound;
    use super::*;

    fn data(observed: &[f64], predicted: &[f64], variance: &[f64]) -> ObservedPredicted {
        ObservedPredicted {
            title: "fit".into(),
            quantity: "y < 1".into(),
            rows: "leave one out".into(),
            observed: observed.to_vec(),
            predicted: predicted.to_vec(),
            variance: variance.to_vec(),
        }
    }

    #[test]
    fn points_bars_and_the_diagonal_are_drawn() {
        let figure =
            scatter_observed_predicted(&data(&[1.0, 2.0, 3.0], &[1.1, 1.9, 3.2], &[0.1; 3])).unwrap();
        assert_sound(&figure);
        assert!(
            figure.svg().contains(">predicted y &lt; 1 (leave one out)<")
                && figure.svg().contains(">± 2 sd<")
        );
        let without = scatter_observed_predicted(&data(&[1.0, 2.0], &[1.1, 1.9], &[])).unwrap();
        assert!(!without.svg().contains("2 sd"));
    }

    #[test]
    fn of_many_points_some_have_bars() {
        let n = 3 * MOST_BARS;
        let y: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let figure = scatter_observed_predicted(&data(&y, &y, &vec![0.1; n])).unwrap();
        assert_sound(&figure);
        assert!(figure.svg().contains(">± 2 sd of 1 in 3<"));
        assert!(figure.svg().matches("<line").count() < MOST_BARS + 50);
    }

    #[test]
    fn silly_input_gives_a_picture_or_an_error() {
        for value in [0.0, 3.0, -1e300, 1e-310] {
            assert_sound(&scatter_observed_predicted(&data(&[value], &[value], &[1e250])).unwrap());
        }
        for (o, p, v) in [
            (&[][..], &[][..], &[][..]),
            (&[1.0], &[], &[]),
            (&[1.0], &[f64::NAN], &[]),
            (&[1.0], &[1.0], &[-1.0]),
            (&[1.0], &[1.0], &[1.0, 2.0]),
        ] {
            assert!(scatter_observed_predicted(&data(o, p, v)).is_err());
        }
    }
}
