//! Starts the program in a folder of its own.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A fresh folder in which the program runs.
pub struct Folder(tempfile::TempDir);

/// What a run left behind.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_latentgp"));
        command.current_dir(self.0.path()).args(by_one_start(words(line)));
        command
    }

    /// Runs the words of the line; what is in double quotes is one word.
    pub fn run(&self, line: &str) -> Ended {
        self.run_with(line, "")
    }

    /// The same, with text on standard input.
    pub fn run_with(&self, line: &str, input: &str) -> Ended {
        let mut child = self
            .command(line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_string();
        let feeder = std::thread::spawn(move || {
            // A program that refuses its options does not read.
            let _ = stdin.write_all(input.as_bytes());
        });
        let ended = ended(child);
        feeder.join().unwrap();
        ended
    }

    /// Runs a line that must succeed.
    pub fn ok(&self, line: &str) -> String {
        let ended = self.run(line);
        assert_eq!(ended.code, 0, "latentgp {line}: {}", ended.err);
        ended.out
    }

    /// Runs a line that must succeed and print JSON.
    pub fn json(&self, line: &str) -> Value {
        let out = self.ok(line);
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("latentgp {line}: {e} in {out}"))
    }

    /// Names of all files in the folder.
    pub fn files(&self) -> Vec<String> {
        let list = |p: &Path| -> Vec<String> {
            let entries = std::fs::read_dir(p).unwrap();
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
        };
        let mut all = list(self.0.path());
        all.sort();
        all
    }
}

/// Waits for a child.
pub fn ended(child: Child) -> Ended {
    let done = child.wait_with_output().unwrap();
    Ended {
        code: done.status.code().unwrap_or(-1),
        out: String::from_utf8(done.stdout).unwrap(),
        err: String::from_utf8(done.stderr).unwrap(),
    }
}

fn words(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (k, part) in line.split('"').enumerate() {
        match k % 2 {
            0 => all.extend(part.split_whitespace().map(String::from)),
            _ => all.push(part.to_string()),
        }
    }
    all
}

/// Where a line says nothing of it, one start: the point of most tests is another than the search.
fn by_one_start(mut words: Vec<String>) -> Vec<String> {
    const SAYS: [&str; 8] =
        ["--effort", "--restarts", "--resume", "--papers", "--help", "-h", "ppca", "--model=ppca"];
    let fits = words.first().is_some_and(|w| ["fit", "regress", "forecast"].contains(&w.as_str()));
    if fits && !words.iter().any(|w| SAYS.contains(&w.as_str())) {
        words.extend(["--effort".into(), "quick".into()]);
    }
    words
}

/// A small, quick fit of the data in the file given.
pub fn quick(data: &str, out: &str) -> String {
    format!(
        "fit {data} --labels regime --latent-dim 3 --inducing 8 --kernel matern32 --max-iter 15 --out {out}"
    )
}
