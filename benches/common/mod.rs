//! What the benches of slices share: inputs, timing, and a table with the ratio to a copy.
//!
//! A figure alone says little about a machine that others use too. So every table begins with a
//! *copy* of as many bytes as the operations read and write, all rows are measured in turns, many
//! short samples each, and the smallest time of each row counts: what disturbs a sample can only
//! make it longer. The ratio to the copy of the same run is the figure to compare.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "a module of several benches, each of which uses a part"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use exmy::random::{Philox, Stream};

/// Elements of a slice that stays in the second-level cache, and of one that does not stay in any.
pub const SIZES: [usize; 2] = [1 << 16, 1 << 24];

/// A slice that begins at a multiple of 64 bytes, as the tensors of the frameworks do.
pub struct Aligned<T> {
    all: Vec<T>,
    first: usize,
    len: usize,
}

impl<T: Copy> Aligned<T> {
    /// `n` times `x`.
    pub fn new(x: T, n: usize) -> Self {
        let all = vec![x; n + 64 / size_of::<T>()];
        let first = all.as_ptr().align_offset(64);
        Self { all, first, len: n }
    }
}

impl<T> std::ops::Deref for Aligned<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.all[self.first..self.first + self.len]
    }
}

impl<T> std::ops::DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.all[self.first..self.first + self.len]
    }
}

/// Numbers distributed about as a normal variable, every thousandth 50 times as large.
pub fn normal(n: usize) -> Aligned<f32> {
    let random = Philox::new(0, Stream::new("bench"));
    let mut x = Vec::with_capacity(n);
    for block in 0..n.div_ceil(4) as u64 {
        for word in random.block(block) {
            // The sum of four bytes, each uniform, scaled to a variance of about 1.
            let sum: f32 = word.to_le_bytes().iter().map(|b| f32::from(*b) - 127.5).sum();
            let fine = (word ^ (word >> 7)) as f32 / 4_294_967_296.0;
            let scale = if x.len() % 1000 == 7 { 50.0 } else { 1.0 };
            x.push((sum + fine) / 148.0 * scale);
        }
    }
    let mut aligned = Aligned::new(0.0, n);
    aligned.copy_from_slice(&x[..n]);
    aligned
}

/// One row of a table: a name and what is timed.
pub struct Row<'a> {
    name: String,
    work: Box<dyn FnMut() + 'a>,
}

/// Rows that are measured together; elements of each call are the same.
pub struct Table<'a> {
    title: String,
    elements: usize,
    /// What the first row is, for the heading of the ratios to it.
    reference: &'static str,
    rows: Vec<Row<'a>>,
}

impl<'a> Table<'a> {
    /// A table whose first row copies: reads `read` and writes `write` bytes an element.
    pub fn new(title: &str, elements: usize, read: usize, write: usize) -> Self {
        let from = Aligned::new(1_u64, elements * read / 8);
        let mut to = Aligned::new(0_u64, elements * write / 8);
        let copy = move || copy(black_box(&from), black_box(&mut to));
        let name = format!("copy ({read} bytes in, {write} out)");
        let rows = vec![Row { name, work: Box::new(copy) as Box<dyn FnMut()> }];
        Self { title: title.into(), elements, reference: "a copy", rows }
    }

    /// A table whose first row is something else than a copy, `reference` in words.
    pub fn against(
        title: &str,
        elements: usize,
        reference: &'static str,
        work: impl FnMut() + 'a,
    ) -> Self {
        let rows = vec![Row { name: reference.into(), work: Box::new(work) }];
        Self { title: title.into(), elements, reference, rows }
    }

    /// Adds a row. `work` should pass its operands through `black_box`.
    pub fn row(&mut self, name: &str, work: impl FnMut() + 'a) {
        self.rows.push(Row { name: name.into(), work: Box::new(work) });
    }

    /// Measures all rows in turns, prints a table in Markdown and returns elements a second, that
    /// of the copy first. An argument of the bench that is no option selects rows by a part of
    /// their names.
    pub fn print(mut self) -> Vec<f64> {
        let filter: Vec<String> =
            std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
        let mut kept = 0;
        self.rows.retain(|row| {
            kept += 1;
            kept == 1 || filter.is_empty() || filter.iter().any(|part| row.name.contains(part))
        });
        if self.rows.len() == 1 {
            return Vec::new();
        }
        let fastest = fastest(&mut self.rows);
        let speed = |time: &Duration| self.elements as f64 / time.as_secs_f64();
        let speeds: Vec<f64> = fastest.iter().map(speed).collect();
        println!("\n### {}, 2^{} elements\n", self.title, self.elements.ilog2());
        println!("| operation | Gelem/s | of {} |\n|---|---:|---:|", self.reference);
        for (row, speed) in self.rows.iter().zip(&speeds) {
            println!("| {} | {:.2} | {:.2} |", row.name, speed / 1e9, speed / speeds[0]);
        }
        speeds
    }
}

/// The shortest time of each row.
fn fastest(rows: &mut [Row<'_>]) -> Vec<Duration> {
    const SAMPLE: Duration = Duration::from_micros(300);
    const ALL: Duration = Duration::from_millis(250);
    let calls: Vec<u32> = rows
        .iter_mut()
        .map(|row| {
            (row.work)();
            let start = Instant::now();
            (row.work)();
            let once = start.elapsed().max(Duration::from_nanos(1));
            (SAMPLE.as_nanos() / once.as_nanos()).clamp(1, 10_000) as u32
        })
        .collect();
    let mut fastest = vec![Duration::MAX; rows.len()];
    let start = Instant::now();
    let mut turns = 0;
    while turns < 12 || start.elapsed() < ALL * rows.len() as u32 {
        for ((row, calls), fastest) in rows.iter_mut().zip(&calls).zip(&mut fastest) {
            let start = Instant::now();
            for _ in 0..*calls {
                (row.work)();
            }
            *fastest = (*fastest).min(start.elapsed() / *calls);
        }
        turns += 1;
    }
    fastest
}

/// Moves as many bytes as the slices have: copies what fits and reads the rest.
fn copy(from: &[u64], to: &mut [u64]) {
    let both = from.len().min(to.len());
    to[..both].copy_from_slice(&from[..both]);
    let (groups, _) = from[both..].as_chunks::<16>();
    let mut all = [0_u64; 16];
    for group in groups {
        for (all, word) in all.iter_mut().zip(group) {
            *all |= word;
        }
    }
    black_box(all);
    to[both..].fill(1);
}
