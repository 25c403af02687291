//! Figures for papers and reports: plain numbers in, SVG or PNG out.
//!
//! Every figure is drawn once, as SVG; the PNG is that SVG rasterised at [`SCALE`] pixels a unit, with
//! the embedded DejaVu Sans and no font of the machine, so that both look alike everywhere.
//!
//! ```text
//! data ──latent_map, relevance_bars, trace, panel, bands, scatter, …──▶ Figure ──save──▶ .svg, .png
//!                                                                         └──svg──▶ HTML reports
//! ```

mod axes;
mod background;
mod bands;
mod bars;
mod canvas;
mod check;
mod classes;
mod confusion;
mod horizon;
mod latent;
mod legend;
mod lines;
mod marker;
pub mod page;
mod panel;
mod points;
mod probability;
mod relevance;
mod scale;
mod scatter;
mod text;
mod trace;

use std::path::Path;
use std::sync::{Arc, LazyLock};

use latentgp::{Error, Result};
use resvg::{tiny_skia, usvg};

pub use background::Background;
pub use bands::{Band, Bands, Observation, Spread, bands, bands_apart, bands_stacked};
pub use bars::{Bar, Bars, bars};
pub use confusion::{Confusion, confusion};
pub use horizon::{HorizonScores, horizons};
pub use latent::{Coordinate, LatentMap, axis_title, latent_map};
pub use lines::{Lines, lines};
pub use panel::{Panel, panel};
pub use probability::{Probabilities, probabilities};
pub use relevance::{Relevance, relevance_bars};
pub use scatter::{ObservedPredicted, scatter_observed_predicted};
pub use trace::trace;

/// Pixels of a PNG for each unit of the SVG.
pub const SCALE: f64 = 2.0;
/// Width of a usual figure in SVG units: 1200 pixels.
pub const WIDTH: f64 = 600.0;
/// Height of a usual figure in SVG units: 800 pixels.
pub const HEIGHT: f64 = 400.0;

static FONTS: LazyLock<Arc<usvg::fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    Arc::new(fonts)
});

/// A finished picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    svg: String,
    width: f64,
    height: f64,
}

impl Figure {
    /// The picture as one `<svg>` element. It has no ids, so that several fit on one HTML page.
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// The picture as a PNG file of [`SCALE`] times its size.
    ///
    /// # Errors
    /// [`Error::Data`] if the rasteriser refuses the picture.
    pub fn png(&self) -> Result<Vec<u8>> {
        let refused = |reason: String| Error::Data { what: "figure".into(), reason };
        let options = usvg::Options {
            fontdb: Arc::clone(&FONTS),
            font_family: "DejaVu Sans".into(),
            ..usvg::Options::default()
        };
        let tree = usvg::Tree::from_str(&self.svg, &options).map_err(|e| refused(e.to_string()))?;
        let (width, height) = ((self.width * SCALE) as u32, (self.height * SCALE) as u32);
        let mut pixels = tiny_skia::Pixmap::new(width, height)
            .ok_or_else(|| refused(format!("{width}×{height} pixels are too many; write an SVG instead")))?;
        let zoom = tiny_skia::Transform::from_scale(SCALE as f32, SCALE as f32);
        resvg::render(&tree, zoom, &mut pixels.as_mut());
        pixels.encode_png().map_err(|e| refused(e.to_string()))
    }

    /// Writes the picture to `out`, as SVG or PNG by its ending.
    ///
    /// # Errors
    /// [`Error::Invalid`] for any other ending, [`Error::Io`] if the file cannot be written.
    pub fn save(&self, out: &Path) -> Result<()> {
        let ending = out.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        let bytes = match ending.as_str() {
            "svg" => self.svg.clone().into_bytes(),
            "png" => self.png()?,
            _ => {
                return Err(Error::Invalid {
                    what: "figure file".into(),
                    expected: "a name that ends in .svg or .png".into(),
                    found: format!("`{}`", out.display()),
                });
            }
        };
        std::fs::write(out, bytes)
            .map_err(|e| Error::Io { path: out.display().to_string(), reason: e.to_string() })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Checks that a figure is well-formed XML and that its PNG has a signature, its size and ink.
    pub fn assert_sound(figure: &Figure) {
        usvg::roxmltree::Document::parse(figure.svg()).expect("well-formed XML");
        assert!(!figure.svg().contains("NaN") && !figure.svg().contains("inf"), "a number is not finite");
        let png = figure.png().expect("a PNG");
        assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
        let size = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert_eq!((size(16), size(20)), ((figure.width * SCALE) as u32, (figure.height * SCALE) as u32));
        let pixels = tiny_skia::Pixmap::decode_png(&png).unwrap();
        assert!(pixels.pixels().iter().all(|p| p.alpha() == 255), "the background is opaque");
        assert!(pixels.pixels().iter().any(|p| p.red() < 100), "something is drawn");
    }

    #[test]
    fn a_file_is_written_by_its_ending() {
        let folder = tempfile::tempdir().unwrap();
        let figure = trace("bound", &[-3.0, -2.0, -1.5]).unwrap();
        assert_sound(&figure);
        assert_eq!((figure.width * SCALE, figure.height * SCALE), (1200.0, 800.0));
        for (name, start) in [("a.svg", &b"<svg"[..]), ("a.PNG", b"\x89PNG")] {
            let path = folder.path().join(name);
            figure.save(&path).unwrap();
            assert!(std::fs::read(path).unwrap().starts_with(start));
        }
        for name in ["a.pdf", "a", ".png", "svg"] {
            let error = figure.save(&folder.path().join(name)).unwrap_err().to_string();
            assert!(error.contains(".svg or .png") && error.contains(name), "{error}");
        }
        let error = figure.save(&folder.path().join("nowhere/a.svg")).unwrap_err();
        assert!(matches!(error, Error::Io { .. }));
    }

    #[test]
    fn text_is_drawn_without_any_font_of_the_machine() {
        let ink = |svg: &str| {
            let figure = Figure { svg: svg.into(), width: 200.0, height: 50.0 };
            let pixels = tiny_skia::Pixmap::decode_png(&figure.png().unwrap()).unwrap();
            pixels.pixels().iter().filter(|p| p.red() < 128).count()
        };
        let page = |text: &str| {
            format!(
                "<svg xmlns='http://www.w3.org/2000/svg' width='200' height='50'>\
                 <rect width='200' height='50' fill='white'/>{text}</svg>"
            )
        };
        assert_eq!(ink(&page("")), 0);
        let written =
            ink(&page("<text x='5' y='30' font-size='20' font-family='sans-serif'>Latent −10⁵</text>"));
        assert!(written > 500, "{written} dark pixels");
    }

    #[test]
    fn figures_are_the_same_every_time() {
        let values = [-5.0, -1.0, -0.5];
        assert_eq!(trace("bound", &values).unwrap(), trace("bound", &values).unwrap());
    }
}
