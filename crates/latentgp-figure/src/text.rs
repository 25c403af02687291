//! How wide a text is in the embedded font, and how to shorten one that is too wide.

use std::sync::LazyLock;

use skrifa::instance::{LocationRef, Size};
use skrifa::metrics::GlyphMetrics;
use skrifa::{FontRef, MetadataProvider};

use super::canvas::Font;

/// Advance, in ems, of a character that the font does not have.
const UNKNOWN: f64 = 1.0;

struct Face {
    font: FontRef<'static>,
    metrics: GlyphMetrics<'static>,
    units: f64,
}

impl Face {
    fn new(bytes: &'static [u8]) -> Option<Face> {
        let font = FontRef::new(bytes).ok()?;
        let metrics = font.glyph_metrics(Size::unscaled(), LocationRef::default());
        let units = f64::from(font.metrics(Size::unscaled(), LocationRef::default()).units_per_em);
        Some(Face { font, metrics, units })
    }

    fn advance(&self, c: char) -> f64 {
        let glyph = self.font.charmap().map(c);
        let advance = glyph.and_then(|glyph| self.metrics.advance_width(glyph));
        advance.map_or(UNKNOWN, |a| f64::from(a) / self.units)
    }
}

static REGULAR: LazyLock<Option<Face>> = LazyLock::new(|| Face::new(dejavu::sans::regular()));
static BOLD: LazyLock<Option<Face>> = LazyLock::new(|| Face::new(dejavu::sans::bold()));

fn advance(c: char, font: Font) -> f64 {
    let face = if font.bold { &BOLD } else { &REGULAR };
    font.size * face.as_ref().map_or(UNKNOWN, |face| face.advance(c))
}

/// The width of a line of text.
pub fn width(text: &str, font: Font) -> f64 {
    text.chars().map(|c| advance(c, font)).sum()
}

/// The text itself if it is no wider than `limit`, else as much of its beginning as fits, and "…".
pub fn shorten(text: &str, font: Font, limit: f64) -> String {
    let dots = advance('…', font);
    let (mut used, mut kept) = (0.0, 0);
    for (at, c) in text.char_indices() {
        used += advance(c, font);
        if used <= limit - dots {
            kept = at + c.len_utf8();
        }
        if used > limit {
            return format!("{}…", text[..kept].trim_end());
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Font = Font { size: 10.0, bold: false, colour: "#000000" };

    #[test]
    fn widths_are_those_of_the_font() {
        let zero = width("0", PLAIN);
        assert!((zero - 6.36).abs() < 0.01, "a digit of DejaVu Sans is 1303/2048 em wide, not {zero}");
        assert!(width("WWW", PLAIN) > width("iii", PLAIN));
        assert!(width("WWW", Font { bold: true, ..PLAIN }) > width("WWW", PLAIN));
        assert_eq!(width("", PLAIN), 0.0);
    }

    #[test]
    fn a_long_text_is_cut_at_a_character_and_fits() {
        assert_eq!(shorten("short", PLAIN, 100.0), "short");
        for text in [
            "a very long label indeed, longer than any",
            "ÄÖÜ漢字漢字漢字漢字漢字漢字漢字",
            "🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀",
        ] {
            let cut = shorten(text, PLAIN, 80.0);
            assert!(cut.ends_with('…') && width(&cut, PLAIN) <= 80.0, "{cut}");
        }
        assert_eq!(shorten("anything", PLAIN, 0.0), "…");
    }
}
