//! Observed classes against predicted ones: how many rows of each are called what.

use latentgp::{Mat, Result};

use super::axes::{Axes, Axis, NOTE, Reserve, Ticks};
use super::canvas::{Anchor, Canvas, Font, INK, Rect};
use super::scale::Scale;
use super::text::width;
use super::{Figure, check};

/// Width and height of the figure.
const SIDE: (f64, f64) = (520.0, 486.0);
const SHADE: &str = "#0072b2";

/// What the figure shows.
#[derive(Debug, Clone, Default)]
pub struct Confusion {
    /// The title; may be empty.
    pub title: String,
    /// The name of what is predicted.
    pub quantity: String,
    /// Which rows these are, for the axis: "training rows". May be empty.
    pub of: String,
    /// The names of the classes, C.
    pub classes: Vec<String>,
    /// The mean probability that rows of a class (row) have of being each class (column), C×C.
    pub share: Mat,
    /// Rows of a class (row) that are called each class (column), C×C.
    pub rows: Mat,
}

/// Draws a matrix of cells, observed classes from above to below; the darker a cell, the larger the mean
/// probability, the number in it the rows for which it is the largest.
///
/// # Errors
/// If there is no class, shapes differ or a number is not finite.
pub fn confusion(of: &Confusion) -> Result<Figure> {
    let count = of.classes.len();
    check::some("classes", count)?;
    for (what, m) in [("shares", &of.share), ("counts", &of.rows)] {
        check::length(what, count * count, m.len())?;
        check::finite(what, m.as_slice())?;
    }
    let mut canvas =
        Canvas::new(SIDE.0, SIDE.1, &format!("Observed against predicted classes. {}", of.title));
    let scale = Scale::new(0.0, count as f64);
    let middle = |c: usize| c as f64 + 0.5;
    let across = of.classes.iter().enumerate().map(|(c, name)| (middle(c), name.clone())).collect();
    let down = of.classes.iter().enumerate().map(|(c, name)| (middle(count - 1 - c), name.clone())).collect();
    let observed = match of.of.is_empty() {
        true => format!("observed {}", of.quantity),
        false => format!("observed {} ({})", of.quantity, of.of),
    };
    let axes = Axes::layout(
        Rect { x: 0.0, y: 0.0, w: SIDE.0, h: SIDE.1 },
        &of.title,
        Axis { scale, title: &format!("predicted {}", of.quantity), ticks: Ticks::Names(across) },
        Axis { scale, title: &observed, ticks: Ticks::Names(down) },
        Reserve::default(),
    );
    let (w, h) = (axes.area.w / count as f64, axes.area.h / count as f64);
    for i in 0..count {
        for j in 0..count {
            let (x, y) = (axes.area.x + w * j as f64, axes.area.y + h * i as f64);
            let share = of.share[(i, j)].clamp(0.0, 1.0);
            canvas.rect(
                Rect { x: x + 0.5, y: y + 0.5, w: w - 1.0, h: h - 1.0 },
                &format!("fill=\"{SHADE}\" fill-opacity=\"{:.3}\"", 0.04 + 0.9 * share),
            );
            let text = format!("{}", of.rows[(i, j)]);
            let font = Font { colour: if share > 0.5 { "#ffffff" } else { INK }, ..NOTE };
            if width(&text, font) < w - 2.0 && font.size < h {
                let at = (x + 0.5 * w, y + 0.5 * h + 0.35 * font.size);
                canvas.text(at, &text, font, Anchor::Middle, false);
            }
        }
    }
    axes.frame(&mut canvas);
    Ok(canvas.finish())
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_sound;
    use super::*;

    fn of(count: usize) -> Confusion {
        Confusion {
            title: "fit".into(),
            of: "training rows".into(),
            quantity: "kind".into(),
            classes: (0..count).map(|c| format!("class {c}")).collect(),
            share: Mat::eye(count),
            rows: Mat::filled(count, count, 7.0),
        }
    }

    #[test]
    fn cells_have_numbers_where_there_is_room() {
        for count in [1, 2, 3, 12, 60] {
            assert_sound(&confusion(&of(count)).unwrap());
        }
        assert_eq!(confusion(&of(3)).unwrap().svg().matches(">7<").count(), 9);
        assert_eq!(confusion(&of(60)).unwrap().svg().matches(">7<").count(), 0);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert!(confusion(&of(0)).is_err());
        assert!(confusion(&Confusion { rows: Mat::zeros(1, 2), ..of(2) }).is_err());
        assert!(confusion(&Confusion { share: Mat::filled(2, 2, f64::NAN), ..of(2) }).is_err());
    }
}
