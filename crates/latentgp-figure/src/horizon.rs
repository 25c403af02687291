//! How good forecasts are, step by step ahead: the error above, the coverage below.

use latentgp::Result;
use latentgp::model::narx::LEVELS;

use super::axes::{Axes, Axis, Reserve, Ticks};
use super::canvas::{Canvas, QUIET, Rect, polyline};
use super::legend::{Entry, Rows, Sample};
use super::scale::Scale;
use super::{Figure, WIDTH, check};

/// Height of each of the two pictures.
const PART: f64 = 240.0;
/// Colours that also the colour-blind tell apart; beyond them, lines are dashed.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"];
/// The level whose coverage is shown where there are several lines.
const MIDDLE: usize = 1;
/// Up to so many steps each has its tick.
const FEW: usize = 24;

/// The scores of one way to forecast, a value each step ahead.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HorizonScores {
    /// What the legend calls it.
    pub name: String,
    /// Root mean squared errors.
    pub rmse: Vec<f64>,
    /// Shares of the truth inside the intervals of [`LEVELS`].
    pub coverage: Vec<[f64; 3]>,
}

/// A line, with its colour.
struct Curve {
    values: Vec<f64>,
    style: String,
}

fn style(k: usize) -> String {
    let dashes = if k < COLOURS.len() { "" } else { " stroke-dasharray=\"6 3\"" };
    format!(
        "stroke=\"{}\" stroke-width=\"1.8\" stroke-linejoin=\"round\"{dashes}",
        COLOURS[k % COLOURS.len()]
    )
}

/// The lines of one way lie on top of each other where all truth is inside: the wider a band, the wider its line.
fn level_style(i: usize) -> String {
    let width = 1.6 + 1.6 * i as f64;
    format!("stroke=\"{}\" stroke-width=\"{width:.1}\" stroke-linejoin=\"round\"", COLOURS[i])
}

/// Draws errors and coverages against the step: with one way to forecast the coverages of all levels, with
/// several those of 90 %.
///
/// # Errors
/// If there is nothing to draw, lengths differ or a number is not finite.
pub fn horizons(scores: &[HorizonScores]) -> Result<Figure> {
    check::some("scores", scores.len())?;
    let steps = scores[0].rmse.len();
    check::some("steps", steps)?;
    for of in scores {
        check::length("errors by step", steps, of.rmse.len())?;
        check::length("coverages by step", steps, of.coverage.len())?;
        check::finite("errors by step", &of.rmse)?;
        check::finite("coverages by step", &of.coverage.concat())?;
    }
    // The legend stands above what it explains: the names of all lines, or the levels of one.
    let (legend, single) = (legend_of(scores), scores.len() == 1);
    let extra = legend.reserve().top;
    let (above, below) = if single { (0.0, extra) } else { (extra, 0.0) };
    let (over, under) = if single { (None, Some(legend)) } else { (Some(legend), None) };
    let mut canvas = Canvas::new(WIDTH, 2.0 * PART + extra, "Scores by steps ahead");
    let curve = |k: usize, values: Vec<f64>| Curve { values, style: style(k) };
    let plain = if single { COLOURS.len() - 1 } else { 0 };
    let errors: Vec<Curve> =
        scores.iter().enumerate().map(|(k, s)| curve(plain + k, s.rmse.clone())).collect();
    let top = errors.iter().flat_map(|c| &c.values).copied().fold(0.0, f64::max);
    let upper = Rect { x: 0.0, y: 0.0, w: WIDTH, h: PART + above };
    let scale = Scale::new(0.0, if top > 0.0 { 1.08 * top } else { 1.0 });
    draw(&mut canvas, upper, "RMSE", scale, &errors, &[], over);
    let lower = Rect { x: 0.0, y: PART + above, w: WIDTH, h: PART + below };
    let (curves, nominal): (Vec<Curve>, Vec<f64>) = match scores {
        [one] => {
            let level = |i: usize| Curve {
                values: one.coverage.iter().map(|c| c[i]).collect(),
                style: level_style(i),
            };
            ((0..LEVELS.len()).rev().map(level).collect(), LEVELS.to_vec())
        }
        several => {
            let of =
                |(k, s): (usize, &HorizonScores)| curve(k, s.coverage.iter().map(|c| c[MIDDLE]).collect());
            (several.iter().enumerate().map(of).collect(), vec![LEVELS[MIDDLE]])
        }
    };
    let title = if single { "share of truth inside" } else { "inside the 90 % band" };
    draw(&mut canvas, lower, title, Scale::new(0.0, 1.02), &curves, &nominal, under);
    Ok(canvas.finish())
}

fn legend_of(scores: &[HorizonScores]) -> Rows {
    let dashed = format!("stroke=\"{QUIET}\" stroke-width=\"1\" stroke-dasharray=\"5 4\"");
    let mut entries: Vec<Entry> = match scores {
        [_] => (0..LEVELS.len())
            .map(|i| Entry::new(Sample::Line(level_style(i)), format!("{:.0} % band", 100.0 * LEVELS[i])))
            .collect(),
        several => {
            several.iter().enumerate().map(|(k, s)| Entry::new(Sample::Line(style(k)), &s.name)).collect()
        }
    };
    entries.push(Entry::new(Sample::Line(dashed), "as promised"));
    Rows::new(entries, WIDTH - 90.0)
}

fn draw(
    canvas: &mut Canvas,
    cell: Rect,
    y_title: &str,
    y_scale: Scale,
    curves: &[Curve],
    nominal: &[f64],
    legend: Option<Rows>,
) {
    let steps = curves[0].values.len();
    let ticks = match steps {
        1..=FEW => Ticks::Names((1..=steps).map(|h| (h as f64, h.to_string())).collect()),
        _ => Ticks::Numbers,
    };
    let x_scale = if steps == 1 { Scale::new(0.0, 2.0) } else { Scale::new(1.0, steps as f64).padded(0.02) };
    let axes = Axes::layout(
        cell,
        "",
        Axis { scale: x_scale, title: "steps ahead", ticks },
        Axis { scale: y_scale, title: y_title, ticks: Ticks::Numbers },
        legend.as_ref().map_or(Reserve::default(), Rows::reserve),
    );
    axes.grid(canvas, false);
    for level in nominal {
        let style = format!("stroke=\"{QUIET}\" stroke-width=\"1\" stroke-dasharray=\"5 4\"");
        canvas.line((axes.area.x, axes.py(*level)), (axes.area.right(), axes.py(*level)), &style);
    }
    for curve in curves {
        let points: Vec<_> =
            curve.values.iter().enumerate().map(|(h, v)| axes.at((h + 1) as f64, *v)).collect();
        match points[..] {
            [(x, y)] => canvas.line((x - 12.0, y), (x + 12.0, y), &curve.style),
            _ => canvas.path(&polyline(&points, false), &format!("fill=\"none\" {}", curve.style)),
        }
    }
    axes.frame(canvas);
    if let Some(rows) = legend {
        rows.draw(canvas, axes.area.x, axes.legend_top());
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_sound;
    use super::*;

    fn scores(name: &str, steps: usize) -> HorizonScores {
        let step = |h: usize| 1.0 + h as f64;
        HorizonScores {
            name: name.into(),
            rmse: (0..steps).map(step).collect(),
            coverage: (0..steps).map(|h| [0.5, 0.9 - 0.1 / step(h), 1.0]).collect(),
        }
    }

    #[test]
    fn one_way_shows_all_levels_and_several_show_their_names() {
        let one = horizons(&[scores("a", 12)]).unwrap();
        assert_sound(&one);
        assert!(one.svg().contains(">95 % band<") && one.svg().contains(">steps ahead<"));
        let many: Vec<_> = (0..9).map(|k| scores(&format!("way {k}"), 30)).collect();
        let several = horizons(&many).unwrap();
        assert_sound(&several);
        assert!(several.svg().contains(">way 8<") && several.svg().contains("inside the 90 % band"));
        assert_sound(&horizons(&[scores("a", 1)]).unwrap());
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        assert!(horizons(&[]).is_err() && horizons(&[HorizonScores::default()]).is_err());
        assert!(horizons(&[scores("a", 3), scores("b", 2)]).is_err());
        let mut broken = scores("a", 3);
        broken.rmse[1] = f64::NAN;
        assert!(horizons(&[broken]).is_err());
    }
}
