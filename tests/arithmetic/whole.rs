//! All 2^32 binary32 numbers to six formats, to nearest even: 17 minutes of one core.
//!
//! ```text
//! cargo test --release --test arithmetic -- --ignored every_binary32
//! ```
//!
//! The model walks the numbers upward and steps to the next code at each midpoint, found in the
//! list of values beforehand; it rounds nothing.

use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::round::{Overflow, Rules};

use crate::common::{Meaning, Num};
use crate::oracle::Grid;
use crate::threads::on_all;

/// For each magnitude code, the first binary32 pattern of the next one.
fn steps(grid: &Grid) -> Vec<u32> {
    let value = |code| grid.model.magnitude(code);
    let midpoint = |code: u64| {
        let twice = value(code).plus(value(code + 1));
        let midpoint = Num::new(twice.integer, twice.exponent - 1).to_f64();
        assert_eq!(f64::from(midpoint as f32), midpoint, "binary32 has the midpoint");
        // A tie stays at an even code.
        (midpoint as f32).to_bits() + u32::from(code.is_multiple_of(2))
    };
    (0..=grid.model.max_code()).map(midpoint).collect()
}

#[test]
#[ignore = "2^32 numbers in each of six formats"]
fn every_binary32_number_to_six_formats() {
    let formats =
        [Format::E4M3FN, Format::E5M2, Format::E4M3FNUZ, Format::E2M1, Format::F16, Format::BF16];
    for format in formats {
        let grid = Grid::new(format);
        let steps = steps(&grid);
        let context = Context::new(format, Rules::DEFAULT);
        let binades: Vec<u32> = (0..512).collect();
        on_all(&binades, |binade| {
            let negative = *binade >= 256;
            let sign = u32::from(negative) << 31;
            let first = (binade % 256) << 23;
            let beyond = grid.code_of(Meaning::Infinite(negative), Overflow::None);
            let nan = grid.code_of(Meaning::Nan(negative), Overflow::None);
            let mut magnitude = steps.partition_point(|step| *step <= first);
            let signed = |magnitude: usize| {
                let bit = u64::from(negative) << (format.bits() - 1);
                let zero = magnitude == 0 && !format.has_negative_zero();
                magnitude as u64 | if zero { 0 } else { bit }
            };
            let mut expected = signed(magnitude);
            for bits in first..first + (1 << 23) {
                while steps.get(magnitude).is_some_and(|step| *step <= bits) {
                    magnitude += 1;
                    expected = signed(magnitude);
                }
                let expected = match bits {
                    0x7F80_0001.. => nan,
                    0x7F80_0000 => beyond,
                    _ if magnitude == steps.len() => beyond,
                    _ => expected,
                };
                let x = f32::from_bits(bits | sign);
                let ours = context.convert(Operand::f32(x)).code;
                assert_eq!(ours, expected, "{format} {x:e} ({:#x})", bits | sign);
            }
        });
    }
}
