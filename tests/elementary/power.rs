//! Powers: the table of IEEE 754-2019, 9.2.1, all pairs of two formats of 8 bits, and pairs of 16 bits.

use dashu_int::UBig;
use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::random::{Philox, Stream};
use exmy::round::{Flags, Overflow, Rounding, Rules};

use crate::common::{Meaning, Model, Num};
use crate::screen::{Screen, to_f64};
use crate::{number, oracle};

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;
const NONE: Flags = Flags::NONE;
const POLE: Flags = Flags::DIVIDE_BY_ZERO;

#[test]
fn special_cases_are_those_of_the_standard() {
    let ctx = Context::new(Format::F32, Rules::DEFAULT);
    for (x, y, result, flags) in [
        (NAN, 0.0, 1.0, NONE),
        (NAN, -0.0, 1.0, NONE),
        (INF, 0.0, 1.0, NONE),
        (1.0, NAN, 1.0, NONE),
        (1.0, -INF, 1.0, NONE),
        (-1.0, INF, 1.0, NONE),
        (NAN, 1.0, NAN, NONE),
        (-1.0, NAN, NAN, NONE),
        (0.0, -3.0, INF, POLE),
        (-0.0, -3.0, -INF, POLE),
        (-0.0, -2.0, INF, POLE),
        (-0.0, -2.5, INF, POLE),
        (-0.0, -INF, INF, NONE),
        (-0.0, 3.0, -0.0, NONE),
        (-0.0, 2.0, 0.0, NONE),
        (-0.0, 0.5, 0.0, NONE),
        (-0.0, INF, 0.0, NONE),
        (0.5, INF, 0.0, NONE),
        (-0.5, -INF, INF, NONE),
        (-1.5, INF, INF, NONE),
        (1.5, -INF, 0.0, NONE),
        (INF, -0.5, 0.0, NONE),
        (INF, 0.5, INF, NONE),
        (-INF, -3.0, -0.0, NONE),
        (-INF, -2.0, 0.0, NONE),
        (-INF, 3.0, -INF, NONE),
        (-INF, 0.5, INF, NONE),
        (-2.0, 0.5, NAN, Flags::INVALID),
        (-2.0, 3.0, -8.0, NONE),
        (-2.0, -149.0, -1e-45, NONE),
        (2.0, 128.0, INF, Flags::OVERFLOW | Flags::INEXACT),
        (-3.0, 1e30, INF, Flags::OVERFLOW | Flags::INEXACT),
        (3.0, -1e30, 0.0, Flags::UNDERFLOW | Flags::INEXACT),
        (2.25, 1.5, 3.375, NONE),
        (2.25, -1.5, 1.0 / 3.375, Flags::INEXACT),
        (1e-45, 1e-45, 1.0, Flags::INEXACT),
        (16_777_216.0, 0.125, 8.0, NONE),
    ] {
        let found = ctx.pow(Operand::f32(x), Operand::f32(y)).unwrap();
        let result =
            if result.is_nan() { Format::F32.nan_code().unwrap() } else { result.to_bits().into() };
        assert_eq!((found.code, found.flags), (result, flags), "{x} to {y}");
    }
    // A signaling NaN is invalid, whatever the exponent.
    let signaling = Operand::new(Format::F32, 0x7F80_0001);
    let found = ctx.pow(signaling, Operand::f32(0.0)).unwrap();
    assert!(Format::F32.decode(found.code).is_nan() && found.flags == Flags::INVALID);
}

/// `x^y` if that has finitely many digits: by whole powers and whole roots of integers of any length.
fn finite(x: Num, (falling, y): (bool, Num)) -> Option<Num> {
    let reduced = |x: Num| {
        let zeros = x.integer.trailing_zeros();
        (x.integer >> zeros, i64::from(x.exponent) + i64::from(zeros))
    };
    let ((odd, places), (n, power)) = (reduced(x), reduced(y));
    if odd > 1 && falling {
        return None;
    }
    let n = usize::try_from(n).unwrap() << power.max(0);
    let roots = 1_usize << (-power).clamp(0, 20);
    let whole = UBig::from(odd).pow(n);
    let root = whole.nth_root(roots);
    let moved = places * n as i64;
    if root.pow(roots) != whole || moved % roots as i64 != 0 {
        return None;
    }
    let exponent = moved / roots as i64 * if falling { -1 } else { 1 };
    // The first bits, and one for the rest, are enough for every format here.
    use dashu_int::ops::BitTest;
    let cut = root.bit_len().saturating_sub(100);
    let kept = u128::try_from(&root >> cut).unwrap();
    let rest = (UBig::from(kept) << cut) != root;
    Some(Num::new(kept << 1 | u128::from(rest), (exponent + cut as i64 - 1) as i32))
}

/// All modes of one pair into binary16; whether the result has finitely many digits. None where a special
/// case decides: an operand that is no finite nonzero number, a base of 1, a negative base and no integer.
fn check(
    screen: &Screen,
    target: &Model,
    format: Format,
    model: &Model,
    codes: [u64; 2],
) -> Option<bool> {
    let [Some(x), Some(y)] = codes.map(|code| number(model, code)) else { return None };
    let (a, b) = (to_f64(x.0, x.1), to_f64(y.0, y.1));
    if a == 1.0 || a < 0.0 && b.fract() != 0.0 {
        return None;
    }
    let negative = a < 0.0 && b % 2.0 != 0.0;
    let apply = |mode| {
        let ctx = Context::new(Format::F16, Rules::DEFAULT.with_rounding(mode));
        let [a, b] = codes.map(|code| Operand::new(format, code));
        ctx.pow(a, b).unwrap().code
    };
    let known = finite(x.1, y);
    if known.is_none()
        && let Some(place) = screen.screened(libm::pow(a.abs(), b))
    {
        for mode in Rounding::DETERMINISTIC {
            assert_eq!(apply(mode), screen.code(negative, place, mode), "{a} to {b} by {mode}");
        }
        return Some(false);
    }
    let result = known.unwrap_or_else(|| oracle::power(x.1, y).1);
    for mode in Rounding::DETERMINISTIC {
        let expected = target.encode(Meaning::Finite(negative, result), mode, Overflow::None, 0);
        assert_eq!(apply(mode), expected, "{a} to {b} by {mode}, asked");
    }
    Some(known.is_some())
}

#[test]
fn all_pairs_of_8_bits() {
    let target = Model::of(Format::F16);
    let screen = Screen::new(&target);
    // Compared are the positive bases but 1 with all nonzero exponents, and the negative ones with all
    // integers. E4M3 has 126 magnitudes, of which 54 are integers: 125 * 252 + 126 * 108. E5M2 has 123, of
    // which 99 are at most 1000, 35 of these integers: 122 * 198 + 123 * 70. How many results have finitely
    // many digits was counted with fractions: those of x, or of 1 / x if y is negative, after as many exact
    // square roots as y has bits behind its point.
    for (format, wanted) in [(Format::E4M3FN, [45_108, 15_724]), (Format::E5M2, [32_766, 10_988])] {
        let model = Model::of(format);
        let mut counts = [0; 2];
        for codes in (0..256).flat_map(|x| (0..256).map(move |y| [x, y])) {
            // Powers of integers beyond a thousand have more digits than patience.
            if number(&model, codes[1])
                .is_some_and(|(negative, y)| to_f64(negative, y).abs() > 1000.0)
            {
                continue;
            }
            if let Some(finite) = check(&screen, &target, format, &model, codes) {
                counts[0] += 1;
                counts[1] += u64::from(finite);
            }
        }
        assert_eq!(counts, wanted, "{format}: pairs compared, and with finitely many digits");
    }
}

/// Pairs of binary16: results near 1 and large exponents among them.
#[test]
fn pairs_of_16_bits() {
    let (target, model) = (Model::of(Format::F16), Model::of(Format::F16));
    let screen = Screen::new(&target);
    let philox = Philox::new(1, Stream::new("powers"));
    let mut finite = 0;
    for i in 0..20_000 {
        let [x, y, ..] = philox.block(i);
        // Of magnitudes between 2^-7 and 2^8, near 1 where powers are in range, or any.
        let x = match i % 3 {
            0 => 0x3C00 + u64::from(x % 64) - 32,
            _ => u64::from(x & 0x7FFF),
        };
        let y = u64::from(y & 0x63FF | y >> 16 & 0x8000);
        let found = check(&screen, &target, Format::F16, &model, [x, y]);
        finite += u64::from(found == Some(true));
    }
    assert!(finite > 0);
}

/// A power of two is a number, however large or small it is; no number of digits decides one.
#[test]
fn powers_of_two_are_exact_at_any_size() {
    let (few, many) = (Flags::UNDERFLOW | Flags::INEXACT, Flags::OVERFLOW | Flags::INEXACT);
    for (format, mode, x, y, code, flags) in [
        // 4^(2^21) and 2^(2^22): the exponent is 2^22.
        (Format::BF16, Rounding::TiesToEven, 0x4080, 0x4A00, 0x7F80, many),
        (Format::F32, Rounding::TiesToEven, 0x4000_0000, 0x4A80_0000, 0x7F80_0000, many),
        (
            Format::F32,
            Rounding::TowardZero,
            0x4000_0000,
            0x4A80_0000,
            0x7F7F_FFFF,
            many | Flags::SATURATED,
        ),
        // 2^(-2^31), (1/2)^(2^31), and (-2)^(-2^31), which is positive.
        (Format::F32, Rounding::TiesToEven, 0x4000_0000, 0xCF00_0000, 0, few),
        (Format::F32, Rounding::TowardPositive, 0x4000_0000, 0xCF00_0000, 1, few),
        (Format::F32, Rounding::TiesToEven, 0x3F00_0000, 0x4F00_0000, 0, few),
        (Format::F32, Rounding::TowardPositive, 0xC000_0000, 0xCF00_0000, 1, few),
        // (-2)^(2^24 - 1), odd, and (-1)^(2^31 + 256), even.
        (Format::F32, Rounding::TiesToEven, 0xC000_0000, 0x4B7F_FFFF, 0xFF80_0000, many),
        (Format::F32, Rounding::TiesToEven, 0xBF80_0000, 0x4F00_0001, 0x3F80_0000, NONE),
        // 2^(2^1023) and 2^(-2^1023); 2^-1074 to the power 2^-1, exactly 2^-537.
        (Format::F64, Rounding::TiesToEven, 1 << 62, 0x7FE0 << 48, 0x7FF0 << 48, many),
        (Format::F64, Rounding::TiesToEven, 1 << 62, 0xFFE0 << 48, 0, few),
        (Format::F64, Rounding::TiesToEven, 1, 0x3FE0 << 48, (1023 - 537) << 52, NONE),
    ] {
        let ctx = Context::new(format, Rules::DEFAULT.with_rounding(mode));
        let found = ctx.pow(Operand::new(format, x), Operand::new(format, y)).unwrap();
        assert_eq!((found.code, found.flags), (code, flags), "{format}: {x:x} to {y:x} by {mode}");
    }
    // All pairs of formats with a wide range have a result.
    for format in [Format::E8M0, "binary8p1se".parse().unwrap(), "e6m1".parse().unwrap()] {
        let ctx = Context::new(format, Rules::DEFAULT.with_rounding(Rounding::TowardPositive));
        for (x, y) in
            (0..1 << format.bits()).flat_map(|x| (0..1 << format.bits()).map(move |y| (x, y)))
        {
            assert!(
                ctx.pow(Operand::new(format, x), Operand::new(format, y)).is_ok(),
                "{format}: {x} {y}"
            );
        }
    }
}

/// Numbers of many digits to great powers, whose exact results have far more digits than any enclosure.
#[test]
fn binary64_agrees_with_a_binary64_library() {
    let ctx = Context::new(Format::F64, Rules::DEFAULT);
    let philox = Philox::new(2, Stream::new("powers"));
    for i in 0..2000 {
        let x = f64::from_bits(0x3FE0_0000_0000_0000 + (philox.word64(2 * i) >> 11));
        let y = f64::from(philox.word(4 * i + 2) as i32) / 3_000_000.0;
        let found = ctx.pow(Operand::f64(x), Operand::f64(y)).unwrap().code;
        // Of the library an error below one unit is known.
        assert!(found.abs_diff(libm::pow(x, y).to_bits()) <= 1, "{x} to {y}");
    }
}
