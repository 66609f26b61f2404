//! Operations of one operand on all codes of the named formats of up to 8 bits, of P3109's with 3
//! to 8 bits, of binary16 and bfloat16; one code in 7 of twelve more formats of 16 bits, all of
//! their neighbours, and the rest on request.

use std::cmp::Ordering;

use exmy::format::{Format, Sign, Specials};
use exmy::math::{Class, Context, Operand};
use exmy::round::{Flags, Overflow, Rounded, Rounding, Tininess};
use num_bigint::BigUint;

use crate::common::{Meaning, Num};
use crate::oracle::{self, Finite, Grid, Real, is_p3109};
use crate::pairs::{check, is_signaling, rules};
use crate::threads::on_all;

/// Formats of 16 bits: of every class, from no significand field to nothing but one, with and
/// without infinities, signs, subnormals and negative zero.
fn sixteen() -> Vec<Format> {
    let p3109 = |p, signed, infinite| Format::p3109(16, p, signed, infinite).unwrap();
    let of = |sign, e, m, class| Format::builder(sign, e, m).specials(class);
    let builders = [
        of(Sign::Magnitude, 6, 9, Specials::Ieee),
        of(Sign::Magnitude, 5, 10, Specials::Fnuz),
        of(Sign::Magnitude, 4, 11, Specials::Finite),
        of(Sign::Unsigned, 5, 11, Specials::Fn).subnormals(false),
    ];
    let mut formats = vec![Format::F16, Format::BF16, Format::DLFLOAT16];
    formats.extend(builders.map(|builder| builder.build().unwrap()));
    formats.extend([
        p3109(1, true, true),
        p3109(2, true, false),
        p3109(8, true, true),
        p3109(15, true, false),
        p3109(1, false, false),
        p3109(2, false, true),
        p3109(11, false, true),
    ]);
    formats
}

/// Formats and the step between their codes: every code of those of up to 8 bits, of binary16 and
/// of bfloat16; one in 7 of the other formats of 16 bits, or every one.
fn formats(all: bool) -> Vec<(Format, usize)> {
    let step = |format| if all || [Format::F16, Format::BF16].contains(&format) { 1 } else { 7 };
    let mut formats: Vec<_> = sixteen().into_iter().map(|format| (format, step(format))).collect();
    formats.extend(oracle::formats(8, 3..=8).into_iter().map(|format| (format, 1)));
    formats
}

/// All codes of all fourteen formats of 16 bits:
///
/// ```text
/// cargo test --release --test arithmetic -- --ignored every_code_of_16_bits
/// ```
#[test]
#[ignore = "half a minute; the command is above"]
fn every_code_of_16_bits() {
    let formats = formats(true);
    roots_and_reciprocals(&formats);
    integral_numbers(&formats);
    scales_and_exponents_of(&formats);
    signs_and_classes(&formats);
}

#[test]
fn roots_and_reciprocals_of_every_code() {
    roots_and_reciprocals(&formats(false));
}

fn roots_and_reciprocals(formats: &[(Format, usize)]) {
    on_all(formats, |&(format, step)| {
        let (grid, p3109) = (Grid::new(format), is_p3109(format));
        for code in format.codes().step_by(step) {
            let (x, operand) = (grid.decode(code), Operand::new(format, code));
            let what = |name: &'static str| move || format!("{name} {code:#x}");
            let signaling = is_signaling(&grid, code);
            let check = |exact: Real, name, ours: &dyn Fn(&Context) -> Rounded| {
                check(&grid, &exact, oracle::raised(&exact, &[x], signaling), &what(name), ours);
            };
            check(oracle::sqrt(x), "sqrt", &|c| c.sqrt(operand));
            check(oracle::recip(x, p3109), "recip", &|c| c.recip(operand));
            check(oracle::rsqrt(x, p3109), "rsqrt", &|c| c.rsqrt(operand));
        }
    });
}

/// The integer a mode chooses, and whether it is another number: by division of integers.
pub fn integer(negative: bool, x: Num, mode: Rounding) -> (u128, bool) {
    if x.exponent >= 0 {
        return (x.integer << x.exponent, false);
    }
    // 2^-100 and smaller stand for each other: nothing here is that fine and not that small.
    let places = x.exponent.unsigned_abs().min(126);
    let (whole, rest) = (x.integer >> places, x.integer << (128 - places) >> (128 - places));
    let half = rest.cmp(&(1 << (places - 1)));
    let odd = whole % 2 == 1;
    let up = rest != 0
        && match mode {
            Rounding::TiesToEven => half.is_gt() || (half.is_eq() && odd),
            Rounding::TiesToAway => half.is_ge(),
            Rounding::TiesToZero => half.is_gt(),
            Rounding::TowardZero => false,
            Rounding::TowardPositive => !negative,
            Rounding::TowardNegative => negative,
            Rounding::AwayFromZero => true,
            Rounding::ToOdd => !odd,
            _ => unreachable!(),
        };
    (whole + u128::from(up), rest != 0)
}

#[test]
fn every_code_to_an_integral_number() {
    integral_numbers(&formats(false));
}

fn integral_numbers(formats: &[(Format, usize)]) {
    on_all(formats, |&(format, step)| {
        let grid = Grid::new(format);
        for code in format.codes().step_by(step) {
            let operand = Operand::new(format, code);
            for mode in Rounding::DETERMINISTIC {
                let (real, changed) = match grid.decode(code) {
                    Meaning::Nan(sign) => (Real::Nan(sign), false),
                    Meaning::Infinite(sign) => (Real::Infinite(sign), false),
                    Meaning::Finite(sign, x) if x.exponent > 0 => (
                        Real::Finite(Finite::new(sign, x.integer.into(), x.exponent.into())),
                        false,
                    ),
                    Meaning::Finite(sign, x) => {
                        let (n, changed) = integer(sign, x, mode);
                        (Real::Finite(Finite::new(sign, BigUint::from(n), 0)), changed)
                    }
                };
                let tininess = Tininess::After;
                let (expected, flags) =
                    grid.expected(&real, None, mode, Overflow::None, 0, tininess);
                let context = Context::new(format, rules(format, mode, Overflow::None, tininess));
                for exact in [false, true] {
                    let rounded = context.round_to_integral(operand, exact);
                    assert_eq!(rounded.code, expected, "{format} {code:#x} {mode}");
                    let inexact = u8::from(exact && changed);
                    assert!(
                        flags.is_none_or(|flags| flags | inexact == rounded.flags.bits() & 7),
                        "{format} {code:#x} {mode} {exact}"
                    );
                }
            }
        }
    });
}

#[test]
fn scales_and_exponents() {
    scales_and_exponents_of(&formats(false));
}

fn scales_and_exponents_of(formats: &[(Format, usize)]) {
    on_all(formats, |&(format, step)| {
        let grid = Grid::new(format);
        for code in format.codes().step_by(step) {
            let (x, operand) = (grid.decode(code), Operand::new(format, code));
            for n in [-300, -17, -1, 0, 1, 5, 40, i32::MIN, i32::MAX] {
                // Beyond all formats' range a million is as good as two thousand million.
                let places = n.clamp(-2000, 2000);
                let real = match x {
                    Meaning::Finite(sign, m) if m.integer != 0 => {
                        let exponent = i64::from(m.exponent + places);
                        Real::Finite(Finite::new(sign, m.integer.into(), exponent))
                    }
                    Meaning::Finite(sign, _) => Real::Finite(Finite::zero(sign)),
                    Meaning::Infinite(sign) => Real::Infinite(sign),
                    Meaning::Nan(sign) => Real::Nan(sign),
                };
                if format.bits() <= 8 || n.unsigned_abs() < 6 {
                    let raised = oracle::raised(&real, &[x], is_signaling(&grid, code));
                    check(
                        &grid,
                        &real,
                        raised,
                        &|| format!("{code:#x} scaled by {n}"),
                        |context| context.scalb(operand, n),
                    );
                }
            }
            let real = match x {
                Meaning::Finite(_, m) if m.integer != 0 => {
                    // The power of two at or below: counted, not computed.
                    let mut exponent = 0_i64;
                    let at_least = |e: i64| m.cmp(&Num::new(1, e as i32)) != Ordering::Less;
                    while at_least(exponent + 1) {
                        exponent += 1;
                    }
                    while !at_least(exponent) {
                        exponent -= 1;
                    }
                    let magnitude = BigUint::from(exponent.unsigned_abs());
                    Real::Finite(Finite::new(exponent < 0, magnitude, 0))
                }
                Meaning::Finite(..) => Real::Infinite(true),
                Meaning::Infinite(_) => Real::Infinite(false),
                Meaning::Nan(sign) => Real::Nan(sign),
            };
            let raised = oracle::raised(&real, &[x], is_signaling(&grid, code));
            check(&grid, &real, raised, &|| format!("logb {code:#x}"), |c| c.logb(operand));
            let zero = matches!(x, Meaning::Finite(_, m) if m.integer == 0);
            let context = Context::new(format, exmy::round::Rules::DEFAULT);
            let flags = context.logb(operand).flags;
            assert_eq!(flags.contains(Flags::DIVIDE_BY_ZERO), zero, "{format} {code:#x}");
        }
    });
}

/// Codes of finite values in ascending order; of two zeros the negative one first.
fn ascending(grid: &Grid) -> Vec<u64> {
    let key = |code: u64| match grid.decode(code) {
        Meaning::Finite(sign, x) => Some((sign, x)),
        _ => None,
    };
    // A code that reads as zero where negative zero was declined is never produced.
    let declined = grid.model.declines_negative_zero && grid.model.signed;
    let second = 1 << (grid.format.bits() - 1);
    let counts = |code: &u64| key(*code).is_some() && !(declined && *code == second);
    let mut codes: Vec<u64> = grid.format.codes().filter(counts).collect();
    codes.sort_by(|a, b| {
        let ((s, x), (t, y)) = (key(*a).unwrap(), key(*b).unwrap());
        match (s, t) {
            (false, false) => x.cmp(&y),
            (true, true) => y.cmp(&x),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    });
    codes
}

#[test]
fn neighbours_of_every_code() {
    on_all(&formats(true), |&(format, _)| {
        let (grid, p3109) = (Grid::new(format), is_p3109(format));
        let codes = ascending(&grid);
        let zero = |code: u64| matches!(grid.decode(code), Meaning::Finite(_, x) if x.integer == 0);
        let rules = rules(format, Rounding::TiesToEven, Overflow::None, Tininess::After);
        let context = Context::new(format, rules);
        let beyond = |up: bool| match grid.model.infinity(!up) {
            Some(code) => code,
            None if p3109 => grid.model.nan(false).unwrap(),
            None => grid.code_of(Meaning::Infinite(!up), Overflow::None),
        };
        for (i, &code) in codes.iter().enumerate() {
            let operand = Operand::new(format, code);
            // Zeros are one number: a step leads past both, or onto the one it comes from.
            let up = codes[i + 1..].iter().find(|next| !(zero(**next) && zero(code)));
            let down = codes[..i].iter().rfind(|next| !(zero(**next) && zero(code)));
            let expected = [
                up.map_or_else(|| beyond(true), |c| *c),
                down.map_or_else(|| beyond(false), |c| *c),
            ];
            let ours = [context.next_up(operand).code, context.next_down(operand).code];
            assert_eq!(ours, expected, "{format} {code:#x}");
        }
        for negative in [false, true] {
            let Some(code) = grid.model.infinity(negative) else { continue };
            let operand = Operand::new(format, code);
            let inward = if negative { codes[0] } else { *codes.last().unwrap() };
            let outward = if p3109 { grid.model.nan(false).unwrap() } else { code };
            let (up, down) = (context.next_up(operand).code, context.next_down(operand).code);
            let expected = if negative { (inward, outward) } else { (outward, inward) };
            assert_eq!((up, down), expected, "{format} infinity");
        }
        if let Some(nan) = format.nan_code() {
            let operand = Operand::new(format, nan);
            assert_eq!(context.next_up(operand).code, nan);
            assert_eq!(context.next_down(operand).code, nan);
        }
    });
}

#[test]
fn signs_and_classes_of_every_code() {
    signs_and_classes(&formats(false));
}

fn signs_and_classes(formats: &[(Format, usize)]) {
    on_all(formats, |&(format, step)| {
        let grid = Grid::new(format);
        let one_zero = !format.has_negative_zero();
        let context = Context::new(
            format,
            rules(format, Rounding::TiesToEven, Overflow::None, Tininess::After),
        );
        for code in format.codes().step_by(step) {
            let (x, operand) = (grid.decode(code), Operand::new(format, code));
            let set = |negative: bool| match x {
                Meaning::Nan(_) => Meaning::Nan(negative),
                Meaning::Infinite(_) => Meaning::Infinite(negative),
                Meaning::Finite(_, n) => Meaning::Finite(negative, n),
            };
            let was = matches!(
                x,
                Meaning::Nan(true) | Meaning::Infinite(true) | Meaning::Finite(true, _)
            );
            let ieee_bits = format.has_nan() && !one_zero;
            let expected = |negative: bool| match x {
                // The payload stays: only the bit changes.
                Meaning::Nan(_) if ieee_bits => {
                    let bit = 1 << (format.bits() - 1);
                    if negative { code | bit } else { code & !bit }
                }
                _ => grid.code_of(set(negative), Overflow::None),
            };
            assert_eq!(context.abs(operand).code, expected(false), "{format} abs {code:#x}");
            assert_eq!(context.neg(operand).code, expected(!was), "{format} neg {code:#x}");
            let minus_one = Operand::f32(-1.0);
            let copied = context.copysign(operand, minus_one);
            assert_eq!(copied.code, expected(true), "{format} copysign {code:#x}");

            let normal = |n: Num| match format.min_normal() {
                _ if grid.model.twos_complement => true,
                Some(exmy::format::Value::Finite { significand, exponent, .. }) => {
                    n >= Num::new(significand.into(), exponent)
                }
                _ => false,
            };
            let class = match x {
                Meaning::Nan(_) if is_signaling(&grid, code) => Class::SignalingNan,
                Meaning::Nan(_) => Class::QuietNan,
                Meaning::Infinite(true) => Class::NegativeInfinity,
                Meaning::Infinite(false) => Class::PositiveInfinity,
                Meaning::Finite(true, n) if n.integer == 0 => Class::NegativeZero,
                Meaning::Finite(false, n) if n.integer == 0 => Class::PositiveZero,
                Meaning::Finite(true, n) if normal(n) => Class::NegativeNormal,
                Meaning::Finite(false, n) if normal(n) => Class::PositiveNormal,
                Meaning::Finite(true, _) => Class::NegativeSubnormal,
                Meaning::Finite(false, _) => Class::PositiveSubnormal,
            };
            assert_eq!(operand.class(), class, "{format} {code:#x}");
            // The predicates, by what the model reads and not by the class.
            let (nan, infinite) = (matches!(x, Meaning::Nan(_)), matches!(x, Meaning::Infinite(_)));
            let is_normal = matches!(x, Meaning::Finite(_, n) if n.integer != 0 && normal(n));
            let is_subnormal = matches!(x, Meaning::Finite(_, n) if n.integer != 0 && !normal(n));
            let ours = [
                operand.is_nan(),
                operand.is_infinite(),
                operand.is_finite(),
                operand.is_zero(),
                operand.is_normal(),
                operand.is_subnormal(),
                operand.is_sign_minus(),
                operand.is_signaling(),
            ];
            let zero = matches!(x, Meaning::Finite(_, n) if n.integer == 0);
            let signaling = is_signaling(&grid, code);
            let theirs =
                [nan, infinite, !nan && !infinite, zero, is_normal, is_subnormal, was, signaling];
            assert_eq!(ours, theirs, "{format} {code:#x}");
            assert_eq!(operand.is_one(), x == Meaning::Finite(false, Num::new(1, 0)), "{format}");
        }
    });
}
