//! Multiply-accumulates a second of the models of matrix units, on one thread.
//!
//! `cargo bench --bench unit`, or with a part of the units' texts, `cargo bench --bench unit -- hopper`;
//! `EXMY_SIMD=avx2` measures another level. The last rows are the definition without the kernel.

mod common;

use std::hint::black_box;

use common::{Table, normal};
use exmy::gemm::unit::{Rows, Unit};
use exmy::round::{Overflow, Rounding};

/// A tile of rows, columns and products.
const SHAPE: (usize, usize, usize) = (32, 32, 1024);

const UNITS: [&str; 9] = [
    "hopper:e4m3fn",
    "hopper:e5m2+f16",
    "hopper,promote=128:e4m3fn",
    "hopper-mma:e4m3fn",
    "hopper:bf16",
    "hopper:f16",
    "hopper:tf32",
    "ampere:f16",
    "blackwell:mxfp8-e4m3",
];

const PLAIN: [&str; 6] =
    ["hopper:e4m3fn", "blackwell:nvfp4", "cdna1:f16", "cdna3:f16", "cdna2:f16", "amx:bf16"];

fn operands(unit: &Unit) -> (Rows, Rows) {
    let (m, n, k) = SHAPE;
    let codes = |format: exmy::format::Format, count: usize| -> Vec<u64> {
        let encode = |x: f32| format.encode_f32(x, Rounding::Rne, Overflow::Finite, 0).code;
        normal(count).into_iter().map(encode).collect()
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
    let mut table = Table::new("units, multiply-accumulates, one thread", m * n * k, 0, 0);
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
    let mut table = Table::new("their definitions, multiply-accumulates", n * k, 0, 0);
    for text in PLAIN {
        let unit: Unit = text.parse().expect("a unit");
        let (rows, columns) = operands(&unit);
        table.row(&format!("{text}, plain"), move || {
            for j in 0..n {
                black_box(unit.dot(black_box(&rows.row(0)), &columns.row(j), 0));
            }
        });
    }
    table.print();
}
