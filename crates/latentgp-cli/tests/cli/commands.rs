//! Each command does what its help says.

use crate::program::{Folder, quick};
use serde_json::Value;

fn with_model() -> Folder {
    let folder = Folder::new();
    folder.ok("dataset oil-flow --n 40 --seed 1 --out oil.csv");
    folder.ok(&quick("oil.csv", "m.lgp"));
    folder
}

#[test]
fn demo_writes_a_picture_a_report_and_a_model() {
    let folder = Folder::new();
    let all = folder.json("demo iris --json");
    assert!(all["knn_accuracy"]["mean"].as_f64().unwrap() > 0.8, "{all}");
    assert_eq!(
        folder.files(),
        ["latentgp-demo.html", "latentgp-demo.lgp", "latentgp-demo.png", "latentgp-demo.svg"]
    );
    let page = folder.read("latentgp-demo.html");
    assert!(page.contains("<svg") && page.ends_with("</html>\n"));
    for foreign in ["src=", "href=", "<script", "@import"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    let words = folder.ok("demo spiral --out new/spiral");
    for part in ["bound", "relevance", "█", "certificate", "latentgp-demo.svg", "latentgp explore new/spiral"]
    {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(folder.path("new/spiral/latentgp-demo.html").exists());
    let file = folder.run("demo --out latentgp-demo.svg/sub");
    assert!(file.code == 1 && file.err.contains("--out latentgp-demo.svg/sub"), "{file:?}");
}

#[test]
fn positions_are_told_from_other_tables_by_their_names() {
    let folder = with_model();
    let positions = folder.ok("transform m.lgp oil.csv");
    let decoded = folder.run_with("reconstruct m.lgp -", &positions);
    assert_eq!(decoded.code, 0, "{decoded:?}");
    for (text, code) in [
        ("0.1,0.2,0.3\n0.4,0.5,0.6\n", 0),
        ("x1,x2,x3\n0.1,0.2,0.3\n", 0),
        ("width,height,depth\n0.1,0.2,0.3\n", 3),
        ("a,b,c,d,e,f\n1,2,3,4,5,6\n", 3),
        ("a,b,c,d,e,f,g,h,i,j\n1,2,3,4,5,6,7,8,9,0\n", 3),
        ("0.1,0.2\n0.4,0.5\n", 3),
    ] {
        let ended = folder.run_with("reconstruct m.lgp -", text);
        assert_eq!(ended.code, code, "{text}: {ended:?}");
        assert!(code == 0 || ended.err.contains("the columns x1 … x3"), "{text}: {ended:?}");
    }
}

#[test]
fn impute_copies_an_id_and_leaves_other_columns_out() {
    let folder = with_model();
    let plain = folder.ok("impute m.lgp oil.csv");
    let text = folder.ok("impute m.lgp oil.csv --id regime");
    assert!(text.starts_with("regime,") && !plain.contains("regime"), "{text}");
    for (with, without) in text.lines().zip(plain.lines()) {
        assert_eq!(with.split_once(',').unwrap().1, without);
    }
    let own = plain.split(',').next().unwrap();
    let twice = folder.run(&format!("impute m.lgp oil.csv --id {own}"));
    assert!(twice.code == 2 && twice.err.contains("leave --id out"), "{twice:?}");
}

#[test]
fn dataset_lists_and_prints() {
    let folder = Folder::new();
    for name in ["oil-flow", "airline", "spiral", "sinc", "iris"] {
        assert!(folder.ok("dataset").contains(name));
        assert!(folder.ok(&format!("dataset {name} --n 3")).lines().count() >= 3);
    }
    let csv = folder.ok("dataset oil-flow --n 2 --seed 4 --fractions");
    assert!(csv.lines().next().unwrap().ends_with("gas_fraction,regime"), "{csv}");
    assert_eq!(csv, folder.ok("dataset oil-flow --n 2 --seed 4 --fractions"));
    assert_ne!(csv, folder.ok("dataset oil-flow --n 2 --seed 5 --fractions"));
    assert_eq!(folder.json("dataset iris --n 2 --json")["rows"].as_array().unwrap().len(), 2);
    let set = folder.run("dataset oilflow");
    assert!(set.code == 2 && set.err.contains("did you mean `oil-flow`?"), "{set:?}");
    assert_eq!(folder.run("dataset iris --fractions").code, 2);
}

#[test]
fn one_pipe_from_data_to_model_and_every_command_on_it() {
    let folder = Folder::new();
    let csv = folder.ok("dataset oil-flow --n 60 --seed 1");
    let line = "fit - --labels regime --latent-dim 5 --inducing 10 --kernel matern32 --max-iter 40 --out m.lgp --json";
    let fit = folder.run_with(line, &csv);
    assert_eq!(fit.code, 0, "{}", fit.err);
    assert_eq!(fit.err.lines().count(), 3, "the scaling, the progress and a warning: {}", fit.err);
    assert!(fit.err.lines().last().unwrap().starts_with("warning: the limit of iterations"), "{}", fit.err);
    let all: Value = serde_json::from_str(&fit.out).unwrap();
    for key in [
        "model",
        "kernel",
        "expectation",
        "latent_dim",
        "inducing",
        "n",
        "d",
        "bound",
        "iterations",
        "evaluations",
        "converged",
        "stop_reason",
        "seconds",
        "noise_variance",
        "relevance",
        "knn_accuracy",
    ] {
        assert!(!all[key].is_null(), "{key}: {all}");
    }
    assert_eq!((all["n"].as_u64(), all["d"].as_u64()), (Some(60), Some(12)));
    assert_eq!((all["kernel"].as_str(), all["model"].as_str()), (Some("matern32"), Some("bayesian-gplvm")));
    assert_eq!(all["relevance"].as_array().unwrap().len(), 5);
    assert_eq!(all["knn_accuracy"]["folds"].as_array().unwrap().len(), 5);

    folder.write("oil.csv", &csv);
    let inspected = folder.json("inspect m.lgp --json");
    assert_eq!(inspected["header"]["report"]["bound"], all["bound"]);
    assert_eq!(inspected["arrays"]["mean"]["shape"], serde_json::json!([60, 5]));
    assert!(folder.ok("inspect m.lgp").contains("kernel.lengthscale"));

    folder.ok("transform m.lgp oil.csv --out latent.csv");
    let latent = folder.read("latent.csv");
    assert!(latent.starts_with("x1,x2,x3,x4,x5,x1_var,"), "{latent}");
    assert_eq!(latent.lines().count(), 61);

    folder.ok("reconstruct m.lgp latent.csv --out back.csv");
    assert!(folder.read("back.csv").starts_with("vertical1_water,"));
    for (name, start) in [("f.svg", &b"<svg"[..]), ("f.png", b"\x89PNG")] {
        for what in ["all", "map", "relevance", "trace"] {
            folder.ok(&format!("plot m.lgp --what {what} --out {name}"));
            assert!(std::fs::read(folder.path(name)).unwrap().starts_with(start));
        }
    }
    folder.ok("report m.lgp --title \"a < b\" --out r.html");
    assert!(folder.read("r.html").contains("<h1>a &lt; b</h1>"));
}

#[test]
fn latent_positions_decode_to_the_data_they_came_from() {
    let folder = with_model();
    let fit = folder.json("inspect m.lgp --json");
    let all = folder.json("transform m.lgp oil.csv --json");
    let trained = latentgp::file::ModelFile::read(folder.path("m.lgp")).unwrap();
    for (i, row) in all["mean"].as_array().unwrap().iter().enumerate() {
        let row: Vec<f64> = row.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        assert_eq!(row, trained.tensors["mean"].row(i), "a training row has its own position");
    }
    assert_eq!(fit["header"]["n"].as_u64(), Some(40));

    // In several pieces, by name in another order, and with an id: the same positions.
    let csv = folder.read("oil.csv");
    let mut lines = csv.lines();
    let header = lines.next().unwrap();
    let new = folder.ok("dataset oil-flow --n 6 --seed 9");
    folder.write("new.csv", &new);
    let together = folder.json("transform m.lgp new.csv --json");
    for (i, line) in new.lines().skip(1).enumerate() {
        folder.write("one.csv", &format!("{header}\n{line}\n"));
        assert_eq!(folder.json("transform m.lgp one.csv --json")["mean"][0], together["mean"][i]);
    }
    let turned: Vec<String> = new.lines().map(|l| l.split(',').rev().collect::<Vec<_>>().join(",")).collect();
    folder.write("turned.csv", &turned.join("\n"));
    assert_eq!(folder.json("transform m.lgp turned.csv --json")["mean"], together["mean"]);
    let with_id = folder.ok("transform m.lgp turned.csv --id regime");
    assert!(with_id.starts_with("regime,x1,"), "{with_id}");

    // Certain and uncertain positions, with names and without.
    folder.write("certain.csv", "0.1,0.2,0.3\n-0.5,0,1\n");
    folder.write("named.csv", "x3,x1,x2\n0.3,0.1,0.2\n1,-0.5,0\n");
    let certain = folder.json("reconstruct m.lgp certain.csv --json");
    assert_eq!(certain, folder.json("reconstruct m.lgp named.csv --json"));
    folder.write("wide.csv", "0.1,0.2,0.3,0.5,0.5,0.5\n-0.5,0,1,0,0,0\n");
    let wide = folder.json("reconstruct m.lgp wide.csv --json");
    assert_ne!(certain["mean"][0], wide["mean"][0]);
    let noisy = folder.json("reconstruct m.lgp certain.csv --noise --json");
    let variance = |v: &Value| v["variance"][0][0].as_f64().unwrap();
    let noise = noisy["noise_variance"][0].as_f64().unwrap();
    assert!((variance(&noisy) - variance(&certain) - noise).abs() < 1e-12 * noise);
}

#[test]
fn missing_cells_are_filled_and_others_kept() {
    let folder = with_model();
    let csv = folder.read("oil.csv");
    let rows: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    let holes: Vec<String> = rows
        .iter()
        .enumerate()
        .map(|(i, r)| {
            let cell = |(j, c): (usize, &&str)| if i > 0 && j == i % 12 { "" } else { *c }.to_string();
            r.iter().enumerate().map(cell).collect::<Vec<_>>().join(",")
        })
        .collect();
    folder.write("holes.csv", &holes.join("\n"));
    let all = folder.json("impute m.lgp holes.csv --json");
    assert_eq!(all["missing"].as_u64(), Some(40));
    let mut wrong = 0.0;
    for i in 1..rows.len() {
        for j in 0..12 {
            let truth: f64 = rows[i][j].parse().unwrap();
            let filled = all["values"][i - 1][j].as_f64().unwrap();
            let variance = all["variance"][i - 1][j].as_f64().unwrap();
            match j == i % 12 {
                true => {
                    assert!(variance > 0.0);
                    wrong += (filled - truth).powi(2);
                }
                false => assert_eq!((filled, variance), (truth, 0.0)),
            }
        }
    }
    assert!((wrong / 40.0).sqrt() < 0.5, "root mean square error {}", (wrong / 40.0).sqrt());
    // The filled table is a table again, and a fit accepts the holes.
    folder.ok("impute m.lgp holes.csv --out filled.parquet");
    folder.ok("transform m.lgp filled.parquet --out filled.npy");
    folder.ok(&quick("holes.csv", "h.lgp"));
}

#[test]
fn columns_can_be_chosen_and_labels_come_from_a_file() {
    let folder = Folder::new();
    folder.ok("dataset iris --out iris.csv");
    let csv = folder.read("iris.csv");
    let species: Vec<&str> = csv.lines().skip(1).map(|l| l.rsplit(',').next().unwrap()).collect();
    folder.write("species.csv", &format!("species\n{}\n", species.join("\n")));
    let common = "--max-iter 10 --inducing 6 --json --quiet";
    let column = folder.json(&format!("fit iris.csv --labels species {common}"));
    let file = folder.json(&format!("fit iris.csv --exclude species --labels species.csv {common}"));
    assert_eq!(column["knn_accuracy"], file["knn_accuracy"]);
    assert_eq!(column["bound"], file["bound"]);
    let two = folder.json(&format!("fit iris.csv --columns petal_length_cm,petal_width_cm {common}"));
    assert_eq!(two["d"].as_u64(), Some(2));
    assert!(two["knn_accuracy"].is_null());
    let text = folder.run("fit iris.csv");
    assert!(text.code == 3 && text.err.contains("--exclude species"), "{text:?}");
}

#[test]
fn the_trace_is_a_table_and_the_seed_decides() {
    let folder = Folder::new();
    folder.ok("dataset oil-flow --n 30 --out o.csv");
    let line = "fit o.csv --labels regime --max-iter 12 --inducing 6 --quiet --json --trace t.csv";
    let all = folder.json(line);
    let trace = folder.read("t.csv");
    assert!(trace.starts_with("iteration,bound\n1,"), "{trace}");
    assert_eq!(trace.lines().count() as u64, 1 + all["iterations"].as_u64().unwrap());
    assert_eq!(folder.json(&format!("{line} --threads 1"))["bound"], all["bound"]);
    assert_ne!(folder.json(&format!("{line} --seed 7"))["bound"], all["bound"]);
    let restarts = folder.json(&format!("{line} --restarts 3"));
    assert_eq!(restarts["restarts"].as_array().unwrap().len(), 3);
    assert!(restarts["bound"].as_f64() >= all["bound"].as_f64());
}

#[test]
fn help_shows_examples_first_and_shells_complete() {
    let folder = Folder::new();
    let top = folder.ok("--help");
    assert!(top.find("Examples:").unwrap() < top.find("Usage:").unwrap());
    for name in
        ["demo", "dataset", "fit", "transform", "reconstruct", "impute", "plot", "report", "inspect", "man"]
    {
        let help = folder.ok(&format!("{name} --help"));
        assert!(help.find("Examples:").unwrap() < help.find("Usage:").unwrap(), "{name}");
        assert!(folder.ok(&format!("man {name}")).contains(".TH"), "{name}");
    }
    assert!(folder.ok("man").contains(".SH"));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(folder.ok(&format!("completions {shell}")).contains("latentgp"));
    }
    assert!(folder.ok("--version").starts_with("latentgp "));
}
