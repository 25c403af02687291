//! How fast the library is, and how near to what the machine can do.
//!
//! ```text
//! cargo bench -p latentgp                                   all suites, one thread and two
//! cargo bench -p latentgp -- bound/rbf --seconds 3          those whose name contains the words given
//! cargo bench -p latentgp -- exact --threads 1 --json out.json
//! ```
//!
//! A line has the best time of many, the operations that the mathematics asks for, the time that they would take at the
//! peak rates of this machine, the part that this is of the best, and the gain over the first number of threads. The rates
//! are the best of the same run: that of the matrix product and those of the vectorised functions which the library uses.

mod bound;
mod exact;
mod fit;
mod kernels;
mod limit;
mod predict;
mod psi;
mod sizes;
mod timing;

use timing::Bench;

/// That of the program and of the Python package.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut bench = Bench::from_args();
    kernels::run(&mut bench);
    psi::run(&mut bench);
    bound::run(&mut bench);
    exact::run(&mut bench);
    predict::run(&mut bench);
    fit::run(&mut bench);
    bench.finish();
}
