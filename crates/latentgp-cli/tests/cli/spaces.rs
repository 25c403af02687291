//! Latent spaces of points and of principal components, and pictures of every kind of model.

use crate::program::Folder;
use serde_json::Value;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.ok("dataset iris --out iris.csv");
    let first = folder.read("iris.csv");
    let mut lines: Vec<String> = first.lines().map(String::from).collect();
    lines.truncate(9);
    for (row, line) in lines.iter_mut().enumerate().skip(1).step_by(3) {
        let mut cells: Vec<&str> = line.split(',').collect();
        cells[row % 4] = "";
        *line = cells.join(",");
    }
    folder.write("holes.csv", &(lines.join("\n") + "\n"));
    folder
}

fn label(folder: &Folder) -> String {
    let text = folder.read("iris.csv");
    text.lines().next().unwrap().split(',').next_back().unwrap().to_string()
}

#[test]
fn points_and_principal_components_are_learnt_and_used() {
    let folder = folder();
    let label = label(&folder);
    for (model, options) in [("ppca", ""), ("gplvm", "--kernel matern32 --max-iter 10")] {
        let line = format!("fit iris.csv --labels {label} --model {model} {options} --out m.lgp --json");
        let all: Value = folder.json(&line);
        for key in ["bound", "iterations", "evaluations", "seconds", "noise_variance"] {
            assert!(all[key].is_number(), "{model}: {key} in {all}");
        }
        assert_eq!((&all["model"], &all["latent_dim"], &all["n"]), (&model.into(), &2.into(), &150.into()));
        assert!(all["knn_accuracy"]["mean"].as_f64().unwrap() > 0.8, "{all}");
        assert_eq!(all["relevance"].as_array().unwrap().len(), 2);

        let latent = folder.ok("transform m.lgp holes.csv");
        let head = if model == "ppca" { "x1,x2,x1_var,x2_var,log_density\n" } else { "x1,x2,log_density\n" };
        assert!(latent.starts_with(head) && latent.lines().count() == 9, "{latent}");
        folder.write("latent.csv", &latent);
        assert_eq!(folder.ok("reconstruct m.lgp latent.csv").lines().count(), 9);
        let filled = folder.json("impute m.lgp holes.csv --json");
        assert_eq!(filled["missing"], 3);
        assert!(!filled["values"].to_string().contains("null"), "{filled}");
        let words = folder.ok("inspect m.lgp");
        assert!(words.contains("relevance") && words.contains("1-NN accuracy"), "{words}");
        for what in ["all", "map", "relevance"] {
            folder.ok(&format!("plot m.lgp --what {what} --out {what}.svg"));
            assert!(folder.read(&format!("{what}.svg")).contains("<svg"));
        }
        let trace = folder.run("plot m.lgp --what trace --out trace.svg");
        assert_eq!(trace.code, if model == "ppca" { 2 } else { 0 }, "{trace:?}");
        folder.ok("report m.lgp --out m.html");
        assert!(folder.read("m.html").ends_with("</html>\n"));
        let wrong = folder.run("predict m.lgp iris.csv");
        assert!(wrong.code == 3 && wrong.err.contains("latentgp transform"), "{wrong:?}");
        let resumed = folder.run("fit --resume m.lgp");
        assert!(resumed.code == 2 && resumed.err.contains("this fit is over"), "{resumed:?}");
        // The same seed gives the same digits on any number of threads.
        let (mut one, mut two) =
            (folder.json(&format!("{line} --threads 1")), folder.json(&format!("{line} --threads 2")));
        (one["seconds"], two["seconds"]) = (Value::Null, Value::Null);
        assert_eq!(one, two);
    }
    let holes = folder.json(&format!("fit holes.csv --labels {label} --model ppca --latent-dim 1 --json"));
    assert!(holes["iterations"].as_u64().unwrap() > 0, "EM where cells are missing: {holes}");
    let wide = folder.run(&format!("fit iris.csv --labels {label} --model ppca --latent-dim 9"));
    assert!(wide.code == 2 && wide.err.contains("between 1 and 3"), "{wide:?}");
}

#[test]
fn regressions_are_drawn_and_reported() {
    let folder = Folder::new();
    let mut text = String::from("t,u,y,n,c\n");
    for i in 0..40 {
        let t = 0.2 * f64::from(i);
        let n = (1.0 + t.sin()).exp().round();
        text += &format!("{t},{},{},{n},{}\n", (t * 3.3).cos(), t.sin() + 0.1 * (t * 9.7).cos(), i / 20);
    }
    folder.write("d.csv", &text);
    for (options, drawn) in [
        ("--target y --columns t", "band"),
        ("--target n --columns t --likelihood poisson", "90 % band"),
        ("--target y --columns t,u", "predicted"),
        ("--target y,n --columns t,u --model sparse --inducing 10 --max-iter 20", "predicted"),
        ("--target y --columns t,u --model vdmgp --inducing 8 --max-iter 10", "predicted"),
    ] {
        folder.ok(&format!("regress d.csv {options} --out m.lgp"));
        folder.ok("plot m.lgp --out f.svg");
        assert!(folder.read("f.svg").contains(drawn), "{options}");
        folder.ok("plot m.lgp --out f.png");
        folder.ok("plot m.lgp --what trace --out t.svg");
        folder.ok("report m.lgp --out m.html");
        let page = folder.read("m.html");
        assert!(page.contains("<svg") && page.contains("log evidence") && page.ends_with("</html>\n"));
        let map = folder.run("plot m.lgp --what map --out g.svg");
        assert!(map.code == 2 && map.err.contains("no latent map"), "{map:?}");
        let other = folder.run("plot m.lgp --target zz --out g.svg");
        assert!(other.code == 2 && other.err.contains("--target"), "{other:?}");
    }
    folder.ok("regress d.csv --target c --columns t --likelihood bernoulli --max-iter 5 --out c.lgp");
    folder.ok("plot c.lgp --out c.svg");
    assert!(folder.read("c.svg").contains(">probability of c<"));
    folder.ok("report c.lgp --out c.html");
    assert!(!folder.files().contains(&"g.svg".to_string()));
}

#[test]
fn every_column_has_its_noise_where_that_is_asked_for() {
    let folder = folder();
    let label = label(&folder);
    for model in ["bayesian-gplvm", "gplvm", "ppca"] {
        let fit = |noise: &str| {
            let options =
                format!("--labels {label} --model {model} --latent-dim 1 --max-iter 8 --noise {noise}");
            folder.json(&format!("fit iris.csv {options} --out m.lgp --json"))
        };
        let shared = fit("shared");
        assert!(shared["noise_variances"].is_null(), "{shared}");
        let all = fit("columns");
        let each: Vec<f64> =
            all["noise_variances"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        assert!(each.len() == 4 && each.iter().any(|v| (v - each[0]).abs() > 1e-6), "{each:?}");
        let mean = all["noise_variance"].as_f64().unwrap();
        assert!((mean - each.iter().sum::<f64>() / 4.0).abs() < 1e-12, "{model}");
        let words = folder.ok("inspect m.lgp");
        assert!(words.contains("variance of each column, from"), "{words}");
        assert!(folder.json("impute m.lgp holes.csv --json")["missing"] == 3);
        folder.ok("report m.lgp --out m.html");
    }
    let wrong = folder.run("regress iris.csv --target x --model gp --noise columns");
    assert!(wrong.code == 2 && wrong.err.contains("--noise has no effect on --model gp"), "{wrong:?}");
    assert_eq!(folder.run(&format!("fit iris.csv --labels {label} --noise own")).code, 2);
}
