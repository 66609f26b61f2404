//! The rules of block scales, the profiles of libraries and the Hadamard transform, against formulas
//! written independently of the crate and against recorded facts.

#![cfg(feature = "std")]

mod hadamard;
mod operations;
mod p3109;
mod page;
mod profiles;
mod rules;
mod specials;
mod texts;

use exmy::random::{Philox, Stream};

const RANDOM: Philox = Philox::new(5, Stream::new("block rules"));

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// Numbers of about 1, by an index.
fn uniform(i: usize) -> f32 {
    2.0 * RANDOM.uniform(i as u64) as f32 - 1.0
}
