//! Multiply-accumulates a second of the exactly rounded product and of the written orders, operands
//! of codes included.
//!
//! `cargo bench --bench gemm`, or with a part of the rows' names. Rows are compared with the f32
//! product of the same shape, on one thread.

mod common;

use std::hint::black_box;

use common::{Table, normal};
use exmy::block::{BlockFormat, BlockTensor};
use exmy::format::Format;
use exmy::gemm::f32::{Output, matmul_serial};
use exmy::gemm::{Operand, Spec, gemm};
use exmy::quantizer::Axis;
use exmy::quantizer::Cast;
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding};
use exmy::slice::{Converter, View, ViewMut};

/// Rows, columns and products.
const SHAPE: (usize, usize, usize) = (64, 64, 1024);

fn main() {
    let (m, n, k) = SHAPE;
    let (x, y) = (normal(m * k), normal(n * k));
    let mut sums = vec![0.0; m * n];
    let reference = || {
        let (a, b) = (View::new(black_box(&x), m, k), View::new(black_box(&y), n, k).t());
        matmul_serial(a, b, ViewMut::new(black_box(&mut sums), m, n), Output::Overwrite);
    };
    let title = "products, multiply-accumulates, one thread";
    let mut table = Table::against(title, m * n * k, "the f32 product", reference);
    for (name, accumulations) in [
        ("mxfp8-e4m3", &["exact", "fma", "blackwell"][..]),
        ("mxfp8-e5m2", &["exact"]),
        ("mxfp4", &["exact", "blackwell"]),
        ("nvfp4", &["exact", "te-nvfp4", "blackwell"]),
    ] {
        let format: BlockFormat = name.parse().expect("a block format");
        let quantize = |x: &[f32], rows: usize| {
            let random = Philox::new(0, Stream::new("unused"));
            let (x, overflow) = (View::new(x, rows, k), Overflow::Finite);
            BlockTensor::quantize(x, Axis::Cols, format, (Rounding::TiesToEven, overflow, random))
        };
        let (a, b) = (quantize(&x, m), quantize(&y, n));
        for accumulation in accumulations {
            let spec = Spec::parse(accumulation).expect("an accumulation");
            let (a, b) = (a.clone(), b.clone());
            table.row(&format!("{accumulation}, {name}"), move || {
                let b = Operand::from(black_box(&b)).t();
                black_box(gemm(black_box(&a), b, &spec).expect("a product"));
            });
        }
    }
    // Codes over the whole range of a format are the widest sums there are.
    let random = Philox::new(1, Stream::new("bench"));
    for (left, right, spread) in [
        ("bf16", "bf16", false),
        ("f16", "e5m2", false),
        ("e4m3", "e4m3", false),
        ("f16", "f16", true),
        ("bf16", "bf16", true),
        ("e11m4", "e11m4", true),
    ] {
        let codes = |name: &str, x: &[f32], first: u64| -> (Format, Vec<u16>) {
            let format: Format = name.parse().expect("a format");
            let cast = Converter::from(Cast::new(format));
            let mut codes: Vec<u16> = cast.encode(x);
            if spread {
                for (i, code) in codes.iter_mut().enumerate() {
                    let word = random.bits(first + i as u64, format.bits());
                    *code =
                        if format.decode(u64::from(word)).is_finite() { word as u16 } else { 1 };
                }
            }
            (format, codes)
        };
        let ((p, a), (q, b)) = (codes(left, &x, 0), codes(right, &y, 1 << 32));
        let spec = Spec::parse("exact").expect("an accumulation");
        let kind = if spread { "all exponents" } else { "normal" };
        table.row(&format!("exact, {left} x {right}, {kind}"), move || {
            let a = Operand::codes16(p, View::new(black_box(&a), m, k)).expect("codes");
            let b = Operand::codes16(q, View::new(black_box(&b), n, k)).expect("codes").t();
            black_box(gemm(a, b, &spec).expect("a product"));
        });
    }
    for accumulation in ["exact", "fma", "pairwise", "fma:bf16", "fma:e8m13@rtz"] {
        let spec = Spec::parse(accumulation).expect("an accumulation");
        let (x, y) = (x.to_vec(), y.to_vec());
        table.row(&format!("{accumulation}, f32"), move || {
            let (a, b) = (View::new(black_box(&x), m, k), View::new(black_box(&y), n, k).t());
            black_box(gemm(a, b, &spec).expect("a product"));
        });
    }
    table.print();
}
