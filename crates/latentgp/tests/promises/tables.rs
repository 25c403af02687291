//! Every format gives the same table; every damaged or unsuitable file gives an error and no panic.

use latentgp::data::csv::{CsvOptions, Delimiter, read};
use latentgp::data::mat5::read_nd;
use latentgp::data::table::{Column, Table};
use latentgp::{Error, Mat};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables").join(name).display().to_string()
}

fn table(name: &str) -> Table {
    Table::read(&fixture(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn refused(name: &str) -> String {
    Table::read(&fixture(name)).expect_err(name).to_string()
}

fn csv(text: &str) -> Table {
    Table::from_csv(text.as_bytes(), "t.csv").unwrap_or_else(|e| panic!("{text:?}: {e}"))
}

fn csv_error(text: impl AsRef<[u8]>) -> Error {
    Table::from_csv(text.as_ref(), "t.csv").expect_err("a refusal")
}

/// The bits, with one NaN for all.
fn bits(m: &Mat) -> Vec<u64> {
    m.as_slice().iter().map(|v| if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() }).collect()
}

fn numbers() -> Mat {
    let nan = f64::NAN;
    Mat::from_rows(&[
        [0.1, -0.0, 1.0 / 3.0],
        [1e-300, nan, -123456789.125],
        [5e-324, f64::MAX, 7.0],
        [nan, 9007199254740992.0, -1e22],
    ])
}

#[test]
fn every_format_gives_the_same_bits() {
    let mut names = vec![
        "numbers.csv",
        "numbers.tsv",
        "numbers.npy",
        "fortran.npy",
        "big_endian.npy",
        "one.npz",
        "one.npz:Y",
        "two.npz:Y",
        "numbers.mat",
        "numbers.mat:Y",
        "several.mat:Y",
        "big_endian.mat",
    ];
    if cfg!(feature = "parquet") {
        names.extend([
            "numbers_none.parquet",
            "numbers_snappy.parquet",
            "numbers_gzip.parquet",
            "numbers_zstd.parquet",
        ]);
    }
    for name in names {
        let t = table(name);
        let m = t.to_mat().unwrap();
        assert_eq!((m.rows(), m.cols()), (4, 3), "{name}");
        assert_eq!(bits(&m), bits(&numbers()), "{name}");
        let named = name.ends_with(".csv") || name.ends_with(".parquet");
        assert_eq!(t.columns(), if named { ["a", "b", "c"] } else { ["0", "1", "2"] }, "{name}");
    }
}

#[test]
fn what_is_written_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let kinds = ["csv", "tsv", "npy", "parquet"];
    for kind in &kinds[..if cfg!(feature = "parquet") { 4 } else { 3 }] {
        for names in [["a", "b", "c"], ["0", "1", "2"]] {
            let path = dir.path().join(format!("t.{kind}"));
            let t = Table::from_mat("t", &names, &numbers()).unwrap();
            t.write(&path).unwrap();
            let back = Table::read(path.to_str().unwrap()).unwrap();
            assert_eq!(bits(&back.to_mat().unwrap()), bits(&numbers()), "{kind}");
            assert!(back.columns() == names || *kind == "npy", "{kind}");
        }
    }
    assert!(
        Table::from_mat("t", &["a"], &Mat::zeros(1, 1)).unwrap().write(dir.path().join("t.xls")).is_err()
    );
}

#[test]
fn words_are_written_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let words = ["plain", "with, comma", "with \"quote\"", "two\nlines", "", "é"];
    let columns =
        vec![Column::numbers("x", vec![f64::NAN, 1.0, 2.0, 3.0, 4.5, 6.0]), Column::words("w", words)];
    let t = Table::new("t", columns).unwrap();
    let kinds = ["csv", "tsv", "parquet"];
    for kind in &kinds[..if cfg!(feature = "parquet") { 3 } else { 2 }] {
        let path = dir.path().join(format!("t.{kind}"));
        t.write(&path).unwrap();
        let back = Table::read(path.to_str().unwrap()).unwrap();
        assert_eq!(back.text("w").unwrap(), words, "{kind}");
        assert_eq!(back.text("x").unwrap(), ["", "1", "2", "3", "4.5", "6"], "{kind}");
    }
    let e = t.write(dir.path().join("t.npy")).unwrap_err().to_string();
    assert!(e.contains("column `w`: holds text"), "{e}");
    let mut alone = Vec::new();
    Table::new("t", vec![Column::numbers("x", vec![1.0, f64::NAN, 2.0])])
        .unwrap()
        .write_csv(&mut alone)
        .unwrap();
    assert_eq!(String::from_utf8(alone.clone()).unwrap(), "x\n1\n\"\"\n2\n");
    assert_eq!(Table::from_csv(&alone[..], "t").unwrap().text("x").unwrap(), ["1", "", "2"]);
}

#[test]
fn headers_are_found() {
    for (text, names, rows) in [
        ("a,b\n1,2\n3,4\n", vec!["a", "b"], 2),
        ("1,2\n3,4\n", vec!["0", "1"], 2),
        ("1,2\n", vec!["0", "1"], 1),
        ("a,b\n", vec![], 0),
        ("id,x\np,1\nq,2\n", vec!["id", "x"], 2),
        ("p,1\nq,2\n", vec!["0", "1"], 2),
        (",x\n0,1\n1,2\n", vec!["0", "x"], 2),
        ("x,y\n,\n,\n", vec!["x", "y"], 2),
        ("NA,1\n2,3\n", vec!["0", "1"], 2),
        ("species\nsetosa\nsetosa\nvirginica\n", vec!["species"], 3),
        ("setosa\nsetosa\nvirginica\n", vec!["0"], 3),
        ("p1\np2\np3\n", vec!["0"], 3),
        ("a,b,\n1,2,\n3,4,\n", vec!["a", "b"], 2),
        ("1,2,\n3,4,\n", vec!["0", "1", "2"], 2),
        ("x,notes\n1,\n2,\n", vec!["x", "notes"], 2),
        ("\u{feff}x;y\r\n1;2\r\n\r\n\r\n", vec!["x", "y"], 1),
        ("  year  value\n  1949   112\n  1950   118", vec!["year", "value"], 2),
        ("x, y\n1, 2\n   \n3, 4\n  \n", vec!["x", "y"], 2),
    ] {
        match Table::from_csv(text.as_bytes(), "t") {
            Ok(t) => assert_eq!((t.columns(), t.rows()), (names, rows), "{text:?}"),
            Err(e) => assert!(rows == 0 && e.to_string().contains("no rows below it"), "{text:?}: {e}"),
        }
    }
}

#[test]
fn options_overrule_detection() {
    let how = CsvOptions { delimiter: Some(Delimiter::Byte(b':')), header: Some(false) };
    let t = read("1:2\n3:4\n".as_bytes(), "t", how).unwrap();
    assert_eq!(t.to_mat().unwrap(), Mat::from_rows(&[[1.0, 2.0], [3.0, 4.0]]));
    let how = CsvOptions { header: Some(true), ..Default::default() };
    assert_eq!(read("1,2\n3,4\n".as_bytes(), "t", how).unwrap().columns(), ["1", "2"]);
}

#[test]
fn missing_values_and_words() {
    let t = csv("x,w\n,NA\nNA,\nnan,a\nNULL,None\nnone,b\n?,a\n-,-\n1,a\n");
    assert_eq!(t.numeric_columns(), ["x"]);
    assert_eq!(t.column("x").unwrap().iter().filter(|v| v.is_nan()).count(), 7);
    assert_eq!(t.text("w").unwrap(), ["NA", "", "a", "None", "b", "a", "-", "a"]);
    assert!(csv("x,y\n1,NA\n2,\n").column("y").unwrap().iter().all(|v| v.is_nan()));
}

#[test]
fn a_column_may_begin_with_more_missing_cells_than_are_looked_at() {
    let rows = |end: &str| format!("x,late\n{}1,{end}\n", "1,NA\n".repeat(1500));
    let numbers = csv(&rows("2.5"));
    assert_eq!(numbers.column("late").unwrap()[1500], 2.5);
    let words = csv(&rows("Windhoek"));
    assert_eq!(words.text("late").unwrap()[1499..], ["NA", "Windhoek"]);
}

fn at(e: Error) -> (usize, String, String) {
    match e {
        Error::Csv { path, line, column, reason } => {
            assert_eq!(path, "t.csv");
            (line, column, reason)
        }
        other => panic!("expected a place in the file, found {other:?}"),
    }
}

#[test]
fn a_bad_cell_is_named_with_its_place() {
    let long = format!("x,y\n{}3,4\n5,oops\n", "1,2\n".repeat(2000));
    let late = format!("x,y\na,1\nb,2\n{}", "3,4\n".repeat(2000));
    let words_first = format!("x,y\n{}{}", "a,1\n".repeat(1000), "3,4\n".repeat(2000));
    for (text, line, column, says) in [
        ("x,y\n1,2\n3,oops\n5,6\n", 3, "y", "found `oops`"),
        ("x,y\n\n1,2\n\n\"a\nb\",1\n1,oops\n2,3\n3,4\n", 5, "x", "found `a\nb`"),
        ("1,2\n3,oops\n5,6\n", 2, "1", "found `oops`"),
        ("x\r\n1\r\n\"2\"\r\noops\r\n", 4, "x", "found `oops`"),
        (&long, 2003, "y", "found `oops`"),
        (&late, 2, "x", "found `a`"),
        (&words_first, 2, "x", "found `a`"),
        ("x,y\n1,2\n3,inf\n", 3, "y", "`inf` is infinite"),
        ("x,y\n1,2\n3,1e999\n", 3, "y", "infinite"),
        ("x;y\n1;2,5\n3;4,5\n", 2, "y", "write decimals with a point"),
        ("3,14;2,5\n1,0;2,2\n", 1, "0", "write decimals with a point"),
        ("x,y\n1,\"1,234\"\n", 2, "y", "thousands"),
        ("x,y\n1,2\n3\n5,6\n", 3, "y", "expected 2 cells as in the first row, found 1"),
        ("x,y\n1,2\n3,4,5\n", 3, "2", "expected 2 cells as in the first row, found 3"),
        ("7,8\n3\n5,6\n", 2, "1", "expected 2 cells as in the first row, found 1"),
        ("x\n1\n2\n\n3\n", 4, "0", "blank line"),
    ] {
        let (l, c, reason) = at(csv_error(text));
        assert_eq!((l, c.as_str()), (line, column), "{:?}: {reason}", &text[..text.len().min(60)]);
        assert!(reason.contains(says), "{reason}");
    }
}

#[test]
fn text_that_is_no_utf8_is_named_with_its_place() {
    let (line, column, reason) = at(csv_error(b"x,w\n1,a\n2,caf\xe9\n"));
    assert_eq!((line, column.as_str()), (3, "w"));
    assert!(reason.contains("0xE9"), "{reason}");
    let far = [b"x,w\n".to_vec(), b"1,a\n".repeat(2000), b"2,\xff\n".to_vec()].concat();
    assert_eq!(at(csv_error(far)).0, 2002);
}

#[test]
fn other_files_are_not_taken_for_csv() {
    for (bytes, says) in [
        (&b""[..], "is empty"),
        (b"\n\n  \n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"x,x\n1,2\n", "both called `x`"),
        (b"\xff\xfex\0", "UTF-16"),
        (b"PK\x03\x04", "zip"),
        (b"\x93NUMPY", ".npy"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"1,2\n\0\n", "binary"),
    ] {
        let e = csv_error(bytes).to_string();
        assert!(e.contains(says), "{e}");
    }
    assert!(matches!(Table::read("no/such/file.csv"), Err(Error::Io { .. })));
    assert!(
        matches!(Table::read("no/such/file.npz:Y"), Err(Error::Io { path, .. }) if path == "no/such/file.npz")
    );
    assert!(Table::read(env!("CARGO_MANIFEST_DIR")).is_err());
}

#[test]
fn npy_of_every_type() {
    let counts = [[1.0, 2.0, 3.0], [100.0, 0.0, 127.0]];
    for kind in "i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 be_i2 be_u4 be_i8 be_f4".split(' ') {
        assert_eq!(table(&format!("counts_{kind}.npy")).to_mat().unwrap(), Mat::from_rows(&counts), "{kind}");
    }
    assert_eq!(table("counts_b1.npy").to_mat().unwrap().row(1), &[1.0, 0.0, 1.0]);
    assert_eq!(table("vector.npy").text("0").unwrap(), ["3", "1", "2"]);
    assert_eq!(table("words.npy").text("0").unwrap(), ["setosa", "versicolor", "é", ""]);
    assert_eq!(table("bytes.npy").text("0").unwrap(), ["a", "bc"]);
    assert_eq!(table("two.npz:labels").text("0").unwrap(), ["0", "1", "2", "1"]);
}

#[test]
fn npy_that_is_no_table_says_why() {
    for (name, says) in [
        ("cube.npy", "3 dimensions (2 × 3 × 4)"),
        ("objects.npy", "pickled"),
        ("infinite.npy", "row 2, column `1`: is infinite"),
        ("two.npz", "several arrays, `Y`, `labels`"),
        ("two.npz:y", "did you mean `Y`? It has `Y`, `labels`"),
    ] {
        let e = refused(name);
        assert!(e.contains(says), "{e}");
    }
}

#[test]
fn mat_of_every_class() {
    let counts = [[1.0, 2.0, 3.0], [100.0, 0.0, 127.0]];
    for kind in "i1 i2 i4 i8 u1 u2 u4 u8 f4 f8".split(' ') {
        assert_eq!(
            table(&format!("several.mat:c_{kind}")).to_mat().unwrap(),
            Mat::from_rows(&counts),
            "{kind}"
        );
    }
    assert_eq!(table("several.mat:flags").to_mat().unwrap().row(0), &[0.0, 0.0, 1.0]);
    let (shape, values) = read_nd(&fixture("several.mat:cube")).unwrap();
    assert_eq!(shape, [2, 3, 4]);
    assert_eq!(values, (0..24).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn mat_that_is_no_table_says_why() {
    for (name, says) in [
        ("several.mat", "several arrays"),
        ("several.mat:why", "has no array `why`"),
        ("several.mat:cube", "3 (2 × 3 × 4)"),
        ("several.mat:cells", "a cell array"),
        ("several.mat:record", "a struct"),
        ("several.mat:text", "text"),
        ("several.mat:z", "complex"),
        ("several.mat:empty", "0 × 3"),
        ("hdf5.mat", "save it with -v7"),
    ] {
        let e = refused(name);
        assert!(e.contains(says), "{e}");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_of_every_type() {
    let t = table("kinds.parquet");
    for (name, cells) in [
        ("flag", ["1", "", "0"]),
        ("i8", ["-1", "2", ""]),
        ("u32", ["4294967295", "1", ""]),
        ("u64", ["1.8446744073709552e19", "1", ""]),
        ("i64", ["-1099511627776", "1", ""]),
        ("f16", ["0.5", "-2", "1"]),
        ("f32", ["0.5", "", "1"]),
        ("word", ["x", "", "é"]),
        ("class", ["p", "q", "p"]),
        ("day", ["2026-11-15", "", "1949-01-01"]),
        ("price", ["1.25", "", "-3.5"]),
    ] {
        assert_eq!(t.text(name).unwrap(), cells, "{name}");
    }
    for name in ["nanos", "millis"] {
        let times = t.text(name).unwrap();
        assert!(times[0].starts_with("1970-01-01 00:00:00") && times[1].is_empty(), "{times:?}");
        assert!(times[2].starts_with("2001-09-09 01:46:40"), "{times:?}");
    }
    assert!(refused("nested.parquet").contains("is nested"));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_needs_its_feature() {
    assert!(refused("numbers_none.parquet").contains("without the feature `parquet`"));
}

/// Writes `bytes` under `name` and reads them as a table.
fn read_bytes(dir: &Path, name: &str, bytes: &[u8]) -> Result<Table, Error> {
    let path: PathBuf = dir.join(name);
    // A new file: some file systems flush one that is overwritten.
    fs::remove_file(&path).ok();
    fs::write(&path, bytes).unwrap();
    Table::read(path.to_str().unwrap())
}

fn binary_fixtures() -> Vec<&'static str> {
    let mut names =
        vec!["numbers.npy", "words.npy", "one.npz", "numbers.mat", "big_endian.mat", "numbers_z.mat"];
    if cfg!(feature = "parquet") {
        names.extend(["numbers_snappy.parquet", "kinds.parquet"]);
    }
    names
}

#[test]
fn every_truncation_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for name in binary_fixtures() {
        let bytes = fs::read(fixture(name)).unwrap();
        assert!(read_bytes(dir.path(), name, &bytes).is_ok(), "{name}");
        let path = dir.path().join(name);
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        for n in (0..bytes.len()).rev() {
            file.set_len(n as u64).unwrap();
            assert!(Table::read(path.to_str().unwrap()).is_err(), "{name} cut at {n}");
        }
    }
}

/// Keeps quiet about the panics of the Parquet decoder, which are caught and become errors.
fn hush() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.location().is_some_and(|l| l.file().contains("parquet")) {
            report(info);
        }
    }));
}

#[test]
fn no_damaged_byte_panics() {
    // Small files are damaged at every byte, large ones at about that many.
    const PLACES: usize = 400;
    hush();
    let dir = tempfile::tempdir().unwrap();
    for name in binary_fixtures() {
        let bytes = fs::read(fixture(name)).unwrap();
        for i in (0..bytes.len()).step_by(bytes.len().div_ceil(PLACES)) {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[i] ^= flip;
                // Either an error or a table: a number may have changed into another one.
                if let Ok(t) = read_bytes(dir.path(), name, &damaged) {
                    assert!(t.rows() > 0, "{name}, byte {i}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_numbers_survive_csv(
        rows in prop::collection::vec([any::<f64>(), any::<f64>()], 1..8),
        single in any::<bool>(),
    ) {
        let finite = |v: f64| if v.is_infinite() { f64::NAN } else { v };
        let m = Mat::from_fn(rows.len(), if single { 1 } else { 2 }, |i, j| finite(rows[i][j]));
        let t = Table::from_mat("t", &["x", "y"][..m.cols()], &m).unwrap();
        let mut out = Vec::new();
        t.write_csv(&mut out).unwrap();
        let back = Table::from_csv(&out[..], "t").unwrap();
        prop_assert_eq!(bits(&back.to_mat().unwrap()), bits(&m));
        prop_assert_eq!(back.columns(), t.columns());
    }

    #[test]
    fn no_text_panics(text in "[,;\t\n\r\" 1a.\\-éN]{0,60}") {
        if let Ok(t) = Table::from_csv(text.as_bytes(), "t") {
            prop_assert!(t.rows() > 0);
            let columns = t.numeric_columns();
            prop_assert!(t.numeric(&columns).unwrap().as_slice().iter().all(|v| !v.is_infinite()));
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        Table::from_csv(&bytes[..], "t").ok();
    }
}
