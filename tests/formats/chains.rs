//! Rounding to odd first (Boldo and Melquiond, IEEE TC 2008): with at least two bits more than the
//! target, a second rounding by any mode gives what one rounding gives. One bit more is not enough.

use crate::common::{Meaning, Model};
use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::round::{Overflow, Rounding, Rules};

/// The format between: the exponents of binary32 and some bits more than the target.
fn between(to: Format, more: u32) -> Format {
    Format::ieee(8, to.man_bits() + more).unwrap()
}

/// The first of the inputs that comes out otherwise than rounded once, as the model rounds, and the mode.
fn wrong(
    to: Format,
    more: u32,
    first: Rounding,
    inputs: impl Iterator<Item = Operand>,
) -> Option<(Operand, Rounding)> {
    let model = Model::of(to);
    let odd = Context::new(between(to, more), Rules::DEFAULT.with_rounding(first));
    for x in inputs {
        let value = if x.format == Format::F64 {
            Meaning::of_f64(f64::from_bits(x.code))
        } else {
            Meaning::of_f64(f32::from_bits(x.code as u32).into())
        };
        let half = Operand::new(odd.to, odd.convert(x).code);
        for mode in Rounding::DETERMINISTIC {
            let once = model.encode(value, mode, Overflow::None, 0);
            let twice = Context::new(to, Rules::DEFAULT.with_rounding(mode)).convert(half).code;
            if once != twice {
                return Some((x, mode));
            }
        }
    }
    None
}

/// Binary32 numbers of the target's range by their first `M + 13` bits, sign and exponent included, and
/// below them nothing, one, half, half and one, or all ones: what rounding can distinguish.
fn binary32(to: Format) -> impl Iterator<Item = Operand> {
    let kept = to.man_bits() + 4;
    let below = 23 - kept;
    let ones = (1_u32 << below) - 1;
    let half = 1_u32 << (below - 1);
    (0..1_u32 << (9 + kept)).flat_map(move |top| {
        [0, 1, half - 1, half, half + 1, ones]
            .map(|low| Operand::new(Format::F32, (top << below | low).into()))
    })
}

/// The same of binary64 in the range of the targets, 2^-32 to 2^32.
fn binary64(to: Format) -> impl Iterator<Item = Operand> {
    let kept = to.man_bits() + 4;
    let below = 52 - kept;
    (991_u64..1055).flat_map(move |field| {
        (0..1_u64 << kept).flat_map(move |top| {
            [0, 1, 1 << (below - 1), (1 << below) - 1].into_iter().flat_map(move |low| {
                let bits = field << 52 | top << below | low;
                [bits, bits | 1 << 63].map(|bits| Operand::new(Format::F64, bits))
            })
        })
    })
}

#[test]
fn to_odd_and_then_by_any_mode_is_rounding_once() {
    let targets = [Format::E4M3FN, Format::E5M2, Format::E4M3FNUZ, Format::E2M1, Format::E3M2];
    for to in targets {
        for more in [2, 3] {
            let (narrow, wide) = (binary32(to), binary64(to));
            assert_eq!(wrong(to, more, Rounding::ToOdd, narrow), None, "{to} {more}");
            assert_eq!(wrong(to, more, Rounding::ToOdd, wide), None, "{to} {more}");
        }
        // What the test would see: one bit more, or another mode first, goes wrong.
        assert_ne!(wrong(to, 1, Rounding::ToOdd, binary32(to)), None, "{to}");
        assert_ne!(wrong(to, 2, Rounding::TiesToEven, binary32(to)), None, "{to}");
    }
}

/// All 2^32 binary32 numbers through E8M5 to E4M3FN, to nearest even, toward zero and up, against
/// one rounding:
///
/// ```text
/// cargo test --release --test formats -- --ignored every_binary32_number_by_way_of_odd
/// ```
#[test]
#[ignore = "2^32 numbers; the command is above"]
fn every_binary32_number_by_way_of_odd() {
    let to = Format::E4M3FN;
    let odd = Context::new(between(to, 2), Rules::DEFAULT.with_rounding(Rounding::ToOdd));
    for bits in 0..=u32::MAX {
        let x = Operand::new(Format::F32, bits.into());
        let half = Operand::new(odd.to, odd.convert(x).code);
        for mode in [Rounding::TiesToEven, Rounding::TowardZero, Rounding::TowardPositive] {
            let last = Context::new(to, Rules::DEFAULT.with_rounding(mode));
            assert_eq!(last.convert(half).code, last.convert(x).code, "{bits:#x} {mode}");
        }
    }
}
