//! Slices on their ways to and from `f32`, against the definition: codes to numbers, numbers of
//! other types to codes, codes to codes, and slices of typed numbers.

#![cfg(feature = "std")]

mod biased;
mod codes;
mod large;
mod literals;
mod recode;
mod sources;
#[path = "../common/threads.rs"]
mod threads;
mod typed;

use exmy::format::{Format, NAMED, Sign, Specials};
use exmy::random::{Philox, Stream};
use exmy::simd::{Level, with_level};

const RANDOM: Philox = Philox::new(3, Stream::new("decode"));

/// Runs a check at every level of this machine.
fn at_every_level(mut check: impl FnMut(Level)) {
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        with_level(level, || check(level));
    }
}

fn named() -> Vec<Format> {
    NAMED.iter().map(|(_, format)| *format).collect()
}

fn format(text: &str) -> Format {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Every format of up to 8 bits whose bias is its default, or puts its values to either end of
/// binary32, or beyond.
fn of_up_to_8_bits() -> Vec<Format> {
    let mut formats = Vec::new();
    for sign in [Sign::Magnitude, Sign::Unsigned, Sign::TwosComplement] {
        for (exp_bits, man_bits) in (0..=8).flat_map(|e| (0..=8).map(move |m| (e, m))) {
            for specials in Specials::ALL {
                for switches in 0..8 {
                    for bias in [None, Some(127), Some(135), Some(149), Some(-115)] {
                        let shape = Format::builder(sign, exp_bits, man_bits).specials(specials);
                        let shape = shape.zero(switches & 1 == 0).subnormals(switches & 2 == 0);
                        let shape =
                            if switches & 4 == 0 { shape } else { shape.negative_zero(false) };
                        let shape = match bias {
                            None => shape,
                            Some(bias) => shape.bias(bias),
                        };
                        formats.extend(shape.build().ok().filter(|format| format.bits() <= 8));
                    }
                }
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    formats.retain(|format| seen.insert(*format));
    formats
}

/// Binary32 numbers of every exponent with significands at all kinds of edges, of both signs.
fn f32s() -> Vec<f32> {
    let significands = [0, 1, 2, 0x20_0000, 0x3F_FFFF, 0x40_0000, 0x40_0001, 0x60_0000, 0x7F_FFFF];
    let words = (0..=255_u32).flat_map(|e| significands.map(|s| e << 23 | s));
    words.flat_map(|bits| [bits, bits | 1 << 31]).map(f32::from_bits).collect()
}
