//! Products: every accumulation against definitions written anew, operands of every kind, and what
//! misuse is answered with.

#![cfg(feature = "std")]

mod calls;
mod exact;
mod f32;
mod fast;
mod misuse;
mod names;
mod sums;
mod te;
mod units;
mod wide;

use exmy::block::{Axis, BlockFormat, BlockTensor};
use exmy::format::Format;
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding};
use exmy::slice::View;

/// Numbers around 1, some of them small, some negative.
fn numbers(len: usize, seed: u64) -> Vec<f32> {
    let random = Philox::new(seed, Stream::new("gemm"));
    let number = |i| {
        let size = [1.0, 0.125, 3.0, 1e-3][random.word(2 * i + 1) as usize % 4];
        (random.uniform(i) as f32 - 0.5) * size
    };
    (0..len as u64).map(number).collect()
}

fn random_codes(format: Format, len: usize, seed: u64) -> Vec<u16> {
    let random = Philox::new(seed, Stream::new("codes"));
    (0..len as u64).map(|i| random.bits(i, format.bits()) as u16).collect()
}

fn quantize(x: &[f32], rows: usize, cols: usize, axis: Axis, format: BlockFormat) -> BlockTensor {
    let random = Philox::new(0, Stream::new("unused"));
    let x = View::new(x, rows, cols);
    BlockTensor::quantize(x, axis, format, (Rounding::TiesToEven, Overflow::Finite, random))
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}
