//! Latent map, relevance and trace of the bound side by side: one fit at a glance.

use latentgp::Result;

use super::canvas::{Canvas, Rect};
use super::latent::{Laid, LatentMap};
use super::relevance::{self, Relevance};
use super::{Figure, HEIGHT, trace};

/// Widths of the three parts.
const WIDTHS: [f64; 3] = [560.0, 330.0, 390.0];

/// What the panel shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Panel {
    /// The latent map.
    pub map: LatentMap,
    /// The relevance of each latent dimension.
    pub relevance: Relevance,
    /// The bound at each iteration.
    pub trace: Vec<f64>,
    /// What its values are, such as the bound.
    pub trace_of: String,
    /// The title of the trace; may be empty.
    pub trace_title: String,
}

/// Draws the three parts side by side. If one of them has a title, give all of them one.
///
/// # Errors
/// Whatever one of the parts errs on.
pub fn panel(panel: &Panel) -> Result<Figure> {
    panel.map.check()?;
    panel.relevance.check()?;
    trace::check(&panel.trace)?;
    let mut canvas = Canvas::new(
        WIDTHS.iter().sum(),
        HEIGHT,
        &format!("Latent map, relevance and trace of the bound. {}", panel.map.title),
    );
    let cell = |k: usize| Rect { x: WIDTHS[..k].iter().sum(), y: 0.0, w: WIDTHS[k], h: HEIGHT };
    // All plotting areas begin at the same height, below the note of the trace.
    Laid::new(cell(0), &panel.map, trace::NOTE_LINE).draw(&mut canvas, &panel.map);
    relevance::draw(&mut canvas, cell(1), &panel.relevance, trace::NOTE_LINE);
    trace::draw(&mut canvas, cell(2), &panel.trace_title, &panel.trace_of, &panel.trace);
    Ok(canvas.finish())
}

#[cfg(test)]
mod tests {
    use super::super::latent::Coordinate;
    use super::super::tests::assert_sound;
    use super::*;

    #[test]
    fn the_three_parts_are_in_one_picture() {
        let mut parts = Panel {
            map: LatentMap {
                x: Coordinate { mean: vec![1.0, 2.0], ..Coordinate::default() },
                y: Some(Coordinate { mean: vec![0.0, 2.0], ..Coordinate::default() }),
                ..LatentMap::default()
            },
            relevance: Relevance { values: vec![1.0, 0.5], ..Relevance::default() },
            trace: vec![-2.0, -1.0],
            trace_of: "bound".into(),
            trace_title: "Bound".into(),
        };
        let figure = panel(&parts).unwrap();
        assert_sound(&figure);
        for text in [">latent dimension 2<", ">relevance<", ">iteration<", ">Bound<"] {
            assert!(figure.svg().contains(text), "{text}");
        }
        parts.trace.clear();
        assert!(panel(&parts).is_err());
    }
}
