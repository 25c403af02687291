//! Relevance of the latent dimensions: one bar each, in the order of the dimensions.

use latentgp::Result;

use super::axes::{Axes, Axis, NOTE, Reserve, Ticks};
use super::canvas::{Anchor, Canvas, Rect};
use super::latent::share;
use super::scale::{Scale, plain};
use super::text::width;
use super::{Figure, HEIGHT, WIDTH, check};

/// What the bars show.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Relevance {
    /// The title; may be empty.
    pub title: String,
    /// One value, not negative, for each latent dimension.
    pub values: Vec<f64>,
    /// Dimensions to stress, counted from 0: those that the latent map shows.
    pub shown: Vec<usize>,
}

/// Draws one bar for each latent dimension.
///
/// # Errors
/// If there is no value, or one is negative or not finite.
pub fn relevance_bars(relevance: &Relevance) -> Result<Figure> {
    relevance.check()?;
    let mut canvas =
        Canvas::new(WIDTH, HEIGHT, &format!("Relevance by latent dimension. {}", relevance.title));
    draw(&mut canvas, Rect { x: 0.0, y: 0.0, w: WIDTH, h: HEIGHT }, relevance, 0.0);
    Ok(canvas.finish())
}

impl Relevance {
    pub(super) fn check(&self) -> Result<()> {
        check::some("relevance", self.values.len())?;
        check::variances("relevance", &self.values)
    }
}

pub(super) fn draw(canvas: &mut Canvas, cell: Rect, relevance: &Relevance, top: f64) {
    let n = relevance.values.len();
    let most = relevance.values.iter().copied().fold(0.0, f64::max);
    let scale = if most < 1e-290 { Scale { lo: 0.0, hi: 1.0 } } else { Scale { lo: 0.0, hi: 1.16 * most } };
    let names = (1..=n).map(|k| (k as f64, k.to_string())).collect();
    let axes = Axes::layout(
        cell,
        &relevance.title,
        Axis {
            scale: Scale::new(0.4, n as f64 + 0.6),
            title: "latent dimension",
            ticks: Ticks::Names(names),
        },
        Axis { scale, title: "relevance", ticks: Ticks::Numbers },
        Reserve { top, right: 0.0 },
    );
    axes.grid(canvas, false);
    let half = 0.36_f64.min(32.0 / (axes.px(1.0) - axes.px(0.0)));
    // The digits that the titles of a map's axes have.
    let labels: Vec<String> = relevance.values.iter().map(|&v| plain(v, 2)).collect();
    let shares: Vec<String> = relevance.values.iter().map(|&v| share(v, &relevance.values)).collect();
    let room = axes.px(1.0) - axes.px(0.0) - 4.0;
    let fits = |all: &[String]| all.iter().all(|label| width(label, NOTE) <= room);
    let (labelled, shared) = (fits(&labels), fits(&shares));
    for (k, &value) in relevance.values.iter().enumerate() {
        let stressed = relevance.shown.is_empty() || relevance.shown.contains(&k);
        let colour = if stressed { "#0072b2" } else { "#a9c7dc" };
        let (left, right) = (axes.px(k as f64 + 1.0 - half), axes.px(k as f64 + 1.0 + half));
        let y = axes.py(value);
        let bar = Rect { x: left, y, w: right - left, h: axes.area.bottom() - y };
        canvas.rect(bar, &format!("fill=\"{colour}\""));
        let middle = (left + right) / 2.0;
        if labelled {
            canvas.text((middle, y - 4.0), &labels[k], NOTE, Anchor::Middle, false);
        }
        if shared {
            let above = if labelled { 17.0 } else { 4.0 };
            canvas.text((middle, y - above), &shares[k], NOTE, Anchor::Middle, false);
        }
    }
    axes.frame(canvas);
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_sound;
    use super::*;

    fn bars(values: &[f64]) -> Relevance {
        Relevance { title: "bars".into(), values: values.to_vec(), shown: vec![0] }
    }

    #[test]
    fn each_dimension_has_a_bar_and_its_number() {
        let figure = relevance_bars(&bars(&[1.0, 0.25, 0.0])).unwrap();
        assert_sound(&figure);
        assert_eq!(figure.svg().matches("#a9c7dc").count(), 2);
        assert_eq!(figure.svg().matches("<rect x=").count(), 3);
        assert!(
            figure.svg().contains(">0.25<")
                && figure.svg().contains(">20 %<")
                && figure.svg().contains(">3<")
        );
    }

    #[test]
    fn any_number_of_bars_and_any_size_is_drawn() {
        for n in [1, 12, 13, 500] {
            assert_sound(&relevance_bars(&bars(&vec![0.5; n])).unwrap());
        }
        for value in [0.0, 1e-310, 1e-12, 1e300] {
            assert_sound(&relevance_bars(&bars(&[value, value / 2.0])).unwrap());
        }
        for bad in [&[][..], &[f64::NAN], &[-1.0], &[f64::INFINITY]] {
            assert!(relevance_bars(&bars(bad)).is_err());
        }
    }
}
