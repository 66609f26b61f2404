//! The fast product beside the f32 product of `matrixmultiply`, in one run and in turns.
//!
//! `cargo bench --all-features --bench gemm_fast [-- PART...]` prints tables; words select rows by a
//! part of their names. A row is the median of five pairs; each of a pair is the shortest of a few
//! calls, since what disturbs a call can only make it longer. Everything runs on one thread but the
//! last table.
//!
//! `... --bench gemm_fast -- once NAME M N K` prints GFLOP/s of one row, for `peers_gemm.py`.
//! `EXMY_SIMD` chooses the level, as always.

use std::hint::black_box;
use std::time::{Duration, Instant};

use exmy::block::{Axis, BlockFormat, BlockTensor};
use exmy::gemm::Operand;
use exmy::gemm::f32::{Output, matmul_serial};
use exmy::gemm::fast::{Packed, Scaling, multiply};
use exmy::parallel::with_threads;
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding};
use exmy::simd::level;
use exmy::view::{View, ViewMut};

const RANDOM: Philox = Philox::new(0, Stream::new("bench"));
const FORMATS: [&str; 3] = ["mxfp8-e4m3", "mxfp4", "nvfp4"];

/// Rows, columns and length of the sums of a product.
type Shape = (usize, usize, usize);

fn values(len: usize) -> Vec<f32> {
    let random = |i: usize| RANDOM.uniform(i as u64) as f32 + RANDOM.uniform(!i as u64) as f32;
    (0..len).map(|i| random(i) - 1.0).collect()
}

fn quantize(x: &[f32], (rows, cols): (usize, usize), format: BlockFormat) -> BlockTensor {
    let x = View::new(x, rows, cols);
    BlockTensor::quantize(x, Axis::Cols, format, Rounding::Rne, Overflow::Finite, RANDOM)
}

/// What is timed: a product of m x n x k whose operands are ready.
struct Work {
    shape: Shape,
    call: Box<dyn FnMut() + Send>,
}

/// The f32 product: weights are stored row by row of their inputs, which suits it best.
fn matrixmultiply((m, n, k): Shape) -> Work {
    let (a, b, mut c) = (values(m * k), values(k * n), vec![0.0; m * n]);
    let call = move || {
        let (a, b) = (View::new(&a, m, k), View::new(&b, k, n));
        matmul_serial(a, b, ViewMut::new(black_box(&mut c), m, n), Output::Overwrite);
    };
    Work { shape: (m, n, k), call: Box::new(call) }
}

/// `kernel FORMAT`: packed operands; `packed FORMAT`: packing both from codes; `quantized FORMAT`:
/// quantizing both from f32 besides.
fn fast(name: &str, shape: Shape) -> Work {
    let (m, n, k) = shape;
    let (kind, format) = name.split_once(' ').expect("kernel, packed or quantized, and a format");
    let format: BlockFormat = format.parse().expect("a block format");
    let (x, y, mut c) = (values(m * k), values(n * k), vec![0.0; m * n]);
    // Weights are stored output by output, as frameworks do.
    let (mut a, mut b) = (quantize(&x, (m, k), format), quantize(&y, (n, k), format));
    let mut left = Packed::left(&Operand::from(&a));
    let mut right = Packed::right(&Operand::from(&b).t());
    let (pack, quantized) = (kind != "kernel", kind == "quantized");
    let call = move || {
        if quantized {
            (a, b) = (quantize(&x, (m, k), format), quantize(&y, (n, k), format));
        }
        if pack {
            left.repack(&Operand::from(black_box(&a)));
            right.repack(&Operand::from(black_box(&b)).t());
        }
        let c = ViewMut::new(black_box(&mut c), m, n);
        multiply(&left, &right, c, Scaling::OVERWRITE).expect("shapes fit");
    };
    Work { shape, call: Box::new(call) }
}

fn work(name: &str, shape: Shape) -> Work {
    if name == "matrixmultiply" { matrixmultiply(shape) } else { fast(name, shape) }
}

/// GFLOP/s of the shortest call within some time.
fn speed(work: &mut Work) -> f64 {
    const TIME: Duration = Duration::from_millis(40);
    let (start, mut best) = (Instant::now(), Duration::MAX);
    let mut calls = 0;
    while calls < 2 || start.elapsed() < TIME {
        let call = Instant::now();
        (work.call)();
        best = best.min(call.elapsed());
        calls += 1;
    }
    let (m, n, k) = work.shape;
    2.0 * (m * n * k) as f64 / best.as_secs_f64() / 1e9
}

fn median(of: &mut [f64]) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Prints rows as ratios to the first.
fn table(title: &str, shape: Shape, names: &[String], threads: usize) {
    let filter: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let names: Vec<_> = names
        .iter()
        .filter(|name| filter.is_empty() || filter.iter().any(|part| name.contains(part)))
        .collect();
    if names.is_empty() {
        return;
    }
    let (m, n, k) = shape;
    println!("\n### {title}: {m} x {n} x {k}, level {}, {threads} thread(s)\n", level());
    println!("| product | GFLOP/s | matrixmultiply | ratio |\n|---|---:|---:|---:|");
    for name in names {
        let (mut of, mut base) = (work(name, shape), work("matrixmultiply", shape));
        let (mut speeds, mut bases, mut ratios) = (vec![], vec![], vec![]);
        for _ in 0..5 {
            let base = with_threads(1, || speed(&mut base)).expect("threads");
            let of = with_threads(threads, || speed(&mut of)).expect("threads");
            speeds.push(of);
            bases.push(base);
            ratios.push(of / base);
        }
        let (of, base, ratio) = (median(&mut speeds), median(&mut bases), median(&mut ratios));
        println!("| {name} | {of:.0} | {base:.0} | {ratio:.2} |");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [once, name, sizes @ ..] = &arguments[..]
        && once == "once"
    {
        let sizes: Vec<usize> = sizes.iter().map(|size| size.parse().expect("a size")).collect();
        let [m, n, k] = sizes[..] else { panic!("once NAME M N K") };
        let mut work = work(name, (m, n, k));
        println!("{:.1}", with_threads(1, || speed(&mut work)).expect("threads"));
        return;
    }
    let rows = |kinds: &[&str], formats: &[&str]| -> Vec<String> {
        let all = kinds.iter().flat_map(|kind| formats.iter().map(move |f| format!("{kind} {f}")));
        all.collect()
    };
    let all = rows(&["kernel", "packed"], &FORMATS);
    for n in [512, 1024, 2048] {
        table("square", (n, n, n), &all, 1);
    }
    table("quantizing both operands", (1024, 1024, 1024), &rows(&["quantized"], &FORMATS), 1);
    for d in [256, 512] {
        let some = rows(&["kernel", "packed"], &FORMATS[..1]);
        table("attention projection", (4096, d, d), &some, 1);
        table("up projection", (4096, 4 * d, d), &some, 1);
        table("down projection", (4096, d, 4 * d), &some, 1);
    }
    let some = rows(&["kernel", "packed"], &FORMATS[..1]);
    table("two threads", (1024, 1024, 1024), &some, 2);
    table("two threads", (2048, 2048, 2048), &some, 2);
}
