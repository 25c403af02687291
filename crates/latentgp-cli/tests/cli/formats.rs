//! The same numbers in every format give the same model, to the bit.

use crate::program::Folder;
use latentgp::data::table::Table;
use latentgp::file::ModelFile;
use latentgp::{Mat, data};
use std::io::Write;

/// A MAT v5 file with one matrix of doubles.
fn mat5(name: &str, m: &Mat) -> Vec<u8> {
    let element = |kind: u32, payload: &[u8]| {
        let mut all = [kind.to_le_bytes(), (payload.len() as u32).to_le_bytes()].concat();
        all.extend_from_slice(payload);
        all.resize(all.len().next_multiple_of(8), 0);
        all
    };
    let int32 = |values: [i32; 2]| values.map(i32::to_le_bytes).concat();
    let columns: Vec<u8> = m.t().as_slice().iter().flat_map(|v| v.to_le_bytes()).collect();
    let body = [
        element(6, &int32([6, 0])),
        element(5, &int32([m.rows() as i32, m.cols() as i32])),
        element(1, name.as_bytes()),
        element(9, &columns),
    ]
    .concat();
    let mut file = vec![b' '; 124];
    file[..6].copy_from_slice(b"MATLAB");
    file.extend([0x00, 0x01, b'I', b'M']);
    file.extend(element(14, &body));
    file
}

#[test]
fn csv_npy_npz_mat_and_parquet_give_the_same_bits() {
    let folder = Folder::new();
    let set = data::dataset("oil-flow", Some(25), 3).unwrap();
    let mut values = set.values.clone();
    values[(3, 4)] = f64::NAN;
    let table = Table::from_mat("t", &set.columns, &values).unwrap();
    for name in ["t.csv", "t.tsv", "t.npy", "t.parquet"] {
        table.write(folder.path(name)).unwrap();
    }
    let mut zip = zip::ZipWriter::new(std::fs::File::create(folder.path("t.npz")).unwrap());
    for name in ["other.npy", "Y.npy"] {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(&std::fs::read(folder.path("t.npy")).unwrap()).unwrap();
    }
    zip.finish().unwrap();
    std::fs::write(folder.path("t.mat"), mat5("Y", &values)).unwrap();

    let options = "--latent-dim 3 --inducing 7 --kernel matern32 --max-iter 12 --quiet";
    let mut models = Vec::new();
    for name in ["t.csv", "t.tsv", "t.npy", "t.npz:Y", "t.mat:Y", "t.mat", "t.parquet", "-"] {
        let csv = if name == "-" { folder.read("t.csv") } else { String::new() };
        let fit = folder.run_with(&format!("fit {name} {options} --out m.lgp"), &csv);
        assert_eq!(fit.code, 0, "{name}: {}", fit.err);
        let file = ModelFile::read(folder.path("m.lgp")).unwrap();
        models.push((name, file));
    }
    let bits = |m: &Mat| m.as_slice().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    let (_, first) = &models[0];
    for (name, file) in &models[1..] {
        assert!(first.tensors.keys().eq(file.tensors.keys()));
        for (key, tensor) in &first.tensors {
            assert_eq!(bits(tensor), bits(&file.tensors[key]), "{key} of {name}");
        }
        for key in ["kernel", "scaling", "expectation", "params"] {
            assert_eq!(first.header[key], file.header[key], "{key} of {name}");
        }
    }
    // Results in every format hold the same numbers.
    let rows = |name: &str| {
        folder.ok(&format!("transform m.lgp t.csv --out {name}"));
        bits(&Table::read(folder.path(name).to_str().unwrap()).unwrap().to_mat().unwrap())
    };
    let csv = rows("l.csv");
    assert_eq!([rows("l.npy"), rows("l.parquet"), rows("l.tsv")], [csv.clone(), csv.clone(), csv]);
}

#[test]
fn labels_are_a_row_or_a_column() {
    let folder = Folder::new();
    let set = data::dataset("spiral", Some(20), 1).unwrap();
    Table::from_mat("t", &set.columns, &set.values).unwrap().write(folder.path("t.csv")).unwrap();
    let labels = Mat::from_fn(20, 1, |i, _| (i % 3) as f64);
    std::fs::write(folder.path("column.mat"), mat5("l", &labels)).unwrap();
    std::fs::write(folder.path("row.mat"), mat5("l", &labels.t())).unwrap();
    std::fs::write(folder.path("short.mat"), mat5("l", &labels.slice_rows(0, 19).t())).unwrap();
    let fit = |name: &str| folder.run(&format!("fit t.csv --model ppca --labels {name}:l --json"));
    let accuracy = |name: &str| {
        let all: serde_json::Value = serde_json::from_str(&fit(name).out).unwrap();
        all["knn_accuracy"].clone()
    };
    assert!(accuracy("row.mat").is_object());
    assert_eq!(accuracy("row.mat"), accuracy("column.mat"));
    let short = fit("short.mat");
    assert!(short.code == 3 && short.err.contains("labels are one column"), "{short:?}");
}
