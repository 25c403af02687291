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
    // What the papers say of the training inputs, and what comes of it.
    let line =
        "forecast air.csv --train 48 --expectation unscented --papers --training-variance noise --json";
    for (kernel, nlpd, within) in [("rbf + linear", 14.4, 0.1), ("periodic + rbf + linear", 9.8, 0.4)] {
        let all = folder.json(&format!("{line} --kernel \"{kernel}\""));
        assert!(
            (number(&all["forecasts"][0], "nlpd") - nlpd).abs() < within,
            "{}",
            all["forecasts"][0]["nlpd"]
        );
    }
    let certain =
        folder.json("forecast air.csv --train 48 --kernel \"rbf + linear\" --no-propagate --papers --json");
    let row = &certain["forecasts"][0];
    assert!((number(row, "nlpd") - 11.37).abs() < ROW && (number(row, "rmse") - 69.40).abs() < ROW, "{row}");
}

/// Ten runs of each Monte Carlo row, as in the papers' table.
#[test]
fn the_papers_table_is_one_command() {
    let folder = folder();
    let line = "forecast air.csv --papers --train 48 --compare --runs 3 --json";
    let all = folder.json(&format!("{line} --kernel \"rbf + linear\""));
    let row = |name: &str| {
        let rows = all["forecasts"].as_array().unwrap();
        rows.iter().find(|r| r["expectation"] == name).unwrap_or_else(|| panic!("no {name} in {all}"))
    };
    for (name, nlpd, within) in [
        ("no propagation", 11.37, ROW),
        ("analytic", 7.08, ROW),
        ("gauss_hermite(points=2)", 7.07, ROW),
        ("unscented", 7.10, ROW),
        ("monte_carlo(samples=24)", 7.52, 0.6),
        ("monte_carlo(samples=200)", 7.09, 0.2),
        ("monte_carlo(samples=4096)", 7.07, 0.15),
    ] {
        assert!((number(row(name), "nlpd") - nlpd).abs() < within, "{name}: {}", number(row(name), "nlpd"));
    }
    assert_eq!(number(row("monte_carlo(samples=24)"), "runs"), 3.0);
    assert!(number(row("monte_carlo(samples=24)"), "nlpd_std") > 0.0);
    assert!(row("unscented").get("nlpd_std").is_none());
    assert_eq!((all["window"].as_str(), all["transform"].as_str()), (Some("independent"), Some("none")));
}

/// A newcomer's command gives bands that hold what they promise, roughly.
#[test]
fn the_usual_settings_are_honest() {
    let folder = folder();
    let all = folder.json("forecast air.csv --train 96 --json");
    assert_eq!((all["transform"].as_str(), all["window"].as_str()), (Some("log"), Some("correlated")));
    let row = &all["forecasts"][0];
    assert_eq!(row["expectation"], "analytic");
    let covered = number(&row["coverage"], "90");
    assert!((0.8..=1.0).contains(&covered), "{covered}");
    let plain = folder.json("forecast air.csv --train 96 --lag 12 --transform none --json");
    assert!(number(&plain["forecasts"][0]["coverage"], "90") < 0.3);
}

#[test]
fn expectations_stand_side_by_side() {
    let folder = folder();
    let common = "forecast air.csv --lag 4 --train 60 --horizon 10 --max-iter 30 --compare --runs 2";
    for (kernel, count) in [("rbf + linear", 10), ("matern32", 9)] {
        for more in ["--window independent", "--window correlated"] {
            let all = folder.json(&format!("{common} --kernel \"{kernel}\" {more} --transform none --json"));
            let rows = all["forecasts"].as_array().unwrap();
            assert_eq!(rows.len(), count, "{all}");
            for row in rows {
                assert!(number(row, "rmse") > 0.0 && number(row, "nlpd").is_finite());
                assert!(number(row, "kernel_evaluations") >= number(&rows[0], "kernel_evaluations"));
                assert_eq!(row["variance"].as_array().unwrap().len(), 10);
                assert!((0.0..=1.0).contains(&number(&row["coverage"], "90")));
            }
            // From a certain window the first step is the same for all but the sampled futures.
            let first = |row: &Value| row["mean"][0].as_f64().unwrap();
            let apart = |row: &Value| (first(row) - first(&rows[0])).abs();
            assert!(rows[..count - 1].iter().all(|row| apart(row) < 1e-6), "{all}");
        }
    }
    let words = folder.ok(&format!("{common} --kernel matern32 --quiet --out all.parquet --plot all.svg"));
    assert!(words.contains("kernel evaluations") && words.contains("cubature5"), "{words}");
    assert!(words.contains("monte_carlo(samples=4096), 2 runs") && words.contains(" ± "), "{words}");
    assert!(folder.read("all.svg").contains("gauss_hermite"));
}

#[test]
fn the_future_goes_to_every_output() {
    let folder = folder();
    let line = "forecast air.csv --lag 3 --max-iter 20 --quiet";
    let csv = folder.ok(&format!("{line} --threads 1"));
    let head =
        "month,row,truth,mean,variance,lower_50,upper_50,lower_90,upper_90,lower_95,upper_95\n1961-01,144,,";
    assert!(csv.starts_with(head), "{csv}");
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

/// y follows u of the step before and itself; z follows y.
fn driven(folder: &Folder) {
    let (mut y, mut z, mut before) = (0.0f64, 0.0f64, 0.0f64);
    let mut text = String::from("day,y,z,u\n");
    let mut future = String::from("day,u\n");
    for t in 0..80 {
        let u = (0.9 * f64::from(t)).sin() + (0.37 * f64::from(t)).cos();
        (y, z) = (0.5 * y + before, 0.3 * z - 0.6 * y);
        before = u;
        match t {
            0..60 => text += &format!("d{t},{y},{z},{u}\n"),
            60..70 => {
                text += &format!("d{t},,,{u}\n");
                future += &format!("d{t},{u}\n");
            }
            _ => future += &format!("d{t},{u}\n"),
        }
    }
    folder.write("driven.csv", &text);
    folder.write("future.csv", &future);
}

#[test]
fn exogenous_inputs_are_read_from_the_table_or_a_file() {
    let folder = Folder::new();
    driven(&folder);
    let line = "forecast driven.csv --target y --exogenous u --exogenous-lag 1 --lag 1 --kernel \"linear + constant\" --quiet";
    // The rows below the series are the future, with their dates.
    let csv = folder.ok(line);
    assert_eq!(csv.lines().count(), 11, "{csv}");
    assert!(csv.lines().nth(1).unwrap().starts_with("d60,60,,"), "{csv}");
    let file = folder.ok(&format!("{line} --future future.csv"));
    assert_eq!(file.lines().count(), 21);
    let value = |csv: &str, row: usize| -> f64 {
        csv.lines().nth(row).unwrap().split(',').nth(3).unwrap().parse().unwrap()
    };
    assert!((1..=10).all(|row| (value(&csv, row) - value(&file, row)).abs() < 1e-9));
    // The system is linear in what the model sees, so that the forecast is right.
    let all = folder.json(&format!("{line} --train 40 --json"));
    assert!(number(&all["forecasts"][0], "rmse") < 0.05, "{all}");
    let blind = folder.json("forecast driven.csv --target y --lag 1 --kernel linear --train 40 --json");
    assert!(number(&blind["forecasts"][0], "rmse") > 0.3, "{blind}");
    let ended = folder.run(&format!("{line} --horizon 11"));
    assert_eq!(ended.code, 3, "{}", ended.err);
    assert!(
        ended.err.contains("`u` up to row 71") && ended.err.contains("found up to row 70"),
        "{}",
        ended.err
    );
    // Delays of two and three steps reach back: two more steps need nothing new.
    let delayed = line.replace("--exogenous-lag 1", "--exogenous-lag 2-3");
    assert_eq!(folder.ok(&format!("{delayed} --horizon 12")).lines().count(), 13);
    assert_eq!(folder.run(&format!("{delayed} --horizon 13")).code, 3);
    let all = folder.json(&format!("{line} --backtest --horizon 3 --json"));
    assert_eq!(all["exogenous_delays"], serde_json::json!([[0, 1]]));
}

#[test]
fn several_series_go_together_exact_and_sparse() {
    let folder = Folder::new();
    driven(&folder);
    let line = "forecast driven.csv --target y,z --exogenous u --exogenous-lag 0-1 --lag 1,2 --kernel \"linear + constant\" --train 40";
    for more in ["", "--inducing 10", "--trajectories 50 --paths p.csv"] {
        let all = folder.json(&format!("{line} {more} --json --plot f.svg --out f.csv"));
        let of = all["forecasts"][0]["series"].as_array().unwrap();
        assert_eq!((of.len(), &of[1]["target"]), (2, &"z".into()), "{all}");
        assert!(of.iter().all(|s| number(s, "rmse") < 0.1), "{more}: {all}");
        assert!(folder.read("f.csv").starts_with("day,row,y_truth,y_mean,y_variance,y_lower_50,"));
        assert!(folder.read("f.svg").contains(">z<"));
    }
    let paths = folder.read("p.csv");
    assert!(paths.starts_with("path,row,y,z\n1,42,"), "{paths}");
    assert_eq!(paths.lines().count(), 1 + 50 * 18);
    let words = folder.ok(&format!("{line} --backtest --horizon 4 --plot b.svg"));
    assert!(words.contains("\ny\nexpectation") && words.contains("  step 4"), "{words}");
    let every = "forecast driven.csv --target all --exogenous u --lag 1 --train 40 --max-iter 5 --json";
    assert_eq!(folder.json(every)["targets"], serde_json::json!(["y", "z"]));
}

#[test]
fn origins_roll() {
    let folder = folder();
    let line = "forecast air.csv --lag 4 --train 80 --horizon 6 --stride 20 --max-iter 20 --backtest";
    let all = folder.json(&format!("{line} --expectation unscented --json --out b.csv --plot b.png"));
    assert_eq!(all["origins"], serde_json::json!([84, 104, 124]));
    let row = &all["backtest"][0];
    assert_eq!(number(row, "scored"), 18.0);
    let steps = row["by_step"].as_array().unwrap();
    assert_eq!(steps.len(), 6);
    assert!(steps.iter().all(|s| number(s, "scored") == 3.0 && number(&s["coverage"], "95") <= 1.0));
    assert_eq!(folder.read("b.csv").lines().count(), 19);
    assert!(folder.path("b.png").exists());
    let words = folder.ok(&format!("{line} --compare --refit --plot b.svg"));
    assert!(words.contains("3 origins") && words.contains("no propagation"), "{words}");
    assert!(folder.read("b.svg").contains(">steps ahead<"));
}

#[test]
fn bad_series_and_options_are_told_apart() {
    let folder = folder();
    folder.write("infinite.csv", "date,y\na,1\nb,inf\nc,3\nd,2\n");
    folder.write("two.csv", "a,b\n1,2\n3,1\n2,4\n5,2\n");
    folder.write("flat.csv", "y\n1\n1\n1\n1\n1\n1\n");
    folder.write("signs.csv", "y\n1\n-1\n2\n-3\n1\n2\n");
    folder.write("words.csv", "day,what\na,b\nc,d\n");
    folder.write("mixed.csv", "day,what,n\na,b,1\nc,d,2\ne,f,3\n");
    folder.write("holed.csv", "y,u\n1,2\n3,inf\n2,4\n5,2\n3,1\n");
    folder.write("none.tsv", "y\tu\n\t1\n\t2\n\t3\n");
    for (line, code, words) in [
        ("infinite.csv --lag 1", 3, "line 3, column y: `inf` is infinite"),
        ("none.tsv --lag 1 --target y", 3, "none.tsv"),
        ("air.csv --training-variance noise --inputs inferred", 2, "expected a number"),
        ("air.csv --inputs inferred", 2, "--training-variance"),
        ("two.csv --lag 3 --target a", 3, "at least 5 values"),
        ("two.csv --lag 4 --target a", 3, "shorter --lag"),
        ("two.csv --lag 1 --target c", 3, "no column `c`"),
        ("two.csv --lag 1 --target a,a", 2, "named twice"),
        ("two.csv --lag 1 --target a --exogenous a", 2, "named twice"),
        ("two.csv --lag 1 --target a --exogenous c", 3, "no column `c`"),
        ("two.csv --lag 1 --target a --exogenous b", 3, "--future FILE"),
        ("two.csv --lag 1 --target a --exogenous b --exogenous-lag -1", 2, "--exogenous-lag"),
        ("two.csv --lag 1 --target a --exogenous b --exogenous-lag 1,2", 2, "one for each of the 1"),
        ("two.csv --lag 1,2,3 --target a,b", 2, "one for each of the 2 targets"),
        ("two.csv --lag 1 --target a --exogenous-lag 1", 2, "--exogenous"),
        ("two.csv --lag 1 --target a --date c", 3, "no column `c`"),
        ("holed.csv --lag 1 --target y --exogenous u", 3, "line 3, column u: `inf` is infinite"),
        ("words.csv --lag 1", 3, "no column of numbers"),
        ("mixed.csv --lag 1 --target what", 3, "found text such as `b`"),
        ("flat.csv --lag 1", 3, "nothing to learn"),
        ("signs.csv --lag 1 --transform log", 3, "positive values, found -3"),
        ("none.csv", 3, "none.csv"),
        ("two.csv --lag 1", 2, "by --date: a, b"),
        ("air.csv --lag 0", 2, "--lag"),
        ("air.csv --lag 18446744073709551615", 2, "--lag: expected at most"),
        ("air.csv --lag 144", 3, "found 144"),
        ("air.csv --train 132", 2, "at most 131"),
        ("air.csv --train 1", 2, "--train"),
        ("air.csv --horizon 0", 2, "--horizon"),
        ("air.csv --horizon 1000000000000", 2, "at most 100000"),
        ("air.csv --inducing 0", 2, "--inducing"),
        ("air.csv --training-variance=-1", 2, "not negative"),
        ("air.csv --trajectories 1", 2, "from 2 to"),
        ("air.csv --paths p.csv", 2, "--trajectories"),
        ("air.csv --runs 3", 2, "--compare"),
        ("air.csv --kernel rbff", 2, "did you mean `rbf`"),
        ("air.csv --kernel matern32 --expectation analytic", 2, "closed-form"),
        ("air.csv --no-propagate --window correlated", 2, "cannot be used with"),
        ("air.csv --compare --expectation unscented", 2, "cannot be used with"),
        ("air.csv --papers --transform log", 2, "cannot be used with"),
        ("air.csv --papers --kernel rbf(variance=2)", 2, "without values"),
        ("air.csv --stride 3", 2, "--backtest"),
        ("air.csv --plot f.gif", 2, ".svg or .png"),
    ] {
        let ended = folder.run(&format!("forecast {line}"));
        assert_eq!(ended.code, code, "{line}: {}", ended.err);
        assert!(ended.err.contains(words), "{line}: {}", ended.err);
    }
}

#[test]
fn gaps_are_inferred_wherever_they_are() {
    let folder = folder();
    let air = folder.read("air.csv");
    let blank = |rows: &[usize]| {
        let line = |(i, line): (usize, &str)| match rows.contains(&i) {
            true => format!("{},\n", line.rsplit_once(',').unwrap().0),
            false => format!("{line}\n"),
        };
        air.lines().enumerate().map(line).collect::<String>()
    };
    folder.write("gaps.csv", &blank(&[1, 2, 40, 41, 90, 119]));
    let options = "--lag 13 --train 107 --inducing 40 --max-iter 60 --json";
    let (whole, holed) = (
        folder.json(&format!("forecast air.csv {options}")),
        folder.json(&format!("forecast gaps.csv {options}")),
    );
    let rmse = |of: &Value| number(&of["forecasts"][0], "rmse");
    assert!(rmse(&holed) < 1.5 * rmse(&whole), "{} against {}", rmse(&holed), rmse(&whole));
    assert_eq!(number(&holed["forecasts"][0], "scored"), 24.0);
    let read =
        folder.json(&format!("forecast gaps.csv {options} --training-variance 0.001 --inputs inferred"));
    assert!(rmse(&read).is_finite());
}

#[test]
fn a_short_series_has_a_forecast_and_a_constant_one_is_named() {
    let folder = Folder::new();
    let rows = |f: fn(i32) -> f64| (0..15).map(|i| format!("{}\n", f(i))).collect::<String>();
    folder.write("short.csv", &format!("sales\n{}", rows(|i| f64::from(i * i))));
    folder.write("flat.csv", &format!("sales\n{}", rows(|_| 3.0)));
    folder.write("two.csv", &format!("a,b\n{}", "1,2\n3,2\n4,2\n2,2\n".repeat(6)));
    let short = folder.run("forecast short.csv --horizon 100");
    assert!(short.code == 0 && short.out.lines().count() == 101 && !short.out.contains("inf"), "{short:?}");
    let flat = folder.run("forecast flat.csv");
    assert!(flat.code == 3 && flat.err.contains("flat.csv, column `sales`: all 2 values"), "{flat:?}");
    assert!(!flat.err.contains("leave it out"), "{flat:?}");
    let two = folder.run("forecast two.csv --target all");
    assert!(two.code == 3 && two.err.contains("column `b`") && two.err.contains("leave it out"), "{two:?}");
}
