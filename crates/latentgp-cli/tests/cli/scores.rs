//! What is said about a regression: scores of classes and counts, missing inputs, warnings, figures.

use crate::program::{Ended, Folder};
use serde_json::Value;

/// Twelve rows of two classes and one row of a third.
fn rare() -> String {
    let row = |i: usize| format!("{},{}\n", 0.3 * i as f64, if i < 6 { "ash" } else { "oak" });
    let rows: String = (0..12).map(row).collect();
    format!("a,tree\n{rows}9.5,yew\n")
}

fn refused(ended: &Ended, code: i32, part: &str) {
    assert_eq!(ended.code, code, "{ended:?}");
    assert!(ended.err.contains(part), "`{part}` is not in {ended:?}");
    let digits = ended.err.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
    assert!(!ended.err.contains("panicked") && digits < Some(30), "{ended:?}");
}

fn number(all: &Value, key: &str) -> f64 {
    all[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {all}"))
}

#[test]
fn a_class_that_a_fold_does_not_know_is_scored_and_named() {
    let folder = Folder::new();
    folder.write("trees.csv", &rare());
    for model in ["gp --max-iter 20", "sparse --inducing 4 --max-iter 20"] {
        let line = format!(
            "regress trees.csv --target tree --likelihood categorical --model {model} --folds 3 --out t.lgp --json"
        );
        let ended = folder.run(&line);
        assert!(ended.code == 0 && ended.err.contains("no other row is of the class `yew`"), "{ended:?}");
        let all: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(all["scored"], 13);
        // One of the thirteen rows has no probability at all: −ln 1e-15 of it alone.
        assert!((0.7..0.95).contains(&number(&all, "accuracy")), "{all}");
        assert!(number(&all, "log_loss") > 34.0 / 13.0, "{all}");
    }
    let two = rare().replace("yew", "oak").replacen("oak", "ash", 6);
    folder.write("two.csv", &two);
    let all =
        folder.json("regress two.csv --target tree --likelihood bernoulli --folds 2 --max-iter 9 --json");
    assert_eq!(all["scored"], 13);
    // Of two classes, one with a single row: without it there is nothing to tell apart.
    folder.write("one.csv", &rare().replace("oak", "ash"));
    let all =
        folder.json("regress one.csv --target tree --likelihood bernoulli --folds 3 --max-iter 9 --json");
    assert!(all["warnings"][0].as_str().unwrap().contains("`yew`"), "{all}");
}

#[test]
fn arguments_are_checked_before_the_fit_and_the_model_is_written_before_the_folds() {
    let folder = Folder::new();
    folder.write("trees.csv", &rare());
    let base = "regress trees.csv --target tree --likelihood categorical";
    let ended = folder.run(&format!("{base} --folds 14 --out t.lgp"));
    refused(&ended, 2, "from 2 to the 13 rows, found 14");
    assert!(!ended.err.contains("iteration"), "nothing was fitted: {ended:?}");
    assert!(!folder.path("t.lgp").exists());
    refused(&folder.run(&format!("{base} --link probit")), 2, "--link has no effect");
    refused(&folder.run(&format!("{base} --fitc")), 2, "--fitc has no effect");
    refused(&folder.run(&format!("{base} --weight-prior gamma")), 2, "--weight-prior has no effect");
    refused(&folder.run(&format!("{base} --loo")), 2, "--loo has no effect");
}

#[test]
fn missing_inputs_are_taken_wherever_the_model_takes_them() {
    let folder = Folder::new();
    let row = |i: usize| {
        let (a, b) = (0.1 * i as f64, (0.7 * i as f64).sin());
        let shown = if i % 7 == 3 { String::new() } else { format!("{b}") };
        let noise = 0.05 * (37.0 * (i * i) as f64).sin();
        format!("{a},{shown},0.05,{}\n", a.sin() + 0.5 * b + noise)
    };
    folder.write("holes.csv", &format!("a,b,b_err,y\n{}", (0..40).map(row).collect::<String>()));
    let base = "regress holes.csv --target y --columns a,b --model sparse --inducing 12 --max-iter 60";
    let all = folder.json(&format!("{base} --folds 2 --json"));
    assert!(all["scored"] == 40 && number(&all, "nmse") < 0.5, "{all}");
    let all = folder.json(&format!("{base} --test holes.csv --out m.lgp --json"));
    let again = folder.json("predict m.lgp holes.csv --json");
    assert_eq!(
        (all["nlpd"].clone(), all["scored"].clone()),
        (again["nlpd"].clone(), again["scored"].clone())
    );
    folder.write("new.csv", "a,b\n1.5,0.2\n1.5,\n");
    let there = folder.json("predict m.lgp new.csv --json");
    let variance = |i: usize| there["variance"][i][0].as_f64().unwrap();
    assert!(variance(1) > 2.0 * variance(0), "{there}");
    // The standard deviation of a cell that is missing may be missing too.
    folder.ok(&format!("{base} --input-std b=b_err --test holes.csv"));
    refused(&folder.run("regress holes.csv --target y --columns a,b --folds 2"), 3, "row 4, column `b`");
}

#[test]
fn numbers_that_cannot_be_squared_are_refused_before_the_fit() {
    let folder = Folder::new();
    folder.write("high.csv", "a,y\n1,1e300\n2,2e300\n3,1e300\n");
    folder.write("low.csv", "a,y\n1e-300,1\n2e-300,2\n3e-300,1\n");
    folder.write("new.csv", "a\n1\n1e200\n");
    folder.write("fine.csv", "a,b,y\n1,2,1\n2,1,2\n3,4,1\n4,0,3\n");
    for model in ["gp", "sparse", "spgp-dr", "vdmgp", "linear"] {
        let run = |data: &str| folder.run(&format!("regress {data} --target y --model {model}"));
        refused(&run("high.csv"), 3, "row 2, column `y`: 2.000e300");
        refused(&run("low.csv"), 3, "row 3, column `a`: 3.000e-300");
        folder
            .ok(&format!("regress fine.csv --target y --exclude b --model {model} --max-iter 5 --out m.lgp"));
        refused(&folder.run("predict m.lgp new.csv"), 3, "row 2, column `a`");
    }
}

#[test]
fn a_fit_without_noise_and_useless_directions_are_noted() {
    let folder = Folder::new();
    let rows: String = (0..30).map(|i| format!("{},{}\n", i, 2 * i)).collect();
    folder.write("line.csv", &format!("a,y\n{rows}"));
    for model in ["gp", "linear", "sparse --inducing 10", "spgp-dr --latent-dim 1", "vdmgp --latent-dim 1"] {
        let all = folder.json(&format!("regress line.csv --target y --kernel linear --model {model} --json"));
        assert!(all["warnings"][0].as_str().is_some_and(|w| w.contains("floor")), "{model}: {all}");
        // A thousandth of the standard deviation of the targets, 17.3.
        let noise = all["noise_variance"][0].as_f64().unwrap();
        assert!((2.9e-4..6e-4).contains(&noise), "{model}: {noise}");
    }
    for model in ["spgp-dr", "vdmgp"] {
        let ended =
            folder.run(&format!("regress line.csv --target y --model {model} --latent-dim 3 --max-iter 3"));
        assert!(ended.code == 0 && ended.err.contains("3 directions of 1 input"), "{ended:?}");
    }
}

#[test]
fn a_kernel_that_explains_nothing_has_the_evidence_of_noise() {
    let folder = Folder::new();
    folder.ok("dataset sinc --out sinc.csv");
    for model in ["spgp-dr", "vdmgp"] {
        let all = folder.json(&format!(
            "regress sinc.csv --target y --kernel constant --model {model} --max-iter 60 --json --quiet"
        ));
        let (n, evidence) = (number(&all, "n"), number(&all, "log_evidence"));
        assert!(evidence < 0.0 && evidence > -10.0 * n, "{model}: {all}");
    }
}

#[test]
fn links_fitc_priors_draws_and_leaving_one_out_are_reached() {
    let folder = Folder::new();
    folder.write("trees.csv", &rare().replace("yew", "oak"));
    let bernoulli = "regress trees.csv --target tree --likelihood bernoulli --max-iter 20 --json";
    let logit = folder.json(&format!("{bernoulli} --link logit"));
    let probit = folder.json(&format!("{bernoulli} --link probit --out p.lgp"));
    assert_ne!(logit["log_evidence"], probit["log_evidence"]);
    assert_eq!(folder.json(bernoulli)["log_evidence"], logit["log_evidence"]);
    assert!(folder.ok("inspect p.lgp").contains("probit"));
    let rows: String = (0..40).map(|i| format!("{},{},{}\n", i, i % 7, (0.3 * i as f64).sin())).collect();
    folder.write("wave.csv", &format!("a,b,y\n{rows}"));
    let all =
        folder.json("regress wave.csv --target y --model sparse --fitc --inducing 15 --out f.lgp --json");
    assert_eq!(all["approximation"], "fitc");
    assert!(folder.ok("inspect f.lgp").contains("FITC"));
    folder
        .ok("regress wave.csv --target y --model vdmgp --weight-prior gamma --max-iter 20 -Q 1 --out v.lgp");
    let all = folder.json("regress wave.csv --target y --loo --out g.lgp --json");
    assert!(all["scored"] == 40 && number(&all, "nmse") < 0.2, "{all}");
    let csv = folder.ok("predict g.lgp wave.csv --samples 3 --quiet");
    assert!(csv.starts_with("y,y_var,y_1,y_2,y_3\n"), "{csv}");
    let draws =
        |seed: usize| folder.json(&format!("predict g.lgp wave.csv --samples 2 --seed {seed} --json"));
    assert!(draws(1) == draws(1) && draws(1)["samples"] != draws(2)["samples"]);
    assert!(folder.ok("predict v.lgp wave.csv --samples 2 --quiet").starts_with("y,y_var,y_1,y_2\n"));
}

#[test]
fn counts_have_intervals_and_every_model_has_a_figure() {
    let folder = Folder::new();
    let row = |i: usize| {
        let a = 0.2 * i as f64;
        let rate = (1.0 + a.sin()).exp();
        let count = (rate + 1.2 * rate.sqrt() * (12.9 * i as f64).sin()).max(0.0).round();
        format!("{a},{},{count},{}\n", (1.3 * i as f64).cos(), if count > 3.0 { "many" } else { "few" })
    };
    folder.write("count.csv", &format!("a,b,n,size\n{}", (0..50).map(row).collect::<String>()));
    let poisson = "regress count.csv --likelihood poisson --target n";
    let all = folder.json(&format!("{poisson} --columns a --folds 3 --out c.lgp --json"));
    let level = |l: &str| number(&all["coverage"], l);
    assert!(level("50") > 0.3 && level("90") > 0.7 && level("95") >= level("90"), "{all}");
    folder.ok("plot c.lgp --out c.svg");
    assert!(folder.read("c.svg").contains(">90 % band<"));
    folder.ok(&format!("{poisson} --columns a,b --max-iter 10 --out c2.lgp"));
    folder.ok("plot c2.lgp --out c2.png");
    for (columns, part) in [("a", ">probability of size<"), ("a,b", ">observed size (")] {
        let likelihood = "--likelihood bernoulli --target size --max-iter 20";
        folder.ok(&format!("regress count.csv {likelihood} --columns {columns} --out k.lgp"));
        folder.ok("plot k.lgp --out k.svg");
        assert!(folder.read("k.svg").contains(part));
        folder.ok("report k.lgp --out k.html");
        assert!(folder.read("k.html").contains(part));
    }
}

#[test]
fn every_model_says_in_the_same_words_why_it_stopped() {
    let folder = Folder::new();
    folder.ok("dataset iris --out iris.csv");
    let text = folder.read("iris.csv");
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    lines[3] = lines[3].replacen(|c: char| c.is_ascii_digit(), "", 3).replacen('.', "", 1);
    folder.write("holed.csv", &lines.join("\n"));
    let names = ["gradient", "value", "max_iterations", "line_search", "closed_form"];
    for line in [
        "fit iris.csv --labels species --model ppca",
        "fit iris.csv --labels species --model gplvm --max-iter 3",
        "fit iris.csv --labels species --max-iter 3 --inducing 5",
        "regress iris.csv --target species --likelihood categorical --model sparse --inducing 5 --max-iter 3",
    ] {
        let all = folder.json(&format!("{line} --json --quiet"));
        assert!(names.contains(&all["stop_reason"].as_str().unwrap()), "{line}: {}", all["stop_reason"]);
    }
    assert_eq!(
        folder.json("fit iris.csv --labels species --model ppca --json")["stop_reason"],
        "closed_form"
    );
}
