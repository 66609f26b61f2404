//! The angle of a point: all pairs of E4M3FN and E5M2, random pairs of 16 bits.

use exmy::format::Format;
use exmy::math::elementary::Function;
use exmy::math::{Context, Operand};
use exmy::random::{Philox, Stream};
use exmy::round::{Flags, Overflow, Rounding, Rules};

use crate::common::{Meaning, Model};
use crate::screen::{Screen, to_f64};
use crate::{number, oracle};

/// All modes of one pair into binary16; returns whether the oracle was asked.
fn check(
    screen: &Screen,
    target: &Model,
    function: Function,
    format: Format,
    model: &Model,
    codes: (u64, u64),
) -> bool {
    let (Some(y), Some(x)) = (number(model, codes.0), number(model, codes.1)) else { return false };
    if function == Function::Atan2Pi && y.1 == x.1 {
        return false; // odd quarters, exactly
    }
    let apply = |mode| {
        let ctx = Context::new(Format::F16, Rules::DEFAULT.with_rounding(mode));
        let (a, b) = (Operand::new(format, codes.0), Operand::new(format, codes.1));
        let rounded = ctx.apply2(function, a, b).unwrap();
        assert!(rounded.flags.contains(Flags::INEXACT), "{function} of {codes:x?}");
        rounded.code
    };
    let angle = libm::atan2(to_f64(y.0, y.1), to_f64(x.0, x.1));
    let angle = if function == Function::Atan2 { angle } else { angle / std::f64::consts::PI };
    if let Some(place) = screen.screened(angle) {
        for mode in Rounding::DETERMINISTIC {
            let expected = screen.code(y.0, place, mode);
            assert_eq!(apply(mode), expected, "{function} of {format} {codes:x?} by {mode}");
        }
        return false;
    }
    let (sign, result) = oracle::binary(function, y, x);
    for mode in Rounding::DETERMINISTIC {
        let expected = target.encode(Meaning::Finite(sign, result), mode, Overflow::None, 0);
        assert_eq!(apply(mode), expected, "{function} of {format} {codes:x?} by {mode}, asked");
    }
    true
}

#[test]
fn all_pairs_of_8_bits() {
    let target = Model::of(Format::F16);
    let screen = Screen::new(&target);
    let mut asked = 0;
    for format in [Format::E4M3FN, Format::E5M2] {
        let model = Model::of(format);
        for function in [Function::Atan2, Function::Atan2Pi] {
            for codes in (0..256).flat_map(|y| (0..256).map(move |x| (y, x))) {
                asked += u64::from(check(&screen, &target, function, format, &model, codes));
            }
        }
    }
    assert!(asked > 10, "the oracle saw {asked} pairs");
}

#[test]
fn random_pairs_of_16_bits() {
    let target = Model::of(Format::F16);
    let screen = Screen::new(&target);
    let random = Philox::new(3, Stream::new("pairs"));
    for format in [Format::F16, Format::BF16] {
        let model = Model::of(format);
        for i in 0..20_000 {
            // Half of the pairs with exponents a few apart, where neither axis is near.
            let y = random.below(3 * i, 1 << 16);
            let far = random.below(3 * i + 1, 1 << 16);
            let near = y ^ random.below(3 * i + 2, 4 << format.man_bits());
            let x = if i % 2 == 0 { far } else { near ^ far & 0x8000 };
            for function in [Function::Atan2, Function::Atan2Pi] {
                check(&screen, &target, function, format, &model, (y, x));
            }
        }
    }
}
