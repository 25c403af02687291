//! Several curves over the same places, on a linear or a logarithmic axis.

use latentgp::Result;

use super::axes::{Axes, Axis, Ticks};
use super::canvas::{Canvas, Rect, num, polyline};
use super::legend::{Column, Entry, Sample};
use super::marker::{self, COLOURS};
use super::scale::{Scale, plain};
use super::{Figure, HEIGHT, WIDTH, check};

/// What the figure shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lines {
    /// The title; may be empty.
    pub title: String,
    /// The title of the x axis.
    pub x_title: String,
    /// The title of the y axis.
    pub y_title: String,
    /// The places.
    pub x: Vec<f64>,
    /// The name of each curve and its values, NaN where there is none.
    pub lines: Vec<(String, Vec<f64>)>,
    /// Whether x is logarithmic.
    pub log_x: bool,
    /// Whether y is logarithmic.
    pub log_y: bool,
}

/// Draws the curves. Values that an axis cannot show are gaps.
///
/// # Errors
/// If there is nothing to draw, lengths differ or a place is not finite.
pub fn lines(data: &Lines) -> Result<Figure> {
    check::some("curves", data.x.len())?;
    check::finite("curves, x", &data.x)?;
    for (name, values) in &data.lines {
        check::length(name, data.x.len(), values.len())?;
    }
    let shown: Vec<Vec<Option<(f64, f64)>>> = data.lines.iter().map(|(_, y)| data.places(y)).collect();
    check::some("curves", shown.iter().flatten().flatten().count())?;
    let mut canvas = Canvas::new(WIDTH, HEIGHT, &format!("Curves. {}", data.title));
    let style = |k: usize| format!("stroke=\"{}\" stroke-width=\"1.7\" stroke-linejoin=\"round\"", colour(k));
    let fill = |k: usize| format!("fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"{}\"", colour(k), num(0.6));
    let entry = |(k, (name, _)): (usize, &(String, Vec<f64>))| {
        Entry::new(Sample::Marker(marker::shape(k), fill(k)), name)
    };
    let legend = Column::new(data.lines.iter().enumerate().map(entry).collect(), 0.4 * WIDTH);
    let all = || shown.iter().flatten().flatten();
    let (x, y) =
        (Scale::covering(all().map(|p| p.0)).padded(0.03), Scale::covering(all().map(|p| p.1)).padded(0.05));
    let axes = Axes::layout(
        Rect { x: 0.0, y: 0.0, w: WIDTH, h: HEIGHT },
        &data.title,
        Axis { scale: x, title: &data.x_title, ticks: ticks(x, data.log_x) },
        Axis { scale: y, title: &data.y_title, ticks: ticks(y, data.log_y) },
        legend.reserve(),
    );
    axes.grid(&mut canvas, true);
    canvas.clip(axes.area);
    for (k, places) in shown.iter().enumerate() {
        for run in places.split(Option::is_none).filter(|run| run.len() > 1) {
            let points: Vec<_> = run.iter().flatten().map(|p| axes.at(p.0, p.1)).collect();
            canvas.path(&polyline(&points, false), &format!("fill=\"none\" {}", style(k)));
        }
        canvas.open(&fill(k));
        for p in places.iter().flatten() {
            marker::draw(&mut canvas, marker::shape(k), axes.at(p.0, p.1), 3.4);
        }
        canvas.close();
    }
    canvas.unclip();
    axes.frame(&mut canvas);
    legend.draw(&mut canvas, axes.area.right(), axes.area.y, axes.area.h);
    Ok(canvas.finish())
}

impl Lines {
    fn places(&self, y: &[f64]) -> Vec<Option<(f64, f64)>> {
        let on = |v: f64, log: bool| if log { v.log10() } else { v };
        let place = |(x, y): (&f64, &f64)| {
            let (x, y) = (on(*x, self.log_x), on(*y, self.log_y));
            (x.is_finite() && y.is_finite() && y.abs() <= check::LARGEST).then_some((x, y))
        };
        self.x.iter().zip(y).map(place).collect()
    }
}

fn colour(k: usize) -> &'static str {
    COLOURS[k % COLOURS.len()]
}

/// Powers of ten on a logarithmic axis, with 2 and 5 between them where it is short.
fn ticks(scale: Scale, log: bool) -> Ticks {
    if !log {
        return Ticks::Numbers;
    }
    let factors: &[f64] = if scale.span() < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let every = (scale.span() / 7.0).ceil().max(1.0) as i32;
    let range = scale.lo.floor().max(-300.0) as i32..=scale.hi.ceil().min(300.0) as i32;
    let values =
        range.filter(|e| e % every == 0).flat_map(|e| factors.iter().map(move |f| f * 10f64.powi(e)));
    let inside = values.filter(|v| (0.0..=1.0).contains(&scale.part(v.log10())));
    Ticks::Names(inside.map(|v| (v.log10(), plain(v, 1))).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_sound;
    use super::*;

    fn two(log_y: bool) -> Lines {
        Lines {
            title: "a < b".into(),
            x_title: "D".into(),
            y_title: "ratio".into(),
            x: vec![1.0, 2.0, 3.0],
            lines: vec![("one".into(), vec![1.0, 10.0, 1000.0]), ("gap".into(), vec![2.0, f64::NAN, 0.0])],
            log_x: false,
            log_y,
        }
    }

    #[test]
    fn curves_are_drawn_with_their_names() {
        for log in [false, true] {
            let figure = lines(&two(log)).unwrap();
            assert_sound(&figure);
            assert!(["a &lt; b", ">one<", ">gap<", ">ratio<"].iter().all(|t| figure.svg().contains(t)));
        }
        assert!(lines(&two(true)).unwrap().svg().contains(">1000<"));
    }

    #[test]
    fn silly_input_is_an_error() {
        assert!(lines(&Lines::default()).is_err());
        assert!(lines(&Lines { x: vec![1.0], ..two(false) }).is_err());
        assert!(lines(&Lines { x: vec![1.0, f64::NAN, 2.0], ..two(false) }).is_err());
        let empty = Lines { lines: vec![("none".into(), vec![-1.0; 3])], ..two(true) };
        assert!(lines(&empty).is_err());
    }
}
