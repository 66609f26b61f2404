//! The rules besides mode and policy, by their definitions: flush of results and operands,
//! tininess, and what NaN becomes.

use std::cmp::Ordering;

use exmy::format::{Format, Value};
use exmy::math::{Context, Operand};
use exmy::round::{
    AbsentNan, Exact, Flags, Flush, NanCode, NanRules, Operands, Overflow, Payload, Profile,
    Rounded, Rounding, Rules, Tininess,
};

use crate::common::{Meaning, Num};
use crate::oracle::{Finite, Grid, Real};
use crate::threads::on_all;

/// What a flush policy makes of a number, from the policy's definition.
fn expected(
    grid: &Grid,
    normal: Num,
    x: &Finite,
    mode: Rounding,
    tininess: Tininess,
    flush: Flush,
) -> (u64, u8) {
    let plain = grid.expected(&Real::Finite(x.clone()), None, mode, Overflow::None, 0, tininess);
    let plain = (plain.0, plain.1.unwrap());
    let zero = grid.code_of(Meaning::Finite(x.negative, Num::ZERO), Overflow::None);
    let smallest = grid.code_of(Meaning::Finite(x.negative, normal), Overflow::None);
    let small = x.compare(normal).is_lt() && !x.is_zero();
    match flush {
        Flush::None => plain,
        _ if !small => plain,
        Flush::Input => (zero, 3),
        Flush::Output => match grid.decode(plain.0) {
            Meaning::Finite(_, n) if n.integer != 0 && n < normal => (zero, 3),
            _ => plain,
        },
        Flush::Candidates => {
            // Between 0, which is even, and the smallest normal number.
            let half = x.compare(Num::new(normal.integer, normal.exponent - 1));
            let up = match mode {
                Rounding::TiesToEven | Rounding::TiesToZero => half == Ordering::Greater,
                Rounding::TiesToAway => half != Ordering::Less,
                Rounding::TowardZero => false,
                Rounding::TowardPositive => !x.negative,
                Rounding::TowardNegative => x.negative,
                Rounding::AwayFromZero | Rounding::ToOdd => true,
                _ => unreachable!(),
            };
            // Tiny by the number itself, or by its rounding to full precision.
            let tiny = match tininess {
                Tininess::Before => true,
                Tininess::After => {
                    // One unit finer than the format: where the plain result's flag looks, too.
                    plain.1 & 1 == 0 || plain.1 & 2 != 0
                }
            };
            (if up { smallest } else { zero }, 1 | u8::from(tiny) << 1)
        }
    }
}

/// The flush of results reaches arithmetic, that of operands too.
#[test]
fn flushes_in_arithmetic() {
    let fp8 = |code| Operand::new(Format::E5M2, code);
    let flushed = Flags::INEXACT | Flags::UNDERFLOW;
    let context = |flush, operands| {
        Context::new(Format::E5M2, Rules::DEFAULT.with_flush(flush).with_operands(operands))
    };
    // 2^-14 - 2^-16 is subnormal: 3 units of 2^-16.
    let output = context(Flush::Output, Operands::Exact);
    assert_eq!(output.sub(fp8(4), fp8(1)), Rounded { code: 0, flags: flushed });
    assert_eq!(output.sub(fp8(1), fp8(4)), Rounded { code: 0x80, flags: flushed });
    let exact = context(Flush::None, Operands::Exact);
    assert_eq!(exact.sub(fp8(4), fp8(1)), Rounded { code: 3, flags: Flags::NONE });
    // The operand 2^-16 read as zero.
    let daz = context(Flush::None, Operands::Zero);
    assert_eq!(daz.sub(fp8(4), fp8(1)), Rounded { code: 4, flags: Flags::NONE });
    assert_eq!(daz.div(fp8(4), fp8(1)), Rounded { code: 0x7C, flags: Flags::DIVIDE_BY_ZERO });
    assert_eq!(daz.div(fp8(4), fp8(0x81)).code, 0xFC);
    assert_eq!(daz.sqrt(fp8(0x81)), Rounded { code: 0x80, flags: Flags::NONE });
    assert_eq!(daz.fma(fp8(0x3C), fp8(0x83), fp8(0x80)).code, 0x80);
    let unsigned = context(Flush::None, Operands::PositiveZero);
    assert_eq!(unsigned.div(fp8(4), fp8(0x81)).code, 0x7C);
    // Below half of the smallest normal number and above it.
    let candidates = context(Flush::Candidates, Operands::Exact);
    assert_eq!(candidates.mul(fp8(3), fp8(0x3C)).code, 4);
    assert_eq!(candidates.mul(fp8(2), fp8(0x3C)).code, 0);
    assert_eq!(candidates.mul(fp8(1), fp8(0x3C)).code, 0);
}

/// Tininess, by hand: 2^-14 (1 - 2^-4) in E5M2 rounds to 2^-14 both with its own spacing and with
/// one of half that; 2^-14 (1 - 2^-3) only with its own.
#[test]
fn tininess_by_hand() {
    let context = |tininess| Context::new(Format::E5M2, Rules::DEFAULT.with_tininess(tininess));
    let (inexact, both) = (Flags::INEXACT, Flags::INEXACT | Flags::UNDERFLOW);
    let nearer = Operand::f32((1.0 - 0.0625) / 16384.0);
    assert_eq!(context(Tininess::After).convert(nearer), Rounded { code: 4, flags: inexact });
    assert_eq!(context(Tininess::Before).convert(nearer), Rounded { code: 4, flags: both });
    let farther = Operand::f32((1.0 - 0.125) / 16384.0);
    assert_eq!(context(Tininess::After).convert(farther), Rounded { code: 4, flags: both });
    let exact = Operand::f32(0.75 / 16384.0);
    assert_eq!(context(Tininess::Before).convert(exact), Rounded { code: 3, flags: Flags::NONE });
}

#[test]
fn nan_rules_one_by_one() {
    let ieee = Rules::DEFAULT.nan;
    let to = |format: Format, nan: NanRules| Context::new(format, Rules::DEFAULT.with_nan(nan));
    let code = |format, nan, x| to(format, nan).convert(x).code;
    let (plus, minus) = (Operand::new(Format::F16, 0x7E55), Operand::new(Format::F16, 0xFE55));
    // Which code.
    let all = ieee.with_code(NanCode::AllOnes);
    assert_eq!(code(Format::E5M2, ieee, plus), 0x7E);
    assert_eq!(code(Format::E5M2, all, plus), 0x7F);
    assert_eq!(code(Format::F16, all, plus), 0x7FFF);
    assert_eq!(code(Format::E4M3FN, all, minus), 0xFF);
    assert_eq!(code(Format::E4M3FNUZ, all, minus), 0x80);
    // The sign.
    let unsigned = ieee.with_keep_sign(false);
    assert_eq!(code(Format::E5M2, ieee, minus), 0xFE);
    assert_eq!(code(Format::E5M2, unsigned, minus), 0x7E);
    assert_eq!(code(Format::E4M3FN, unsigned, minus), 0x7F);
    // The payload: 0x255 of binary16's ten bits, quiet bit first.
    let keep = ieee.with_payload(Payload::Keep);
    let truncate = ieee.with_payload(Payload::Truncate);
    assert_eq!(code(Format::F16, keep, plus), 0x7E55);
    assert_eq!(code(Format::F32, keep, plus), 0x7FCA_A000);
    assert_eq!(code(Format::E5M2, keep, plus), 0x7E);
    assert_eq!(code(Format::E4M3FN, keep, plus), 0x7F);
    let signaling = Operand::new(Format::F16, 0xFD55);
    assert_eq!(code(Format::F16, keep, signaling), 0xFF55);
    assert_eq!(code(Format::F16, truncate, signaling), 0xFD55);
    assert_eq!(code(Format::BF16, keep, signaling), 0xFFEA);
    assert_eq!(code(Format::BF16, truncate, signaling), 0xFFAA);
    // Without a sign bit there is none to keep: all eight bits are exponent and payload.
    let unsigned: Format = "ue5m3-ieee".parse().unwrap();
    assert_eq!(code(unsigned, keep, minus), 0xFC);
    assert_eq!(code(unsigned, truncate, signaling), 0xFA);
    // A payload that is cut off leaves an infinity, if nothing is done about it.
    let low = Operand::new(Format::F16, 0x7C01);
    assert_eq!(code(Format::E5M2, truncate, low), 0x7C);
    assert_eq!(code(Format::E5M2, keep, low), 0x7E);
    assert_eq!(to(Format::E5M2, keep).convert(low).flags, Flags::INVALID);
    // Made by an invalid operation.
    let made = ieee.with_made_negative(true);
    let zero = Operand::f32(0.0);
    assert_eq!(to(Format::F16, ieee).div(zero, zero).code, 0x7E00);
    assert_eq!(to(Format::F16, made).div(zero, zero).code, 0xFE00);
    assert_eq!(to(Format::E4M3FN, made).div(zero, zero).code, 0xFF);
    assert_eq!(to(Format::E4M3FNUZ, made).div(zero, zero).code, 0x80);
    // Where there is none.
    let absent = |absent| ieee.with_absent(absent);
    let rows = [
        (AbsentNan::Max, 0x7, 0x7),
        (AbsentNan::SignedMax, 0x7, 0xF),
        (AbsentNan::OppositeZero, 0x8, 0x0),
    ];
    for (rule, of_plus, of_minus) in rows {
        assert_eq!(code(Format::E2M1, absent(rule), plus), of_plus, "{rule:?}");
        assert_eq!(code(Format::E2M1, absent(rule), minus), of_minus, "{rule:?}");
        let flags = to(Format::E2M1, absent(rule)).convert(plus).flags;
        assert!(flags.contains(Flags::INVALID));
    }
    // In arithmetic as in conversions: x86 passes the first operand's, quieted.
    let x86 = Context::new(Format::F16, Profile::X86.rules(Format::F16));
    assert_eq!(x86.add(signaling, plus).code, 0xFF55);
    assert_eq!(x86.add(plus, signaling).code, 0x7E55);
    assert_eq!(x86.add(plus, signaling).flags, Flags::INVALID);
    assert_eq!(x86.sub(zero, plus).code, 0x7E55);
    assert_eq!(x86.sqrt(Operand::f32(-1.0)).code, 0xFE00);
    let riscv = Context::new(Format::F16, Profile::Riscv.rules(Format::F16));
    assert_eq!(riscv.add(signaling, plus).code, 0x7E00);
    assert_eq!(riscv.sqrt(Operand::f32(-1.0)).code, 0x7E00);
}

/// Conversions alone have a rule for signs; arithmetic takes operands as they are.
#[test]
fn sign_rules_are_for_conversions() {
    let relu = Context::new(Format::E4M3FN, Profile::CudaSatfiniteRelu.rules(Format::E4M3FN));
    let minus_one = Operand::f32(-1.0);
    assert_eq!(relu.convert(minus_one).code, 0);
    assert_eq!(relu.mul(minus_one, minus_one).code, 0x38);
    assert_eq!(relu.add(minus_one, minus_one).code, 0xC0);
}

mod long {
    use super::*;

    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn flush_policies_by_tininess_and_mode() {
        let formats = [
            Format::E4M3FN,
            Format::E5M2,
            Format::E3M2,
            Format::E4M3FNUZ,
            Format::F16,
            Format::BF16,
            Format::ieee(4, 1).unwrap(),
            Format::p3109(8, 4, true, true).unwrap(),
            Format::p3109(6, 2, true, false).unwrap(),
            Format::p3109(8, 5, false, true).unwrap(),
        ];
        on_all(&formats, |&format| {
            let grid = Grid::new(format);
            let Some(Value::Finite { significand, exponent, .. }) = format.min_normal() else {
                panic!("{format} has normal numbers")
            };
            let normal = Num::new(significand.into(), exponent);
            // Sixteenths of the spacing below twice the smallest normal number, and just next to them.
            let unit = format.lsb() - 4;
            let count = 2_u128 << (format.man_bits() + 4);
            let step = (count / 4096).max(1) as usize;
            let near = (count / 2).saturating_sub(64)..count / 2 + 64;
            let points = (0..count).step_by(step).chain(near);
            for point in points {
                for (more, sticky) in [(0, false), (1, false), (0, true)] {
                    for negative in [false, true] {
                        if negative && !format.is_signed() {
                            continue;
                        }
                        let significand = point << 40 | more;
                        let exact = Exact { negative, significand, exponent: unit - 40, sticky };
                        // A sticky part is some part of a unit: take a half.
                        let num = significand * 2 + u128::from(sticky);
                        let x = Finite::new(negative, num.into(), i64::from(unit - 41));
                        for mode in Rounding::DETERMINISTIC {
                            for tininess in [Tininess::After, Tininess::Before] {
                                for flush in
                                    [Flush::None, Flush::Input, Flush::Candidates, Flush::Output]
                                {
                                    let rules =
                                        Rules::DEFAULT.with_tininess(tininess).with_flush(flush);
                                    let rules = rules.with_rounding(mode);
                                    let ours = format.round_by(exact, &rules, 0);
                                    let theirs = expected(&grid, normal, &x, mode, tininess, flush);
                                    assert_eq!(
                                        (ours.code, ours.flags.bits() & 7),
                                        theirs,
                                        "{format} {exact:?} {mode} {tininess} {flush}"
                                    );
                                }
                            }
                        }
                    }
                }
            }
        });
    }
}
