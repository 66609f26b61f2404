//! What the typed scalars promise to generic code: classes, keys, bases, tolerances, constants.

use std::any::TypeId;
use std::collections::BTreeSet;
use std::num::FpCategory;

use exmy::format::{Format, Sign, Value};
use exmy::math::{Class, Operand};
use exmy::minifloat::*;
use num_traits::Num;

/// What a typed scalar says of its class, and its operand.
struct Says {
    value: Value,
    class: FpCategory,
    operand: Operand,
    is_normal: bool,
    is_subnormal: bool,
}

fn classes<F: FloatFormat>() {
    classes_of(F::FORMAT, |code| {
        let x = Minifloat::<F>::from_bits(F::Bits::from_u64(code));
        Says {
            value: x.value(),
            class: x.classify(),
            operand: x.operand(),
            is_normal: x.is_normal(),
            is_subnormal: x.is_subnormal(),
        }
    });
}

/// The class by the value alone, the typed scalar's and the operand's.
fn classes_of(format: Format, says: fn(u64) -> Says) {
    for code in format.codes() {
        let x = says(code);
        let expected = match x.value {
            Value::Nan { .. } => FpCategory::Nan,
            Value::Infinite { .. } => FpCategory::Infinite,
            Value::Finite { significand: 0, .. } => FpCategory::Zero,
            _ if format.sign() == Sign::TwosComplement => FpCategory::Normal,
            value if value.to_f64().abs() >= smallest_normal(format).to_f64() => FpCategory::Normal,
            _ => FpCategory::Subnormal,
        };
        assert_eq!(x.class, expected, "{format} {code:#x}");
        assert_eq!(x.is_normal, expected == FpCategory::Normal, "{format} {code:#x}");
        assert_eq!(x.is_subnormal, expected == FpCategory::Subnormal, "{format} {code:#x}");
        let class = x.operand.class();
        let subnormal = matches!(class, Class::NegativeSubnormal | Class::PositiveSubnormal);
        assert_eq!(subnormal, x.is_subnormal, "{format} {code:#x}");
        assert_eq!(x.operand.is_normal(), x.is_normal, "{format} {code:#x}");
        assert_eq!(x.operand.is_subnormal(), x.is_subnormal, "{format} {code:#x}");
    }
}

/// `2^emin`, by the definition of the formats.
fn smallest_normal(format: Format) -> Value {
    Value::Finite { negative: false, significand: 1, exponent: format.emin() }
}

macro_rules! classes {
    ($($name:ident)*) => { $(classes::<<$name as Marked>::Marker>();)* };
}

trait Marked {
    type Marker: FloatFormat;
}

impl<F: FloatFormat> Marked for Minifloat<F> {
    type Marker = F;
}

#[test]
fn classes_are_the_same_everywhere() {
    classes! {
        E4M3 E5M2 E4M3Ieee E3M4 E4M3Fnuz E5M2Fnuz E4M3B11Fnuz E3M2 E2M3 E2M1 E3M0 Int8 E8M0 Ue4m3
        Ue5m3 F16 Bf16 Tf32 E8M3 E8M4 E8M5 E8M6 Binary8p3se Binary8p4se Binary8p5se Binary8p1uf
        Binary4p2sf
    }
    assert_eq!(Int8::from_bits(1).classify(), FpCategory::Normal);
    assert_eq!(Int8::MIN.classify(), FpCategory::Normal);
}

#[test]
fn codes_are_keys() {
    let keys = [0x80, 0x00, 0x7F, 0x7F].map(|code| ByCode(E4M3::from_bits(code)));
    let sorted: Vec<u8> = BTreeSet::from(keys).into_iter().map(|key| key.0.to_bits()).collect();
    assert_eq!(sorted, [0x00, 0x7F, 0x80]);
    assert_eq!(format!("{:?}", keys[1]), "ByCode(0 (0x0))");
}

exmy::define_format! { struct Longest(u32): e16m8 }
exmy::define_format! { struct Long(u32): e15m8 }
exmy::define_format! { struct Narrow(u8): ue4m2, specials Fn }

/// `integer_decode` returns an `i16`: where an exponent is longer there is no `Float`.
#[test]
fn float_is_for_exponents_of_sixteen_bits() {
    use num_traits::float::FloatCore;

    assert_eq!(TypeId::of::<<Longest as FloatFormat>::Float>(), TypeId::of::<No>());
    assert_eq!(TypeId::of::<<Long as FloatFormat>::Float>(), TypeId::of::<Yes>());
    let (significand, exponent, sign) = Minifloat::<Long>::MIN_POSITIVE.integer_decode();
    assert_eq!((significand, i32::from(exponent), sign), (1, 1 - 16383 - 8, 1));
    let (significand, exponent, sign) = Minifloat::<Long>::MIN.integer_decode();
    assert_eq!((significand, i32::from(exponent), sign), (511, 16383 - 8, -1));
}

#[test]
#[expect(clippy::op_ref, reason = "references are what is tested")]
fn operators_take_references() {
    let (a, b) = (E4M3::from_f32(1.5), E4M3::from_f32(0.25));
    assert_eq!([&a + &b, &a + b, a + &b], [a + b; 3]);
    assert_eq!([&a - &b, &a * &b, &a / &b, &a % &b], [a - b, a * b, a / b, a % b]);
    let mut sum = a;
    sum += &b;
    assert_eq!((sum, -&a), (a + b, -a));
}

#[test]
fn numbers_to_other_bases() {
    let read = |text: &str, radix| F16::from_str_radix(text, radix).map(F16::to_f32);
    assert_eq!(read("1A.8", 16), Ok(26.5));
    assert_eq!(read("-0.1", 2), Ok(-0.5));
    assert_eq!(read("+17", 8), Ok(15.0));
    assert_eq!((read("v", 32), read("33.2", 4)), (Ok(31.0), Ok(15.5)));
    assert_eq!((read("-0", 16).map(f32::to_bits), read(".8", 16)), (Ok(1 << 31), Ok(0.5)));
    assert_eq!((read("2.5e1", 10), read("ffff0", 16)), (Ok(25.0), Ok(f32::INFINITY)));
    // 1 + 2^-11 is the middle between 1 and the next number.
    let tie = format!("1.{}1{}", "0".repeat(10), "0".repeat(300));
    assert_eq!(read(&tie, 2), Ok(1.0));
    assert_eq!(read(&(tie + "1"), 2), Ok(1.0 + 1.0 / 1024.0));
    assert_eq!(read(&format!("0.{}", "0".repeat(40_000)), 2), Ok(0.0));
    for radix in [0, 1, 3, 7, 36, 37, u32::MAX] {
        assert_eq!(read("1", radix), Err(ParseRadixError::Radix(radix)));
    }
    for (text, position, found) in [
        ("", 0, None),
        ("-", 1, None),
        (".", 1, None),
        ("--1", 1, Some('-')),
        ("1.1.1", 3, Some('.')),
        ("12", 1, Some('2')),
        ("1\u{e9}", 1, Some('\u{e9}')),
    ] {
        assert_eq!(read(text, 2), Err(ParseRadixError::Digit { radix: 2, position, found }));
    }
    let message = E2M1::from_str_radix("1", 7).unwrap_err().to_string();
    assert!(message.contains("16") && message.contains("not 7"), "{message}");
    assert!(matches!(E2M1::from_str_radix("1x", 10), Err(ParseRadixError::Decimal(_))));
}

#[test]
fn declared_formats_have_constants() {
    const CODE: u32 = Longest::from_f64_const(1.5).to_bits();
    const THIRD: Minifloat<Narrow> = Narrow::from_f32_const(1.0 / 3.0);
    const BACK: (f32, f64) = (Narrow::to_f32_const(THIRD), Narrow::to_f64_const(THIRD));
    assert_eq!(CODE, 32767 << 8 | 128);
    assert_eq!((BACK, THIRD), ((0.3125, 0.3125), Minifloat::from_f64(1.0 / 3.0)));
    const CUT: u8 = Narrow::from_bits_const(0xFF).to_bits(); // six bits
    assert_eq!(CUT, 0x3F);
}

#[cfg(feature = "approx")]
#[test]
fn closeness() {
    use approx::{AbsDiffEq, RelativeEq, UlpsEq};

    exmy::define_format! { struct Huge(u16): e14m1 }
    type Wide = Minifloat<Huge>;

    fn close<F: FloatFormat>(a: Minifloat<F>, b: Minifloat<F>, tolerance: f64) -> [bool; 3] {
        [
            a.abs_diff_eq(&b, tolerance),
            a.relative_eq(&b, 0.0, tolerance),
            a.ulps_eq(&b, 0.0, tolerance as u32),
        ]
    }
    let infinity = E5M2::INFINITY.unwrap();
    let x = E5M2::from_f32;
    // Every number is close to itself; NaN is not.
    for code in 0..=u8::MAX {
        let x = E5M2::from_bits(code);
        assert_eq!(close(x, x, 0.0), [!x.is_nan(); 3], "{x:?}");
        assert_eq!(close(x, E5M2::NAN.unwrap(), f64::MAX), [false; 3], "{x:?}");
        assert_eq!(close(x, infinity, 0.0), [x == infinity; 3], "{x:?}");
    }
    assert_eq!(close(Wide::MAX, Wide::MAX, 0.0), [true; 3]);
    assert_eq!(close(Wide::MIN_POSITIVE, Wide::MIN_POSITIVE, 0.0), [true; 3]);
    assert_eq!(close(Wide::INFINITY.unwrap(), Wide::INFINITY.unwrap(), 0.0), [true; 3]);
    // -0 and 0 are one number; opposite infinities are far apart.
    assert_eq!(close(x(0.0), x(-0.0), 0.0), [true; 3]);
    assert_eq!(close(infinity, E5M2::NEG_INFINITY.unwrap(), 1e9), [false; 3]);
    assert_eq!(close(infinity, E5M2::MAX, 1.0), [false, false, true]);
    // 1.5 and 1 times 2^8191: their distance is a third of the larger.
    let below = Wide::MAX.next_down();
    assert!(!Wide::MAX.abs_diff_eq(&below, f64::MAX));
    assert!(Wide::MAX.relative_eq(&below, 0.0, 0.34) && !Wide::MAX.relative_eq(&below, 0.0, 0.33));
    assert!(Wide::MAX.ulps_eq(&below, 0.0, 1) && !Wide::MAX.ulps_eq(&below, 0.0, 0));
    // Numbers that are all zero in binary64.
    let small = Wide::MIN_POSITIVE;
    assert_eq!(close(small, small.next_up(), 0.0), [false; 3]);
    assert!(small.abs_diff_eq(&small.next_up(), f64::MIN_POSITIVE));
    assert!(small.relative_eq(&small.next_up(), 0.0, 0.5));
    assert!(!small.relative_eq(&small.next_up(), 0.0, 0.49));
    assert!(!Wide::MAX.relative_eq(&small, 0.0, 0.99) && Wide::MAX.relative_eq(&small, 0.0, 1.0));
    assert!(!small.relative_eq(&-small, 0.0, 1.9) && small.relative_eq(&-small, 0.0, 2.0));
    // Codes of two's complement.
    let [a, b] = [0xFF_u8, 0xFD].map(Int8::from_bits);
    assert!(a.ulps_eq(&b, 0.0, 2) && !a.ulps_eq(&b, 0.0, 1));
    assert!(!a.ulps_eq(&Int8::from_bits(1), 0.0, 255));
    assert!(E4M3::from_f32(-1.0).ulps_eq(&E4M3::from_f32(-1.125), 0.0, 1));
    approx::assert_relative_eq!(x(1.0), x(1.0));
    approx::assert_ulps_eq!(x(1.0), x(2.0));
    assert!(approx::ulps_ne!(x(1.0), x(2.5)));
}

/// As bytes by the traits of bytemuck and zerocopy, and back where every integer is a code.
#[test]
fn numbers_are_plain_data() {
    let codes = [0x38_u8, 0xC0, 0x7E];
    let numbers: &[E4M3] = bytemuck::cast_slice(&codes);
    assert_eq!(numbers, [1.0, -2.0, 448.0].map(E4M3::from_f32));
    assert_eq!(bytemuck::cast::<Bf16, u16>(Bf16::from_f32(-1.5)), 0xBFC0);
    assert_eq!(<E2M1 as bytemuck::Zeroable>::zeroed().to_bits(), 0);
    let numbers = [F16::from_f32(1.0), F16::MAX];
    let expected = [0x3C00_u16, 0x7BFF].map(u16::to_ne_bytes);
    assert_eq!(zerocopy::IntoBytes::as_bytes(&numbers), expected.as_flattened());
    assert_eq!(zerocopy::IntoBytes::as_bytes(&E2M1::MAX), [7]); // a byte, not packed
}

/// The words of a stream one after the other, however they are asked for and wherever it begins.
#[test]
fn philox_is_a_generator() {
    use exmy::random::{Philox, PhiloxRng, Stream};
    use rand::Rng;
    let philox = Philox::new(3, Stream::new("test"));
    for start in [0, 1, 2, 3, 4, 7, u64::MAX] {
        let (mut rng, mut next) = (PhiloxRng::starting_at(philox, start), start);
        let mut word = || {
            next = next.wrapping_add(1);
            philox.word(next.wrapping_sub(1))
        };
        for round in 0..5 {
            assert_eq!(rng.next_u32(), word());
            let (low, high) = (word(), word());
            assert_eq!(rng.next_u64(), u64::from(low) | u64::from(high) << 32);
            let mut bytes = [0; 11];
            rng.fill_bytes(&mut bytes[..6 + round]);
            let expected: Vec<u8> =
                (0..(6 + round).div_ceil(4)).flat_map(|_| word().to_le_bytes()).collect();
            assert_eq!(bytes[..6 + round], expected[..6 + round]);
        }
        assert_eq!(rng.position(), next);
    }
}

/// A draw is that of `f64` from the same words, rounded down to the numbers of the format, or up.
fn draws<F: FloatFormat<Zero = Yes, One = Yes>>() {
    use exmy::random::{Philox, PhiloxRng, Stream};
    use rand::{RngExt, distr::OpenClosed01};
    let numbers = F::FORMAT.codes().map(|code| F::FORMAT.to_f64(code));
    let mut numbers: Vec<f64> = numbers.filter(|x| (0.0..=1.0).contains(x)).collect();
    numbers.sort_by(f64::total_cmp);
    let mut rng = PhiloxRng::new(Philox::new(11, Stream::new("draws")));
    let mut seen = BTreeSet::new();
    for _ in 0..4000 {
        let x: f64 = rng.clone().random();
        let below = numbers.iter().rfind(|number| **number <= x).unwrap();
        let found: Minifloat<F> = rng.random();
        assert_eq!(found.to_f64(), *below, "{} {x:e}", F::FORMAT);
        let x: f64 = rng.clone().sample(OpenClosed01);
        let above = numbers.iter().find(|number| **number >= x).unwrap();
        let found: Minifloat<F> = rng.sample(OpenClosed01);
        assert_eq!(found.to_f64(), *above, "{} {x:e}", F::FORMAT);
        seen.insert(found.to_bits());
    }
    // Rounding up reaches 1.
    assert!(
        seen.len() > 1 && seen.contains(&Minifloat::<F>::ONE.unwrap().to_bits()),
        "{}",
        F::FORMAT
    );
}

#[test]
fn random_numbers_are_rounded_draws() {
    draws::<ExMy<4, 3, Fn>>();
    draws::<ExMy<5, 2>>();
    draws::<ExMy<2, 1, Finite>>();
    draws::<ExMy<3, 2, Finite>>();
    draws::<ExMy<8, 7>>();
    draws::<Ue4m3Format>();
}

/// Fuzzers give any code, and never a bit beyond it.
#[test]
fn arbitrary_numbers_are_codes() {
    use arbitrary::{Arbitrary, Unstructured};
    let bytes: Vec<u8> = (0..=255).collect();
    let mut input = Unstructured::new(&bytes);
    let mut codes = BTreeSet::new();
    for _ in 0..=255 {
        let x = E2M1::arbitrary(&mut input).unwrap();
        assert_eq!(E2M1::from_bits(x.to_bits()).to_bits(), x.to_bits());
        codes.insert(x.to_bits());
    }
    assert_eq!(codes.len(), 16);
    assert_eq!(Bf16::arbitrary(&mut Unstructured::new(&[0x80, 0x3F])).unwrap().to_f32(), 1.0);
    assert_eq!((E2M1::size_hint(0), F16::size_hint(0)), ((1, Some(1)), (2, Some(2))));
}
