//! Inputs with errors: inferred, averaged over, learnt, and never observed.

use crate::program::Folder;
use serde_json::Value;

/// y = sin 2x, of which x is seen through an error; the true x is kept.
fn rows(n: usize, shift: f64) -> String {
    let mut text = String::from("x,s,y,true,count\n");
    for i in 0..n {
        let place = |k: f64| (i as f64 * k + shift).rem_euclid(1.0);
        let x = 6.0 * place(0.618_033_988_75) - 3.0;
        let error = 0.6 * (place(0.754_877_666) + place(0.569_840_291) + place(0.324_717_957) - 1.5);
        let y = (2.0 * x).sin();
        text +=
            &format!("{},0.3,{},{x},{}\n", x + error, y + 0.2 * (place(0.43) - 0.5), (1.0 + y).exp().round());
    }
    text
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("train.csv", &rows(150, 0.0));
    folder.write("new.csv", &rows(100, 0.37));
    folder
}

const USUAL: &str = "regress train.csv --target y --columns x --inducing 15 --effort quick";

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {of}"))
}

/// Numbers of a column.
fn column(text: &str, name: &str) -> Vec<f64> {
    let mut lines = text.lines();
    let at = lines
        .next()
        .unwrap()
        .split(',')
        .position(|n| n == name)
        .unwrap_or_else(|| panic!("{name} in {text}"));
    lines.map(|l| l.split(',').nth(at).unwrap().parse().unwrap()).collect()
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    (a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / a.len() as f64).sqrt()
}

#[test]
fn inputs_with_errors_are_inferred_unless_averages_are_asked_for() {
    let folder = folder();
    let inferred = folder.run(&format!("{USUAL} --input-std x=s --out m.lgp"));
    assert!(
        inferred.code == 0 && inferred.err.contains("--model sparse, which can use uncertain inputs"),
        "{inferred:?}"
    );
    assert!(inferred.out.contains("x: errors of 0.3"), "{}", inferred.out);
    let all = folder.json(&format!("{USUAL} --input-std x=s --out m.lgp --json"));
    let averaged = folder.json(&format!("{USUAL} --input-std x=s --inputs averaged --out a.lgp --json"));
    assert_eq!(all["model"], "sparse");
    let noise = |of: &Value| of["noise_variance"][0].as_f64().unwrap();
    assert!(noise(&all) < 0.5 * noise(&averaged), "{all} {averaged}");
    assert!(averaged["inferred_inputs"].is_null());
    let input = &all["inferred_inputs"][0];
    assert!((number(input, "std") - 0.3).abs() < 1e-9 && number(input, "posterior_std") < 0.25, "{input}");
    for model in ["spgp-dr -Q 1", "vdmgp -Q 1", "sparse --fitc"] {
        let ended = folder.run(&format!("{USUAL} --input-std x=s --model {model} --max-iter 5"));
        assert!(ended.code == 0 && ended.err.contains("averages over the errors"), "{ended:?}");
    }
    let refuse = |options: &str, word: &str| {
        let ended = folder.run(&format!("{USUAL} {options}"));
        assert!(ended.code == 2 && ended.err.contains(word), "{options}: {ended:?}");
    };
    refuse("--input-std x=s --model gp", "no effect");
    refuse("--inputs averaged", "no effect");
    refuse("--input-std x=s --inputs inferred --model vdmgp", "no effect");
    refuse("--input-std x=learn --inputs averaged", "inferred");
    refuse("--input-std x=learn --model spgp-dr", "no effect");
    refuse("--latent-inputs 1 --model gp", "no effect");
}

#[test]
fn true_inputs_come_back() {
    let folder = folder();
    folder.ok(&format!("{USUAL} --input-std x=s --out m.lgp"));
    for (data, rows) in [("", "train.csv"), ("new.csv", "new.csv")] {
        let found = folder.ok(&format!("predict m.lgp {data} --inputs"));
        assert_eq!(found.lines().next().unwrap(), "x,x_var");
        let given = folder.read(rows);
        let (x, truth, read) = (column(&found, "x"), column(&given, "true"), column(&given, "x"));
        assert!(apart(&x, &truth) < 0.9 * apart(&read, &truth), "{data}: {}", apart(&x, &truth));
        assert!(column(&found, "x_var").iter().all(|v| *v > 0.0));
    }
    let all = folder.json("predict m.lgp new.csv --inputs --json");
    assert_eq!((all["inputs"][0].as_str(), all["mean"].as_array().unwrap().len()), (Some("x"), 100));
    let with_id = folder.ok("predict m.lgp new.csv --inputs --id x");
    assert_eq!(with_id.lines().next().unwrap(), "x,x_inferred,x_var");
    folder.ok("plot m.lgp --out m.svg");
    assert!(folder.read("m.svg").contains(">true input<"));
    let refuse = |line: &str, word: &str| {
        let ended = folder.run(line);
        assert!(ended.code != 0 && ended.err.contains(word), "{line}: {ended:?}");
    };
    refuse("predict m.lgp", "DATA");
    refuse("predict m.lgp --inputs --id x", "DATA");
    folder.write("bare.csv", "x,s\n0.1,0.3\n");
    refuse("predict m.lgp bare.csv --inputs", "`y`");
    folder.ok("regress train.csv --target y --columns x --max-iter 5 --effort quick --out gp.lgp");
    refuse("predict gp.lgp --inputs", "--model sparse");
}

#[test]
fn errors_are_learnt_and_inputs_that_were_never_observed_are_found() {
    let folder = folder();
    let all = folder.json(&format!("{USUAL} --input-std x=learn --out m.lgp --json"));
    let input = &all["inferred_inputs"][0];
    assert!((0.2..0.45).contains(&number(input, "std")) && input["clear"] == true, "{all}");
    assert!(number(input, "lost_without") > 2.0);
    // New rows have the learnt error.
    let narrow = folder.ok("predict m.lgp new.csv");
    folder.ok("inspect m.lgp");
    assert!(column(&narrow, "y_var").iter().all(|v| *v > 0.0));
    let latent = folder.json(
        "regress train.csv --target y,count --columns x --latent-inputs 1 --inducing 15 --effort quick --max-iter 60 \
         --out l.lgp --json",
    );
    assert_eq!(latent["latent_inputs"], 1);
    let found = folder.ok("predict l.lgp --inputs");
    assert_eq!(found.lines().next().unwrap(), "x,x_var,latent1,latent1_var");
    assert!(column(&found, "x_var").iter().all(|v| *v == 0.0));
}

#[test]
fn an_error_that_the_data_do_not_tell_is_a_warning() {
    let folder = Folder::new();
    let mut text = String::from("x,y\n");
    for i in 0..60 {
        let place = |k: f64| (i as f64 * k).rem_euclid(1.0) - 0.5;
        text += &format!("{},{}\n", place(0.618), place(0.618) + 3.0 * place(0.755));
    }
    folder.write("line.csv", &text);
    let ended = folder
        .run("regress line.csv --target y --kernel linear --input-std x=learn --inducing 4 --effort quick");
    assert!(ended.code == 0 && ended.err.contains("the data do not tell it"), "{ended:?}");
}

#[test]
fn counts_infer_their_inputs() {
    let folder = folder();
    let all = folder.json(
        "regress train.csv --target count --columns x --likelihood poisson --input-std x=s --inducing 12 --effort quick \
         --max-iter 80 --out c.lgp --json",
    );
    assert!(number(&all["inferred_inputs"][0], "posterior_std") < 0.29, "{all}");
    let found = folder.ok("predict c.lgp new.csv --inputs");
    assert_eq!(found.lines().count(), 101);
}
