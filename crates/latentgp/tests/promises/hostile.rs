//! Hostile text, tables and model files: an error in words or something sound, never a panic, and no work without limit.
//!
//! Mutations follow from a seed. Those of model files are sealed anew, so that they reach what is behind the checksum.

use latentgp::file::{ModelFile, Store, TrainedRegression, TrainedSpace};
use latentgp::{Mat, data::table::Table, expectation, kernel, likelihood, model::prior};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::path::Path;

const TEXTS: [&str; 8] = [
    "rbf(variance=2.0, lengthscale=[1.0,0.5,3.0], bounds=[lengthscale=[0.1, 10]], prior=[variance=gamma(2, 1)])",
    "periodic(period=12) * rbf + linear(dims=[0, 2])",
    "mlp(hidden=[3,6], base=(rbf + white) * linear(dims=[1]), bias=unit, seed=3)",
    "(rbf + linear)(dims=[2, 0]) * spectral_mixture(components=4)",
    "gauss_hermite(points=3)",
    "monte_carlo(samples=7, seed=3, fresh=true)",
    "times(column=day, std=0.1, dim=1, learn=true)",
    "student_t(df=4)",
];
/// What is put into texts.
const PIECES: [&str; 16] = [
    "(",
    ")",
    "[",
    "]",
    "=",
    ",",
    "+",
    "*",
    "-",
    "1e999",
    "99999999999999999999",
    "nan",
    "rbf",
    "dims",
    "\u{0}",
    "é",
];

fn mutated(text: &str, rng: &mut ChaCha8Rng) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..=chars.len());
        match rng.random_range(0..4) {
            0 if at < chars.len() => {
                chars.remove(at);
            }
            1 => {
                let end = (at + rng.random_range(0..12)).min(chars.len());
                let part: Vec<char> = chars[at..end].to_vec();
                chars.splice(at..at, part);
            }
            2 => chars.truncate(at),
            _ => {
                let piece = PIECES[rng.random_range(0..PIECES.len())];
                chars.splice(at..at, piece.chars());
            }
        }
    }
    chars.into_iter().collect()
}

#[test]
fn expressions_are_read_or_refused_in_words() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut read, mut refused) = (0, 0);
    for k in 0..20_000 {
        let text = mutated(TEXTS[k % TEXTS.len()], &mut rng);
        let outcomes = [
            kernel::parse(&text, 3).map(|k| assert_eq!(&*kernel::parse(&k.expression(), 3).unwrap(), &*k)),
            expectation::parse(&text).map(|rule| assert!(!rule.to_string().is_empty())),
            likelihood::named(&text).map(drop),
            prior::parse(&text).map(drop),
        ];
        for outcome in outcomes {
            match outcome {
                Ok(()) => read += 1,
                Err(e) => {
                    refused += 1;
                    assert!(!e.to_string().is_empty());
                }
            }
        }
    }
    assert!(read > 200 && refused > 20_000, "{read} read, {refused} refused");
}

#[test]
fn tables_are_read_or_refused_in_words() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let dir = tempfile::tempdir().unwrap();
    let csv = "day,a,b,class\n2024-01-01,1.5,NA,x\n2024-01-02,-2e3,4,\"y, z\"\n2024-01-03,,7,x\n".repeat(3);
    let npy = {
        let path = dir.path().join("a.npy");
        let table = Table::from_mat("t", &["a", "b"], &Mat::from_fn(5, 2, |i, j| (i * j) as f64)).unwrap();
        table.write_npy(&path).unwrap();
        std::fs::read(&path).unwrap()
    };
    let (mut read, mut refused) = (0, 0);
    for k in 0..6000 {
        let source = if k % 2 == 0 { csv.as_bytes() } else { &npy };
        let mut bytes = source.to_vec();
        for _ in 0..rng.random_range(1..6) {
            let at = rng.random_range(0..bytes.len());
            match rng.random_range(0..3) {
                0 => bytes[at] = rng.random_range(0..=255u32) as u8,
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, *b"0,\n\"-e;\t".get(rng.random_range(0..8)).unwrap()),
            }
        }
        let outcome = if k % 2 == 0 {
            Table::from_csv(&bytes[..], "t")
        } else {
            let path = dir.path().join("m.npy");
            std::fs::write(&path, &bytes).unwrap();
            Table::read(path.to_str().unwrap())
        };
        match outcome {
            Ok(table) => {
                read += 1;
                assert!(table.iter().all(|c| c.len() == table.rows()));
            }
            Err(e) => {
                refused += 1;
                assert!(!e.to_string().is_empty());
            }
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}

/// Puts a hostile value somewhere into a header.
fn poison(value: &mut Value, rng: &mut ChaCha8Rng) {
    let descend = rng.random_range(0..5) > 0;
    match value {
        Value::Object(map) if descend && !map.is_empty() => {
            let key = map.keys().nth(rng.random_range(0..map.len())).unwrap().clone();
            match rng.random_range(0..12) {
                0 => drop(map.remove(&key)),
                _ => poison(map.get_mut(&key).unwrap(), rng),
            }
        }
        Value::Array(all) if descend && !all.is_empty() => {
            let at = rng.random_range(0..all.len());
            poison(&mut all[at], rng);
        }
        Value::String(text) if rng.random_range(0..2) == 0 => *text = mutated(text, rng),
        other => {
            let values = [
                json!(null),
                json!(-1),
                json!(0),
                json!(u64::MAX),
                json!(1e308),
                json!(-0.5),
                json!("x"),
                json!([]),
                json!({}),
                json!(true),
                json!("gauss_hermite(points=90)"),
                json!(["a", "a"]),
            ];
            *other = values[rng.random_range(0..values.len())].clone();
        }
    }
}

fn poisoned(whole: &ModelFile, rng: &mut ChaCha8Rng) -> ModelFile {
    let mut file = whole.clone();
    for _ in 0..rng.random_range(1..3) {
        if rng.random_range(0..3) > 0 {
            poison(&mut file.header, rng);
            continue;
        }
        let name = file.tensors.keys().nth(rng.random_range(0..file.tensors.len())).unwrap().clone();
        let old = &file.tensors[&name];
        let (rows, cols) = (old.rows(), old.cols());
        let value = [0.0, -1.0, f64::NAN, f64::INFINITY, 1e308, 1e-308][rng.random_range(0..6)];
        let new = match rng.random_range(0..4) {
            0 => Mat::filled(rows, cols, value),
            1 => Mat::filled(cols, rows, value),
            2 => Mat::zeros(0, cols),
            _ if old.is_empty() => Mat::zeros(1, 1),
            _ => {
                let mut some = old.clone();
                let at = rng.random_range(0..rows * cols);
                some.as_mut_slice()[at] = value;
                some
            }
        };
        file.tensors.insert(name, new);
    }
    file
}

#[test]
fn model_files_are_refused_or_sound() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/promises/version_0_1");
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let (mut read, mut refused) = (0, 0);
    for entry in
        ["bayesian-gplvm", "gplvm", "ppca", "gp", "sparse", "fitc", "spgp-dr", "vdmgp", "laplace", "svgp"]
    {
        let whole = ModelFile::read(folder.join(format!("{entry}.lgp"))).unwrap();
        for _ in 0..60 {
            let bytes = poisoned(&whole, &mut rng).to_bytes().unwrap();
            let file = ModelFile::from_bytes(&bytes).unwrap();
            let outcome = match TrainedSpace::holds(&file.kind) {
                true => TrainedSpace::from_file(file).and_then(Store::verified).and_then(|trained| {
                    let latent = trained.model.latent()?;
                    trained.model.reconstruct(&latent).map(drop)
                }),
                false => TrainedRegression::from_file(file).and_then(Store::verified).and_then(|trained| {
                    let (x, _) = trained.model.data()?;
                    trained.model.predict(&x, None).map(drop)
                }),
            };
            match outcome {
                Ok(()) => read += 1,
                Err(e) => {
                    refused += 1;
                    assert!(!e.to_string().is_empty());
                }
            }
        }
    }
    assert!(read > 10 && refused > 200, "{read} read, {refused} refused");
}

#[test]
fn a_model_file_does_not_set_its_own_limit_of_nodes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/promises/version_0_1");
    let mut file = ModelFile::read(folder.join("bayesian-gplvm.lgp")).unwrap();
    file.header["expectation"]["expression"] = json!("gauss_hermite(points=90)");
    file.header["expectation"]["max_nodes"] = json!(1_000_000_000);
    let error = TrainedSpace::from_file(file).err().unwrap().to_string();
    assert!(error.contains("LATENTGP_MAX_NODES=1000000000"), "{error}");
}
