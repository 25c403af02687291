//! How far Ψ1 and Ψ2 are from the truth: Figure 1 of the unscented GPLVM paper's supplement, and beyond it.

use super::context::Context;
use super::part::{Part, Picture};
use super::psi::Sample;
use super::table::{Curves, significant};
use latentgp::expectation::{
    Cubature5, Expectation, GaussHermite, MinimalSkew, MonteCarlo, Psi, QuasiMonteCarlo, ScaledUnscented,
    Unscented,
};
use latentgp::kernel::Matern32;
use latentgp::{Mat, Result};
use latentgp_terminal::failure::Outcome;
use rayon::prelude::*;

/// The largest D, in full and quickly.
const LARGEST: [usize; 2] = [10, 6];
/// Samples of μ and Z that are averaged over, in full and quickly.
const SAMPLES: [u64; 2] = [5, 2];
/// S of the comparison over D, and D of that over S.
const VARIANCE: f64 = 0.1;
const DIM: usize = 5;
const VARIANCES: [f64; 7] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
/// Draws of the papers' reference, and points of ours: in full, and quickly.
const PROXY: usize = 10_000;
const REFERENCE: [usize; 2] = [65_536, 16_384];
/// Two scramblings that differ by more than this part of a distance do not tell it from none.
const BLIND: f64 = 0.5;
/// Seeds of references lie far from those of the draws that they judge.
const APART: u64 = 7_777_777;
/// w₀ of minimal skew, and c = α²(D + κ) of the scaled rule as parts of D: its nodes depend on c alone.
const CENTRE: [f64; 10] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
const ALPHA: [f64; 9] = [0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5];
const KAPPA: [f64; 4] = [0.0, 1.0, 2.0, 3.0];

const UNSCENTED: &str = "unscented 2D";
const FIRST: [&str; 5] =
    [UNSCENTED, "Gauss-Hermite 2^D", "Monte Carlo 2D", "Monte Carlo 2^D", "Monte Carlo 200"];
const SECOND: [&str; 3] = [UNSCENTED, "minimal skew, best", "scaled unscented, best"];
const BEYOND: [&str; 2] = ["cubature5", "quasi-Monte Carlo 256"];

/// The rules of a name: one, or those of a grid of which the best counts.
fn rules(name: &str, dim: usize, seed: u64) -> Vec<Box<dyn Expectation>> {
    let draws = |samples| -> Vec<Box<dyn Expectation>> { vec![Box::new(MonteCarlo::new(samples, seed))] };
    match name {
        UNSCENTED => vec![Box::new(Unscented)],
        "Gauss-Hermite 2^D" => vec![Box::new(GaussHermite::new(2))],
        "Monte Carlo 2D" => draws(2 * dim),
        "Monte Carlo 2^D" => draws(1 << dim),
        "Monte Carlo 200" => draws(200),
        "minimal skew, best" => CENTRE.map(|w0| Box::new(MinimalSkew { w0 }) as Box<dyn Expectation>).into(),
        "scaled unscented, best" => ALPHA
            .iter()
            .flat_map(|&alpha| KAPPA.map(|kappa| ScaledUnscented { alpha, kappa }))
            .map(|rule| Box::new(rule) as Box<dyn Expectation>)
            .collect(),
        "cubature5" => vec![Box::new(Cubature5)],
        _ => vec![Box::new(QuasiMonteCarlo::new(256, seed))],
    }
}

/// Σ |a − b|.
fn l1(a: &Mat, b: &Mat) -> f64 {
    a.as_slice().iter().zip(b.as_slice()).map(|(a, b)| (a - b).abs()).sum()
}

/// Distances at one place.
struct Distances {
    /// Of every name: Ψ1 to the proxy, Ψ1 and Ψ2 to the reference.
    rules: Vec<[f64; 3]>,
    /// Of what they are measured by: Ψ1 of the proxy to the reference, Ψ1 and Ψ2 of the reference to itself with
    /// another scrambling.
    own: [f64; 3],
}

impl Distances {
    /// How far two scramblings of the reference are apart in Ψ1 (1) or Ψ2 (2), as a part of the closest rule's
    /// distance.
    fn doubt(&self, which: usize) -> f64 {
        self.own[which] / self.rules.iter().map(|d| d[which]).fold(f64::INFINITY, f64::min)
    }
}

/// All names at one place, the mean over samples.
fn distances(dim: usize, variance: f64, context: &Context) -> Outcome<Distances> {
    context.doing(&format!("psi-accuracy: D = {dim}, S = {variance}"))?;
    let samples = SAMPLES[usize::from(context.quick)];
    let seeds: Vec<u64> = (0..samples).map(|s| context.seed * 1000 + s).collect();
    let all =
        seeds.par_iter().map(|&seed| one(dim, variance, seed, context.quick)).collect::<Result<Vec<_>>>()?;
    let mean = |f: &dyn Fn(&Distances) -> [f64; 3]| {
        [0, 1, 2].map(|c| all.iter().map(|d| f(d)[c]).sum::<f64>() / samples as f64)
    };
    Ok(Distances {
        rules: (0..all[0].rules.len()).map(|k| mean(&|d| d.rules[k])).collect(),
        own: mean(&|d| d.own),
    })
}

fn one(dim: usize, variance: f64, seed: u64, quick: bool) -> Result<Distances> {
    let sample = Sample::new(dim, variance, seed)?;
    let kernel = Matern32::new(dim);
    let psi = |rule: &dyn Expectation| -> Result<Psi> { rule.psi(&kernel, &sample.q, &sample.z) };
    let proxy = psi(&MonteCarlo::new(PROXY, seed + APART))?;
    let reference = |seed| psi(&QuasiMonteCarlo::new(REFERENCE[usize::from(quick)], seed));
    let (truth, again) = (reference(seed + APART)?, reference(seed + 2 * APART)?);
    let to = |found: &Psi| {
        [l1(&found.psi1, &proxy.psi1), l1(&found.psi1, &truth.psi1), l1(&found.psi2, &truth.psi2)]
    };
    let best = |name: &str| -> Result<[f64; 3]> {
        let mut least = [f64::INFINITY; 3];
        for rule in rules(name, dim, seed) {
            let now = to(&psi(&*rule)?);
            least.iter_mut().zip(now).for_each(|(a, b)| *a = a.min(b));
        }
        Ok(least)
    };
    let [_, psi1, psi2] = to(&again);
    let own = [l1(&proxy.psi1, &truth.psi1), psi1, psi2];
    Ok(Distances { rules: names().map(best).collect::<Result<_>>()?, own })
}

fn names() -> impl Iterator<Item = &'static str> {
    FIRST.into_iter().chain(SECOND.into_iter().skip(1)).chain(BEYOND)
}

/// Runs the experiment.
pub fn run(context: &Context) -> Outcome<Part> {
    let dims: Vec<usize> = (1..=LARGEST[usize::from(context.quick)]).collect();
    let over_dims =
        dims.iter().map(|&d| distances(d, VARIANCE, context)).collect::<Outcome<Vec<Distances>>>()?;
    let over_variances =
        VARIANCES.iter().map(|&s| distances(DIM, s, context)).collect::<Outcome<Vec<Distances>>>()?;
    let curves = |slug, title: String, of: &[Distances], which: usize, by_dim: bool| Curves {
        slug,
        title,
        x_title: if by_dim { "D".into() } else { "S".into() },
        y_title: "L1 distance".into(),
        x: if by_dim { dims.iter().map(|d| *d as f64).collect() } else { VARIANCES.to_vec() },
        lines: names()
            .enumerate()
            .map(|(k, name)| (name.to_string(), of.iter().map(|d| d.rules[k][which]).collect()))
            .collect(),
        log_x: !by_dim,
    };
    let all = vec![
        curves("", format!("Ψ1 to {PROXY} draws, S = {VARIANCE}"), &over_dims, 0, true),
        curves("psi1", format!("Ψ1 to the reference, S = {VARIANCE}"), &over_dims, 1, true),
        curves("psi2", format!("Ψ2 to the reference, S = {VARIANCE}"), &over_dims, 2, true),
        curves("psi1-variance", format!("Ψ1 to the reference, D = {DIM}"), &over_variances, 1, false),
        curves("psi2-variance", format!("Ψ2 to the reference, D = {DIM}"), &over_variances, 2, false),
    ];
    let pictures = pictures(&all)?;
    let mut notes = notes(&all, context.quick);
    let places = dims.iter().map(|d| (*d, VARIANCE)).chain(VARIANCES.map(|s| (DIM, s)));
    notes.insert(1, errors(&places.zip(over_dims.iter().chain(&over_variances)).collect::<Vec<_>>()));
    Ok(Part {
        name: "psi-accuracy",
        title: "The accuracy of Ψ: the supplement's Figure 1".into(),
        about: vec![format!(
            "Matérn 3/2 with unit lengthscales, N = 40, M = 20, μ and Z from N(0, I). The distance is Σ|Ψ − \
             reference|, the mean over {} samples. The papers' reference is {PROXY} draws, whose own error hides \
             whatever is better; ours is quasi-Monte Carlo with {} points. Minimal skew and the scaled rule have \
             the best parameters of a grid, chosen anew for every sample and distance.",
            SAMPLES[usize::from(context.quick)],
            REFERENCE[usize::from(context.quick)],
        )],
        curves: all,
        pictures,
        notes,
        ..Part::default()
    })
}

/// The figures, each with a title of its own.
fn pictures(all: &[Curves]) -> Outcome<Vec<Picture>> {
    let picture =
        |k: usize, slug: &str, more: &str, only: Option<&[&str]>, caption: &str| -> Outcome<Picture> {
            let curves = Curves { title: format!("{}{more}", all[k].title), ..all[k].clone() };
            Ok(Picture { slug: slug.into(), caption: caption.into(), figure: curves.figure(only)? })
        };
    Ok(vec![
        picture(
            0,
            "figure-1a",
            ": grids and draws",
            Some(&FIRST),
            "As the supplement's Figure 1a: the unscented rule beside Gauss-Hermite and Monte Carlo.",
        )?,
        picture(
            0,
            "figure-1b",
            ": kinds of sigma points",
            Some(&SECOND),
            "As the supplement's Figure 1b: the unscented rule beside other sigma points, each with its best \
             parameters.",
        )?,
        picture(1, "psi1", "", None, "The same against a reference that is far better than 10,000 draws.")?,
        picture(2, "psi2", "", None, "The same of Ψ2.")?,
        picture(
            3,
            "psi1-variance",
            "",
            None,
            "Ψ1 as a function of the inputs' variance; lengthscales are 1.",
        )?,
        picture(4, "psi2-variance", "", None, "The same of Ψ2.")?,
    ])
}

/// One sentence on the errors of what the rules are measured by.
fn errors(places: &[((usize, f64), &Distances)]) -> String {
    let usual = places.iter().find(|(at, _)| *at == (DIM, VARIANCE)).map_or(places[0].1, |(_, d)| *d);
    let doubt = |d: &Distances| d.doubt(1).max(d.doubt(2));
    let worst = places.iter().max_by(|a, b| doubt(a.1).total_cmp(&doubt(b.1))).unwrap_or(&places[0]);
    let blind = match doubt(worst.1) > BLIND {
        true => "; there the closest rule is as good as the reference can tell",
        false => "",
    };
    format!(
        "The yardsticks err too: at D = {DIM} and S = {VARIANCE} the {PROXY} draws are at {} from our reference in Ψ1, \
         {:.2} of the unscented rule's distance, and two scramblings of the reference differ by {} in Ψ1 and {} in \
         Ψ2. That is {:.1} % of the distance of the closest rule, and at most {:.1} %, at D = {} and S = {}{blind}.",
        significant(usual.own[0]),
        usual.own[0] / usual.rules[0][1],
        significant(usual.own[1]),
        significant(usual.own[2]),
        100.0 * doubt(usual),
        100.0 * doubt(worst.1),
        worst.0.0,
        worst.0.1,
    )
}

fn notes(all: &[Curves], quick: bool) -> Vec<String> {
    let at = |curves: &Curves, name: &str, x: f64| -> f64 {
        let k = curves.x.iter().position(|v| *v == x).unwrap_or(0);
        curves.lines.iter().find(|l| l.0 == name).map_or(f64::NAN, |l| l.1[k])
    };
    let ratio = |curves: &Curves, name: &str, x: f64| at(curves, name, x) / at(curves, UNSCENTED, x);
    let mut notes = vec![format!(
        "At D = {DIM} and S = {VARIANCE} the unscented rule is {:.1} times as close as as many draws, {:.1} times as \
         close as 200 draws and {:.1} times as close as minimal skew; the best scaled rule is at {:.2} of its \
         distance. This is the supplement's picture. It holds for narrow inputs: at S = 1, 200 draws are at {:.2} \
         of the unscented rule's distance.",
        ratio(&all[1], "Monte Carlo 2D", DIM as f64),
        ratio(&all[1], "Monte Carlo 200", DIM as f64),
        ratio(&all[1], "minimal skew, best", DIM as f64),
        ratio(&all[1], "scaled unscented, best", DIM as f64),
        ratio(&all[3], "Monte Carlo 200", 1.0),
    )];
    if quick {
        notes.push("Quick: fewer dimensions and samples, and a smaller reference.".into());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_figures_have_the_same_title() {
        let curves = |title: &str| Curves {
            slug: "",
            title: title.into(),
            x_title: "D".into(),
            y_title: "distance".into(),
            x: vec![1.0, 2.0],
            lines: names().map(|name| (name.to_string(), vec![1.0, 2.0])).collect(),
            log_x: false,
        };
        let all = pictures(&["a", "b", "c", "d", "e"].map(curves)).unwrap();
        let title = |p: &Picture| {
            let bold = p.figure.svg().split("font-weight=\"bold\">").nth(1).expect("a title");
            bold.split('<').next().unwrap_or_default().to_string()
        };
        let mut titles: Vec<String> = all.iter().map(title).collect();
        assert_eq!(titles[..2], ["a: grids and draws", "a: kinds of sigma points"]);
        titles.sort();
        titles.dedup();
        assert_eq!(titles.len(), all.len());
    }

    #[test]
    fn the_sentence_on_errors_names_the_place_of_the_worst() {
        let distances = |own: [f64; 3]| Distances { rules: vec![[1.0, 2.0, 4.0], [3.0, 1.0, 8.0]], own };
        let (usual, worse) = (distances([0.5, 0.01, 0.02]), distances([0.5, 0.01, 0.4]));
        let said = errors(&[((DIM, VARIANCE), &usual), ((2, 3.0), &worse)]);
        for words in [
            "at 0.500 from our",
            "0.25 of the",
            "0.0100 in Ψ1 and 0.0200 in Ψ2",
            "is 1.0 % of",
            "10.0 %, at D = 2 and S = 3.",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        let blind = distances([0.5, 0.9, 0.4]);
        assert!(
            errors(&[((DIM, VARIANCE), &blind)])
                .ends_with("S = 0.1; there the closest rule is as good as the reference can tell.")
        );
    }

    #[test]
    fn the_reference_is_nearer_to_itself_than_the_draws_are_to_it() {
        let found = one(2, VARIANCE, 0, true).unwrap();
        assert!(found.own[1] < 0.1 * found.own[0], "{:?}", found.own);
        assert!(found.doubt(1) < 0.2 && found.doubt(2) < 0.2, "{:?}", found.own);
    }
}
