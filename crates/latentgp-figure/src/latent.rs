//! The latent map: where each point lies, how sure that is, and what the model does not know.
//!
//! A point is its mean; the ellipse around it has the half axes √s₁ and √s₂, one standard deviation
//! each. Light ground is where the predictive variance is low, dark ground where it is high.

use latentgp::Result;

use super::axes::{Axes, Axis, MEDIUM, Reserve, Ticks};
use super::background::{self, Background, grey};
use super::canvas::{Canvas, Rect};
use super::classes::{Class, classes};
use super::legend::{Column, Entry, Sample};
use super::points;
use super::scale::{Scale, plain};
use super::{Figure, HEIGHT, WIDTH, check};

/// How far beyond the points the limits may reach, as a part of their range.
const BEYOND: f64 = 0.15;

/// One latent dimension of every point.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Coordinate {
    /// The means, N.
    pub mean: Vec<f64>,
    /// The variances, N, or empty if there are none.
    pub variance: Vec<f64>,
    /// The title of the axis; see [`axis_title`].
    pub title: String,
}

/// What a latent map shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatentMap {
    /// The title; may be empty.
    pub title: String,
    /// The horizontal dimension.
    pub x: Coordinate,
    /// The vertical dimension; without one, the points lie on a line for each class.
    pub y: Option<Coordinate>,
    /// The class of each point, N, or empty if there are none.
    pub labels: Vec<String>,
    /// Inducing inputs.
    pub inducing: Vec<[f64; 2]>,
    /// A background; only in two dimensions.
    pub background: Option<Background>,
    /// Whether a unit is as long along x as along y, as in a plane whose distances count.
    pub one_scale: bool,
}

/// "latent dimension 3 (relevance 0.81, 45 %)" for `dimension` 2, counted from 0, of the relevance of all dimensions.
pub fn axis_title(dimension: usize, relevance: &[f64]) -> String {
    match relevance.get(dimension) {
        Some(&r) if r.is_finite() => {
            format!("latent dimension {} (relevance {}, {})", dimension + 1, plain(r, 2), share(r, relevance))
        }
        _ => format!("latent dimension {}", dimension + 1),
    }
}

/// The part of a relevance in that of all dimensions, per cent.
pub(super) fn share(of: f64, all: &[f64]) -> String {
    let total: f64 = all.iter().filter(|r| r.is_finite()).sum();
    let part = if total > 0.0 { 100.0 * of / total } else { 0.0 };
    match part {
        p if p >= 9.95 || p == 0.0 => format!("{p:.0} %"),
        p if p >= 0.1 => format!("{p:.1} %"),
        _ => "< 0.1 %".into(),
    }
}

/// Draws a latent map.
///
/// # Errors
/// If there is no point, lengths differ, a number is not finite or a variance is negative.
pub fn latent_map(map: &LatentMap) -> Result<Figure> {
    map.check()?;
    let laid = Laid::new(Rect { x: 0.0, y: 0.0, w: WIDTH, h: HEIGHT }, map, 0.0);
    let width = if map.one_scale && map.y.is_some() {
        laid.axes.page_width(laid.legend.reserve().right)
    } else {
        WIDTH
    };
    let mut canvas = Canvas::new(width, HEIGHT, &format!("Latent map. {}", map.title));
    laid.draw(&mut canvas, map);
    Ok(canvas.finish())
}

impl Coordinate {
    fn check(&self, what: &str, n: usize) -> Result<()> {
        check::length(what, n, self.mean.len())?;
        check::finite(what, &self.mean)?;
        if !self.variance.is_empty() {
            check::length(&format!("{what}, variances"), n, self.variance.len())?;
        }
        check::variances(&format!("{what}, variances"), &self.variance)
    }

    /// The standard deviation of a point, 0 where there is no variance.
    pub(super) fn std(&self, n: usize) -> f64 {
        self.variance.get(n).map_or(0.0, |v| v.sqrt())
    }

    /// Limits that cover the means, and the deviations and `others` unless those are out of proportion.
    fn scale(&self, others: impl Iterator<Item = f64>) -> Scale {
        let means = Scale::covering(self.mean.iter().copied());
        let spread = |sign: f64| self.mean.iter().enumerate().map(move |(n, m)| m + sign * self.std(n));
        let all = Scale::covering(spread(-1.0).chain(spread(1.0)).chain(others));
        let allowed = if self.mean.len() == 1 { all } else { means.padded(BEYOND) };
        Scale::new(means.lo.min(all.lo.max(allowed.lo)), means.hi.max(all.hi.min(allowed.hi))).padded(0.04)
    }
}

impl LatentMap {
    /// What the axes will cover, (from, to) along x and along y: the place for a background.
    pub fn limits(&self) -> [(f64, f64); 2] {
        let x = self.x_scale();
        let y = self.y.as_ref().map_or(Scale { lo: -1.0, hi: 1.0 }, |y| self.y_scale(y));
        [(x.lo, x.hi), (y.lo, y.hi)]
    }

    fn x_scale(&self) -> Scale {
        let inducing = if self.y.is_some() { &self.inducing[..] } else { &[] };
        self.x.scale(inducing.iter().map(|z| z[0]))
    }

    fn y_scale(&self, y: &Coordinate) -> Scale {
        y.scale(self.inducing.iter().map(|z| z[1]))
    }

    pub(super) fn check(&self) -> Result<()> {
        let n = self.x.mean.len();
        check::some("latent map", n)?;
        self.x.check("latent map, x", n)?;
        if let Some(y) = &self.y {
            y.check("latent map, y", n)?;
        }
        if !self.labels.is_empty() {
            check::length("latent map, labels", n, self.labels.len())?;
        }
        check::finite("latent map, inducing inputs", self.inducing.as_flattened())?;
        self.background.as_ref().map_or(Ok(()), Background::check)
    }
}

/// A map with its place on the page.
pub(super) struct Laid {
    classes: Vec<Class>,
    legend: Column,
    axes: Axes,
}

impl Laid {
    /// Places everything inside `cell`, `top` of it kept free.
    pub(super) fn new(cell: Rect, map: &LatentMap, top: f64) -> Laid {
        let classes = classes(map.x.mean.len(), &map.labels);
        let legend = Column::new(entries(map, &classes), 0.32 * cell.w);
        let rows = classes.len() as f64;
        let (y_scale, y_title, y_ticks) = match &map.y {
            Some(y) => (map.y_scale(y), y.title.as_str(), Ticks::Numbers),
            None => (Scale::new(-0.6, rows - 0.4), "", Ticks::None),
        };
        let title = |text: &str, fallback: &'static str| -> String {
            if text.is_empty() { fallback.into() } else { text.into() }
        };
        let x_title = title(&map.x.title, "latent dimension 1");
        let y_title = if map.y.is_some() { title(y_title, "latent dimension 2") } else { String::new() };
        // A long axis title needs the whole height; the narrow cells of a panel need the shorter form.
        let y_title = if super::text::width(&y_title, MEDIUM) > cell.h - 30.0 {
            y_title.replace("latent dimension", "dimension")
        } else {
            y_title
        };
        let axes = Axes::layout(
            cell,
            &map.title,
            Axis { scale: map.x_scale(), title: &x_title, ticks: Ticks::Numbers },
            Axis { scale: y_scale, title: &y_title, ticks: y_ticks },
            Reserve { top, ..legend.reserve() },
        );
        let axes = if map.one_scale && map.y.is_some() { axes.with_one_scale() } else { axes };
        Laid { classes, legend, axes }
    }

    /// Draws it.
    pub(super) fn draw(&self, canvas: &mut Canvas, map: &LatentMap) {
        let axes = &self.axes;
        if let (Some(background), Some(_)) = (&map.background, &map.y) {
            background::draw(canvas, axes, background);
        }
        axes.grid(canvas, true);
        canvas.clip(axes.area);
        match &map.y {
            Some(y) => points::plane(canvas, axes, map, y, &self.classes),
            None => points::strips(canvas, axes, map, &self.classes),
        }
        canvas.unclip();
        axes.frame(canvas);
        self.legend.draw(canvas, axes.area.right(), axes.area.y, axes.area.h);
    }
}

fn entries(map: &LatentMap, classes: &[Class]) -> Vec<Entry> {
    let mut entries = Vec::new();
    if !map.labels.is_empty() {
        for class in classes {
            let name = if class.name.trim().is_empty() { "(no label)" } else { &class.name };
            entries.push(Entry::new(Sample::Marker(class.shape, class.style(0.7)), name));
        }
    }
    if !map.inducing.is_empty() && map.y.is_some() {
        entries.push(Entry::new(Sample::Cross, "inducing"));
    }
    if let (Some(background), Some(_)) = (&map.background, &map.y) {
        let greys = (0..6).map(|k| grey(k as f64 / 5.0)).collect();
        let label = if background.label.is_empty() { "variance" } else { &background.label };
        entries.push(Entry::new(Sample::Greys(greys), label));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::super::marker::COLOURS;
    use super::super::tests::assert_sound;
    use super::*;

    fn map(n: usize, classes: usize) -> LatentMap {
        let wave = |f: f64| (0..n).map(|k| (f * k as f64).sin()).collect::<Vec<_>>();
        let coordinate =
            |f: f64, title: &str| Coordinate { mean: wave(f), variance: vec![0.01; n], title: title.into() };
        LatentMap {
            title: "a title".into(),
            x: coordinate(0.7, &axis_title(2, &[0.5, 0.05, 0.813])),
            y: Some(coordinate(1.1, &axis_title(0, &[]))),
            labels: (0..if classes > 0 { n } else { 0 }).map(|k| format!("c{}", k % classes)).collect(),
            inducing: vec![[0.0, 0.0], [0.5, 0.5]],
            background: Some(Background {
                x: (-1.0, 1.0),
                y: (-1.0, 1.0),
                columns: 4,
                values: (0..12).map(f64::from).collect(),
                label: String::new(),
            }),
            one_scale: false,
        }
    }

    /// The colours of the markers in the order in which they are drawn.
    fn colours(svg: &str) -> Vec<&str> {
        let markers = svg.rsplit("fill=\"currentColor\"").next().unwrap_or_default();
        let group = markers.split("</svg>").next().unwrap_or_default();
        group.split("<g color=\"").skip(1).map(|g| &g[..7]).collect()
    }

    #[test]
    fn a_map_shows_titles_classes_ellipses_and_crosses() {
        let figure = latent_map(&map(30, 3)).unwrap();
        assert_sound(&figure);
        for text in [
            "a title",
            "latent dimension 3 (relevance 0.81, 60 %)",
            ">latent dimension 1<",
            ">c0<",
            ">c2<",
            ">inducing<",
            ">variance<",
        ] {
            assert!(figure.svg().contains(text), "{text}");
        }
        assert!(COLOURS[..3].iter().all(|c| colours(figure.svg()).contains(c)));
        assert!(!figure.svg().contains(COLOURS[3]));
    }

    #[test]
    fn without_labels_there_is_one_colour_and_no_legend_of_classes() {
        let figure = latent_map(&LatentMap { inducing: vec![], background: None, ..map(10, 0) }).unwrap();
        assert_sound(&figure);
        assert_eq!(colours(figure.svg()), [COLOURS[0]]);
    }

    #[test]
    fn no_class_lies_above_another() {
        let mut sorted = LatentMap { inducing: vec![], background: None, ..map(300, 3) };
        sorted.labels.sort();
        let figure = latent_map(&sorted).unwrap();
        assert_eq!(figure, latent_map(&sorted).unwrap());
        // Of 300 points in three classes, two neighbours in a random order differ two times out of three.
        let runs = colours(figure.svg());
        assert!((170..230).contains(&runs.len()), "{} runs", runs.len());
        for half in [&runs[..runs.len() / 2], &runs[runs.len() / 2..]] {
            for colour in &COLOURS[..3] {
                assert!(half.iter().filter(|c| *c == colour).count() > 20, "{colour}");
            }
        }
    }

    #[test]
    fn one_scale_makes_a_circle_round() {
        let turn = |k: usize| 0.1 * k as f64;
        let mut circle = LatentMap { inducing: vec![], background: None, ..map(63, 0) };
        circle.x.mean = (0..63).map(|k| 5.0 * turn(k).cos()).collect();
        circle.y.as_mut().unwrap().mean = (0..63).map(|k| 5.0 * turn(k).sin()).collect();
        circle.one_scale = true;
        let figure = latent_map(&circle).unwrap();
        assert_sound(&figure);
        assert!(figure.width < 0.8 * WIDTH, "no empty page to the right, {}", figure.width);
        // The ellipses of equal variances are circles.
        let round = figure.svg().lines().filter(|l| l.starts_with("<ellipse")).all(|l| {
            let radius = |name: &str| l.split(name).nth(1).and_then(|r| r.split('"').next());
            radius("rx=\"") == radius("ry=\"")
        });
        assert!(round);
    }

    #[test]
    fn one_dimension_is_drawn_as_strips() {
        let figure = latent_map(&LatentMap { y: None, ..map(30, 3) }).unwrap();
        assert_sound(&figure);
        assert!(!figure.svg().contains("<ellipse cx=\"0\""));
        assert!(figure.svg().contains(">c1<"));
    }

    #[test]
    fn limits_cover_points_and_near_inducing_inputs() {
        let mut near = map(30, 0);
        near.inducing = vec![[1.2, 0.0], [50.0, 0.0]];
        let [(_, x_hi), _] = near.limits();
        assert!(x_hi > 1.2 && x_hi < 2.0, "{x_hi}");
    }

    #[test]
    fn forty_classes_are_drawn() {
        let figure = latent_map(&map(400, 40)).unwrap();
        assert_sound(&figure);
        assert!(figure.svg().contains(">29 others<"));
    }

    #[test]
    fn strange_labels_are_escaped_and_cut() {
        let mut strange = map(4, 1);
        strange.labels =
            ["<b>&\"x\"", "\u{0}\u{7}", &"long ".repeat(99), "漢字 ψ"].map(String::from).to_vec();
        strange.title = "</svg><script>".repeat(20);
        let figure = latent_map(&strange).unwrap();
        assert_sound(&figure);
        assert!(figure.svg().contains("&lt;b&gt;&amp;&quot;x&quot;") && !figure.svg().contains("<script"));
    }

    #[test]
    fn silly_numbers_give_a_picture_or_an_error() {
        for n in [1, 2, 5] {
            for value in [0.0, 5.0, -1e300, 1e-310, 1e9] {
                let mut same = map(n, 1);
                same.x.mean = vec![value; n];
                same.y.as_mut().unwrap().variance = vec![1e200; n];
                assert_sound(&latent_map(&same).unwrap());
                assert_sound(&latent_map(&LatentMap { y: None, ..same }).unwrap());
            }
        }
        assert!(latent_map(&LatentMap::default()).unwrap_err().to_string().contains("nothing to draw"));
        for value in [f64::NAN, f64::INFINITY, 1e308] {
            let mut bad = map(3, 1);
            bad.x.mean[1] = value;
            let error = latent_map(&bad).unwrap_err().to_string();
            assert!(error.contains("latent map, x, value 2"), "{error}");
        }
        let mut bad = map(3, 1);
        bad.x.variance[0] = -1.0;
        assert!(latent_map(&bad).is_err());
        let mut bad = map(3, 1);
        bad.labels.pop();
        assert!(latent_map(&bad).is_err());
        for (columns, values) in [(0, 3), (3, 0), (5, 12)] {
            let mut bad = map(3, 1);
            let background = bad.background.as_mut().unwrap();
            (background.columns, background.values) = (columns, vec![1.0; values]);
            assert!(latent_map(&bad).is_err(), "{columns} columns, {values} values");
        }
    }
}
