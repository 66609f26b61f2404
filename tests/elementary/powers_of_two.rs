//! Powers of powers of two, which are exact however far out they lie, and that every pair of codes of the
//! formats of up to 8 bits has a power.

use exmy::format::{Format, NAMED, Sign};
use exmy::math::{Context, Operand};
use exmy::round::{Exact, Flags, Rounding, Rules};

use crate::common::Model;
use crate::number;

const OVER: Flags = Flags::OVERFLOW.union(Flags::INEXACT);
const UNDER: Flags = Flags::UNDERFLOW.union(Flags::INEXACT);

/// The named formats of up to 8 bits, one of as few with a wide range, and P3109's.
fn small_formats() -> Vec<Format> {
    let named = NAMED.iter().map(|&(_, format)| format);
    let choices = [(true, true), (true, false), (false, true), (false, false)];
    let family = (3..=8).flat_map(|k| (1..=k).map(move |p| (k, p))).flat_map(|(k, p)| {
        choices
            .iter()
            .filter_map(move |&(signed, infinite)| Format::p3109(k, p, signed, infinite).ok())
    });
    let wide = Format::ieee(6, 1).ok();
    named.chain(wide).chain(family).filter(|format| format.bits() <= 8).collect()
}

#[test]
fn far_powers_of_two() {
    use Rounding::{AwayFromZero, TiesToEven, TowardNegative, TowardPositive, TowardZero};
    let p2se = Format::p3109(8, 2, true, true).unwrap();
    for (format, mode, x, y, code, flags) in [
        // 4^(2^21).
        (Format::BF16, TiesToEven, 0x4080, 0x4A00, 0x7F80, OVER),
        (Format::BF16, TowardZero, 0x4080, 0x4A00, 0x7F7F, OVER | Flags::SATURATED),
        (Format::BF16, TowardNegative, 0x4080, 0xCA00, 0, UNDER),
        (Format::BF16, TowardPositive, 0x4080, 0xCA00, 1, UNDER),
        // 2^(2^22), 2^-(2^31), (1/2)^(2^31), (-2)^-(2^31).
        (Format::F32, TiesToEven, 0x4000_0000, 0x4A80_0000, 0x7F80_0000, OVER),
        (Format::F32, TiesToEven, 0x4000_0000, 0xCF00_0000, 0, UNDER),
        (Format::F32, AwayFromZero, 0x4000_0000, 0xCF00_0000, 1, UNDER),
        (Format::F32, TowardZero, 0x4000_0000, 0x4A80_0000, 0x7F7F_FFFF, OVER | Flags::SATURATED),
        (Format::F32, TowardPositive, 0x4000_0000, 0xCF00_0000, 1, UNDER),
        (Format::F32, TiesToEven, 0x3F00_0000, 0x4F00_0000, 0, UNDER),
        (Format::F32, TowardPositive, 0xC000_0000, 0xCF00_0000, 1, UNDER),
        // 2^(2^127), 2^-(2^127), 2^(2^-149).
        (Format::F32, TiesToEven, 0x4000_0000, 0x7F00_0000, 0x7F80_0000, OVER),
        (Format::F32, TiesToEven, 0x4000_0000, 0xFF00_0000, 0, UNDER),
        (Format::F32, TowardPositive, 0x4000_0000, 1, 0x3F80_0001, Flags::INEXACT),
        // (-1)^(2^70), (-1)^(2^31 + 256), (-1)^-(2^63), (-1)^(2^24 - 1), (-2)^(1 - 2^24), (-2)^(2^24 - 1).
        (Format::F32, TiesToEven, 0xBF80_0000, 0x6280_0000, 0x3F80_0000, Flags::NONE),
        (Format::F32, TiesToEven, 0xBF80_0000, 0x4F00_0001, 0x3F80_0000, Flags::NONE),
        (Format::F32, TiesToEven, 0xBF80_0000, 0xDF00_0000, 0x3F80_0000, Flags::NONE),
        (Format::F32, TiesToEven, 0xBF80_0000, 0x4B7F_FFFF, 0xBF80_0000, Flags::NONE),
        (Format::F32, TiesToEven, 0xC000_0000, 0xCB7F_FFFF, 0x8000_0000, UNDER),
        (Format::F32, TiesToEven, 0xC000_0000, 0x4B7F_FFFF, 0xFF80_0000, OVER),
        (Format::F32, TowardZero, 0xC000_0000, 0x4B7F_FFFF, 0xFF7F_FFFF, OVER | Flags::SATURATED),
        // 2^-(2^31), 2^-(2^63), 2^(2^1023), 2^-(2^1023); 2^-1074 to the power 1/2 is 2^-537.
        (Format::F64, TiesToEven, 0x4000 << 48, 0xC1E0 << 48, 0, UNDER),
        (Format::F64, TiesToEven, 0x4000 << 48, 0xC3E0 << 48, 0, UNDER),
        (Format::F64, TiesToEven, 0x4000 << 48, 0x7FE0 << 48, 0x7FF0 << 48, OVER),
        (Format::F64, TiesToEven, 0x4000 << 48, 0xFFE0 << 48, 0, UNDER),
        (Format::F64, TiesToEven, 1, 0x3FE0 << 48, (1023 - 537) << 52, Flags::NONE),
        // (2^-32)^(2^26).
        (p2se, TiesToEven, 0x01, 0x74, 0, UNDER),
        // (2^-92)^(2^16): E8M0 has no zero, so 2^-127 it is.
        (Format::E8M0, TiesToEven, 0x23, 0x8F, 0, UNDER | Flags::SATURATED),
        (Format::E8M0, TowardPositive, 0x23, 0x8F, 0, UNDER | Flags::SATURATED),
    ] {
        let ctx = Context::new(format, Rules::DEFAULT.with_rounding(mode));
        let found = ctx.pow(Operand::new(format, x), Operand::new(format, y)).unwrap();
        assert_eq!(
            (found.code, found.flags),
            (code, flags),
            "{format}: {x:#x} to {y:#x} by {mode}"
        );
    }
    // 3 * 2^(2^20) to the fourth power has four digits, and 2^22 zeros.
    let far = Format::builder(Sign::Magnitude, 5, 2).bias(-Format::BIAS_LIMIT).build().unwrap();
    for (y, code, flags) in [(4.0, 0x7F80_0000, OVER), (-4.0, 0, UNDER)] {
        let ctx = Context::new(Format::F32, Rules::DEFAULT);
        let found = ctx.pow(Operand::new(far, 0b10), Operand::f32(1.0)).unwrap();
        assert_eq!((found.code, found.flags), (0x7F80_0000, OVER));
        let found = ctx.pow(Operand::new(far, 0b110), Operand::f32(y)).unwrap();
        assert_eq!((found.code, found.flags), (code, flags), "to {y}");
    }
}

/// `x = (-1)^s 2^e` to the power `y = n 2^-k` is `2^(e n / 2^k)`, if that is an integer.
#[test]
fn all_powers_of_two() {
    let modes = [
        Rounding::TiesToEven,
        Rounding::TowardPositive,
        Rounding::TowardZero,
        "sr8".parse().unwrap(),
    ];
    let formats = small_formats();
    assert!(formats.len() > 60 && formats.contains(&Format::E8M0));
    let (mut compared, mut far) = (0, 0);
    for format in formats {
        let model = Model::of(format);
        let numbers: Vec<_> = format
            .codes()
            .filter_map(|code| number(&model, code).map(|found| (code, found)))
            .collect();
        let contexts = modes.map(|mode| {
            Context::new(format, Rules::DEFAULT.with_rounding(mode)).with_random(0xFF00_0000)
        });
        for &(x, (sign, base)) in numbers.iter().filter(|(_, (_, x))| x.integer.is_power_of_two()) {
            let e = i128::from(base.exponent) + i128::from(base.integer.ilog2());
            for &(y, (falling, power)) in &numbers {
                let zeros = power.integer.trailing_zeros();
                let n = (power.integer >> zeros) as i128;
                let k = i128::from(power.exponent) + i128::from(zeros);
                if sign && k < 0 {
                    continue;
                }
                // k is at most 127 and e n below 2^16. Beyond 2^100 it matters no more how far.
                let product = if falling { -e * n } else { e * n };
                let exponent = match k {
                    0.. => product.checked_mul(1 << k.min(100)).unwrap(),
                    _ if product % (1 << (-k).min(100)) == 0 => product >> (-k).min(100),
                    _ => continue,
                };
                let clamped = exponent.clamp(-5000, 5000) as i32;
                let negative = sign && k == 0;
                let exact = Exact { negative, significand: 1, exponent: clamped, sticky: false };
                for ctx in &contexts {
                    let found = ctx.pow(Operand::new(format, x), Operand::new(format, y)).unwrap();
                    let wanted = format.round_by(exact, &ctx.rules, 0xFF00_0000);
                    assert_eq!(
                        found, wanted,
                        "{format}: {x:#x} to {y:#x} by {}",
                        ctx.rules.rounding
                    );
                }
                compared += 1;
                far += u32::from(exponent.abs() >= 1 << 22);
            }
        }
    }
    assert!(compared > 100_000 && far > 10_000, "{compared} compared, {far} beyond every format");
}

#[test]
fn every_pair_has_a_power() {
    for format in small_formats() {
        for (x, y) in format.codes().flat_map(|x| format.codes().map(move |y| (x, y))) {
            // Whether a pair is decided depends on the target's bits, which these modes share.
            let mode = match (x + y) % 2 {
                0 => Rounding::TiesToEven,
                _ => Rounding::TowardPositive,
            };
            let ctx = Context::new(format, Rules::DEFAULT.with_rounding(mode));
            let found = ctx.pow(Operand::new(format, x), Operand::new(format, y));
            assert!(found.is_ok(), "{format}: {x:#x} to {y:#x} by {mode}: {found:?}");
        }
    }
}
