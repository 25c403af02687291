//! How time and memory grow: one bound of the Bayesian GPLVM with its gradient, as N, M, Q or D grows.
//!
//! ```text
//! cargo run --release --example growth -- [rows] [--csv growth.csv]
//! ```
//!
//! Prints a table, the exponents of time and memory fitted to the larger half of each column, and, with `--csv`, the numbers
//! behind a figure. `rows` is the largest N, a million unless told. Every size has a process of its own.

use latentgp::data::{Scale, Scaling};
use latentgp::expectation::{Analytic, Expectation, Gaussians, Unscented};
use latentgp::kernel::{Kernel, Matern32, Rbf};
use latentgp::model::{BayesianGplvm, Model, Outputs};
use latentgp::{Mat, param};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// The system's allocator, which counts bytes.
struct Counting;
static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; only sizes are counted beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Clone, Copy)]
struct Size {
    n: usize,
    m: usize,
    q: usize,
    d: usize,
}

/// Numbers without a pattern, of variance 1.
fn numbers(rows: usize, cols: usize, seed: u64) -> Mat {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    Mat::from_fn(rows, cols, |_, _| ((0..4).map(|_| uniform()).sum::<f64>() - 2.0) * 3f64.sqrt())
}

/// Prints seconds, the best of a few, and peak megabytes, data included.
fn measure(size: Size, method: &str) -> latentgp::Result<()> {
    let (kernel, rule): (Box<dyn Kernel>, Box<dyn Expectation>) = match method {
        "rbf analytic" => (Box::new(Rbf::new(size.q)), Box::new(Analytic)),
        _ => (Box::new(Matern32::new(size.q)), Box::new(Unscented)),
    };
    let y = numbers(size.n, size.d, 4);
    let scaling = Scaling::fit(&y, Scale::None)?;
    let q = Gaussians::new(numbers(size.n, size.q, 1), Mat::filled(size.n, size.q, 0.1))?;
    let model =
        BayesianGplvm::new(Outputs::new(y), scaling, kernel, rule, q, numbers(size.m, size.q, 3), 0.1)?;
    let mut grad = vec![0.0; param::count(&model)];
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    for run in 0.. {
        let start = Instant::now();
        model.log_evidence(Some(&mut grad))?;
        best = best.min(start.elapsed().as_secs_f64());
        if run >= 1 && begin.elapsed().as_secs_f64() > 0.5 {
            break;
        }
    }
    println!("{best} {}", PEAK.load(Relaxed) as f64 * 1e-6);
    Ok(())
}

/// What [`measure`] prints in a process of its own, which has none of the room that other sizes left.
fn measured(size: Size, method: &str) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let numbers = [size.n, size.m, size.q, size.d].map(|v| v.to_string());
    let done =
        std::process::Command::new(std::env::current_exe()?).args(["one", method]).args(numbers).output()?;
    let words = String::from_utf8(done.stdout)?;
    match words.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?[..] {
        [seconds, megabytes] => Ok((seconds, megabytes)),
        _ => Err(String::from_utf8_lossy(&done.stderr).into()),
    }
}

/// The slope of ln y over ln x by least squares.
fn exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let (mx, my) =
        (logs.iter().map(|p| p.0).sum::<f64>() / count, logs.iter().map(|p| p.1).sum::<f64>() / count);
    let both: f64 = logs.iter().map(|(x, y)| (x - mx) * (y - my)).sum();
    both / logs.iter().map(|(x, _)| (x - mx).powi(2)).sum::<f64>()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [one, method, numbers @ ..] = &args[..]
        && one == "one"
    {
        let numbers = numbers.iter().map(|v| v.parse()).collect::<Result<Vec<usize>, _>>()?;
        let [n, m, q, d] = numbers[..] else { return Err("growth one METHOD N M Q D".into()) };
        return Ok(measure(Size { n, m, q, d }, method)?);
    }
    let csv = args.iter().position(|a| a == "--csv").and_then(|i| args.get(i + 1));
    let rows: usize = args.iter().find_map(|a| a.parse().ok()).unwrap_or(1_000_000);
    let base = Size { n: 2000, m: 50, q: 5, d: 20 };
    let powers = |from: usize, to: usize, times: usize| {
        std::iter::successors(Some(from), move |v| Some(v * times)).take_while(move |v| *v <= to)
    };
    let columns: [(&str, Vec<Size>); 4] = [
        ("N", powers(100, rows, 10).map(|n| Size { n, ..base }).collect()),
        ("M", powers(25, 400, 2).map(|m| Size { m, ..base }).collect()),
        ("Q", powers(2, 32, 2).map(|q| Size { q, ..base }).collect()),
        ("D", powers(4, 1024, 4).map(|d| Size { d, ..base }).collect()),
    ];
    let mut lines = vec!["method,varied,n,m,q,d,seconds,megabytes".to_string()];
    for method in ["rbf analytic", "matern32 unscented"] {
        println!("{method}\n{:>9} {:>4} {:>4} {:>5} {:>12} {:>12}", "N", "M", "Q", "D", "ms", "MB");
        for (varied, sizes) in &columns {
            let mut found = Vec::new();
            for size in sizes {
                let (seconds, megabytes) = measured(*size, method)?;
                let Size { n, m, q, d } = *size;
                println!("{n:>9} {m:>4} {q:>4} {d:>5} {:>12.3} {megabytes:>12.2}", 1e3 * seconds);
                lines.push(format!("{method},{varied},{n},{m},{q},{d},{seconds},{megabytes}"));
                let at = match *varied {
                    "N" => n,
                    "M" => m,
                    "Q" => q,
                    _ => d,
                };
                found.push((at as f64, seconds, megabytes));
            }
            let larger = &found[found.len() / 2..];
            let time = exponent(&larger.iter().map(|p| (p.0, p.1)).collect::<Vec<_>>());
            let memory = exponent(&larger.iter().map(|p| (p.0, p.2)).collect::<Vec<_>>());
            println!("          time ~ {varied}^{time:.2}, memory ~ {varied}^{memory:.2}\n");
        }
    }
    if let Some(path) = csv {
        std::fs::write(path, lines.join("\n") + "\n")?;
    }
    Ok(())
}
