//! The fast product and the f32 product of `matrixmultiply`, in one run and in turns.
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
use exmy::gemm::f32::{Output, matmul_serial};
use exmy::gemm::fast::{Packed, Scaling, Side, multiply};
use exmy::gemm::{Operand, Spec, gemm};
use exmy::parallel::{both, with_threads};
use exmy::quantizer::Quantizer;
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding};
use exmy::simd::level;
use exmy::slice::{View, ViewMut};

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
    BlockTensor::quantize(x, Axis::Cols, format, (Rounding::TiesToEven, Overflow::Finite, RANDOM))
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
            let packed = || left.repack(&Operand::from(black_box(&a)));
            both(packed, || right.repack(&Operand::from(black_box(&b)).t()));
        }
        let c = ViewMut::new(black_box(&mut c), m, n);
        multiply(&left, &right, c, Scaling::OVERWRITE).expect("shapes fit");
    };
    Work { shape, call: Box::new(call) }
}

/// `call FORMAT`: the one call, `gemm` with the accumulation `fast`, from codes and into fresh memory.
fn one_call(name: &str, shape: Shape) -> Work {
    let (m, n, k) = shape;
    let format: BlockFormat =
        name.strip_prefix("call ").and_then(|f| f.parse().ok()).expect("a format");
    let (a, b) =
        (quantize(&values(m * k), (m, k), format), quantize(&values(n * k), (n, k), format));
    let spec = Spec::parse("fast").expect("an accumulation");
    let call = move || {
        black_box(gemm(black_box(&a), Operand::from(&b).t(), &spec).expect("shapes fit"));
    };
    Work { shape, call: Box::new(call) }
}

fn work(name: &str, shape: Shape) -> Work {
    match name {
        "matrixmultiply" => matrixmultiply(shape),
        _ if name.starts_with("call ") => one_call(name, shape),
        _ => fast(name, shape),
    }
}

/// What statistics cost: an operand quantized from f32 and packed, without and with them, in turns.
fn statistics(n: usize, format: &str, (side, axis): (Side, Axis)) {
    let (quantizer, x): (Quantizer, _) = (format.parse().expect("a quantizer"), values(n * n));
    let x = View::new(&x, n, n);
    let mut works: [Box<dyn FnMut() + Send>; 3] = [
        Box::new(|| {
            let packed = Packed::quantize(side, x, axis, &quantizer, RANDOM);
            black_box(packed.expect("codes"));
        }),
        Box::new(|| {
            let both = Packed::quantize_with_statistics(side, x, axis, &quantizer, RANDOM);
            black_box(both.expect("codes"));
        }),
        Box::new(|| {
            let tensor = quantizer.quantize(x, axis, RANDOM).expect("codes");
            let operand = Operand::from(&tensor);
            let operand = if axis == side.axis() { operand } else { operand.t() };
            let packed = match side {
                Side::Left => Packed::left(&operand),
                Side::Right => Packed::right(&operand),
            };
            black_box((packed, tensor.statistics(x)));
        }),
    ];
    let mut best = [Duration::MAX; 3];
    with_threads(1, || {
        for _ in 0..60 {
            for (work, best) in works.iter_mut().zip(&mut best) {
                let call = Instant::now();
                work();
                *best = (*best).min(call.elapsed());
            }
        }
    })
    .expect("threads");
    let [alone, gathered, after] = best.map(|best| best.as_secs_f64() * 1e3);
    println!(
        "| {format} {side} {axis:?} | {alone:.3} | {gathered:.3} ({:.2}) | {after:.3} ({:.2}) |",
        gathered / alone,
        after / alone
    );
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

/// The names that the command line asks for.
fn asked(names: &[String]) -> Vec<&String> {
    let filter: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let is_asked = |name: &&String| filter.iter().any(|part| name.contains(part));
    names.iter().filter(|name| filter.is_empty() || is_asked(name)).collect()
}

/// Prints products of one thread as ratios to matrixmultiply.
fn table(title: &str, shape: Shape, names: &[String]) {
    let names = asked(names);
    if names.is_empty() {
        return;
    }
    let (m, n, k) = shape;
    println!("\n### {title}: {m} x {n} x {k}, level {}, one thread\n", level());
    println!("| product | GFLOP/s | matrixmultiply | ratio |\n|---|---:|---:|---:|");
    for name in names {
        let (mut of, mut base) = (work(name, shape), work("matrixmultiply", shape));
        pairs(name, &mut || in_threads(1, &mut of), &mut || in_threads(1, &mut base));
    }
}

/// Prints products of two threads as ratios to the same of one.
fn scaling(shape: Shape, names: &[String]) {
    let names = asked(names);
    if names.is_empty() {
        return;
    }
    let (m, n, k) = shape;
    println!("\n### two threads and one: {m} x {n} x {k}, level {}\n", level());
    println!("| product | GFLOP/s of two | of one | ratio |\n|---|---:|---:|---:|");
    for name in names {
        let work = std::cell::RefCell::new(work(name, shape));
        let threads = |count| in_threads(count, &mut work.borrow_mut());
        pairs(name, &mut || threads(2), &mut || threads(1));
    }
}

fn in_threads(count: usize, work: &mut Work) -> f64 {
    with_threads(count, || speed(work)).expect("threads")
}

/// Prints the medians of five pairs of speeds and of their ratios.
fn pairs(name: &str, of: &mut dyn FnMut() -> f64, base: &mut dyn FnMut() -> f64) {
    let (mut speeds, mut bases, mut ratios) = (vec![], vec![], vec![]);
    for _ in 0..5 {
        let (base, of) = (base(), of());
        speeds.push(of);
        bases.push(base);
        ratios.push(of / base);
    }
    let (of, base, ratio) = (median(&mut speeds), median(&mut bases), median(&mut ratios));
    println!("| {name} | {of:.0} | {base:.0} | {ratio:.2} |");
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
    if arguments.is_empty() || arguments.iter().any(|argument| argument == "statistics") {
        println!("\n### quantizing and packing an operand of 1024 x 1024, ms, one thread\n");
        println!("| operand | alone | with statistics gathered | with statistics afterwards |");
        println!("|---|---:|---:|---:|");
        for format in FORMATS {
            for place in
                [(Side::Left, Axis::Cols), (Side::Right, Axis::Cols), (Side::Right, Axis::Rows)]
            {
                statistics(1024, format, place);
            }
        }
    }
    let rows = |kinds: &[&str], formats: &[&str]| -> Vec<String> {
        let all = kinds.iter().flat_map(|kind| formats.iter().map(move |f| format!("{kind} {f}")));
        all.collect()
    };
    let all = rows(&["kernel", "packed", "call"], &FORMATS);
    for n in [512, 1024, 2048] {
        table("square", (n, n, n), &all);
    }
    table("quantizing both operands", (1024, 1024, 1024), &rows(&["quantized"], &FORMATS));
    for d in [256, 512] {
        let some = rows(&["kernel", "packed"], &FORMATS[..1]);
        table("attention projection", (4096, d, d), &some);
        table("up projection", (4096, 4 * d, d), &some);
        table("down projection", (4096, d, 4 * d), &some);
    }
    for n in [1024, 2048] {
        scaling((n, n, n), &rows(&["kernel", "packed"], &FORMATS));
    }
}
