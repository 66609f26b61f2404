//! Powers: the table of IEEE 754-2019, 9.2.1, all pairs of two formats of 8 bits, pairs of 12 and 16 bits,
//! and wider ones for which the arbitrary-precision crate is asked. Powers of two are in `powers_of_two`.

use dashu_int::UBig;
use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::random::{Philox, Stream};
use exmy::round::{Flags, Overflow, Rounding, Rules};

use crate::common::{Meaning, Model, Num};
use crate::screen::{Screen, to_f64};
use crate::sixteen::nearest;
use crate::{number, oracle};

const E8M3: Format = match Format::ieee(8, 3) {
    Ok(format) => format,
    Err(_) => unreachable!(),
};

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

/// `x^y` if that has finitely many digits, or no more than a few thousand: by whole powers and whole roots of
/// integers of any length.
fn finite(x: Num, (falling, y): (bool, Num)) -> Option<Num> {
    let reduced = |x: Num| {
        let zeros = x.integer.trailing_zeros();
        (x.integer >> zeros, i128::from(x.exponent) + i128::from(zeros))
    };
    let ((odd, places), (n, power)) = (reduced(x), reduced(y));
    if odd > 1 && (falling || power > 10 || n > 1 << 10) {
        return None;
    }
    // y is n 2^power. n is odd, so of a power of it there is a root if there is one of the number.
    let roots = 1_usize << (-power).clamp(0, 20);
    let root = UBig::from(odd).nth_root(roots);
    let moved = places * n as i128 * if falling { -1 } else { 1 };
    let exponent = match power {
        0.. => moved.checked_mul(1 << power.min(100)).unwrap(),
        _ if moved % (1 << (-power).min(100)) == 0 => moved >> (-power).min(100),
        _ => return None,
    };
    if root.pow(roots) != UBig::from(odd) {
        return None;
    }
    let whole = if odd > 1 { root.pow((n as usize) << power.max(0)) } else { UBig::ONE };
    // The first bits, and one for the rest, are enough for every format here.
    use dashu_int::ops::BitTest;
    let cut = whole.bit_len().saturating_sub(100);
    let kept = u128::try_from(&whole >> cut).unwrap();
    let rest = (UBig::from(kept) << cut) != whole;
    let exponent = exponent.clamp(-(1 << 24), 1 << 24) as i32;
    Some(Num::new(kept << 1 | u128::from(rest), exponent + cut as i32 - 1))
}

/// What powers are rounded to.
struct Target {
    format: Format,
    model: Model,
    screen: Screen,
}

impl Target {
    fn new(format: Format) -> Self {
        let model = Model::of(format);
        Self { format, screen: Screen::new(&model), model }
    }
}

/// Base and exponent where no special case decides, and whether the power is negative: two finite numbers but
/// 0, a base that is not 1, and where that is negative an integer.
#[derive(Clone, Copy)]
struct Pair {
    x: (bool, Num),
    y: (bool, Num),
    negative: bool,
}

impl Pair {
    fn of(models: [&Model; 2], codes: [u64; 2]) -> Option<Self> {
        let (x, y) = (number(models[0], codes[0])?, number(models[1], codes[1])?);
        let (a, b) = (to_f64(x.0, x.1), to_f64(y.0, y.1));
        let special = a == 1.0 || x.0 && b.fract() != 0.0;
        (!special).then_some(Self { x, y, negative: x.0 && b % 2.0 != 0.0 })
    }

    /// The power's magnitude in binary64.
    fn near(self) -> f64 {
        libm::pow(to_f64(false, self.x.1), to_f64(self.y.0, self.y.1))
    }

    /// The power, and whether it has finitely many digits.
    fn result(self) -> (Num, bool) {
        match finite(self.x.1, self.y) {
            Some(known) => (known, true),
            None => (oracle::power(self.x.1, self.y).1, false),
        }
    }
}

/// All modes of one pair; whether the result has finitely many digits. None where a special case decides.
fn check(target: &Target, format: Format, model: &Model, codes: [u64; 2]) -> Option<bool> {
    let pair = Pair::of([model; 2], codes)?;
    let apply = |mode| {
        let ctx = Context::new(target.format, Rules::DEFAULT.with_rounding(mode));
        let [a, b] = codes.map(|code| Operand::new(format, code));
        ctx.pow(a, b).unwrap().code
    };
    if finite(pair.x.1, pair.y).is_none()
        && let Some(place) = target.screen.screened(pair.near())
    {
        for mode in Rounding::DETERMINISTIC {
            let expected = target.screen.code(pair.negative, place, mode);
            assert_eq!(apply(mode), expected, "{format} {codes:x?} by {mode}");
        }
        return Some(false);
    }
    let (result, known) = pair.result();
    for mode in Rounding::DETERMINISTIC {
        let meaning = Meaning::Finite(pair.negative, result);
        let expected = target.model.encode(meaning, mode, Overflow::None, 0);
        assert_eq!(apply(mode), expected, "{format} {codes:x?} by {mode}, asked");
    }
    Some(known)
}

#[test]
fn all_pairs_of_8_bits() {
    let target = Target::new(Format::F16);
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
            if let Some(finite) = check(&target, format, &model, codes) {
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
    let target = Target::new(Format::F16);
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
        let found = check(&target, Format::F16, &target.model, [x, y]);
        finite += u64::from(found == Some(true));
    }
    assert!(finite > 0);
}

/// Pairs of e8m3, whose numbers reach as far as binary32's: each base with exponents of all kinds.
#[test]
fn pairs_of_e8m3() {
    let target = Target::new(E8M3);
    let philox = Philox::new(3, Stream::new("powers"));
    let (mut compared, mut finite) = (0, 0);
    for x in E8M3.codes() {
        for (i, word) in philox.block(x).into_iter().enumerate() {
            // Any number, and three of magnitudes from 2^-10 to 2^7, integers among them.
            let magnitude = if i == 0 { word >> 8 & 0x7FF } else { 0x3A8 + word % 0x88 };
            let y = u64::from(magnitude | word >> 20 & 0x800);
            let found = check(&target, E8M3, &target.model, [x, y]);
            compared += u32::from(found.is_some());
            finite += u32::from(found == Some(true));
        }
    }
    assert!(
        compared > 9000 && finite > 500,
        "{compared} compared, {finite} of finitely many digits"
    );
}

/// Wide operands into formats of all kinds: every pair is asked of the arbitrary-precision crate.
#[test]
fn the_oracle_is_asked_for_powers() {
    let sources = [E8M3, Format::F16, Format::BF16, Format::ieee(3, 12).unwrap()];
    let sources = sources.map(|format| (format, Model::of(format)));
    let narrow = [
        E8M3,
        Format::F16,
        Format::TF32,
        Format::E4M3FN,
        Format::E5M2,
        Format::p3109(16, 11, true, true).unwrap(),
        Format::E8M0,
    ];
    let narrow = narrow.map(|format| (format, Model::of(format)));
    let random = Philox::new(4, Stream::new("powers"));
    let (mut asked, mut inside) = (0, 0);
    for i in 0..6000 {
        let draw = |n: u64, below: u64| random.below(8 * i + n, below);
        let chosen = [draw(0, 4), draw(1, 4)].map(|at| &sources[at as usize]);
        let x = draw(2, 1 << chosen[0].0.bits());
        let mut y = draw(3, 1 << chosen[1].0.bits());
        let models = [&chosen[0].1, &chosen[1].1];
        let mut pair = Pair::of(models, [x, y]);
        // Of most bases an exponent whose power is in binary32's range and not beside 1.
        for again in 0..40 {
            let far = |pair: Pair| (libm::log2(pair.near()).abs() - 70.0).abs() > 69.9;
            if i % 8 == 0 || !pair.is_none_or(far) {
                break;
            }
            y = Philox::new(i, Stream::new("exponents")).below(again, 1 << chosen[1].0.bits());
            pair = Pair::of(models, [x, y]);
        }
        let Some(pair) = pair else { continue };
        let (result, known) = pair.result();
        if known {
            continue;
        }
        let operands = [Operand::new(chosen[0].0, x), Operand::new(chosen[1].0, y)];
        asked += 1;
        inside += u32::from((libm::log2(pair.near()).abs() - 70.0).abs() < 69.9);
        let (negative, word) = (pair.negative, random.word(8 * i + 4));
        let found = |format, mode| {
            let ctx = Context::new(format, Rules::DEFAULT.with_rounding(mode)).with_random(word);
            let rounded = ctx.pow(operands[0], operands[1]).unwrap();
            assert!(rounded.flags.contains(Flags::INEXACT), "{operands:?} to {format}");
            rounded.code
        };
        for (format, model) in &narrow {
            for mode in [
                Rounding::TiesToEven,
                Rounding::TowardPositive,
                Rounding::ToOdd,
                Rounding::stochastic(8),
            ] {
                let meaning = Meaning::Finite(negative, result);
                let expected = model.encode(meaning, mode, Overflow::None, word);
                assert_eq!(found(*format, mode), expected, "{operands:?} to {format} by {mode}");
            }
        }
        let wide = found(Format::F32, Rounding::TiesToEven);
        assert_eq!(wide, nearest([8, 23], negative, result), "{operands:?} to f32");
    }
    assert!(asked > 2500 && inside > 2000, "{asked} asked, {inside} of them in range");
}

/// Numbers of many digits to great powers, whose exact results have far more digits than any enclosure.
#[test]
fn binary64_is_the_number_nearest_to_the_oracle_s() {
    let ctx = Context::new(Format::F64, Rules::DEFAULT);
    let philox = Philox::new(2, Stream::new("powers"));
    for i in 0..1000 {
        let x = f64::from_bits(0x3FE0_0000_0000_0000 + (philox.word64(2 * i) >> 11));
        let y = f64::from(philox.word(4 * i + 2) as i32) / 3_000_000.0;
        let found = ctx.pow(Operand::f64(x), Operand::f64(y)).unwrap().code;
        let number = |x: f64| {
            let (field, fraction) = (x.to_bits() >> 52 & 0x7FF, x.to_bits() & ((1 << 52) - 1));
            Num::new(u128::from(fraction | 1 << 52), field as i32 - 1075)
        };
        let (_, result) = oracle::power(number(x), (y < 0.0, number(y)));
        assert_eq!(found, nearest([11, 52], false, result), "{x} to {y}");
    }
}
