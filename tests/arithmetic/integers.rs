//! To and from integers: every width, both signs, every mode, against Rust's `as` and division.

use exmy::format::Format;
use exmy::math::{Context, IntInvalid, Operand};
use exmy::round::{Flags, Overflow, Rounding, Rules, Tininess};
use num_bigint::BigUint;

use crate::common::Meaning;
use crate::oracle::{self, Finite, Grid, Random, Real};
use crate::threads::on_all;
use crate::unary::integer;

/// The integer in range, or what the convention says, from the definition.
fn expected(
    x: Meaning,
    bits: u32,
    signed: bool,
    mode: Rounding,
    exact: bool,
    invalid: IntInvalid,
) -> (u128, Flags) {
    let word = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
    let half = 1_u128 << (bits - 1);
    let (low, high) = if signed { (half, half - 1) } else { (0, word) };
    if let Meaning::Finite(negative, n) = x {
        let bits_of = 128 - n.integer.leading_zeros() as i32 + n.exponent;
        if n.integer == 0 || bits_of <= 128 {
            let (magnitude, changed) = integer(negative, n, mode);
            if magnitude <= if negative { low } else { high } {
                let word_of = if negative { (word - magnitude).wrapping_add(1) } else { magnitude };
                let flags = if exact && changed { Flags::INEXACT } else { Flags::NONE };
                return (word_of & word, flags);
            }
        }
    }
    let code = match (invalid, x) {
        (IntInvalid::X86, _) => {
            if signed {
                half
            } else {
                word
            }
        }
        (IntInvalid::Riscv, Meaning::Nan(_)) => high,
        (IntInvalid::Arm, Meaning::Nan(_)) => 0,
        (_, Meaning::Infinite(true) | Meaning::Finite(true, _)) => low,
        _ => high,
    };
    (code, Flags::INVALID)
}

#[test]
fn every_code_to_integers() {
    let mut formats = oracle::formats(8, 5..=5);
    formats.push(Format::F16);
    on_all(&formats, |&format| {
        let grid = Grid::new(format);
        for code in format.codes() {
            let (x, operand) = (grid.decode(code), Operand::new(format, code));
            for mode in Rounding::DETERMINISTIC {
                for bits in [1, 2, 4, 7, 8, 16, 31, 32, 64, 128] {
                    for signed in [false, true] {
                        for invalid in [IntInvalid::X86, IntInvalid::Riscv, IntInvalid::Arm] {
                            let exact = bits % 2 == 0;
                            let ours = operand.to_int(bits, signed, mode, exact, invalid);
                            let theirs = expected(x, bits, signed, mode, exact, invalid);
                            assert_eq!(ours, theirs, "{format} {code:#x} {mode} {bits} {signed}");
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn truncation_is_rusts() {
    let mut random = Random(1);
    for i in 0..200_000 {
        // Exponents that matter: from below 1 to above 2^128.
        let word = random.next();
        let field = 1018 + random.below(140);
        let x = f64::from_bits(if i % 8 == 0 { word } else { word & !(0x7FF << 52) | field << 52 });
        let to = |bits, signed| {
            Operand::f64(x).to_int(bits, signed, Rounding::TowardZero, false, IntInvalid::Arm).0
        };
        assert_eq!(to(8, true), u128::from(x as i8 as u8), "{x:e}");
        assert_eq!(to(32, true), u128::from(x as i32 as u32), "{x:e}");
        assert_eq!(to(32, false), u128::from(x as u32), "{x:e}");
        assert_eq!(to(64, true), u128::from(x as i64 as u64), "{x:e}");
        assert_eq!(to(64, false), u128::from(x as u64), "{x:e}");
        assert_eq!(to(128, true), x as i128 as u128, "{x:e}");
        assert_eq!(to(128, false), x as u128, "{x:e}");
    }
}

#[test]
fn from_integers_is_rusts_and_rounds_once() {
    let (f32s, f64s) =
        (Context::new(Format::F32, Rules::DEFAULT), Context::new(Format::F64, Rules::DEFAULT));
    let mut random = Random(2);
    for _ in 0..100_000 {
        let word = u128::from(random.next()) << 64 | u128::from(random.next());
        let word = word >> random.below(128);
        assert_eq!(f32s.from_u128(word).code, u64::from((word as f32).to_bits()));
        assert_eq!(f64s.from_u128(word).code, (word as f64).to_bits());
        assert_eq!(f64s.from_i128(word as i128).code, (word as i128 as f64).to_bits());
        assert_eq!(f32s.from_i64(word as i64).code, u64::from((word as i64 as f32).to_bits()));
        assert_eq!(f32s.from_u64(word as u64).code, u64::from((word as u64 as f32).to_bits()));
        assert_eq!(f32s.from_i32(word as i32).code, u64::from((word as i32 as f32).to_bits()));
        assert_eq!(f32s.from_u32(word as u32).code, u64::from((word as u32 as f32).to_bits()));
    }
    // 16842753 = 2^24 + 2^16 + 1: by way of binary32 it would be 0x4B80.
    let bf16 = Context::new(Format::BF16, Rules::DEFAULT);
    assert_eq!(bf16.from_i64(16_842_753).code, 0x4B81);
    assert_eq!(bf16.from_i64(i64::MIN).code, 0xDF00);
    assert_eq!(bf16.from_i32(0).code, 0);
}

#[test]
fn integers_to_every_small_format() {
    on_all(&oracle::formats(8, 5..=5), |&format| {
        let grid = Grid::new(format);
        for n in -300..=300_i64 {
            for mode in Rounding::DETERMINISTIC {
                let exact = Finite::new(n < 0, BigUint::from(n.unsigned_abs()), 0);
                let expected = grid.expected(
                    &Real::Finite(exact),
                    None,
                    mode,
                    Overflow::None,
                    0,
                    Tininess::After,
                );
                let context = Context::new(format, Rules::DEFAULT.with_rounding(mode));
                let ours = context.from_i64(n);
                assert_eq!(ours.code, expected.0, "{format} {n} {mode}");
                assert!(expected.1.is_none_or(|flags| flags == ours.flags.bits() & 7));
            }
        }
    });
}
