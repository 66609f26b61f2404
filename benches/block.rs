//! Elements a second of block formats: fake quantization, packed codes and scales, and back.
//!
//! `cargo bench --bench block`, or with a part of the rows' names, `cargo bench --bench block --
//! nvfp4`; with `--features parallel` also on all threads; `EXMY_SIMD=avx2` measures another level.

mod common;

use std::hint::black_box;

use common::{Aligned, SIZES, Table, normal};
use exmy::block::{BlockFormat, BlockTensor, NAMED};
use exmy::quantizer::{Axis, Quantizer, Target};
use exmy::random::{Philox, Stream};
use exmy::slice::{View, ViewMut};

const RANDOM: Philox = Philox::new(1, Stream::new("sr"));

/// Other modes, rules and profiles than those of the named formats.
const QUANTIZERS: [&str; 22] = [
    "mxfp8-e4m3@rna",
    "mxfp8-e4m3@rtz",
    "mxfp4@sr8",
    "nvfp4@sr8",
    "bf16>mxfp8-e4m3",
    "mxfp8-e4m3@rup",
    "nvfp4@4over6",
    "nvfp4@4over6-mse",
    "nvfp4@4over6-448",
    "nvfp4@4over6-mse-448",
    "nvfp4-16x16@4over6",
    "nvfp4@4over6@sr8",
    "e2m1/16:ue4m3@4over6",
    "e4m3/32:bf16@max-abs",
    "e2m1/16:e4m3@max-abs",
    "mxfp8-e4m3@microxcaling",
    "mxfp8-e4m3@microxcaling-flush",
    "mxfp8-e4m3@microxcaling-torch",
    "mxfp4@rceil@microxcaling-torch",
    "mxfp8-e4m3@rtz@microxcaling-torch-flush",
    "e4m3/row:f32",
    "e4m3/tensor:f32",
];

fn tables(threads: &str) {
    for n in SIZES {
        let side = 1 << (n.ilog2() / 2);
        let x = normal(n);
        let view = || View::new(black_box(&x), side, side);
        let mut image = Aligned::new(0.0, n);
        let mut table = Table::new(&format!("fake quantization of blocks, {threads}"), n, 4, 4);
        let out = std::cell::RefCell::new(&mut image);
        let named = NAMED.iter().map(|(name, _)| *name);
        for text in named.chain(QUANTIZERS) {
            for axis in [Axis::Cols, Axis::Rows] {
                let quantizer: Quantizer = text.parse().expect("a quantizer");
                let out = &out;
                table.row(&format!("{text} {axis:?}"), move || {
                    let mut out = out.borrow_mut();
                    let out = ViewMut::new(black_box(&mut **out), side, side);
                    quantizer.image_into(view(), axis, RANDOM, out);
                });
            }
        }
        table.print();

        for text in ["mxfp8-e4m3", "mxfp6-e2m3", "mxfp4", "nvfp4", "nvfp4@4over6"] {
            let quantizer: Quantizer = text.parse().expect("a quantizer");
            let Target::Block(format) = quantizer.target else { unreachable!("a block format") };
            codes(format, side, &x, &mut image, threads);
        }
    }
}

/// To packed codes and scales, and back.
fn codes(format: BlockFormat, side: usize, x: &[f32], image: &mut [f32], threads: &str) {
    let quantize = |axis| {
        let Quantizer { rounding, overflow, .. } = Quantizer::new(format.into());
        let x = View::new(black_box(x), side, side);
        BlockTensor::quantize(x, axis, format, (rounding, overflow, RANDOM))
    };
    let title = format!("blocks to codes, {threads}");
    let mut table = Table::new(&title, x.len(), 4, 1);
    for axis in [Axis::Cols, Axis::Rows] {
        table.row(&format!("{format} {axis:?} to codes"), move || {
            black_box(quantize(axis));
        });
    }
    table.print();
    let tensors = [Axis::Cols, Axis::Rows].map(quantize);
    let out = std::cell::RefCell::new(image);
    let mut table = Table::new(&format!("blocks from codes, {threads}"), x.len(), 1, 4);
    for tensor in &tensors {
        let out = &out;
        table.row(&format!("{format} {:?} from codes", tensor.axis()), move || {
            let mut out = out.borrow_mut();
            black_box(tensor).dequantize_into(ViewMut::new(black_box(&mut **out), side, side));
        });
    }
    table.print();
}

fn main() {
    exmy::parallel::with_threads(1, || tables("one thread")).expect("a thread");
    if cfg!(feature = "parallel") {
        tables("all threads");
    }
}
