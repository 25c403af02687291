//! Regressions and their predictions, model by model.

use crate::program::{Ended, Folder};
use serde_json::Value;

/// Noise-free rows of y = sin 3a + b, and what depends on it; b is half a.
fn rows(n: usize, shift: f64) -> String {
    let mut text = String::from("id,a,b,a_err,y,z,kind,sign,count\n");
    for i in 0..n {
        let a = 4.0 * ((i as f64 * 0.618_033_988_75 + shift) % 1.0) - 2.0;
        let b = (i as f64 * 1.7 + shift).sin();
        let y = (1.5 * a).sin() + 0.5 * b + 0.05 * (i as f64 * 12.9).sin();
        let kind = if y < -0.4 {
            "low"
        } else if y < 0.4 {
            "mid"
        } else {
            "top"
        };
        let sign = if y > 0.0 { "yes" } else { "no" };
        let count = (1.5 + y).exp().round();
        text += &format!("r{i},{a},{b},0.02,{y},{},{kind},{sign},{count}\n", 10.0 * y + a);
    }
    text
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("train.csv", &rows(60, 0.0));
    folder.write("test.csv", &rows(25, 0.37));
    folder
}

const OTHERS: &str = "--columns a,b";

fn number(all: &Value, key: &str) -> f64 {
    all[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {all}"))
}

#[test]
fn linear_regression_is_a_gp_with_a_linear_kernel() {
    let folder = folder();
    let fit = |options: &str, to: &str| {
        folder.json(&format!("regress train.csv --target y,z {OTHERS} {options} --out {to} --json"))
    };
    let (gp, linear) = (fit("--kernel linear", "gp.lgp"), fit("--model linear", "linear.lgp"));
    let (a, b) = (number(&gp, "log_evidence"), number(&linear, "log_evidence"));
    assert!((a - b).abs() < 1e-4 * a.abs(), "{a} {b}");
    assert_eq!((&linear["model"], &linear["kernel"]), (&"linear".into(), &"linear".into()));
    let cells = |file: &str| -> Vec<f64> {
        let text = folder.ok(&format!("predict {file} test.csv"));
        text.lines().skip(1).flat_map(|l| l.split(',')).filter_map(|cell| cell.parse().ok()).collect()
    };
    let (a, b) = (cells("gp.lgp"), cells("linear.lgp"));
    assert!(a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-2 * (1.0 + a.abs())));
    let held = fit("--model linear --folds 3", "linear.lgp");
    assert!(number(&held, "rmse").is_finite());
    folder.ok("plot linear.lgp --out linear.svg");
    let refuse = |options: &str, word: &str| {
        let ended = folder.run(&format!("regress train.csv --target y {OTHERS} --model linear {options}"));
        assert!(ended.code != 0 && ended.err.contains(word), "{ended:?}");
    };
    refuse("--kernel rbf", "linear(ard=false)");
    refuse("--inducing 5", "no effect");
    refuse("--input-std a=a_err", "no effect");
    refuse("--likelihood poisson", "--model sparse");
}

#[test]
fn an_id_may_be_an_input_or_a_target() {
    let folder = folder();
    folder.ok("regress train.csv --target y --columns a,b --max-iter 20 --out m.lgp");
    folder
        .ok("regress train.csv --target sign --likelihood bernoulli --columns a,b --max-iter 20 --out c.lgp");
    let plain = folder.ok("predict m.lgp test.csv");
    for (line, head) in [
        ("predict m.lgp test.csv --id id", "id,y,y_var"),
        ("predict m.lgp test.csv --id a", "a,y,y_var"),
        ("predict m.lgp test.csv --id y", "y,y_predicted,y_var"),
        ("predict c.lgp test.csv --id b", "b,sign,p_no,p_yes"),
        ("predict c.lgp test.csv --id sign", "sign,sign_predicted,p_no,p_yes"),
    ] {
        let text = folder.ok(line);
        assert_eq!(text.lines().next(), Some(head), "{line}");
        if line.starts_with("predict m") {
            let rest: Vec<&str> = text.lines().skip(1).map(|l| l.split_once(',').unwrap().1).collect();
            assert_eq!(rest, plain.lines().skip(1).collect::<Vec<_>>(), "{line}");
        }
    }
    let far = folder.run("predict m.lgp test.csv --id nowhere");
    assert!(far.code == 3 && far.err.contains("no column `nowhere`"), "{far:?}");
}

#[test]
fn the_help_tells_of_the_mean_of_classes_and_of_iterations_that_do_not_count() {
    let help = Folder::new().ok("regress --help").split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "[default: zero; classes and counts fit a constant]",
        "a log-normal prior",
        "after the first ones with the noise held",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
}

#[test]
fn a_trace_says_what_was_maximised() {
    let folder = folder();
    for (options, what) in [
        ("--target y", "log evidence"),
        ("--target y --kernel rbf(prior=[variance=gamma(2,1)])", "log evidence + log prior"),
        ("--target sign --likelihood bernoulli", "log evidence + log prior"),
        ("--target count --likelihood poisson", "log evidence"),
    ] {
        folder.ok(&format!("regress train.csv {options} --columns a,b --max-iter 10 --out m.lgp"));
        folder.ok("plot m.lgp --what trace --out t.svg");
        assert!(folder.read("t.svg").contains(&format!(">{what}<")), "{options}");
    }
}

#[test]
fn every_model_learns_a_function_and_predicts_it() {
    let folder = folder();
    for (options, error) in [
        ("", 0.1),
        ("--kernel matern52 --mean linear --restarts 2", 0.15),
        ("--model sparse --inducing 20 --max-iter 200", 0.15),
        ("--model spgp-dr --latent-dim 2 --inducing 20 --max-iter 200", 0.3),
        ("--model vdmgp --latent-dim 2 --inducing 15 --max-iter 150", 0.3),
    ] {
        let line =
            format!("regress train.csv --target y {OTHERS} {options} --test test.csv --out m.lgp --json");
        let all = folder.json(&line);
        for key in ["log_evidence", "nmse", "nlpd", "iterations", "seconds", "q"] {
            number(&all, key);
        }
        assert!(number(&all, "rmse") < error, "{options}: {all}");
        for level in ["50", "90", "95"] {
            let share = number(&all["coverage"], level);
            assert!((0.0..=1.0).contains(&share), "{all}");
        }
        // The test rows again, through the file: the same digits.
        let again = folder.json("predict m.lgp test.csv --json");
        for key in ["rmse", "nmse", "nlpd"] {
            assert_eq!(all[key], again[key], "{options}: {key}");
        }
        assert_eq!(all["coverage"], again["coverage"]);
        let words = folder.ok("inspect m.lgp");
        assert!(words.contains("log evidence") && words.contains("parameters"), "{words}");
        assert!(words.contains("held out"), "{words}");
    }
    let shares = folder.json("inspect m.lgp --json");
    assert_eq!(shares["kind"], "regression");
    let told = folder.ok(&format!("regress train.csv --target y {OTHERS} --quiet"));
    assert!(told.contains("not saved") && told.contains("log evidence"), "{told}");
}

#[test]
fn classes_and_counts_are_predicted_with_probabilities() {
    let folder = folder();
    for (target, likelihood, options) in [
        ("sign", "bernoulli", ""),
        ("sign", "bernoulli", "--model sparse --inducing 10 --max-iter 60"),
        ("kind", "categorical", "--max-iter 30"),
        ("kind", "categorical", "--model sparse --inducing 8 --max-iter 60"),
        ("count", "poisson", ""),
        ("count", "poisson", "--model sparse --inducing 10 --max-iter 60"),
    ] {
        let line = format!(
            "regress train.csv --target {target} {OTHERS} --likelihood {likelihood} {options} --test test.csv \
             --out m.lgp --json"
        );
        let all = folder.json(&line);
        let again = folder.json("predict m.lgp test.csv --json");
        let keys: &[&str] = match target {
            "count" => &["rmse", "nmse", "nlpd"],
            _ => &["accuracy", "log_loss"],
        };
        for key in keys {
            assert_eq!(number(&all, key), number(&again, key), "{line}");
        }
        match target {
            "count" => assert!(number(&all, "nmse") < 0.4, "{all}"),
            _ => {
                assert!(number(&all, "accuracy") > 0.75, "{all}");
                for row in again["probabilities"].as_array().unwrap() {
                    let sum: f64 = row.as_array().unwrap().iter().map(|p| p.as_f64().unwrap()).sum();
                    assert!((sum - 1.0).abs() < 1e-6);
                }
            }
        }
        assert!(folder.ok("inspect m.lgp").contains(likelihood));
    }
    folder.ok(&format!(
        "regress train.csv --target kind {OTHERS} --likelihood categorical --max-iter 5 --out k.lgp"
    ));
    let csv = folder.ok("predict k.lgp test.csv --id id --quiet");
    assert!(csv.starts_with("id,kind,p_low,p_mid,p_top\nr0,"), "{csv}");
    folder.ok("predict k.lgp test.csv --out p.npy");
    folder.ok("predict k.lgp test.csv --out p.parquet");
    assert!(folder.files().contains(&"p.npy".to_string()));
}

#[test]
fn predictions_are_tables_and_targets_may_be_several_or_missing() {
    let folder = folder();
    let all = folder.json(&format!("regress train.csv --target y,z {OTHERS} --folds 3 --out m.lgp --json"));
    assert!(number(&all["scores"]["y"], "rmse") < 0.2, "{all}");
    assert_eq!(all["scored"], 120);
    let csv = folder.ok("predict m.lgp test.csv --quiet");
    assert!(csv.starts_with("y,y_var,z,z_var\n") && csv.lines().count() == 26, "{csv}");
    // Neither other columns nor targets are needed; their order does not matter.
    folder.write("new.csv", "b,a\n0.1,0.5\n-0.3,1\n");
    assert_eq!(folder.ok("predict m.lgp new.csv").lines().count(), 3);
    folder.write("gaps.csv", "a,y\n0,0\n1,\n2,1.9\n3,3.1\n4,\n5,5.2\n");
    let ended = folder.run("regress gaps.csv --target y --out g.lgp");
    assert!(ended.code == 0 && ended.err.contains("2 rows without a target left out"), "{ended:?}");
    assert_eq!(folder.json("predict g.lgp gaps.csv --json")["scored"], 4);
    // The same seed gives the same digits on any number of threads.
    let line = format!("regress train.csv --target y {OTHERS} --restarts 2 --folds 2 --seed 3 --json");
    let (mut one, mut two) =
        (folder.json(&format!("{line} --threads 1")), folder.json(&format!("{line} --threads 2")));
    (one["seconds"], two["seconds"]) = (Value::Null, Value::Null);
    assert_eq!(one, two);
}

#[test]
fn errors_of_inputs_are_part_of_the_model() {
    let folder = folder();
    let base =
        "regress train.csv --target y --columns a,b --model sparse --inducing 15 --max-iter 100 --json";
    let plain = folder.json(base);
    let known = folder.json(&format!("{base} --input-std a=a_err --out m.lgp"));
    assert_ne!(plain["log_evidence"], known["log_evidence"]);
    folder.write("certain.csv", "a,b\n0.3,0.1\n");
    folder.write("wide.csv", "a,b,a_err\n0.3,0.1,0.5\n");
    let variance =
        |data: &str| folder.json(&format!("predict m.lgp {data} --json"))["variance"][0][0].as_f64();
    assert!(variance("wide.csv") > variance("certain.csv"));
    for model in ["spgp-dr", "vdmgp", "sparse --fitc"] {
        let line = format!("regress train.csv --target y --columns a,b --model {model} --max-iter 10 --json");
        let (plain, known) = (folder.json(&line), folder.json(&format!("{line} --input-std a=a_err")));
        assert_ne!(plain["log_evidence"], known["log_evidence"], "{model}");
    }
    for (options, part) in [
        ("--input-std a_err", "one column for each of the 2 inputs"),
        ("--input-std c=a_err", "INPUT one of a, b"),
    ] {
        let ended = folder.run(&format!("{base} {options}"));
        assert!(ended.code == 2 && ended.err.contains(part), "{ended:?}");
    }
}

fn refused(ended: &Ended, code: i32, part: &str) {
    assert_eq!(ended.code, code, "{ended:?}");
    assert!(ended.out.is_empty() && ended.err.contains(part), "`{part}` is not in {ended:?}");
    assert!(!ended.err.contains("panicked") && ended.err.lines().count() == 1, "{ended:?}");
}

#[test]
fn what_has_no_effect_or_makes_no_sense_is_refused() {
    let folder = folder();
    for (options, part) in [
        ("--inducing 5", "--inducing has no effect on --model gp"),
        ("--latent-dim 2 --model sparse", "--latent-dim has no effect on --model sparse"),
        ("--mean linear --model sparse", "--mean has no effect"),
        ("--model gp --input-std a_err", "--input-std has no effect"),
        ("--expectation unscented --likelihood poisson", "--expectation has no effect"),
        ("--likelihood poisson --scale none", "--scale has no effect"),
        ("--likelihood poisson --model vdmgp", "works with --model gp"),
        ("--inducing 0 --model sparse", "--inducing: expected at least 1"),
        ("--restarts 0", "--restarts"),
        ("--folds 1", "--folds: expected at least 2"),
        ("--folds 100", "from 2 to the 60 rows"),
        ("--kernel rbff", "did you mean `rbf`"),
        ("--out nowhere/m.lgp", "no folder `nowhere`"),
    ] {
        refused(&folder.run(&format!("regress train.csv --target y {OTHERS} {options} --quiet")), 2, part);
    }
    refused(&folder.run("regress train.csv --target y,z --likelihood poisson --columns a"), 2, "one target");
    refused(&folder.run("regress train.csv --target y,y --columns a"), 2, "listed twice");
    folder.write("hole.csv", "a,y\n1,2\n,3\n2,4\n");
    folder.write("none.csv", "a,y\n1,\n2,\n");
    for (line, part) in [
        ("regress train.csv --target yy", "`yy`"),
        ("regress train.csv --target y", "--exclude id"),
        ("regress train.csv --target kind --columns a", "--likelihood categorical"),
        ("regress train.csv --target kind --columns a --likelihood bernoulli", "expected 2 classes, found 3"),
        ("regress train.csv --target y --columns a --likelihood poisson", "whole number"),
        ("regress hole.csv --target y", "row 2, column `a`"),
        ("regress none.csv --target y", "no row has a target"),
        ("regress absent.csv --target y", "absent.csv"),
    ] {
        refused(&folder.run(line), 3, part);
    }
    let gaps = folder.run("regress hole.csv --target y --model sparse --max-iter 5");
    assert_eq!(gaps.code, 0, "{gaps:?}");
    assert_eq!(folder.run("regress train.csv").code, 2);
}

#[test]
fn files_of_another_kind_name_the_right_command() {
    let folder = folder();
    folder.ok("dataset oil-flow --n 20 --out o.csv");
    folder.ok(&crate::program::quick("o.csv", "latent.lgp"));
    folder.ok("regress train.csv --target y --columns a --max-iter 3 --out r.lgp");
    refused(&folder.run("predict latent.lgp test.csv"), 3, "use `latentgp transform`");
    for line in ["transform r.lgp test.csv", "impute r.lgp test.csv", "reconstruct r.lgp test.csv"] {
        refused(&folder.run(line), 3, "use `latentgp predict`");
    }
    folder.write("few.csv", "c\n1\n");
    refused(&folder.run("predict r.lgp few.csv"), 3, "column");
    folder.write("hole.csv", "a,b\n1,2\n,2\n");
    refused(&folder.run("predict r.lgp hole.csv"), 3, "row 2, column `a`: the input is missing");
    folder
        .ok("regress train.csv --target kind --columns a --likelihood categorical --max-iter 3 --out k.lgp");
    folder.write("other.csv", "a,kind\n1,odd\n");
    refused(&folder.run("predict k.lgp other.csv"), 3, "none of those learnt");
}
