//! Forecasts: the airline series by the papers' protocol, every output, and what is refused.

use crate::program::Folder;
use serde_json::Value;

/// The printed digits of the papers' table, and the differences of other machines.
const ROW: f64 = 0.05;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.ok("dataset airline --out air.csv");
    folder
}

fn number(all: &Value, key: &str) -> f64 {
    all[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {all}"))
}

#[test]
fn the_papers_row_of_the_airline_series() {
    let folder = folder();
    let series = folder.ok("dataset airline");
    let line = "forecast - --train 48 --kernel \"rbf + linear\" --expectation unscented --papers --json";
    let ended = folder.run_with(line, &series);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let all: Value = serde_json::from_str(&ended.out).unwrap();
    let row = &all["forecasts"][0];
    assert!((number(row, "nlpd") - 7.10).abs() < ROW && (number(row, "rmse") - 69.11).abs() < ROW, "{row}");
    assert_eq!(number(row, "scored"), 84.0);
    assert_eq!(row["mean"].as_array().unwrap().len(), 132);
    let certain =
        folder.json("forecast air.csv --train 48 --kernel \"rbf + linear\" --no-propagate --papers --json");
    let row = &certain["forecasts"][0];
    assert!((number(row, "nlpd") - 11.37).abs() < ROW && (number(row, "rmse") - 69.40).abs() < ROW, "{row}");
}

#[test]
fn expectations_stand_side_by_side() {
    let folder = folder();
    let common = "forecast air.csv --lag 4 --train 60 --horizon 10 --max-iter 30 --compare";
    for (kernel, count) in [("rbf + linear", 7), ("matern32", 6)] {
        for more in ["", "--correlated"] {
            let all = folder.json(&format!("{common} --kernel \"{kernel}\" {more} --json"));
            let rows = all["forecasts"].as_array().unwrap();
            assert_eq!(rows.len(), count, "{all}");
            for row in rows {
                assert!(number(row, "rmse") > 0.0 && number(row, "nlpd").is_finite());
                assert!(number(row, "kernel_evaluations") >= number(&rows[0], "kernel_evaluations"));
                assert_eq!(row["variance"].as_array().unwrap().len(), 10);
                assert!((0.0..=1.0).contains(&number(&row["coverage"], "90")));
            }
            // From a certain window the first step is the same for all.
            let first = |row: &Value| row["mean"][0].as_f64().unwrap();
            assert!(rows.iter().all(|row| (first(row) - first(&rows[0])).abs() < 1e-6), "{all}");
        }
    }
    let words = folder.ok(&format!("{common} --kernel matern32 --quiet --out all.parquet --plot all.svg"));
    assert!(words.contains("kernel evaluations") && words.contains("cubature5"), "{words}");
    assert!(folder.read("all.svg").contains("gauss_hermite"));
}

#[test]
fn the_future_goes_to_every_output() {
    let folder = folder();
    let line = "forecast air.csv --lag 3 --max-iter 20 --quiet";
    let csv = folder.ok(&format!("{line} --threads 1"));
    assert!(csv.starts_with("month,row,truth,mean,variance\n,144,,"), "{csv}");
    assert_eq!(csv.lines().count(), 25);
    assert_eq!(csv, folder.ok(&format!("{line} --threads 2")));
    assert_eq!(folder.ok(&format!("{line} --out f.csv --plot f.png")), "");
    assert_eq!(folder.read("f.csv"), csv);
    for ending in ["npy", "parquet"] {
        folder.ok(&format!("{line} --out f.{ending}"));
        assert!(folder.path(&format!("f.{ending}")).exists());
    }
    let scored = folder.ok(&format!("{line} --train 100"));
    assert!(scored.lines().nth(1).unwrap().starts_with("1957-08,103,"), "{scored}");
    let plain: String = (0..40).map(|t| format!("{}\n", (0.4 * t as f64).sin())).collect();
    folder.write("plain.csv", &plain);
    assert_eq!(folder.ok("forecast plain.csv --lag 2 --kernel rbf --horizon 3 --quiet").lines().count(), 4);
    folder.write("two.csv", "a,b\n1,2\n3,1\n2,4\n5,2\n3,3\n");
    assert!(folder.ok("forecast two.csv --column b --lag 1 --horizon 2 --quiet").starts_with("row,truth"));
}

#[test]
fn origins_roll() {
    let folder = folder();
    let line = "forecast air.csv --lag 4 --train 80 --horizon 6 --stride 20 --max-iter 20 --backtest";
    let all = folder.json(&format!("{line} --expectation unscented --json --out b.csv"));
    assert_eq!(all["origins"], serde_json::json!([84, 104, 124]));
    let row = &all["backtest"][0];
    assert_eq!(number(row, "scored"), 18.0);
    assert_eq!(row["by_step"].as_array().unwrap().len(), 6);
    assert_eq!(folder.read("b.csv").lines().count(), 19);
    let words = folder.ok(&format!("{line} --compare --refit"));
    assert!(words.contains("3 origins") && words.contains("certain"), "{words}");
}

#[test]
fn bad_series_and_options_are_told_apart() {
    let folder = folder();
    folder.write("gap.csv", "date,y\na,1\nb,\nc,3\nd,2\n");
    folder.write("two.csv", "a,b\n1,2\n3,1\n2,4\n5,2\n");
    folder.write("flat.csv", "y\n1\n1\n1\n1\n1\n1\n");
    for (line, code, words) in [
        ("gap.csv --lag 1", 3, "row 1 (from 0), column `y`"),
        ("two.csv --lag 3 --column a", 3, "at least 5 values"),
        ("two.csv --lag 1 --column c", 3, "no column `c`"),
        ("flat.csv --lag 1", 3, "nothing to learn"),
        ("none.csv", 3, "none.csv"),
        ("two.csv --lag 1", 2, "--column: a, b"),
        ("air.csv --lag 0", 2, "--lag"),
        ("air.csv --lag 18446744073709551615", 2, "--lag: expected at most"),
        ("air.csv --train 133", 2, "at most 132"),
        ("air.csv --train 1", 2, "--train"),
        ("air.csv --horizon 0", 2, "--horizon"),
        ("air.csv --horizon 1000000000000", 2, "at most 100000"),
        ("air.csv --kernel rbff", 2, "did you mean `rbf`"),
        ("air.csv --kernel matern32 --expectation analytic", 2, "closed-form"),
        ("air.csv --no-propagate --correlated", 2, "cannot be used with"),
        ("air.csv --compare --expectation unscented", 2, "cannot be used with"),
        ("air.csv --papers --correlated", 2, "cannot be used with"),
        ("air.csv --papers --kernel rbf(variance=2)", 2, "without values"),
        ("air.csv --stride 3", 2, "--backtest"),
        ("air.csv --backtest --plot f.svg", 2, "cannot be used with"),
        ("air.csv --plot f.gif", 2, ".svg or .png"),
    ] {
        let ended = folder.run(&format!("forecast {line}"));
        assert_eq!(ended.code, code, "{line}: {}", ended.err);
        assert!(ended.err.contains(words), "{line}: {}", ended.err);
    }
}
