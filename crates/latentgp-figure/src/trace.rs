//! The bound, iteration by iteration.
//!
//! The first iterations are often lower by orders of magnitude than all others; the axis then covers
//! the later ones, and a note above it says how many values lie below.

use latentgp::Result;

use super::axes::{Axes, Axis, NOTE, Reserve, Ticks};
use super::canvas::{Anchor, Canvas, Rect, polyline};
use super::scale::{Scale, plain};
use super::text::{shorten, width};
use super::{Figure, HEIGHT, WIDTH, check};

/// The part of the iterations that may be left out below the axis.
const EARLY: f64 = 0.2;
/// Each iteration has its tick where there are at most this many.
const MAX_TICKS: usize = 8;
/// Height of the line with the note, above the plotting area.
pub(super) const NOTE_LINE: f64 = 16.0;
/// The axis is cut if the whole range exceeds that of the later iterations by this factor.
const CUT: f64 = 4.0;

/// Draws what a fit maximised, such as the `bound`, against the iteration. Values that are not finite leave a gap.
///
/// # Errors
/// If there is no value, or none is finite.
pub fn trace(what: &str, values: &[f64]) -> Result<Figure> {
    check(values)?;
    let mut canvas = Canvas::new(WIDTH, HEIGHT, &format!("The {what} against the iteration"));
    draw(&mut canvas, Rect { x: 0.0, y: 0.0, w: WIDTH, h: HEIGHT }, "", what, values);
    Ok(canvas.finish())
}

pub(super) fn check(values: &[f64]) -> Result<()> {
    check::some("trace of the bound", values.len())?;
    match values.iter().find(|v| drawable(**v)) {
        Some(_) => Ok(()),
        None => check::finite("trace of the bound", values),
    }
}

fn drawable(value: f64) -> bool {
    value.is_finite() && value.abs() <= check::LARGEST
}

/// Limits that show the later iterations.
fn limits(values: &[f64]) -> Scale {
    let finite = |values: &[f64]| values.iter().copied().filter(|v| drawable(*v)).collect::<Vec<_>>();
    let (all, late) = (finite(values), finite(&values[(EARLY * values.len() as f64).ceil() as usize..]));
    let whole = Scale::covering(all.iter().copied());
    if late.len() < 2 {
        return whole.padded(0.06);
    }
    let rest = Scale::covering(late.iter().copied());
    let constant = late.iter().all(|v| *v == late[0]);
    if constant || whole.span() <= CUT * rest.span() {
        return whole.padded(0.06);
    }
    let margin = 0.1 * rest.span();
    Scale::new((rest.lo - margin).max(whole.lo), (rest.hi + margin).max(whole.hi)).padded(0.06)
}

pub(super) fn draw(canvas: &mut Canvas, cell: Rect, title: &str, what: &str, values: &[f64]) {
    let scale = limits(values);
    // Between two iterations there is nothing, and no tick.
    let iterations = if values.len() <= MAX_TICKS {
        Ticks::Names((0..values.len()).map(|k| (k as f64, k.to_string())).collect())
    } else {
        Ticks::Numbers
    };
    let axes = Axes::layout(
        cell,
        title,
        Axis {
            scale: Scale::new(0.0, (values.len() - 1).max(1) as f64),
            title: "iteration",
            ticks: iterations,
        },
        Axis { scale, title: what, ticks: Ticks::Numbers },
        Reserve { top: NOTE_LINE, right: 0.0 },
    );
    axes.grid(canvas, true);
    let places: Vec<Option<(f64, f64)>> =
        values.iter().enumerate().map(|(k, &v)| drawable(v).then(|| axes.at(k as f64, v))).collect();
    canvas.clip(axes.area);
    for run in places.split(Option::is_none).filter(|run| run.len() > 1) {
        let points: Vec<_> = run.iter().flatten().copied().collect();
        canvas.path(
            &polyline(&points, false),
            "fill=\"none\" stroke=\"#0072b2\" stroke-width=\"1.8\" stroke-linejoin=\"round\"",
        );
    }
    canvas.unclip();
    axes.frame(canvas);
    let room = cell.right() - axes.area.x - 8.0;
    let notes = [Detail::Full, Detail::Short, Detail::Least].map(|detail| note(values, scale, detail));
    let line = notes.iter().find(|note| width(note, NOTE) <= room).unwrap_or(&notes[2]);
    let line = shorten(line, NOTE, room);
    canvas.text((axes.area.x, axes.legend_top() + NOTE.size), &line, NOTE, Anchor::Start, false);
    if let Some(at) = places.iter().rev().find_map(|place| *place) {
        canvas.open("fill=\"#0072b2\"");
        canvas.ellipse(at, (3.4, 3.4));
        canvas.close();
    }
}

/// How much a note says, by the room it has.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    Full,
    Short,
    Least,
}

/// The last value, and what is not in the picture.
fn note(values: &[f64], scale: Scale, detail: Detail) -> String {
    let seen: Vec<f64> = values.iter().copied().filter(|v| drawable(*v)).collect();
    let hidden = seen.iter().filter(|v| **v < scale.lo).count();
    let lowest = seen.iter().copied().fold(f64::INFINITY, f64::min);
    let broken = values.len() - seen.len();
    let plural = |n: usize| if n == 1 { "value" } else { "values" };
    let mut parts = Vec::new();
    if let Some(last) = seen.last() {
        parts.push(format!("last {}", trimmed(plain(*last, 6))));
    }
    if hidden > 0 {
        parts.push(match detail {
            Detail::Full => format!("{hidden} early {} below, down to {}", plural(hidden), plain(lowest, 2)),
            Detail::Short => format!("{hidden} below, down to {}", plain(lowest, 2)),
            Detail::Least => format!("{hidden} below"),
        });
    }
    if broken > 0 {
        parts.push(format!("{broken} {} not finite", plural(broken)));
    }
    parts.join("; ")
}

/// A number without the zeros that end its decimals.
fn trimmed(text: String) -> String {
    if !text.contains('.') || text.contains('×') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_sound;
    use super::*;

    #[test]
    fn early_values_do_not_hide_the_end() {
        let values: Vec<f64> =
            (0..100).map(|k| -1e6 * (-0.9 * f64::from(k)).exp() - 50.0 / f64::from(k + 1)).collect();
        let scale = limits(&values);
        assert!(scale.lo > -100.0 && scale.hi > values[99], "{scale:?}");
        let figure = trace("bound", &values).unwrap();
        assert_sound(&figure);
        assert!(figure.svg().contains("early values below, down to −1.0×10⁶"));
    }

    #[test]
    fn a_note_has_as_many_words_as_there_is_room_for() {
        let values: Vec<f64> =
            (0..1200).map(|k| -9.876_543e8 * (-0.05 * f64::from(k)).exp() - 123_456.78).collect();
        for (w, early) in [(600.0, true), (450.0, true), (390.0, false), (330.0, false), (290.0, false)] {
            let mut canvas = Canvas::new(w, 300.0, "");
            draw(&mut canvas, Rect { x: 0.0, y: 0.0, w, h: 300.0 }, "Bound", "bound", &values);
            let svg = canvas.finish().svg().to_string();
            assert!(svg.contains(" below") && !svg.contains('…'), "{w}: {svg}");
            assert_eq!(svg.contains("early values below, down to"), early, "{w}: {svg}");
        }
    }

    #[test]
    fn an_even_trace_is_shown_whole() {
        let values: Vec<f64> = (0..50).map(f64::from).collect();
        let scale = limits(&values);
        assert!(scale.lo < 0.0 && scale.hi > 49.0);
        assert!(!trace("bound", &values).unwrap().svg().contains("below"));
    }

    #[test]
    fn what_is_not_finite_is_a_gap_and_is_said() {
        let figure = trace("bound", &[-5.0, f64::NAN, -3.0, f64::NEG_INFINITY, -2.0, -1.5]).unwrap();
        assert_sound(&figure);
        assert!(figure.svg().contains("2 values not finite"));
        assert!(trace("bound", &[]).is_err());
        assert!(trace("bound", &[f64::NAN; 3]).is_err());
    }

    #[test]
    fn silly_traces_are_drawn() {
        for values in
            [&[1.0][..], &[0.0, 0.0], &[7.0; 30], &[-1e300, 1e300], &[f64::NAN, 2.0], &[1e-310, 0.0]]
        {
            assert_sound(&trace("bound", values).unwrap());
        }
    }
}
