//! Oil, water and gas in the cross-section of a pipe, and how far a straight beam runs through each.
//!
//! The section is the unit disc. A beam at distance d from the centre has the chord 2√(1 − d²); its paths
//! through the three phases add up to it, and averaged over all beams of one direction they are in the
//! ratio of the phases' areas.

use std::f64::consts::PI;

/// The place of oil in an array of three phases.
pub const OIL: usize = 0;
/// The place of water in an array of three phases.
pub const WATER: usize = 1;
/// The place of gas in an array of three phases.
pub const GAS: usize = 2;

/// Halvings of [−1, 1] after which no further one moves a height by more than rounding.
const BISECTIONS: usize = 54;

/// How the phases share the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regime {
    /// All phases mixed evenly.
    Homogeneous,
    /// Concentric: water along the wall, a ring of oil, a core of gas.
    Annular,
    /// Horizontal layers: water at the bottom, oil, gas on top.
    Stratified,
}

/// A straight beam through the section; offsets are in pipe radii from the centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Beam {
    /// Runs upwards at this horizontal offset.
    Vertical(f64),
    /// Runs sideways at this height, positive above the centre.
    Horizontal(f64),
}

impl Beam {
    fn offset(self) -> f64 {
        match self {
            Beam::Vertical(d) | Beam::Horizontal(d) => d,
        }
    }

    /// Length inside the pipe, in pipe radii.
    pub fn chord(self) -> f64 {
        chord_squared(1.0, self.offset())
    }
}

/// The chord at distance d of a disc with squared radius `r2`; 0 when the line misses it.
fn chord_squared(r2: f64, d: f64) -> f64 {
    2.0 * (r2 - d * d).max(0.0).sqrt()
}

/// A filled section: where the interfaces between the phases are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Section {
    /// Fractions of oil, water and gas everywhere.
    Mixed([f64; 3]),
    /// Squared radii of the gas core and of the disc of gas and oil.
    Rings {
        /// Of the gas core.
        gas: f64,
        /// Of the gas core with the oil around it.
        gas_and_oil: f64,
    },
    /// Heights of the upper surfaces of water and of oil, between −1 and 1.
    Layers {
        /// Top of the water.
        water: f64,
        /// Top of the oil.
        oil: f64,
    },
}

impl Section {
    /// Fills the pipe with the fractions of oil, water and gas, which are not negative and add up to 1.
    pub fn new(regime: Regime, fractions: [f64; 3]) -> Self {
        match regime {
            Regime::Homogeneous => Section::Mixed(fractions),
            // Areas are π r², so squared radii are area fractions.
            Regime::Annular => {
                Section::Rings { gas: fractions[GAS], gas_and_oil: fractions[GAS] + fractions[OIL] }
            }
            Regime::Stratified => {
                let water = level(fractions[WATER]);
                // The oil's surface from above, by the area of gas: exact also when there is no gas.
                Section::Layers { water, oil: (-level(fractions[GAS])).max(water) }
            }
        }
    }

    /// Path lengths of a beam through oil, water and gas, in pipe radii; they add up to its chord.
    pub fn paths(&self, beam: Beam) -> [f64; 3] {
        let chord = beam.chord();
        match *self {
            Section::Mixed(fractions) => fractions.map(|f| f * chord),
            Section::Rings { gas, gas_and_oil } => {
                let inner = chord_squared(gas, beam.offset()).min(chord);
                let middle = chord_squared(gas_and_oil, beam.offset()).clamp(inner, chord);
                [middle - inner, chord - middle, inner]
            }
            Section::Layers { water, oil } => match beam {
                Beam::Horizontal(height) if height < water => [0.0, chord, 0.0],
                Beam::Horizontal(height) if height < oil => [chord, 0.0, 0.0],
                Beam::Horizontal(_) => [0.0, 0.0, chord],
                Beam::Vertical(_) => {
                    let half = 0.5 * chord;
                    let (low, high) = (water.clamp(-half, half), oil.clamp(-half, half));
                    [high - low, low + half, half - high]
                }
            },
        }
    }
}

/// The height h below which lies the fraction `area` of the unit disc:
/// ½ + (h √(1 − h²) + arcsin h)/π = area, by bisection, as the left side increases with h.
fn level(area: f64) -> f64 {
    let below = |h: f64| 0.5 + (h * (1.0 - h * h).sqrt() + h.asin()) / PI;
    let (mut low, mut high) = (-1.0, 1.0);
    for _ in 0..BISECTIONS {
        let middle = 0.5 * (low + high);
        if below(middle) < area { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGIMES: [Regime; 3] = [Regime::Homogeneous, Regime::Annular, Regime::Stratified];
    const FRACTIONS: [[f64; 3]; 6] = [
        [0.2, 0.5, 0.3],
        [0.01, 0.01, 0.98],
        [0.6, 0.4, 0.0],
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        [0.0, 0.0, 1.0],
    ];

    fn each(mut check: impl FnMut(Regime, [f64; 3], Section)) {
        for regime in REGIMES {
            for fractions in FRACTIONS {
                check(regime, fractions, Section::new(regime, fractions));
            }
        }
    }

    #[test]
    fn paths_add_up_to_the_chord() {
        each(|regime, fractions, section| {
            for i in -100..=100 {
                let offset = 0.01 * f64::from(i);
                for beam in [Beam::Vertical(offset), Beam::Horizontal(offset)] {
                    let paths = section.paths(beam);
                    assert!(paths.iter().all(|p| *p >= 0.0), "{regime:?} {fractions:?} {beam:?} {paths:?}");
                    assert!((paths.iter().sum::<f64>() - beam.chord()).abs() < 1e-14);
                }
            }
        });
    }

    #[test]
    fn the_mean_over_many_beams_is_the_area() {
        // The midpoint rule on square-root and jump singularities with this many beams.
        const BEAMS: usize = 20_000;
        const TOLERANCE: f64 = 1e-4;
        each(|regime, fractions, section| {
            for across in [Beam::Vertical, Beam::Horizontal] {
                let mut areas = [0.0; 3];
                for i in 0..BEAMS {
                    let offset = (2 * i + 1) as f64 / BEAMS as f64 - 1.0;
                    let paths = section.paths(across(offset));
                    (0..3).for_each(|p| areas[p] += paths[p] * 2.0 / BEAMS as f64 / PI);
                }
                for p in 0..3 {
                    let error = (areas[p] - fractions[p]).abs();
                    assert!(error < TOLERANCE, "{regime:?} {fractions:?}: {areas:?}");
                }
            }
        });
    }

    #[test]
    fn levels_are_where_geometry_puts_them() {
        assert!(level(0.5).abs() < 1e-15);
        assert!(level(0.0) + 1.0 < 1e-10 && 1.0 - level(1.0) < 1e-10);
        // A segment of 60° on either side of the vertical: 1/3 − √3/(4π) of the disc lies below −½.
        assert!((level(1.0 / 3.0 - 3f64.sqrt() / (4.0 * PI)) + 0.5).abs() < 1e-14);
    }
}
