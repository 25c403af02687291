//! Wrong usage, bad data and failed work: one sentence on stderr, nothing on stdout, the right code.

use crate::program::{Ended, Folder, ended, quick};
use std::process::Stdio;

/// One line, without the ways of a crash.
fn one_sentence(ended: &Ended, code: i32, part: &str) {
    assert_eq!(ended.code, code, "{ended:?}");
    assert!(ended.out.is_empty(), "{ended:?}");
    assert!(ended.err.contains(part), "`{part}` is not in {ended:?}");
    assert!(ended.err.starts_with("latentgp: ") && ended.err.trim_end().lines().count() == 1, "{ended:?}");
    assert!(!ended.err.contains("panicked"), "{ended:?}");
}

#[test]
fn wrong_usage_is_code_2() {
    let folder = Folder::new();
    folder.ok("dataset oil-flow --n 20 --out o.csv");
    for (line, part) in [
        ("fit o.csv --labels regime --kernel rbff", "did you mean `rbf`"),
        ("fit o.csv --labels regime --expectation unscentd", "did you mean `unscented`"),
        ("fit o.csv --labels regime --kernel matern32 --expectation analytic", "unscented"),
        ("fit o.csv --labels regime --latent-dim 0", "--latent-dim"),
        ("fit o.csv --labels regime --inducing 0", "--inducing"),
        (
            "fit o.csv --labels regime --latent-dim 8 --kernel matern32 --expectation gauss_hermite(points=9)",
            "nodes",
        ),
        ("fit o.csv --labels regime --kernel matern32 --max-nodes 3", "limit of 3 nodes"),
        (
            "fit o.csv --labels regime --kernel matern32 --max-nodes 1 --expectation unscented",
            "try fewer latent dimensions, or raise the limit",
        ),
        ("fit o.csv --labels regime --max-nodes 1 --expectation unscented", "try `analytic` (no nodes)"),
        (
            "fit o.csv --labels regime --kernel matern32 --max-nodes 4 --expectation gauss_hermite(points=3)",
            "try `unscented` (4 nodes)",
        ),
        ("fit o.csv --labels regime --max-nodes 100", "no effect"),
        ("fit o.csv --labels regime --model ppca --inducing 3", "--inducing has no effect on --model ppca"),
        ("fit o.csv --labels regime --model ppca --expectation unscented", "--expectation has no effect"),
        ("fit o.csv --labels regime --out nowhere/m.lgp", "no folder `nowhere`"),
        ("fit o.csv --labels regime --out .", "is a folder"),
        ("fit o.csv --labels regime --trace t.xyz", "must end in"),
        ("fit o.csv --columns y1,y1", "--columns: the column `y1` is listed twice"),
        ("fit o.csv --exclude regime,regime", "--exclude: the column `regime` is listed twice"),
        ("fit o.csv --model ppca --columns y1,y2,y1", "`y1` is listed twice"),
        ("regress o.csv --target y1 --columns y2,y2", "--columns: the column `y2` is listed twice"),
        ("regress o.csv --target regime --columns regime", "--columns: `regime` is a target"),
        ("fit o.csv --labels regime --columns regime", "--columns: `regime` is that of --labels"),
        ("fit o.csv --id regime --columns regime", "--columns: `regime` is that of --id"),
        ("dataset nothing", "one of"),
        ("dataset iris --n 0", "from 1 to 150"),
        ("dataset iris --out a.xyz", "must end in"),
        ("man fti", "did you mean `fit`?"),
    ] {
        one_sentence(&folder.run(line), 2, part);
    }
    for (line, part) in [
        ("fti o.csv", "'fit'"),
        ("fit o.csv --kernell rbf", "'--kernel'"),
        ("fit o.csv --scale standardise", "'standardize'"),
        ("fit o.csv --model ppcaa", "'ppca'"),
        ("fit", "<DATA>"),
        ("fit o.csv --checkpoint-every 3", "--checkpoint"),
        ("fit o.csv --columns a --exclude b", "cannot be used with"),
        ("plot m.lgp", "--out"),
        ("completions bsh", "'bash'"),
        ("fit o.csv --threads 0", "--threads"),
        ("fit o.csv --threads 1000000", "from 1 to 1024"),
        ("fit o.csv --restarts 1000000000000", "up to 10000"),
        ("fit o.csv -Q -1", "invalid value '-1' for '--latent-dim"),
        ("fit o.csv --seed -1", "invalid value '-1' for '--seed"),
        ("regress o.csv --target regime --folds -2", "invalid value '-2' for '--folds"),
    ] {
        let ended = folder.run(line);
        assert_eq!(ended.code, 2, "{line}: {ended:?}");
        assert!(ended.err.contains(part) && ended.out.is_empty(), "{line}: {ended:?}");
    }
    assert_eq!(folder.files(), ["o.csv"]);
}

#[test]
fn no_file_that_is_read_or_written_is_overwritten() {
    let folder = Folder::new();
    folder.ok("dataset oil-flow --n 20 --out o.csv");
    folder.ok(&quick("o.csv", "m.lgp"));
    folder.write("labels.csv", "l\n1\n2\n");
    folder.write("y.csv", "y\n1\n2\n");
    std::fs::create_dir(folder.path("sub")).unwrap();
    let before: Vec<Vec<u8>> =
        folder.files().iter().filter_map(|f| std::fs::read(folder.path(f)).ok()).collect();
    for (line, option, name) in [
        ("fit o.csv --labels regime --out o.csv", "--out", "DATA"),
        ("fit o.csv --labels regime --out sub/../o.csv", "--out", "DATA"),
        ("fit o.csv --labels regime --trace ./o.csv", "--trace", "DATA"),
        ("fit o.csv --labels regime --checkpoint o.csv", "--checkpoint", "DATA"),
        ("fit o.csv --exclude regime --labels labels.csv --trace labels.csv", "--trace", "--labels"),
        ("fit o.csv --labels regime --out z.csv --trace z.csv", "--trace", "--out"),
        ("fit o.csv --labels regime --model ppca --out o.csv", "--out", "DATA"),
        ("regress o.csv --target regime --likelihood categorical --out o.csv", "--out", "DATA"),
        ("regress y.csv --target y --test o.csv --out o.csv", "--out", "--test"),
        ("transform m.lgp o.csv --out o.csv", "--out", "DATA"),
        ("impute m.lgp o.csv --out o.csv", "--out", "DATA"),
        ("predict m.lgp o.csv --out o.csv", "--out", "DATA"),
        ("reconstruct m.lgp y.csv --out y.csv", "--out", "LATENT"),
        ("forecast y.csv --out y.csv", "--out", "SERIES"),
        ("forecast y.csv --trajectories 3 --out z.csv --paths z.csv", "--paths", "--out"),
    ] {
        let part = format!("this is the file of {name}, which would be overwritten; choose another name");
        let ended = folder.run(line);
        one_sentence(&ended, 2, &part);
        assert!(ended.err.starts_with(&format!("latentgp: {option} ")), "{line}: {ended:?}");
    }
    let after: Vec<Vec<u8>> =
        folder.files().iter().filter_map(|f| std::fs::read(folder.path(f)).ok()).collect();
    assert!(before == after);
    // A model may take the place of its own checkpoint, whatever the two are called.
    folder.ok(&format!("{} --checkpoint ./sub/../c.lgp", quick("o.csv", "c.lgp")));
    folder.ok("inspect c.lgp");
}

#[test]
fn bad_data_are_code_3() {
    let folder = Folder::new();
    folder.ok("dataset oil-flow --n 20 --out o.csv");
    folder.ok(&quick("o.csv", "m.lgp"));
    folder.write("empty.csv", "");
    folder.write("comma.csv", "a;b\n1,5;2\n2,5;3\n");
    folder.write("text.csv", "a,b\n1,x\n2,y\n");
    folder.write("one.csv", "a,b\n1,2\n");
    folder.write("infinite.csv", "a,b\n1,2\ninf,4\n");
    folder.write("hole.csv", "a,b\n1,\n2,\n");
    folder.write("ragged.csv", "a,b\n1,2\n3\n");
    folder.write("few.csv", "a,b\n1,2\n2,3\n");
    folder.write("bad.npy", "not numpy");
    folder.write("labels.csv", "l\n1\n2\n");
    let mut bytes = std::fs::read(folder.path("m.lgp")).unwrap();
    let middle = bytes.len() / 2;
    std::fs::write(folder.path("cut.lgp"), &bytes[..middle]).unwrap();
    bytes[middle] ^= 1;
    std::fs::write(folder.path("flipped.lgp"), &bytes).unwrap();
    for (line, part) in [
        ("fit missing.csv", "missing.csv"),
        ("fit empty.csv", "empty.csv"),
        ("fit comma.csv", "comma.csv"),
        ("fit text.csv", "column `b`"),
        ("fit one.csv", "at least two rows"),
        ("fit infinite.csv", "infinite.csv"),
        ("fit hole.csv", "hole.csv, column `b`: every cell is missing"),
        ("fit ragged.csv", "ragged.csv"),
        ("fit bad.npy", "bad.npy"),
        ("fit o.csv --labels regme", "did you mean `regime`?"),
        ("fit o.csv --exclude regime --labels labels.csv", "expected 20 labels"),
        ("fit o.csv --exclude nothing", "no column `nothing`"),
        ("inspect o.csv", "not a model file"),
        ("inspect nowhere.lgp", "nowhere.lgp"),
        ("transform cut.lgp o.csv", "truncated"),
        ("transform flipped.lgp o.csv", "checksum"),
        ("plot flipped.lgp --out f.svg", "checksum"),
        ("report cut.lgp --out r.html", "truncated"),
        ("transform m.lgp few.csv", "has no column"),
        ("impute m.lgp few.csv", "has no column"),
        ("reconstruct m.lgp few.csv", "x1 … x3"),
        ("fit --resume flipped.lgp", "checksum"),
    ] {
        one_sentence(&folder.run(line), 3, part);
    }
    assert!(!folder.files().iter().any(|f| f.ends_with(".svg") || f.ends_with(".html")));
}

#[cfg(target_os = "linux")]
#[test]
fn failed_work_is_code_1_and_a_closed_pipe_is_quiet() {
    let folder = Folder::new();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = folder.command("dataset iris").stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
    one_sentence(&ended(child), 1, "space");
    folder.ok("dataset iris --out i.csv");
    one_sentence(&folder.run("fit i.csv --labels species --max-iter 3 --quiet --out /dev/full"), 1, "space");

    let mut child = folder
        .command("dataset oil-flow --n 100000")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = ended(child);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
}

#[test]
fn quiet_is_quiet_and_a_failed_fit_keeps_the_old_model() {
    let folder = Folder::new();
    folder.ok("dataset oil-flow --n 20 --out o.csv");
    let fit = folder.run(&format!("{} --quiet", quick("o.csv", "m.lgp")));
    assert_eq!((fit.code, fit.err.as_str()), (0, ""));
    let before = std::fs::read(folder.path("m.lgp")).unwrap();
    assert_eq!(folder.run("fit o.csv --out m.lgp").code, 3);
    assert_eq!(std::fs::read(folder.path("m.lgp")).unwrap(), before);
    assert_eq!(folder.files(), ["m.lgp", "o.csv"]);
}
