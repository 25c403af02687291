//! Class probabilities along one input, with the observed rows of every class on a line of its own below.

use latentgp::{Mat, Result};

use super::axes::{Axes, Axis, Ticks};
use super::canvas::{Canvas, Rect, polyline};
use super::legend::{Entry, Rows, Sample};
use super::marker::{self, COLOURS};
use super::scale::Scale;
use super::{Figure, HEIGHT, WIDTH, check};

/// Distance of two lines of observed rows, as a probability.
const LINE: f64 = 0.055;
/// Beyond these classes the lines below share what room there is.
const ROOM: f64 = 0.5;

/// What the figure shows.
#[derive(Debug, Clone, Default)]
pub struct Probabilities {
    /// The title; may be empty.
    pub title: String,
    /// The title of the x axis.
    pub x_title: String,
    /// The name of what is predicted.
    pub quantity: String,
    /// The names of the classes, C.
    pub classes: Vec<String>,
    /// The places of the curves, ascending.
    pub x: Vec<f64>,
    /// Probabilities there, N×C.
    pub p: Mat,
    /// Observed rows: where, and of which class.
    pub observed: Vec<(f64, usize)>,
}

/// Draws a curve for each class.
///
/// # Errors
/// If there is no place or no class, lengths differ or a number is not finite.
pub fn probabilities(of: &Probabilities) -> Result<Figure> {
    check::some("places", of.x.len())?;
    check::some("classes", of.classes.len())?;
    check::length("probabilities", of.x.len() * of.classes.len(), of.p.len())?;
    check::finite("places", &of.x)?;
    check::finite("probabilities", of.p.as_slice())?;
    check::finite("observations", &of.observed.iter().map(|o| o.0).collect::<Vec<_>>())?;
    let count = of.classes.len();
    let mut canvas = Canvas::new(WIDTH, HEIGHT, &format!("Class probabilities. {}", of.title));
    let colour = |c: usize| COLOURS[c % COLOURS.len()];
    let line = |c: usize| {
        let dashes = if c < COLOURS.len() { "" } else { " stroke-dasharray=\"5 3\"" };
        format!("stroke=\"{}\" stroke-width=\"1.8\" stroke-linejoin=\"round\"{dashes}", colour(c))
    };
    let entries = of
        .classes
        .iter()
        .enumerate()
        .map(|(c, name)| Entry::new(Sample::Line(line(c)), name.clone()))
        .collect();
    let legend = Rows::new(entries, WIDTH - 90.0);
    let apart = LINE.min(ROOM / (count + 1) as f64);
    let scale = Scale::new(-apart * (count + 1) as f64, 1.0).padded(0.02);
    let places = of.x.iter().copied().chain(of.observed.iter().map(|o| o.0));
    let ticks = Scale::new(0.0, 1.0).ticks(6);
    let axes = Axes::layout(
        Rect { x: 0.0, y: 0.0, w: WIDTH, h: HEIGHT },
        &of.title,
        Axis { scale: Scale::covering(places).padded(0.015), title: &of.x_title, ticks: Ticks::Numbers },
        Axis { scale, title: &format!("probability of {}", of.quantity), ticks: Ticks::Names(ticks) },
        legend.reserve(),
    );
    axes.grid(&mut canvas, false);
    canvas.clip(axes.area);
    for c in 0..count {
        let points: Vec<_> = of.x.iter().enumerate().map(|(i, x)| axes.at(*x, of.p[(i, c)])).collect();
        canvas.path(&polyline(&points, false), &format!("fill=\"none\" {}", line(c)));
    }
    let r = (3.2 - 0.8 * (of.observed.len() as f64 / 60.0).max(1.0).log10()).max(1.2);
    for c in 0..count {
        canvas.open(&format!("fill=\"{}\" fill-opacity=\"0.75\" stroke=\"none\"", colour(c)));
        for (x, _) in of.observed.iter().filter(|o| o.1 == c) {
            marker::draw(&mut canvas, marker::shape(c), axes.at(*x, -apart * (c + 1) as f64), r);
        }
        canvas.close();
    }
    canvas.unclip();
    axes.frame(&mut canvas);
    legend.draw(&mut canvas, axes.area.x, axes.legend_top());
    Ok(canvas.finish())
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_sound;
    use super::*;

    fn of(count: usize) -> Probabilities {
        Probabilities {
            x_title: "a".into(),
            quantity: "kind".into(),
            classes: (0..count).map(|c| format!("k<{c}")).collect(),
            x: vec![0.0, 1.0, 2.0],
            p: Mat::filled(3, count, 1.0 / count as f64),
            observed: (0..count).map(|c| (c as f64, c)).collect(),
            ..Probabilities::default()
        }
    }

    #[test]
    fn every_class_has_its_curve_and_its_line() {
        for count in [2, 3, 12, 40] {
            let figure = probabilities(&of(count)).unwrap();
            assert_sound(&figure);
            assert!(figure.svg().contains(">probability of kind<"));
        }
        assert!(probabilities(&of(3)).unwrap().svg().contains("k&lt;2"));
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert!(probabilities(&Probabilities { x: vec![], ..of(2) }).is_err());
        assert!(probabilities(&Probabilities { classes: vec![], ..of(2) }).is_err());
        assert!(probabilities(&Probabilities { p: Mat::zeros(2, 2), ..of(2) }).is_err());
        assert!(probabilities(&Probabilities { p: Mat::filled(3, 2, f64::NAN), ..of(2) }).is_err());
    }
}
