//! Multiply-accumulates a second of the models of matrix units, on one thread.
//!
//! `cargo bench --bench unit`, or with a part of the units' texts, `cargo bench --bench unit -- hopper`;
//! `EXMY_SIMD=avx2` measures another level. The first row of the first table is the f32 product of as many
//! operations (by `matrixmultiply` with `--features fast-f32`); the second table is the definition
//! without the kernel.

mod common;

use std::hint::black_box;

use common::{Table, normal};
use exmy::gemm::f32::{Output, matmul};
use exmy::gemm::unit::{Rows, Unit};
use exmy::round::{Overflow, Rounding};
use exmy::slice::{View, ViewMut};

/// A tile of rows, columns and products.
const SHAPE: (usize, usize, usize) = (32, 32, 1024);

const UNITS: [&str; 9] = [
    "hopper:e4m3",
    "hopper:e5m2+f16",
    "hopper,promote=128:e4m3",
    "hopper-mma:e4m3",
    "hopper:bf16",
    "hopper:f16",
    "hopper:tf32",
    "ampere:f16",
    "blackwell:mxfp8-e4m3",
];

const PLAIN: [&str; 6] =
    ["hopper:e4m3", "blackwell:nvfp4", "cdna1:f16", "cdna3:f16", "cdna2:f16", "amx:bf16"];

fn operands(unit: &Unit) -> (Rows, Rows) {
    let (m, n, k) = SHAPE;
    let codes = |format: exmy::format::Format, count: usize| -> Vec<u64> {
        let encode =
            |x: &f32| format.encode_f32(*x, Rounding::TiesToEven, Overflow::Finite, 0).code;
        normal(count).iter().map(encode).collect()
    };
    let scales = |input: exmy::gemm::unit::Input, count: usize| -> Vec<u64> {
        input.scale.map_or(Vec::new(), |scale| codes(scale.format, count * input.scales(k)))
    };
    let rows = unit.rows(&codes(unit.a().format, m * k), &scales(unit.a(), m), k);
    let columns = unit.columns(&codes(unit.b().format, n * k), &scales(unit.b(), n), k);
    (rows.expect("whole rows"), columns.expect("whole columns"))
}

fn main() {
    let (m, n, k) = SHAPE;
    let (a, b) = (normal(m * k), normal(n * k));
    let mut sums = vec![0.0; m * n];
    let reference = || {
        let (a, b) = (View::new(black_box(&a), m, k), View::new(black_box(&b), k, n));
        matmul(a, b, ViewMut::new(black_box(&mut sums), m, n), Output::Overwrite);
    };
    let title = "units, multiply-accumulates, one thread";
    let mut table = Table::against(title, m * n * k, "the f32 product", reference);
    for text in UNITS {
        let unit: Unit = text.parse().expect("a unit");
        let (rows, columns) = operands(&unit);
        let mut sums = vec![0; m * n];
        table.row(text, move || {
            sums.fill(0);
            unit.multiply(black_box(&rows), black_box(&columns), black_box(&mut sums));
        });
    }
    table.print();
    let unit: Unit = PLAIN[0].parse().expect("a unit");
    let (rows, columns) = operands(&unit);
    let mut sums = vec![0; m * n];
    let kernel = || {
        sums.fill(0);
        unit.multiply(black_box(&rows), black_box(&columns), black_box(&mut sums));
    };
    let title = "their definitions, multiply-accumulates, one thread";
    let mut table = Table::against(title, m * n * k, "the kernel of hopper:e4m3", kernel);
    for text in PLAIN {
        let unit: Unit = text.parse().expect("a unit");
        let (rows, columns) = operands(&unit);
        table.row(&format!("{text}, plain"), move || {
            for at in 0..m * n {
                black_box(unit.dot(black_box(&rows.row(at / n)), &columns.row(at % n), 0));
            }
        });
    }
    table.print();
}
