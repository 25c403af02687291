//! A predicted curve with bands around it: forecasts, and regression on one input.
//!
//! For a Gaussian prediction the central band of probability p is mean ± z·√variance, with z = 0.6745
//! for 50 % and z = 1.6449 for 90 %.

use latentgp::Result;

use super::axes::{Axes, Axis, NOTE, Ticks};
use super::canvas::{Anchor, Canvas, QUIET, Rect, polyline};
use super::legend::{Entry, Rows, Sample};
use super::marker::Shape;
use super::scale::Scale;
use super::text::width;
use super::{Figure, HEIGHT, WIDTH, check};

const CURVE: &str = "#0072b2";
const CURVE_STYLE: &str = "stroke=\"#0072b2\" stroke-width=\"1.8\" stroke-linejoin=\"round\"";
const SEEN: &str = "fill=\"#262626\" stroke=\"none\"";
const JOIN: &str =
    "stroke=\"#262626\" stroke-opacity=\"0.35\" stroke-width=\"0.9\" stroke-linejoin=\"round\"";
const HELD_OUT: &str = "fill=\"#ffffff\" stroke=\"#d55e00\" stroke-width=\"1.1\"";
const READ: &str = "stroke=\"#9a9a9a\" stroke-width=\"0.8\"";
const INFERRED: &str = "stroke=\"#d55e00\" stroke-width=\"2\"";
/// Height of each picture of a stack.
const STACKED: f64 = 230.0;
/// Width of the legend.
const LEGEND: f64 = WIDTH - 90.0;
/// Bands are cut where they are wider than the curve and the points together by this factor.
const CUT: f64 = 1.5;

/// The region between two curves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Band {
    /// What the legend calls it.
    pub label: String,
    /// The lower edge at each x.
    pub lower: Vec<f64>,
    /// The upper edge at each x.
    pub upper: Vec<f64>,
}

/// An observed value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Where.
    pub x: f64,
    /// What.
    pub y: f64,
}

/// What is known of the place of an observed value: as it was read, and once the value is known too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The observed value.
    pub y: f64,
    /// Where it was read, and the standard deviation of the error.
    pub read: (f64, f64),
    /// Where it is, and the standard deviation that is left.
    pub inferred: (f64, f64),
}

/// What the figure shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bands {
    /// The title; may be empty.
    pub title: String,
    /// The title of the x axis.
    pub x_title: String,
    /// The title of the y axis.
    pub y_title: String,
    /// The places of the curve, in any order.
    pub x: Vec<f64>,
    /// The curve.
    pub mean: Vec<f64>,
    /// The bands, the widest first.
    pub bands: Vec<Band>,
    /// Observed values, wherever they are.
    pub observed: Vec<Observation>,
    /// Observed values at uncertain places, drawn with error bars of one standard deviation.
    pub spread: Vec<Spread>,
    /// Where the training ends; observations beyond it were not seen.
    pub training_end: Option<f64>,
    /// The names of places of the x axis, such as dates, of which as many are written as there is room for; numbers where
    /// there are none.
    pub places: Vec<(f64, String)>,
    /// Whether observations follow each other, and a line joins them.
    pub joined: bool,
    /// What no value can be below, such as 0 for counts.
    pub least: Option<f64>,
}

impl Band {
    /// mean ± z·√variance.
    pub fn around(label: &str, mean: &[f64], variance: &[f64], z: f64) -> Band {
        let edge = |sign: f64| mean.iter().zip(variance).map(|(m, v)| m + sign * z * v.sqrt()).collect();
        Band { label: label.into(), lower: edge(-1.0), upper: edge(1.0) }
    }
}

impl Bands {
    /// A Gaussian prediction with its 90 % and 50 % bands.
    pub fn gaussian(x: &[f64], mean: &[f64], variance: &[f64]) -> Bands {
        Bands {
            x: x.to_vec(),
            mean: mean.to_vec(),
            bands: vec![
                Band::around("90 % band", mean, variance, 1.644_853_626_951_472_2),
                Band::around("50 % band", mean, variance, 0.674_489_750_196_081_7),
            ],
            ..Bands::default()
        }
    }

    fn check(&self) -> Result<()> {
        let n = self.x.len();
        check::some("prediction", n)?;
        check::length("prediction, mean", n, self.mean.len())?;
        check::finite("prediction, x", &self.x)?;
        check::finite("prediction, mean", &self.mean)?;
        for band in &self.bands {
            for edge in [&band.lower, &band.upper] {
                check::length(&band.label, n, edge.len())?;
                check::finite(&band.label, edge)?;
            }
        }
        check::finite("observations", &self.observed.iter().flat_map(|o| [o.x, o.y]).collect::<Vec<_>>())?;
        let spread = self.spread.iter().flat_map(|p| [p.y, p.read.0, p.read.1, p.inferred.0, p.inferred.1]);
        check::finite("places of observations", &spread.collect::<Vec<_>>())?;
        check::finite("end of training", &Vec::from_iter(self.training_end))
    }

    /// The same with the places in ascending order, so that the curve does not run back and forth.
    fn sorted(&self) -> Bands {
        let mut order: Vec<usize> = (0..self.x.len()).collect();
        order.sort_by(|&a, &b| self.x[a].total_cmp(&self.x[b]));
        let pick = |values: &[f64]| order.iter().map(|&k| values[k]).collect::<Vec<_>>();
        let inside =
            |v: Vec<f64>| v.into_iter().map(|v| self.least.map_or(v, |least| v.max(least))).collect();
        let band = |b: &Band| Band {
            label: b.label.clone(),
            lower: inside(pick(&b.lower)),
            upper: inside(pick(&b.upper)),
        };
        Bands {
            x: pick(&self.x),
            mean: pick(&self.mean),
            bands: self.bands.iter().map(band).collect(),
            ..self.clone()
        }
    }

    fn x_scale(&self) -> Scale {
        let bars = self.spread.iter().flat_map(|p| [p.read, p.inferred]);
        let bars = bars.flat_map(|(x, s)| [x - s, x + s]);
        let points = self.observed.iter().map(|o| o.x).chain(bars);
        let all = self.x.iter().copied().chain(points).chain(self.training_end);
        Scale::covering(all).padded(0.015)
    }

    fn x_ticks(&self) -> Ticks {
        if self.places.is_empty() { Ticks::Numbers } else { Ticks::Names(self.places.clone()) }
    }

    fn y_scale(&self) -> Scale {
        let seen = self.observed.iter().map(|o| o.y).chain(self.spread.iter().map(|p| p.y));
        let core = Scale::covering(self.mean.iter().copied().chain(seen));
        let edges = self.bands.iter().flat_map(|b| b.lower.iter().chain(&b.upper)).copied();
        let all = Scale::covering(edges.chain([core.lo, core.hi]));
        // With a single point, or a flat curve alone, the bands are all there is to see.
        let flat = self.mean.iter().chain(self.observed.iter().map(|o| &o.y)).all(|v| *v == self.mean[0]);
        let allowed = if flat { all } else { core.padded(CUT) };
        let usual = Scale::new(all.lo.max(allowed.lo), all.hi.min(allowed.hi)).padded(0.05);
        match self.least {
            // A little room, so that markers there are whole.
            Some(least) if usual.hi > least => {
                Scale::new(usual.lo.max(least - 0.02 * usual.span()), usual.hi)
            }
            _ => usual,
        }
    }

    fn held_out(&self, o: &Observation) -> bool {
        self.training_end.is_some_and(|end| o.x > end)
    }
}

/// Draws a curve with its bands.
///
/// # Errors
/// If there is no point, lengths differ or a number is not finite.
pub fn bands(prediction: &Bands) -> Result<Figure> {
    prediction.check()?;
    let mut canvas = Canvas::new(WIDTH, HEIGHT, &format!("Prediction with its bands. {}", prediction.title));
    let scale = prediction.y_scale();
    draw(&mut canvas, Rect { x: 0.0, y: 0.0, w: WIDTH, h: HEIGHT }, prediction, scale, true);
    Ok(canvas.finish())
}

/// Draws several predictions of the same quantity, one above another, on the same scales.
///
/// # Errors
/// If there is none, and whatever [`bands`] errs on.
pub fn bands_stacked(predictions: &[Bands]) -> Result<Figure> {
    stacked(predictions, true)
}

/// Draws predictions of several quantities, one above another, each on a scale of its own.
///
/// # Errors
/// If there is none, and whatever [`bands`] errs on.
pub fn bands_apart(predictions: &[Bands]) -> Result<Figure> {
    stacked(predictions, false)
}

fn stacked(predictions: &[Bands], shared: bool) -> Result<Figure> {
    check::some("predictions", predictions.len())?;
    for prediction in predictions {
        prediction.check()?;
    }
    let legend = Rows::new(entries(&predictions[0]), LEGEND).reserve().top;
    let height = STACKED * predictions.len() as f64 + legend;
    let mut canvas =
        Canvas::new(WIDTH, height, &format!("{} predictions with their bands", predictions.len()));
    let scale = Scale::covering(predictions.iter().map(Bands::y_scale).flat_map(|s| [s.lo, s.hi]));
    for (k, prediction) in predictions.iter().enumerate() {
        // The legend makes the first picture taller, so that all plotting areas are equal.
        let (above, extra) = if k == 0 { (0.0, legend) } else { (legend, 0.0) };
        let cell = Rect { x: 0.0, y: above + STACKED * k as f64, w: WIDTH, h: STACKED + extra };
        let own = if shared { scale } else { prediction.y_scale() };
        draw(&mut canvas, cell, prediction, own, k == 0);
    }
    Ok(canvas.finish())
}

fn draw(canvas: &mut Canvas, cell: Rect, p: &Bands, y_scale: Scale, with_legend: bool) {
    let p = &p.sorted();
    let legend = Rows::new(if with_legend { entries(p) } else { Vec::new() }, LEGEND);
    let axes = Axes::layout(
        cell,
        &p.title,
        Axis { scale: p.x_scale(), title: &p.x_title, ticks: p.x_ticks() },
        Axis { scale: y_scale, title: &p.y_title, ticks: Ticks::Numbers },
        legend.reserve(),
    );
    axes.grid(canvas, false);
    canvas.clip(axes.area);
    for (k, band) in p.bands.iter().enumerate() {
        let upper = p.x.iter().zip(&band.upper).map(|(x, y)| axes.at(*x, *y));
        let lower = p.x.iter().zip(&band.lower).map(|(x, y)| axes.at(*x, *y));
        let outline: Vec<_> = upper.chain(lower.rev()).collect();
        // A single place has no area: draw it as a bar.
        let stroke = if p.x.len() == 1 { 6.0 } else { 0.0 };
        canvas.path(
            &polyline(&outline, true),
            &format!("{} stroke-width=\"{stroke}\"", band_style(opacity(k, p.bands.len()))),
        );
    }
    if let Some(end) = p.training_end {
        let x = axes.px(end);
        let line = format!("stroke=\"{QUIET}\" stroke-width=\"1\" stroke-dasharray=\"5 4\"");
        canvas.line((x, axes.area.y), (x, axes.area.bottom()), &line);
    }
    draw_spread(canvas, &axes, p);
    draw_observed(canvas, &axes, p);
    let points: Vec<_> = p.x.iter().zip(&p.mean).map(|(x, y)| axes.at(*x, *y)).collect();
    canvas.path(&polyline(&points, false), &format!("fill=\"none\" {CURVE_STYLE}"));
    if let [(x, y)] = points[..] {
        canvas.open(&format!("fill=\"{CURVE}\""));
        canvas.ellipse((x, y), (4.0, 4.0));
        canvas.close();
    }
    canvas.unclip();
    axes.frame(canvas);
    legend.draw(canvas, axes.area.x, axes.legend_top());
    if let Some(end) = p.training_end {
        note_end(canvas, &axes, axes.px(end));
    }
}

/// A thin bar where each value was read, a thick one where it is once the value is known.
fn draw_spread(canvas: &mut Canvas, axes: &Axes, p: &Bands) {
    if p.spread.is_empty() {
        return;
    }
    for place in &p.spread {
        let bar = |(x, s): (f64, f64)| (axes.at(x - s, place.y), axes.at(x + s, place.y));
        let (from, to) = bar(place.read);
        canvas.line(from, to, READ);
        let (from, to) = bar(place.inferred);
        canvas.line(from, to, INFERRED);
    }
    let r = radius(p.spread.len());
    canvas.open(SEEN);
    p.spread.iter().for_each(|place| canvas.ellipse(axes.at(place.inferred.0, place.y), (r, r)));
    canvas.close();
}

/// Of the points, smaller where there are many.
fn radius(points: usize) -> f64 {
    (3.4 - 0.8 * (points as f64 / 60.0).max(1.0).log10()).max(1.2)
}

fn draw_observed(canvas: &mut Canvas, axes: &Axes, p: &Bands) {
    if p.joined {
        let mut seen: Vec<&Observation> = p.observed.iter().collect();
        seen.sort_by(|a, b| a.x.total_cmp(&b.x));
        let line: Vec<_> = seen.iter().map(|o| axes.at(o.x, o.y)).collect();
        canvas.path(&polyline(&line, false), &format!("fill=\"none\" {JOIN}"));
    }
    let r = radius(p.observed.len());
    for (held_out, style) in [(false, SEEN), (true, HELD_OUT)] {
        canvas.open(style);
        for o in p.observed.iter().filter(|o| p.held_out(o) == held_out) {
            canvas.ellipse(axes.at(o.x, o.y), (r, r));
        }
        canvas.close();
    }
}

/// Says what the vertical line is, on the side where there is room.
fn note_end(canvas: &mut Canvas, axes: &Axes, x: f64) {
    let text = "training ends";
    let y = axes.area.bottom() - 8.0;
    if x + 6.0 + width(text, NOTE) <= axes.area.right() {
        canvas.text((x + 6.0, y), text, NOTE, Anchor::Start, false);
    } else {
        canvas.text((x - 6.0, y), text, NOTE, Anchor::End, false);
    }
}

/// Bands lie on top of each other, so that equal opacities darken towards the curve.
fn opacity(k: usize, count: usize) -> f64 {
    if count == 1 { 0.25 } else { 0.18 + 0.06 * k as f64 / (count - 1) as f64 }
}

fn band_style(opacity: f64) -> String {
    format!(
        "fill=\"{CURVE}\" fill-opacity=\"{opacity:.2}\" stroke=\"{CURVE}\" stroke-opacity=\"{opacity:.2}\""
    )
}

fn entries(p: &Bands) -> Vec<Entry> {
    let mut entries = vec![Entry::new(Sample::Line(CURVE_STYLE.into()), "mean")];
    for (k, band) in p.bands.iter().enumerate().rev() {
        // The sample shows the colour that the eye sees: this band and all wider ones beneath it.
        let through: f64 = (0..=k).map(|j| 1.0 - opacity(j, p.bands.len())).product();
        let style = format!("fill=\"{CURVE}\" fill-opacity=\"{:.2}\"", 1.0 - through);
        entries.push(Entry::new(Sample::Patch(style), &band.label));
    }
    if !p.spread.is_empty() {
        entries.push(Entry::new(Sample::Line(READ.into()), "input as read"));
        entries.push(Entry::new(Sample::Line(INFERRED.into()), "true input"));
    }
    if p.observed.iter().any(|o| !p.held_out(o)) {
        entries.push(Entry::new(Sample::Marker(Shape::Disc, SEEN.into()), "observed"));
    }
    if p.observed.iter().any(|o| p.held_out(o)) {
        entries.push(Entry::new(Sample::Marker(Shape::Disc, HELD_OUT.into()), "held out"));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_sound;
    use super::*;

    fn forecast(n: usize) -> Bands {
        let x: Vec<f64> = (0..n).map(|k| k as f64).collect();
        let mean: Vec<f64> = x.iter().map(|x| x.sin()).collect();
        Bands {
            title: "a & b".into(),
            x_title: "time".into(),
            y_title: "value".into(),
            observed: x.iter().map(|&x| Observation { x, y: x.cos() }).collect(),
            training_end: Some(n as f64 / 2.0),
            ..Bands::gaussian(&x, &mean, &vec![0.04; n])
        }
    }

    #[test]
    fn curve_bands_points_and_the_end_of_training_are_drawn() {
        let figure = bands(&forecast(20)).unwrap();
        assert_sound(&figure);
        for text in [
            "a &amp; b",
            ">mean<",
            ">50 % band<",
            ">90 % band<",
            ">observed<",
            ">held out<",
            ">training ends<",
        ] {
            assert!(figure.svg().contains(text), "{text}");
        }
        let bare = Bands { observed: vec![], training_end: None, ..forecast(20) };
        assert!(!bands(&bare).unwrap().svg().contains("observed<"));
    }

    #[test]
    fn places_have_bars_as_they_were_read_and_as_they_are() {
        let place = |k: f64| Spread { y: 0.1 * k, read: (k, 0.5), inferred: (k + 0.2, 0.1) };
        let spread = vec![place(1.0), place(30.0)];
        let figure = bands(&Bands { observed: vec![], spread, ..forecast(20) }).unwrap();
        assert_sound(&figure);
        assert!(figure.svg().contains(">input as read<") && figure.svg().contains(">true input<"));
        // Two bars and their samples in the legend.
        assert!(figure.svg().matches("#9a9a9a").count() >= 3);
        assert!(!bands(&forecast(20)).unwrap().svg().contains(">true input<"));
        let broken = vec![Spread { y: f64::NAN, read: (0.0, 1.0), inferred: (0.0, 1.0) }];
        assert!(bands(&Bands { spread: broken, ..forecast(3) }).is_err());
    }

    #[test]
    fn the_order_of_the_places_does_not_matter() {
        let (x, mean, variance) = ([3.0, 1.0, 2.0], [0.3, 0.1, 0.2], [0.03, 0.01, 0.02]);
        let sorted = Bands::gaussian(&[1.0, 2.0, 3.0], &[0.1, 0.2, 0.3], &[0.01, 0.02, 0.03]);
        assert_eq!(bands(&Bands::gaussian(&x, &mean, &variance)).unwrap(), bands(&sorted).unwrap());
    }

    #[test]
    fn half_of_a_gaussian_lies_in_the_inner_band() {
        let band = &Bands::gaussian(&[0.0], &[1.0], &[4.0]).bands[1];
        assert!((band.upper[0] - 2.348_979_5).abs() < 1e-6 && (band.lower[0] + 0.348_979_5).abs() < 1e-6);
    }

    #[test]
    fn a_variance_that_explodes_does_not_flatten_the_curve() {
        let mut wild = forecast(20);
        wild.bands[0].upper[19] = 1e12;
        let scale = wild.y_scale();
        assert!(scale.hi < 20.0 && scale.lo > -20.0, "{scale:?}");
        assert_sound(&bands(&wild).unwrap());
    }

    #[test]
    fn a_series_has_dates_a_line_and_its_domain() {
        let mut dated = forecast(20);
        dated.places = (0..20).map(|k| (k as f64, format!("19{}", 60 + k))).collect();
        dated.joined = true;
        let plain = bands(&forecast(20)).unwrap();
        let figure = bands(&dated).unwrap();
        assert_sound(&figure);
        assert!(figure.svg().contains(">1960<") && !plain.svg().contains(">1960<"));
        assert_eq!(figure.svg().matches(JOIN).count(), 1);
        // The curve comes after the markers.
        assert!(figure.svg().find(CURVE_STYLE) > figure.svg().find(HELD_OUT));
        let counts = Bands { least: Some(0.0), ..forecast(20) };
        assert!(forecast(20).y_scale().lo < -1.0 && (-0.1..=0.0).contains(&counts.y_scale().lo));
        assert!(counts.sorted().bands.iter().all(|b| b.lower.iter().chain(&b.upper).all(|v| *v >= 0.0)));
        assert_sound(&bands(&counts).unwrap());
    }

    #[test]
    fn several_predictions_share_a_picture() {
        let figure = bands_stacked(&[forecast(20), forecast(10), forecast(1)]).unwrap();
        assert_sound(&figure);
        assert_eq!(figure.svg().matches(">mean<").count(), 1);
        assert!(bands_stacked(&[]).is_err());
        let mut large = forecast(20);
        large.y_title = "large".into();
        large.mean.iter_mut().for_each(|v| *v *= 1e4);
        let apart = bands_apart(&[forecast(20), large]).unwrap();
        assert_sound(&apart);
        assert!(apart.svg().contains(">large<"));
    }

    #[test]
    fn silly_input_gives_a_picture_or_an_error() {
        assert!(bands(&Bands::default()).is_err());
        for value in [0.0, 5.0, 1e300, 1e-310] {
            for n in [1, 3] {
                let flat = Bands {
                    observed: vec![],
                    ..Bands::gaussian(&vec![value; n], &vec![value; n], &vec![0.0; n])
                };
                assert_sound(&bands(&flat).unwrap());
            }
        }
        for bad in [f64::NAN, f64::NEG_INFINITY] {
            let mut broken = forecast(3);
            broken.mean[2] = bad;
            assert!(bands(&broken).unwrap_err().to_string().contains("prediction, mean, value 3"));
            let mut broken = forecast(3);
            broken.bands[1].lower[0] = bad;
            assert!(bands(&broken).is_err());
            assert!(bands(&Bands { training_end: Some(bad), ..forecast(3) }).is_err());
        }
        let mut short = forecast(3);
        short.mean.pop();
        assert!(bands(&short).is_err());
    }
}
