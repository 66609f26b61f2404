//! Random bits and sticky parts: every threshold of stochastic rounding, and what lies just above.

use crate::common::{Meaning, Model, Num, power};
use crate::{inputs, small};
use exmy::format::{Format, Specials};
use exmy::round::{Exact, Flags, Overflow, Rounding, StochasticVariant};

/// Every random integer of up to 4 bits, for every ordinary format of up to 6 and
/// every other of up to 4; the word's other bits must
/// not matter.
#[test]
fn stochastic_rounding_uses_every_random_integer_right() {
    let formats = small(true).into_iter().chain(small(false));
    for (format, model) in formats.filter(|(format, _)| {
        let ordinary = format.is_signed() && format.has_zero() && format.has_subnormals();
        format.bits() <= if ordinary { 6 } else { 4 }
    }) {
        let values = model.magnitudes();
        let mut points = Vec::new();
        for pair in values.windows(2) {
            // 32nds of the gap, so that all thresholds of 4 bits and the halves between are met.
            for part in 0..32 {
                let gap = pair[1].minus(pair[0]);
                let x = pair[0].times(32).plus(gap.times(part)).to_f64() / 32.0;
                points.extend([x.next_down(), x, x.next_up()]);
            }
        }
        for x in points {
            if x < 0.0 {
                continue;
            }
            for variant in [StochasticVariant::A, StochasticVariant::B, StochasticVariant::C] {
                for bits in 1..=4_u8 {
                    let mode = Rounding::Stochastic { variant, bits };
                    for r in 0..1_u32 << bits {
                        let random = r << (32 - bits) | (r.wrapping_mul(0x9E37_79B9) >> bits);
                        let expected =
                            model.encode(Meaning::of_f64(x), mode, Overflow::None, random);
                        let rounded = format.encode_f64(x, mode, Overflow::None, random);
                        assert_eq!(rounded.code, expected, "{format} {x:e} {mode} {r}");
                    }
                }
            }
        }
    }
}

/// Many bits, at thresholds around `1 - r / 2^N`: E2M1 between 1 and 1.5.
#[test]
fn stochastic_rounding_with_many_bits() {
    let model = Model::new(true, 2, 1, 1, Specials::Finite, true, true);
    for bits in [8_u8, 13, 16, 24, 31, 32] {
        for r in [0, 1, 2, 3, 0x55, (1_u64 << bits) - 2, (1_u64 << bits) - 1] {
            let r = r & ((1 << bits) - 1);
            for half_steps in -3_i64..=3 {
                let part = 2 * ((1_i64 << bits) - r as i64) + half_steps;
                let x = 1.0 + 0.5 * part as f64 / power(i32::from(bits) + 1);
                for x in [x.next_down(), x, x.next_up()] {
                    for variant in
                        [StochasticVariant::A, StochasticVariant::B, StochasticVariant::C]
                    {
                        let mode = Rounding::Stochastic { variant, bits };
                        let random = (r << (32 - bits)) as u32;
                        let expected =
                            model.encode(Meaning::of_f64(x), mode, Overflow::None, random);
                        let rounded = Format::E2M1.encode_f64(x, mode, Overflow::None, random);
                        assert_eq!(rounded.code, expected, "{x:e} {mode} {r}");
                    }
                }
            }
        }
    }
}

/// A sticky part is something above zero, wherever the integer's last bit lies.
#[test]
fn sticky_parts_count() {
    let model = Model::new(true, 4, 3, 7, Specials::Fn, true, true);
    for x in inputs(&model) {
        let Meaning::Finite(_, n) = Meaning::of_f64(x) else { unreachable!() };
        if n.integer == 0 {
            continue;
        }
        for widen in [0, 3, 40, n.integer.leading_zeros()] {
            let significand = n.integer << widen;
            let exponent = n.exponent - widen as i32;
            // The same number with a one appended far below is the number with a sticky part.
            let above = Num::new((n.integer << 70) + 1, n.exponent - 70);
            for negative in [false, true] {
                for mode in Rounding::DETERMINISTIC {
                    for (sticky, n) in [(false, n), (true, above)] {
                        let exact = Exact { negative, significand, exponent, sticky };
                        let expected =
                            model.encode(Meaning::Finite(negative, n), mode, Overflow::None, 0);
                        let rounded = Format::E4M3FN.round(exact, mode, 0, Overflow::None);
                        assert_eq!(rounded.code, expected, "{x:e} {mode} {sticky} {widen}");
                    }
                }
            }
        }
    }
    // Stochastic modes near the thresholds of 4 bits, between 1 and 1.125: 32nds of the gap.
    for part in 0..32 {
        let significand = 256 + part;
        let above = Num::new((significand << 60) + 1, -68);
        for variant in [StochasticVariant::A, StochasticVariant::B, StochasticVariant::C] {
            let mode = Rounding::Stochastic { variant, bits: 4 };
            for random in (0..16).map(|r| r << 28) {
                for (sticky, n) in [(false, Num::new(significand, -8)), (true, above)] {
                    let exact = Exact { negative: false, significand, exponent: -8, sticky };
                    let expected =
                        model.encode(Meaning::Finite(false, n), mode, Overflow::None, random);
                    let rounded = Format::E4M3FN.round(exact, mode, random, Overflow::None);
                    assert_eq!(rounded.code, expected, "{part} {mode} {sticky} {random:#x}");
                }
            }
        }
    }
    let dust = |exponent| Exact { negative: false, significand: 0, exponent, sticky: true };
    for exponent in [-2000, i32::MIN] {
        let up = Format::E4M3FN.round(dust(exponent), Rounding::TowardPositive, 0, Overflow::None);
        assert_eq!((up.code, up.flags), (1, Flags::INEXACT | Flags::UNDERFLOW));
        assert_eq!(
            Format::E4M3FN.round(dust(exponent), Rounding::TiesToEven, 0, Overflow::None).code,
            0
        );
    }
    let huge = Exact { negative: true, significand: u128::MAX, exponent: i32::MAX, sticky: true };
    assert_eq!(Format::E5M2.round(huge, Rounding::TiesToEven, 0, Overflow::None).code, 0xFC);
}
