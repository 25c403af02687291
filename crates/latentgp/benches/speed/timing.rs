//! Best of many, on one thread and on more, as a table and as JSON.

use crate::limit::{Limit, Work};
use serde_json::json;
use std::time::{Duration, Instant};

/// Options of the command line and what was measured so far.
pub struct Bench {
    words: Vec<String>,
    seconds: f64,
    json: Option<String>,
    /// Under `cargo test`: everything once, at the smallest size.
    pub quick: bool,
    pools: Vec<(rayon::ThreadPool, Limit)>,
    rows: Vec<serde_json::Value>,
}

impl Bench {
    /// Reads the command line; `cargo bench` adds `--bench` to it, `cargo test` does not.
    pub fn from_args() -> Self {
        let (mut words, mut seconds, mut json, mut quick) = (Vec::new(), 1.0, None, true);
        let mut threads = vec![1, 2];
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
                word if word.starts_with('-') => {}
                word => words.push(word.to_string()),
            }
        }
        if quick {
            threads.truncate(1);
        }
        let pool = |threads: usize| {
            let pool =
                rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool of threads");
            let limit = Limit::measure(&pool, if quick { 0.001 } else { 0.3 });
            println!(
                "{threads} thread(s): matrix product {:.1} GFLOP/s, exp {:.2} G/s, square root {:.2} G/s",
                limit.flops / 1e9,
                limit.exps / 1e9,
                limit.roots / 1e9
            );
            (pool, limit)
        };
        let pools = threads.into_iter().map(pool).collect();
        println!(
            "{:<44} {:>7} {:>11} {:>9} {:>9} {:>9} {:>9} {:>6}",
            "case (N, D, Q, M)", "threads", "best", "Mexp", "Msqrt", "Mflop", "limit", "part"
        );
        Bench { words, seconds, json, quick, pools, rows: Vec::new() }
    }

    /// Whether a case of this name is wanted.
    pub fn wants(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|w| name.contains(w.as_str()))
    }

    /// Times `once` on every number of threads.
    pub fn case(&mut self, name: &str, work: Work, mut once: impl FnMut() + Send) {
        if !self.wants(name) {
            return;
        }
        for (pool, limit) in &self.pools {
            let budget = if self.quick { 0.0 } else { self.seconds };
            let best = pool.install(|| best_of(budget, &mut once)).as_secs_f64();
            let ideal = limit.time(&work);
            let threads = pool.current_num_threads();
            println!(
                "{name:<44} {threads:>7} {:>8.3} ms {:>9.2} {:>9.2} {:>9.1} {:>6.3} ms {:>4.0} %",
                1e3 * best,
                1e-6 * work.exps,
                1e-6 * work.roots,
                1e-6 * work.flops,
                1e3 * ideal,
                100.0 * ideal / best
            );
            self.rows.push(json!({
                "case": name, "threads": threads, "seconds": best, "exps": work.exps, "square_roots": work.roots,
                "flops": work.flops, "limit_seconds": ideal, "fraction_of_limit": ideal / best,
            }));
        }
    }

    /// Writes the JSON file, where one was asked for.
    pub fn finish(self) {
        let rates = |(pool, limit): &(rayon::ThreadPool, Limit)| {
            json!({
                "threads": pool.current_num_threads(), "flops_per_second": limit.flops,
                "exps_per_second": limit.exps, "square_roots_per_second": limit.roots,
            })
        };
        if let Some(path) = &self.json {
            let limits: Vec<_> = self.pools.iter().map(rates).collect();
            let all = json!({ "limits": limits, "cases": self.rows });
            std::fs::write(path, serde_json::to_string_pretty(&all).expect("plain numbers"))
                .unwrap_or_else(|e| panic!("{path}: {e}"));
        }
    }
}

/// The shortest of the runs that fit into `seconds`, after one that warms up; at least three, or one where
/// there are no seconds.
pub fn best_of(seconds: f64, once: &mut dyn FnMut()) -> Duration {
    let mut best = Duration::MAX;
    let begin = Instant::now();
    for run in 0.. {
        let start = Instant::now();
        once();
        best = best.min(start.elapsed());
        if (run >= 3 || seconds == 0.0) && begin.elapsed().as_secs_f64() >= seconds {
            break;
        }
    }
    best
}
