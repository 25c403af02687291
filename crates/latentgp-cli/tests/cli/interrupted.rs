//! Ctrl-C and kill -9: nothing is lost, and a resume ends where the whole fit ends.

use crate::program::{Folder, ended};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The bound of a resumed fit against that of a whole one.
const TOLERANCE: f64 = 1e-8;

const FIT: &str = "fit o.csv --labels regime --latent-dim 3 --inducing 10 --kernel matern32 --max-iter 60 \
                   --restarts 2 --quiet --json";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.ok("dataset oil-flow --n 60 --seed 2 --out o.csv");
    folder
}

fn bound(v: &Value) -> f64 {
    v["bound"].as_f64().unwrap()
}

fn start(folder: &Folder, line: &str) -> Child {
    folder.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait_for(folder: &Folder, file: &str, child: &mut Child) {
    while !folder.path(file).exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn after_kill_9_at_any_moment_a_resume_ends_at_the_same_bound() {
    let folder = folder();
    let whole = folder.json(FIT);
    let mut killed = 0;
    for delay in [0, 3, 10, 25, 45, 70, 110, 170, 260, 400] {
        let _ = std::fs::remove_file(folder.path("state.lgp"));
        let line = format!("{FIT} --checkpoint state.lgp --checkpoint-every 0");
        let mut child = start(&folder, &line);
        wait_for(&folder, "state.lgp", &mut child);
        std::thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        let first = ended(child);
        if first.code != -1 {
            // It was over before; the checkpoint stays as no model file replaced it.
            assert_eq!(first.code, 0, "{first:?}");
        } else {
            killed += 1;
        }
        let resumed = folder.json("fit --resume state.lgp --quiet --json --out m.lgp");
        assert!(
            (bound(&resumed) - bound(&whole)).abs() <= TOLERANCE * bound(&whole).abs(),
            "killed after {delay} ms: {} against {}",
            bound(&resumed),
            bound(&whole)
        );
        assert_eq!(resumed["knn_accuracy"], whole["knn_accuracy"]);
    }
    assert!(killed > 2, "the fit is too quick for this test");
    assert!(!folder.files().iter().any(|f| f.starts_with(".latentgp-") && killed == 0));
}

#[test]
fn a_resume_takes_the_same_command_and_refuses_another() {
    let folder = folder();
    let whole = folder.json(FIT);
    let line = format!("{FIT} --checkpoint state.lgp --checkpoint-every 0");
    let mut child = start(&folder, &line);
    wait_for(&folder, "state.lgp", &mut child);
    std::thread::sleep(Duration::from_millis(30));
    child.kill().unwrap();
    child.wait().unwrap();
    let again = folder.json(&format!("{line} --resume state.lgp --out m.lgp"));
    assert_eq!(bound(&again), bound(&whole));
    assert!(!folder.path("state.lgp").exists(), "the model has replaced its checkpoint");

    let mut child = start(&folder, &line);
    wait_for(&folder, "state.lgp", &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    for (line, code, part) in [
        ("fit --resume state.lgp --kernel rbf", 2, "--kernel rbf contradicts"),
        ("fit --resume state.lgp --latent-dim 7", 2, "--latent-dim 7 contradicts"),
        ("fit --resume state.lgp --seed 9", 2, "--seed 9 contradicts"),
        ("fit --resume state.lgp --labels regime", 2, "no effect"),
        ("fit --resume m.lgp", 2, "nothing to resume"),
        ("fit --resume nowhere.lgp", 3, "nowhere.lgp"),
    ] {
        let ended = folder.run(line);
        assert!(ended.code == code && ended.err.contains(part), "{line}: {ended:?}");
    }
    folder.ok("dataset oil-flow --n 60 --seed 3 --out other.csv");
    let other = folder.run("fit other.csv --labels regime --resume state.lgp");
    assert!(other.code == 3 && other.err.contains("not the data"), "{other:?}");
    // A checkpoint is a model, too.
    folder.ok("transform state.lgp o.csv --out l.csv");
    assert!(folder.ok("inspect state.lgp").contains("unfinished"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_the_best_state_and_says_how_to_go_on() {
    let folder = folder();
    let line = "fit o.csv --labels regime --latent-dim 3 --inducing 20 --kernel matern32 --max-iter 100000 --restarts 40";
    for (out, saved) in [("--out m.lgp", "m.lgp"), ("", "latentgp-interrupted.lgp")] {
        let mut child =
            start(&folder, &format!("{line} {out} --checkpoint state.lgp --checkpoint-every 1000"));
        wait_for(&folder, "state.lgp", &mut child);
        std::thread::sleep(Duration::from_millis(100));
        let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(status.success());
        let stopped = ended(child);
        assert_eq!(stopped.code, 130, "{stopped:?}");
        assert!(stopped.err.contains(&format!("latentgp fit --resume {saved} --out {saved}")), "{stopped:?}");
        assert!(folder.ok(&format!("inspect {saved}")).contains("unfinished"));
        folder.ok(&format!("transform {saved} o.csv --out l.csv"));
        let _ = std::fs::remove_file(folder.path("state.lgp"));
    }
}

#[cfg(unix)]
#[test]
fn two_signals_at_once_are_one() {
    let folder = folder();
    let line = "fit o.csv --labels regime --latent-dim 3 --inducing 20 --kernel matern32 --max-iter 100000 --restarts 4";
    let mut child = start(&folder, &format!("{line} --out m.lgp --checkpoint state.lgp"));
    wait_for(&folder, "state.lgp", &mut child);
    let id = child.id().to_string();
    assert!(
        Command::new("sh")
            .args(["-c", &format!("kill -TERM {id}; kill -TERM {id}")])
            .status()
            .unwrap()
            .success()
    );
    let stopped = ended(child);
    assert_eq!(stopped.code, 130, "{stopped:?}");
    assert!(folder.ok("inspect m.lgp").contains("unfinished"));
    // A fit goes on writing to the file it was resumed from.
    let again = folder.run("fit --resume m.lgp --out m.lgp --checkpoint m.lgp --max-iter 1");
    assert_eq!(again.code, 0, "{again:?}");
}

/// Sends Ctrl-C after so many milliseconds.
#[cfg(unix)]
fn interrupted(folder: &Folder, line: &str, milliseconds: u64) -> crate::program::Ended {
    let child = start(folder, line);
    std::thread::sleep(Duration::from_millis(milliseconds));
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    ended(child)
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_the_best_state_of_every_model() {
    let folder = folder();
    folder.ok("dataset oil-flow --n 400 --seed 2 --out big.csv");
    let text = folder.read("big.csv");
    let mut rows: Vec<String> = text.lines().map(String::from).collect();
    // A gap makes PPCA iterate.
    for (i, row) in rows.iter_mut().enumerate().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let gap = i % (cells.len() - 1);
        let shown = |(k, c): (usize, &&str)| if k == gap { String::new() } else { c.to_string() };
        *row = cells.iter().enumerate().map(shown).collect::<Vec<_>>().join(",");
    }
    folder.write("gaps.csv", &rows.join("\n"));
    let target = text.lines().next().unwrap().split(',').next().unwrap().to_string();
    let regress = format!("regress big.csv --exclude regime --target {target} --restarts 40");
    for line in [
        "fit big.csv --labels regime --model gplvm --max-iter 100000 --restarts 40".to_string(),
        "fit gaps.csv --labels regime --model ppca --max-iter 100000000 --latent-dim 5".to_string(),
        regress.clone(),
        format!("{regress} --model vdmgp"),
        format!("{regress} --model spgp-dr"),
        format!("{regress} --model sparse"),
        "regress big.csv --target regime --likelihood categorical --model sparse --restarts 40".to_string(),
    ] {
        let _ = std::fs::remove_file(folder.path("m.lgp"));
        let stopped = interrupted(&folder, &format!("{line} --out m.lgp"), 700);
        if stopped.code == 0 {
            assert!(line.contains("ppca"), "{line} was over too soon: {stopped:?}");
            continue;
        }
        assert_eq!(stopped.code, 130, "{line}: {stopped:?}");
        assert!(stopped.err.contains("the best state is in m.lgp"), "{line}: {stopped:?}");
        folder.ok("inspect m.lgp");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_in_a_fold_keeps_the_model() {
    let folder = folder();
    let target = folder.read("o.csv").split(',').next().unwrap().to_string();
    let line = format!("regress o.csv --exclude regime --target {target} --folds 60 --out m.lgp");
    let mut child = start(&folder, &line);
    wait_for(&folder, "m.lgp", &mut child);
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let stopped = ended(child);
    assert_eq!(stopped.code, 130, "{stopped:?}");
    assert!(
        stopped.err.contains("fold") && stopped.err.contains("is in m.lgp, without scores"),
        "{stopped:?}"
    );
    folder.ok("predict m.lgp o.csv --out p.csv");
}
