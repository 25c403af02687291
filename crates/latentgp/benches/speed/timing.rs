//! Best of many, on one thread and on more, as a table and as JSON.
//!
//! A machine that others use too is faster in one minute than in the next. So the numbers of threads take turns, the peak
//! rates of the machine are measured between them, and parts and ratios are taken of the best of each.

use crate::limit::{Limit, Work};
use serde_json::json;
use std::time::Instant;

/// Seconds of a turn, or one run where that takes longer.
const TURN: f64 = 0.05;

/// Some threads, and what was measured on them so far.
struct Pool {
    pool: rayon::ThreadPool,
    threads: usize,
    limit: Limit,
}

/// The best seconds of a case, for every number of threads.
struct Case {
    name: String,
    work: Work,
    best: Vec<f64>,
}

/// Options of the command line and what was measured so far.
pub struct Bench {
    words: Vec<String>,
    seconds: f64,
    json: Option<String>,
    /// Under `cargo test`: everything once, at the smallest size.
    pub quick: bool,
    pools: Vec<Pool>,
    cases: Vec<Case>,
}

impl Bench {
    /// Reads the command line; `cargo bench` adds `--bench` to it, `cargo test` does not.
    pub fn from_args() -> Self {
        let (mut words, mut seconds, mut json, mut quick) = (Vec::new(), 1.0, None, true);
        let (mut threads, mut unknown) = (vec![1, 2], None);
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().unwrap_or_else(|| panic!("{arg} wants a value"));
            match arg.as_str() {
                "--bench" => quick = false,
                "--seconds" => seconds = value().parse().expect("--seconds wants a number"),
                "--json" => json = Some(value()),
                "--threads" => {
                    let numbers = value();
                    let number = |n: &str| n.parse().expect("--threads wants numbers such as 1,2");
                    threads = numbers.split(',').map(number).collect();
                }
                // `cargo test` hands on options of its own harness.
                word if word.starts_with('-') => unknown = Some(word.to_string()),
                word => words.push(word.to_string()),
            }
        }
        if quick {
            threads.truncate(1);
        } else if let Some(word) = unknown {
            panic!("{word} is no option: --seconds S, --threads 1,2 and --json FILE are, and words of names");
        }
        let pool = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.expect("a pool of threads");
            Pool { threads: pool.current_num_threads(), pool, limit: Limit::default() }
        };
        Bench {
            words,
            seconds,
            json,
            quick,
            pools: threads.into_iter().map(pool).collect(),
            cases: Vec::new(),
        }
    }

    /// Whether a case of this name is wanted.
    pub fn wants(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|w| name.contains(w.as_str()))
    }

    /// Times `once` on every number of threads, in turns.
    pub fn case(&mut self, name: &str, work: Work, mut once: impl FnMut() + Send) {
        if !self.wants(name) {
            return;
        }
        let (mut best, mut spent) = (vec![f64::INFINITY; self.pools.len()], 0.0);
        // The first turn warms up, and the best of it may count all the same.
        for turn in 0.. {
            for (Pool { pool, limit, .. }, best) in self.pools.iter_mut().zip(&mut best) {
                limit.raise(pool);
                let mut left = TURN;
                while left > 0.0 {
                    let took = pool.install(|| seconds_of(&mut once));
                    *best = best.min(took);
                    left -= if self.quick { TURN } else { took };
                    spent += took;
                }
            }
            if self.quick || (turn >= 3 && spent >= self.seconds * self.pools.len() as f64) {
                break;
            }
        }
        let times: Vec<String> = best.iter().map(|best| format!("{:.3} ms", 1e3 * best)).collect();
        eprintln!("{name}: {}", times.join(", "));
        self.cases.push(Case { name: name.to_string(), work, best });
    }

    /// Prints the table, and writes the JSON file, where one was asked for.
    pub fn finish(self) {
        for Pool { threads, limit: Limit { flops, exps, roots }, .. } in &self.pools {
            println!(
                "{threads} thread(s): matrix product {:.1} GFLOP/s, exp {:.2} G/s, square root {:.2} G/s",
                flops / 1e9,
                exps / 1e9,
                roots / 1e9
            );
        }
        println!(
            "{:<46} {:>7} {:>11} {:>9} {:>9} {:>9} {:>11} {:>6} {:>6}",
            "case (N, D, Q, M)", "threads", "best", "Mexp", "Msqrt", "Mflop", "limit", "part", "gain"
        );
        let mut rows = Vec::new();
        for Case { name, work, best } in &self.cases {
            for (Pool { threads, limit, .. }, &seconds) in self.pools.iter().zip(best) {
                let (ideal, gain) = (limit.time(work), best[0] / seconds);
                println!(
                    "{name:<46} {threads:>7} {:>8.3} ms {:>9.2} {:>9.2} {:>9.1} {:>8.3} ms {:>4.0} % {gain:>6.2}",
                    1e3 * seconds,
                    1e-6 * work.exps,
                    1e-6 * work.roots,
                    1e-6 * work.flops,
                    1e3 * ideal,
                    100.0 * ideal / seconds
                );
                rows.push(json!({
                    "case": name, "threads": threads, "seconds": seconds, "exps": work.exps, "square_roots": work.roots,
                    "flops": work.flops, "limit_seconds": ideal, "fraction_of_limit": ideal / seconds,
                    "gain_over_first": gain,
                }));
            }
        }
        let rates = |Pool { threads, limit, .. }: &Pool| {
            json!({
                "threads": threads, "flops_per_second": limit.flops, "exps_per_second": limit.exps,
                "square_roots_per_second": limit.roots,
            })
        };
        if let Some(path) = &self.json {
            let limits: Vec<_> = self.pools.iter().map(rates).collect();
            let all = json!({ "limits": limits, "cases": rows });
            std::fs::write(path, serde_json::to_string_pretty(&all).expect("plain numbers"))
                .unwrap_or_else(|e| panic!("{path}: {e}"));
        }
    }
}

/// How long it takes.
pub fn seconds_of(once: impl FnOnce()) -> f64 {
    let start = Instant::now();
    once();
    start.elapsed().as_secs_f64()
}
