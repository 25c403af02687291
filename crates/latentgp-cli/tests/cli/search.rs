//! Where fits start, what is chosen from the data, and searches.

use crate::program::Folder;
use serde_json::Value;

fn oil() -> Folder {
    let folder = Folder::new();
    folder.ok("dataset oil-flow --n 40 --seed 1 --out o.csv");
    folder
}

#[test]
fn what_is_not_given_is_chosen_and_told() {
    let folder = oil();
    let told = folder.run("fit o.csv --labels regime --max-iter 30 --effort quick --json");
    assert_eq!(told.code, 0, "{told:?}");
    let lines = ["--latent-dim ", "--inducing 20: ", "--kernel rbf: ", "--scale standardize: "];
    assert!(lines.iter().all(|l| told.err.contains(l)), "{}", told.err);
    let all: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(all["inducing"], 20);
    let q = all["latent_dim"].as_u64().unwrap();
    assert!((2..=5).contains(&q) && told.err.contains(&format!("--latent-dim {q}: ")), "{}", told.err);
    let three = folder.json(
        "fit o.csv --labels regime -Q 3 -M 6 --max-iter 10 --effort quick --scale global -k matern32 --json",
    );
    assert!(three["knn_accuracy_all"]["mean"].is_number() && three["knn_accuracy"]["mean"].is_number());
    let given =
        folder.run("fit o.csv --labels regime -Q 3 -M 6 --max-iter 5 --effort quick --scale global -k rbf");
    assert!(!given.err.contains("--latent-dim"), "{}", given.err);
    assert!(given.out.contains("on all 3 dimensions"), "{}", given.out);
    let wrong = folder.run("fit o.csv --labels regime --model gplvm -Q auto");
    assert!(wrong.code == 2 && wrong.err.contains("--latent-dim auto"), "{wrong:?}");
}

#[test]
fn a_fit_starts_where_it_is_told() {
    let folder = oil();
    let fit = |more: &str| {
        folder.json(&format!("fit o.csv --labels regime -Q 2 -M 6 --max-iter 3 --effort quick {more} --json"))
    };
    let usual = fit("--out a.lgp")["bound"].clone();
    assert_eq!(fit("--init pca")["bound"], usual);
    for init in ["pca-raw", "spectral", "random"] {
        assert_ne!(fit(&format!("--init {init}"))["bound"], usual, "{init}");
    }
    for init in ["kmeans", "rows"] {
        assert_ne!(fit(&format!("--inducing-init {init}"))["bound"], usual, "{init}");
    }
    let on = fit("--init a.lgp --inducing-init a.lgp")["bound"].as_f64().unwrap();
    assert!(on > usual.as_f64().unwrap(), "{on} after {usual}");
    folder.ok("transform a.lgp o.csv --out x.csv");
    let mut x = String::new();
    for line in folder.read("x.csv").lines() {
        let cells: Vec<&str> = line.split(',').take(2).collect();
        x += &(cells.join(",") + "\n");
    }
    folder.write("x2.csv", &x);
    assert!(fit("--init x2.csv")["bound"].as_f64().unwrap() > usual.as_f64().unwrap());
    for (line, code, words) in [
        ("fit o.csv --labels regime -Q 2 --init umap", 2, "spectral"),
        ("fit o.csv --labels regime -Q 3 --init x2.csv", 3, "40 × 3"),
        ("fit o.csv --labels regime --model ppca --init random", 2, "--init has no effect"),
        ("fit o.csv --labels regime -Q 2 -M 9 --inducing-init a.lgp", 2, "--inducing"),
    ] {
        let wrong = folder.run(line);
        assert!(wrong.code == code && wrong.err.contains(words), "{line}: {wrong:?}");
    }
}

#[test]
fn a_search_compares_and_keeps_the_best() {
    let folder = oil();
    let line =
        "search o.csv --labels regime -k rbf -k linear -Q 2 -M 8 --max-iter 20 --fits 3 --effort quick";
    let all = folder.json(&format!("{line} --out best.lgp --plot search.svg --json"));
    let density = |k: usize| all["candidates"][k]["density"].as_f64().unwrap();
    assert!(density(0) > density(1) && all["fits"] == 3, "{all}");
    assert!(folder.read("search.svg").contains("<svg"));
    assert_eq!(folder.json("inspect best.lgp --json")["header"]["latent_dim"], 2);
    let words = folder.ok(line);
    assert!(words.contains("density") && words.contains("best"), "{words}");

    let rows: String = (0..60).map(|i| format!("{},{}\n", 0.1 * i as f64, (0.3 * i as f64).sin())).collect();
    folder.write("wave.csv", &format!("t,y\n{rows}"));
    let best = folder.json("search wave.csv --target y -k linear -k rbf --fits 4 --out gp.lgp --json");
    assert_eq!(best["best"]["kernel"], "rbf");
    folder.ok("predict gp.lgp wave.csv");
    let series =
        "search wave.csv --series y --lag 4 -k rbf -k linear --fits 3 --effort quick --out s.lgp --json";
    assert!(folder.json(series)["best"]["density"].is_number());
    for (line, code, words) in [
        ("search wave.csv --target y --budget 0", 2, "--budget"),
        ("search wave.csv --model gp", 2, "--target"),
        ("search wave.csv --target y --series t", 2, "--series"),
        ("search wave.csv --target y -k rbff", 1, "rbff"),
    ] {
        let wrong = folder.run(line);
        assert!(wrong.code == code && wrong.err.contains(words), "{line}: {wrong:?}");
    }
}
