//! `reproduce`: what it writes, what it says when it cannot, and what an interruption leaves.

use crate::program::{Folder, ended};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A file of this repository's tests.
fn copy(folder: &Folder, from: &str, to: &str) {
    let tables = concat!(env!("CARGO_MANIFEST_DIR"), "/../latentgp/tests/tables/");
    std::fs::create_dir_all(folder.path("papers")).unwrap();
    std::fs::copy(format!("{tables}{from}"), folder.path("papers").join(to)).unwrap();
}

fn without_seconds(mut value: Value) -> Value {
    match &mut value {
        Value::Object(all) => {
            all.remove("seconds");
            all.values_mut().for_each(|v| *v = without_seconds(v.take()));
        }
        Value::Array(all) => all.iter_mut().for_each(|v| *v = without_seconds(v.take())),
        _ => {}
    }
    value
}

#[test]
fn an_experiment_writes_its_files_and_the_same_numbers_again() {
    let folder = Folder::new();
    let text = folder.ok("reproduce spiral --quiet --out a");
    assert!(text.contains("PPCA") && text.contains("recovered, %"), "{text}");
    let one = folder.json("reproduce spiral --json --quiet --threads 1 --out a");
    let two = folder.json("reproduce spiral --json --quiet --threads 2 --out a");
    assert_eq!(without_seconds(one["parts"].clone()), without_seconds(two["parts"].clone()));
    let row = &one["parts"][0]["tables"][0]["rows"][0];
    assert!(row["recovered"]["ours"]["mean"].as_f64().unwrap() > 99.0, "{row}");
    assert!(row["recovered"]["paper"].is_null());
    let csv = folder.read("a/spiral.csv");
    assert!(csv.starts_with("method,kernel,recovered,recovered_std,recovered_paper,"), "{csv}");
    let stored: Value = serde_json::from_str(&folder.read("a/spiral.json")).unwrap();
    assert_eq!(stored["name"], "spiral");
    assert!(folder.read("a/spiral-ppca.svg").starts_with("<svg"));
    assert!(std::fs::read(folder.path("a/spiral-ppca.png")).unwrap().starts_with(b"\x89PNG"));
    let other = folder.json("reproduce spiral --json --quiet --seed 1 --out b");
    assert_ne!(without_seconds(other["parts"].clone()), without_seconds(one["parts"].clone()));
}

#[test]
fn curves_have_their_ratios() {
    let folder = Folder::new();
    let all = folder.json("reproduce psi-cost --quick --quiet --json --out a");
    let lines = &all["parts"][0]["curves"][0]["lines"];
    assert_eq!(lines[0]["name"], "Gauss-Hermite 2^D");
    assert_eq!(lines[0]["values"].as_array().unwrap().len(), 8);
    assert!(folder.read("a/psi-cost.csv").starts_with("D,Gauss-Hermite 2^D,Monte Carlo 2D,"));
}

/// The bold texts of a figure.
fn titles(svg: &str) -> Vec<&str> {
    svg.split("font-weight=\"bold\">").skip(1).filter_map(|t| t.split('<').next()).collect()
}

#[test]
fn no_two_figures_of_an_experiment_have_the_same_titles() {
    let folder = Folder::new();
    folder.ok("reproduce spiral --quiet --out a");
    folder.ok("reproduce airline --quick --runs 1 --quiet --out a");
    for experiment in ["spiral", "airline"] {
        let mut seen = Vec::new();
        for file in std::fs::read_dir(folder.path("a")).unwrap().map(|f| f.unwrap().file_name()) {
            let name = file.to_string_lossy().to_string();
            if name.starts_with(experiment) && name.ends_with(".svg") {
                let svg = folder.read(&format!("a/{name}"));
                let own = titles(&svg).join(" | ");
                assert!(!own.is_empty() && !seen.contains(&own), "{name}: {own}");
                seen.push(own);
            }
        }
        assert!(seen.len() > 1, "{experiment}: {seen:?}");
    }
}

#[test]
fn what_cannot_run_says_why() {
    let folder = Folder::new();
    copy(&folder, "numbers.mat", "usps_all.mat");
    copy(&folder, "two.npz", "three_phase_oil_flow.npz");
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.write("file", "");
    for (line, code, words) in [
        ("reproduce usps", 2, "give `--data DIR` with usps_all.mat"),
        ("reproduce usps --data empty", 3, "has no usps_all.mat"),
        ("reproduce usps --data nowhere", 3, "there is no folder `nowhere`"),
        ("reproduce usps --data papers", 3, "usps_all.mat"),
        ("reproduce oil-flow --data papers", 3, "three_phase_oil_flow.npz"),
        ("reproduce table1", 2, "psi-accuracy"),
        ("reproduce spiral --runs 0", 2, "--runs"),
        ("reproduce spiral --runs 2", 2, "--runs has no effect on `reproduce spiral`"),
        ("reproduce airline --steps 3", 2, "--steps has no effect on `reproduce airline`"),
        ("reproduce airline --long", 2, "--long has no effect on `reproduce airline`"),
        ("reproduce spiral --out file/sub", 1, "--out file/sub"),
    ] {
        let ended = folder.run(line);
        assert_eq!(ended.code, code, "{line}: {}", ended.err);
        assert!(ended.err.contains(words) && !ended.err.contains("panicked"), "{line}: {}", ended.err);
    }
}

/// Everything, interrupted after half a second of work.
#[cfg(unix)]
fn interrupted(folder: &Folder) {
    let mut command = folder.command("reproduce all --quick --out a");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while !folder.path("a").exists() && begin.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(500));
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let ended = ended(child);
    assert_eq!(ended.code, 130, "{}", ended.err);
}

#[cfg(unix)]
#[test]
fn an_interruption_leaves_a_page_of_what_was_finished() {
    let folder = Folder::new();
    interrupted(&folder);
    let page = folder.read("a/reproduction.html");
    assert!(page.contains("The run ended early") && page.ends_with("</html>\n"));
    assert!(folder.read("a/reproduction.md").starts_with("# The papers, reproduced"));
}

#[cfg(unix)]
#[test]
fn an_interruption_leaves_what_an_earlier_run_wrote() {
    let folder = Folder::new();
    let files = ["a/reproduction.html", "a/oil-flow.json", "a/oil-flow.csv"];
    std::fs::create_dir(folder.path("a")).unwrap();
    files.iter().for_each(|file| std::fs::write(folder.path(file), "earlier").unwrap());
    interrupted(&folder);
    files.iter().for_each(|file| assert_eq!(folder.read(file), "earlier"));
}
