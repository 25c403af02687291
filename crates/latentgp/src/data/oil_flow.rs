//! Simulated gamma densitometry of oil, water and gas in a pipe, after Bishop and James, "Analysis of
//! multiphase flows using dual-energy gamma densitometry and neural networks" (1993).
//!
//! Six beams of two energies cross the pipe; of N₀ photons of energy E, a Poisson number with mean
//! N₀ exp(−R Σ_p μ_p(E) l_p) arrives, where l_p is the path through phase p in pipe radii R. The two counts
//! of a beam and its known chord c = l_oil + l_water + l_gas give two linear equations,
//!
//! ```text
//! ln(I_gas(E) / I(E)) = R (μ_water(E) − μ_gas(E)) l_water + R (μ_oil(E) − μ_gas(E)) l_oil
//! ```
//!
//! with I_gas the mean count of the pipe full of gas. Their solutions (l_water, l_oil) for the six beams are
//! the twelve measurements. `docs/oil-flow.md` has the numbers and how they compare with the released data.

use super::pipe::{Beam, GAS, OIL, Regime, Section, WATER};
use super::row_rng;
use crate::error::{Error, Result};
use crate::mat::Mat;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Poisson};

/// The flow regimes, in the order of the labels.
pub const REGIMES: [&str; 3] = ["homogeneous", "annular", "stratified"];

/// The beams: three vertical ones and three horizontal ones from the bottom up; offsets in pipe radii.
pub const BEAMS: [Beam; 6] = [
    Beam::Vertical(0.83),
    Beam::Vertical(0.49),
    Beam::Vertical(0.0),
    Beam::Horizontal(-0.49),
    Beam::Horizontal(0.0),
    Beam::Horizontal(0.49),
];

/// The twelve measurements: the path through water and through oil, for each of the [`BEAMS`].
pub const COLUMNS: [&str; 12] = [
    "vertical1_water",
    "vertical1_oil",
    "vertical2_water",
    "vertical2_oil",
    "vertical3_water",
    "vertical3_oil",
    "horizontal1_water",
    "horizontal1_oil",
    "horizontal2_water",
    "horizontal2_oil",
    "horizontal3_water",
    "horizontal3_oil",
];

/// Radius of the pipe in centimetres.
pub const RADIUS_CM: f64 = 5.0;

/// Linear attenuation per centimetre of oil, water and gas at 59.5 keV (americium-241) and 662 keV
/// (caesium-137): mass attenuation times density, of CH₂ at 0.85 g/cm³, H₂O at 1, CH₄ at 0.02.
pub const ATTENUATION: [[f64; 3]; 2] =
    [[0.1975 * 0.85, 0.2067, 0.2137 * 0.02], [0.0880 * 0.85, 0.0857, 0.0962 * 0.02]];

/// Photons a second that reach a detector when nothing is in the way, of each energy.
pub const RATE: f64 = 80_000.0;

/// Counting time in seconds.
pub const SECONDS: f64 = 10.0;

/// A sample of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct OilFlow {
    /// Measurements, N × 12, in the order of [`COLUMNS`].
    pub y: Mat,
    /// Index into [`REGIMES`] of each row.
    pub regime: Vec<usize>,
    /// Fractions of oil, water and gas, N × 3.
    pub fractions: Mat,
}

/// Draws `n` flows, counted for [`SECONDS`]; row i depends on the seed and on i only.
///
/// ```
/// use latentgp::data::oil_flow;
/// let flow = oil_flow::simulate(1000, 0);
/// assert_eq!(flow.y.shape(), "1000 × 12");
/// assert_eq!(flow.y.slice_rows(0, 10), oil_flow::simulate(10, 0).y);
/// ```
pub fn simulate(n: usize, seed: u64) -> OilFlow {
    sample(n, seed, poisson)
}

/// As [`simulate`], with another counting time. Errs unless it is positive and at most 10¹² seconds.
pub fn simulate_for(n: usize, seconds: f64, seed: u64) -> Result<OilFlow> {
    if !(seconds > 0.0 && seconds <= 1e12) {
        return Err(Error::invalid("the counting time", "a number of seconds above 0, up to 1e12", seconds));
    }
    let longer = seconds / SECONDS;
    // Divided again, so that the equations need not know the time.
    Ok(sample(n, seed, |mean, rng| poisson(mean * longer, rng) / longer))
}

/// As [`simulate`], without noise: the paths themselves.
pub fn noiseless(n: usize, seed: u64) -> OilFlow {
    sample(n, seed, |mean, _| mean)
}

/// The number of photons counted. None at all is taken as half a photon, so that its logarithm exists.
fn poisson(mean: f64, rng: &mut impl Rng) -> f64 {
    Poisson::new(mean).map_or(mean, |counts| counts.sample(rng)).max(0.5)
}

/// Draws regimes, fractions and, by `count`, what arrives when `mean` photons are expected.
fn sample<R>(n: usize, seed: u64, count: R) -> OilFlow
where
    R: Fn(f64, &mut rand_chacha::ChaCha8Rng) -> f64,
{
    let mut flow =
        OilFlow { y: Mat::zeros(n, 2 * BEAMS.len()), regime: vec![0; n], fractions: Mat::zeros(n, 3) };
    for i in 0..n {
        let mut rng = row_rng(seed, i);
        flow.regime[i] = rng.random_range(0..REGIMES.len());
        let fractions = draw_fractions(&mut rng);
        flow.fractions.row_mut(i).copy_from_slice(&fractions);
        let regime = [Regime::Homogeneous, Regime::Annular, Regime::Stratified][flow.regime[i]];
        let section = Section::new(regime, fractions);
        for (beam, out) in BEAMS.iter().zip(flow.y.row_mut(i).chunks_exact_mut(2)) {
            let paths = section.paths(*beam);
            let logs = [0, 1].map(|e| {
                let clear = expected(e, [0.0, 0.0, beam.chord()]);
                (clear / count(expected(e, paths), &mut rng)).ln()
            });
            out.copy_from_slice(&solve(logs));
        }
    }
    flow
}

/// Three uniform numbers divided by their sum; 1 − u is never 0.
fn draw_fractions(rng: &mut impl Rng) -> [f64; 3] {
    let parts: [f64; 3] = std::array::from_fn(|_| 1.0 - rng.random::<f64>());
    let sum: f64 = parts.iter().sum();
    parts.map(|part| part / sum)
}

/// Beer–Lambert: the mean count of energy `e` behind these paths.
fn expected(e: usize, paths: [f64; 3]) -> f64 {
    let depth: f64 = paths.iter().zip(ATTENUATION[e]).map(|(l, mu)| RADIUS_CM * mu * l).sum();
    RATE * SECONDS * (-depth).exp()
}

/// Paths through water and oil from the logarithms of attenuation beyond that of gas, by Cramer's rule.
fn solve(logs: [f64; 2]) -> [f64; 2] {
    let beyond = |e: usize, phase: usize| RADIUS_CM * (ATTENUATION[e][phase] - ATTENUATION[e][GAS]);
    let determinant = beyond(0, WATER) * beyond(1, OIL) - beyond(0, OIL) * beyond(1, WATER);
    [
        (logs[0] * beyond(1, OIL) - logs[1] * beyond(0, OIL)) / determinant,
        (logs[1] * beyond(0, WATER) - logs[0] * beyond(1, WATER)) / determinant,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{kfold, knn_accuracy};

    fn noise_std(seconds: f64) -> f64 {
        let (noisy, clean) = (simulate_for(300, seconds, 4).unwrap(), noiseless(300, 4));
        let squares: f64 =
            noisy.y.as_slice().iter().zip(clean.y.as_slice()).map(|(a, b)| (a - b).powi(2)).sum();
        (squares / noisy.y.len() as f64).sqrt()
    }

    #[test]
    fn without_noise_the_equations_return_the_paths() {
        let flow = noiseless(200, 1);
        for i in 0..200 {
            let f = flow.fractions.row(i);
            assert!((f.iter().sum::<f64>() - 1.0).abs() < 1e-15 && f.iter().all(|v| *v > 0.0));
            let regime = [Regime::Homogeneous, Regime::Annular, Regime::Stratified][flow.regime[i]];
            let section = Section::new(regime, [f[0], f[1], f[2]]);
            for (b, beam) in BEAMS.iter().enumerate() {
                let paths = section.paths(*beam);
                assert!((flow.y[(i, 2 * b)] - paths[WATER]).abs() < 1e-11);
                assert!((flow.y[(i, 2 * b + 1)] - paths[OIL]).abs() < 1e-11);
            }
        }
    }

    #[test]
    fn noise_falls_as_the_root_of_the_photons() {
        let (short, usual, long) = (noise_std(0.1), noise_std(SECONDS), noise_std(1e9));
        assert!((short / usual - 10.0).abs() < 0.5, "{short} {usual}");
        assert!((usual / long - 1e4).abs() < 500.0, "{usual} {long}");
        assert!((0.04..0.07).contains(&usual), "{usual}");
    }

    #[test]
    fn a_seed_fixes_every_bit_and_prefixes_agree() {
        let large = simulate(60, 9);
        assert_eq!(large, simulate(60, 9));
        assert_eq!(large, simulate_for(60, SECONDS, 9).unwrap());
        let small = simulate(25, 9);
        assert_eq!(small.y, large.y.slice_rows(0, 25));
        assert_eq!(small.fractions, large.fractions.slice_rows(0, 25));
        assert_eq!(small.regime, large.regime[..25]);
        assert_ne!(large.y, simulate(60, 10).y);
    }

    #[test]
    fn the_sample_looks_like_the_released_one() {
        // Of the released 100 × 12: smallest −0.18, largest 2.14, 1-NN right for 94 to 97 of 100 rows.
        let flow = simulate(1000, 0);
        let smallest = flow.y.as_slice().iter().copied().fold(f64::INFINITY, f64::min);
        let largest = flow.y.as_slice().iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert!((-0.4..-0.1).contains(&smallest) && (2.0..2.4).contains(&largest), "{smallest} {largest}");
        let mut right = 0.0;
        for seed in 0..10 {
            let hundred = simulate(100, seed);
            let folds = kfold(100, 5, 0).unwrap();
            right += knn_accuracy(&hundred.y, &hundred.regime, 1, &folds).unwrap().mean / 10.0;
        }
        assert!((0.92..0.99).contains(&right), "{right}");
    }

    #[test]
    fn few_photons_and_odd_times_give_no_nan() {
        assert!(simulate_for(200, 1e-4, 0).unwrap().y.is_finite());
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(simulate_for(3, seconds, 0).is_err());
        }
        assert!(simulate(0, 0).y.is_empty());
    }
}
