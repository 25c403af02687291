//! One bar for each of several things that have no order, coloured by what they are.

use latentgp::Result;

use super::axes::{Axes, Axis, Ticks};
use super::canvas::{Canvas, Rect};
use super::legend::{Column, Entry, Sample};
use super::marker::COLOURS;
use super::scale::Scale;
use super::{Figure, HEIGHT, WIDTH, check};

/// How much of its place a bar takes.
const THICK: f64 = 0.72;

/// What the bars show.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bars {
    /// The title; may be empty.
    pub title: String,
    /// What the things are.
    pub x_title: String,
    /// What the values are.
    pub y_title: String,
    /// The bars, from left to right.
    pub bars: Vec<Bar>,
    /// What the legend calls the colours.
    pub kinds: Vec<String>,
}

/// One of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bar {
    /// What stands below it.
    pub name: String,
    /// Its height, not negative.
    pub value: f64,
    /// Which of the kinds it is, counted from 0.
    pub kind: usize,
}

/// Draws the bars.
///
/// # Errors
/// If there is none, a value is negative or not finite, or one has no kind.
pub fn bars(data: &Bars) -> Result<Figure> {
    let values: Vec<f64> = data.bars.iter().map(|b| b.value).collect();
    let n = values.len();
    check::some("bars", n)?;
    check::variances("bars", &values)?;
    check::length("bars with a kind", n, data.bars.iter().filter(|b| b.kind < data.kinds.len()).count())?;
    let colour = |k: usize| format!("fill=\"{}\"", COLOURS[k % COLOURS.len()]);
    let entry = |(k, name): (usize, &String)| Entry::new(Sample::Patch(colour(k)), name);
    let legend = Column::new(data.kinds.iter().enumerate().map(entry).collect(), 0.4 * WIDTH);
    let most = values.iter().copied().fold(0.0, f64::max);
    let names = data.bars.iter().enumerate().map(|(k, bar)| (k as f64, bar.name.clone())).collect();
    let axes = Axes::layout(
        Rect { x: 0.0, y: 0.0, w: WIDTH, h: HEIGHT },
        &data.title,
        Axis {
            scale: Scale { lo: -0.6, hi: n as f64 - 0.4 },
            title: &data.x_title,
            ticks: Ticks::Names(names),
        },
        Axis {
            scale: Scale { lo: 0.0, hi: if most < 1e-290 { 1.0 } else { 1.05 * most } },
            title: &data.y_title,
            ticks: Ticks::Numbers,
        },
        legend.reserve(),
    );
    let mut canvas = Canvas::new(WIDTH, HEIGHT, &format!("Bars. {}", data.title));
    axes.grid(&mut canvas, false);
    for (k, bar) in data.bars.iter().enumerate() {
        let (left, right) = (axes.px(k as f64 - THICK / 2.0), axes.px(k as f64 + THICK / 2.0));
        let y = axes.py(bar.value);
        canvas.rect(Rect { x: left, y, w: right - left, h: axes.area.bottom() - y }, &colour(bar.kind));
    }
    axes.frame(&mut canvas);
    legend.draw(&mut canvas, axes.area.right(), axes.area.y, axes.area.h);
    Ok(canvas.finish())
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_sound;
    use super::*;

    fn some(values: &[f64]) -> Bars {
        Bars {
            title: "a < b".into(),
            x_title: "input".into(),
            y_title: "share".into(),
            bars: values
                .iter()
                .enumerate()
                .map(|(k, &value)| Bar { name: format!("n{k}"), value, kind: k % 2 })
                .collect(),
            kinds: vec!["even".into(), "odd".into()],
        }
    }

    #[test]
    fn every_thing_has_a_bar_its_name_and_the_colour_of_its_kind() {
        let figure = bars(&some(&[0.5, 0.1, 0.2, 0.0, 0.3])).unwrap();
        assert_sound(&figure);
        for text in ["a &lt; b", ">input<", ">share<", ">n0<", ">n4<", ">even<", ">odd<"] {
            assert!(figure.svg().contains(text), "{text}");
        }
        let of = |k: usize| figure.svg().matches(&format!("fill=\"{}\"", COLOURS[k])).count();
        // With the patch of the legend.
        assert_eq!((of(0), of(1)), (4, 3));
    }

    #[test]
    fn any_number_of_bars_and_any_size_is_drawn_and_nonsense_is_an_error() {
        for n in [1, 25, 400] {
            assert_sound(&bars(&some(&vec![0.5; n])).unwrap());
        }
        for value in [0.0, 1e-310, 1e300] {
            assert_sound(&bars(&some(&[value, value / 2.0])).unwrap());
        }
        for bad in [&[][..], &[f64::NAN], &[-1.0], &[f64::INFINITY]] {
            assert!(bars(&some(bad)).is_err());
        }
        assert!(bars(&Bars { kinds: vec!["even".into()], ..some(&[1.0, 2.0]) }).is_err());
    }
}
