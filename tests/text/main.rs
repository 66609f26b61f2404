//! Numbers as text, against what others print and read: the standard library for binary32 and
//! binary64, searches over all short decimals for small formats, and big integers for wide ones.

#![cfg(feature = "std")]

mod errors;
mod names;
mod old;
mod small;
mod standard;
mod wide;

use exmy::format::Format;
use exmy::round::{Rounding, Rules};

/// The code a text reads as, to nearest even.
fn read(format: Format, text: &str) -> u64 {
    match format.parse(text, &Rules::DEFAULT, 0) {
        Ok(rounded) => rounded.code,
        Err(error) => panic!("{format}: {error}"),
    }
}

/// The same by another mode.
fn read_by(format: Format, text: &str, rounding: Rounding) -> u64 {
    let rules = Rules::DEFAULT.with_rounding(rounding);
    format.parse(text, &rules, 0).unwrap_or_else(|error| panic!("{format}: {error}")).code
}

/// Numbers without a pattern: a linear congruential generator's upper halves.
fn noise(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 32
    };
    std::iter::from_fn(move || Some(next() << 32 | next()))
}
