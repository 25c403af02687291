//! A CSV file is read in about eight bytes a number, whatever the length of its text.

use latentgp::data::table::Table;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts the bytes in use and their peak.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(USED.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Rows of a CSV file, made as they are read: numbers of 18 digits and a label of three.
struct Rows {
    row: usize,
    rows: usize,
    cols: usize,
    line: Vec<u8>,
    at: usize,
    total: usize,
}

impl Read for Rows {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.line.len() {
            if self.row == self.rows {
                return Ok(0);
            }
            (self.at, self.row) = (0, self.row + 1);
            self.line.clear();
            for j in 0..self.cols {
                self.line
                    .extend_from_slice(format!("0.{:016},", (self.row * 7919 + j) % 1_000_003).as_bytes());
            }
            self.line.extend_from_slice(["setosa\n", "versicolor\n", "virginica\n"][self.row % 3].as_bytes());
        }
        let n = out.len().min(self.line.len() - self.at);
        out[..n].copy_from_slice(&self.line[self.at..self.at + n]);
        self.at += n;
        self.total += n;
        Ok(n)
    }
}

#[test]
fn memory_is_that_of_the_numbers() {
    // LATENTGP_TABLE_ROWS=130000 makes a file of 50 MB.
    let rows = std::env::var("LATENTGP_TABLE_ROWS").ok().and_then(|n| n.parse().ok()).unwrap_or(40_000);
    const COLS: usize = 20;
    // Buffers and the rows that are looked at first.
    const FIXED: usize = 1 << 20;
    // A column grows by an eighth, and while it moves it is there twice: 1/8 + 1/20.
    const SLACK: f64 = 1.2;
    let mut file = Rows { row: 0, rows, cols: COLS, line: Vec::new(), at: 0, total: 0 };
    let before = USED.load(Relaxed);
    PEAK.store(before, Relaxed);
    let table = Table::from_csv(&mut file, "generated").unwrap();
    let (peak, kept) = (PEAK.load(Relaxed) - before, USED.load(Relaxed) - before);
    let numbers = rows * COLS * 8 + rows * 4;
    println!("text {} bytes, numbers {numbers}, peak {peak}, kept {kept}", file.total);
    assert_eq!((table.rows(), table.columns().len()), (rows, COLS + 1));
    assert!(peak < (SLACK * numbers as f64) as usize + FIXED, "peak {peak} for {numbers} bytes of numbers");
    assert!(kept < numbers + (1 << 16), "kept {kept} for {numbers} bytes of numbers");
}
