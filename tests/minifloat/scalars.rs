//! The typed scalars: equal to the run-time formats, to `half`, and to the laws of rounding.

use std::cmp::Ordering;

use crate::common::power;
use crate::types::Custom;
use exmy::format::{Format, Value};
use exmy::math::{Context, Operand};
use exmy::minifloat::*;
use exmy::round::{Overflow, Rounding, Rules, StochasticVariant};
use exmy::slice::Converter;
use half::{bf16, f16};
use num_traits::Bounded;
use proptest::prelude::*;

#[test]
fn order_and_equality_are_by_value() {
    let all: Vec<E4M3Ieee> = (0..=255).map(E4M3Ieee::from_bits).collect();
    for &a in &all {
        for &b in &all {
            assert_eq!(a.partial_cmp(&b), a.to_f64().partial_cmp(&b.to_f64()), "{a:?} {b:?}");
            assert_eq!(a == b, a.to_f64() == b.to_f64());
            let (a32, b32) = (a.to_f32(), b.to_f32());
            if !(a.is_nan() && b.is_nan()) {
                assert_eq!(a.total_cmp(&b), a32.total_cmp(&b32), "{a:?} {b:?}");
            }
            assert_eq!(a.total_cmp(&b) == Ordering::Equal, a.to_bits() == b.to_bits());
            assert_eq!(a.total_cmp(&b), b.total_cmp(&a).reverse());
        }
    }
    let mut sorted = all;
    sorted.sort_by(E4M3Ieee::total_cmp);
    let order: Vec<u8> = sorted.iter().map(|x| x.to_bits()).collect();
    let expected: Vec<u8> = (0x80..=0xFF).rev().chain(0x00..=0x7F).collect();
    assert_eq!(order, expected);
    let mut fnuz: Vec<u8> = (0..=255).collect();
    fnuz.sort_by(|&a, &b| E4M3Fnuz::from_bits(a).total_cmp(&E4M3Fnuz::from_bits(b)));
    assert_eq!((fnuz[0], fnuz[127], fnuz[255]), (0xFF, 0x00, 0x80));
}

#[test]
fn text_and_numbers() {
    use num_traits::{FromPrimitive, ToPrimitive};

    assert_eq!(E4M3::from_f32(0.3).to_string(), "0.3");
    assert_eq!(format!("{:#} {:e}", E4M3::from_f32(0.3), E4M3::MAX), "0.3125 4.5e2");
    assert_eq!(("448".parse(), "4.5E2".parse()), (Ok(E4M3::MAX), Ok(E4M3::MAX)));
    assert_eq!("0x1.4p-2".parse(), Ok(E4M3::from_bits(0x2A)));
    assert!("0.3f".parse::<E4M3>().unwrap_err().to_string().contains("at position 3"));
    assert_eq!(format!("{:?}", E4M3::from_f32(0.3)), "0.3125 (0x2a)");
    assert_eq!(
        format!("{:>6.1}|{:#06x}", E5M2::from_f32(-1.5), E5M2::ONE.unwrap()),
        "  -1.5|0x003c"
    );
    assert_eq!(format!("{:?}", E8M0::from_bits(0)), "0x1p-127 (0x0)");
    assert_eq!(E4M3::NAN.unwrap().to_string(), "NaN");
    exmy::define_format! { struct Huge(u16): e14m1 }
    assert_eq!(format!("{:e}", Minifloat::<Huge>::MAX), "8e2465");
    assert_eq!(format!("{:?}", Minifloat::<Huge>::MAX), "0x1.8p+8191 (0x7ffd)");
    assert_eq!(
        format!("{:?}", -Minifloat::<ExMy<15, 0, Finite>>::MIN_POSITIVE),
        "-0x1p-16382 (0x8001)"
    );
    assert_eq!((E2M1::from_f32(2.5).to_i32(), E2M1::from_f32(-1.5).to_u8()), (Some(2), None));
    // 2^24 + 2^16 + 1 lies just above a midpoint of bfloat16; by way of f32 it would be the midpoint.
    assert_eq!(Bf16::from_i64(16_842_753).map(Bf16::to_bits), Some(0x4B81));
    assert_eq!(Bf16::from_u64(u64::MAX).map(Bf16::to_f64), Some(power(64)));
    assert_eq!((E2M1::min_value().to_f32(), E2M1::max_value().to_f32()), (-6.0, 6.0));
    assert_eq!((Int8::MIN.to_f32(), Ue4m3::MIN.to_f32()), (-2.0, 0.0));
    assert_eq!(f64::from(E8M0::from_bits(0)), power(-127));
    assert_eq!(f32::from(E8M0::from_bits(0)), power(-127) as f32);
    assert_eq!(E4M3::from_minifloat(F16::from_f32(17.0)).to_f32(), 16.0);
    assert_eq!(E4M3::from_f32_with(1e9, Rounding::TowardZero, Overflow::Finite).to_f32(), 448.0);
    assert_eq!(Ue4m3::from_bits(0xFE).to_bits(), 0x7E);
    assert_eq!(E2M1::default().to_bits(), 0);
    // 1.25 is halfway between 1 and 1.5: up with r + 2^7 >= 2^8.
    for (random, value) in [(0x7FFF_FFFF, 1.0), (0x8000_0000, 1.5)] {
        assert_eq!(E2M1::from_f32_stochastic(1.25, random, 8).to_f32(), value);
        assert_eq!(E2M1::from_f64_stochastic(1.25, random, 8).to_f32(), value);
        let mode = Rounding::stochastic(8);
        let with = [
            E2M1::from_f32_stochastic_with(1.25, mode, Overflow::Finite, random),
            E2M1::from_f64_stochastic_with(1.25, mode, Overflow::Finite, random),
        ];
        assert_eq!(with.map(E2M1::to_f32), [value; 2]);
        assert_eq!(E4M3::from_f64_stochastic_with(1e9, mode, Overflow::Finite, random), E4M3::MAX);
    }
}

/// Nothing rounds stochastically without being given bits, and all say which call takes them.
#[test]
fn stochastic_modes_ask_for_bits() {
    let mode = Rounding::stochastic(8);
    let rules = Rules::DEFAULT.with_rounding(mode);
    type Call = fn(Rounding, Rules);
    let calls: [(&str, Call); 6] = [
        ("from_f32_stochastic_with", |mode, _| {
            E4M3::from_f32_with(1.12, mode, Overflow::None);
        }),
        ("from_f64_stochastic_with", |mode, _| {
            E4M3::from_f64_with(1.12, mode, Overflow::None);
        }),
        ("Context::with_random", |mode, _| {
            let _ = E4M3::from_f32(1.25).round_to_integral(mode);
        }),
        ("Context::with_random", |_, rules| {
            let x = E4M3::from_f32(1.25).operand();
            E4M3::with_rules(rules, |context| context.add(x, x));
        }),
        ("Context::with_random", |_, rules| {
            let _ = Context::new(E4M3::FORMAT, rules).convert(Operand::f32(1.12));
        }),
        ("Converter::with_random or with_words", |_, rules| {
            Converter::new(E4M3::FORMAT, rules).encode::<f32, u8>(&[1.12]);
        }),
    ];
    for (names, call) in calls {
        let panic = std::panic::catch_unwind(|| call(mode, rules)).unwrap_err();
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        assert!(message.as_ref().is_some_and(|text| text.contains(names)), "{message:?}");
    }
}

/// Values, midpoints and their binary32 neighbours, against `half`, whose `from_f32` is right.
#[test]
fn sixteen_bits_agree_with_half() {
    let check = |x: f32| {
        for x in [x.next_down(), x, x.next_up()] {
            for x in [x, -x] {
                assert_eq!(F16::from_f32(x).to_bits(), f16::from_f32(x).to_bits(), "{x:e}");
                assert_eq!(Bf16::from_f32(x).to_bits(), bf16::from_f32(x).to_bits(), "{x:e}");
            }
        }
    };
    for code in 0..=u16::MAX {
        let (ours, theirs) = (F16::from_bits(code), f16::from_bits(code));
        assert!(
            ours.to_f32().to_bits() == theirs.to_f32().to_bits()
                || theirs.is_nan() && ours.is_nan()
        );
        let (ours, theirs) = (Bf16::from_bits(code), bf16::from_bits(code));
        assert!(
            ours.to_f32().to_bits() == theirs.to_f32().to_bits()
                || theirs.is_nan() && ours.is_nan()
        );
    }
    for code in 0..0x7C00 {
        let (a, b) = (f16::from_bits(code).to_f32(), f16::from_bits(code + 1).to_f32());
        check(a);
        check(if b.is_infinite() { 65520.0 } else { (a + b) / 2.0 });
    }
    for code in 0..0x7F80_u32 {
        check(f32::from_bits(code << 16));
        check(f32::from_bits(code << 16 | 0x8000));
    }
}

/// From binary64, at every midpoint of f16 and its neighbours, where `half` itself errs.
#[test]
fn binary64_midpoints_of_f16() {
    for code in 0..0x7BFF {
        let value = |code| f64::from(f16::from_bits(code));
        let midpoint = (value(code) + value(code + 1)) / 2.0;
        assert_eq!(F16::from_f64(midpoint).to_bits(), code + code % 2);
        assert_eq!(F16::from_f64(midpoint.next_down()).to_bits(), code);
        assert_eq!(F16::from_f64(midpoint.next_up()).to_bits(), code + 1);
    }
}

/// Which traits exist for which formats, and what they say.
#[test]
fn traits_by_facts() {
    use num_traits::float::{FloatConst, FloatCore};
    use num_traits::{AsPrimitive, Num, NumCast, One, Signed, Unsigned, Zero};

    fn sum_of_squares<T: Num + Copy>(numbers: &[T]) -> T {
        numbers.iter().fold(T::zero(), |sum, &x| sum + x * x)
    }
    fn is_signed<T: Signed>() {}
    fn is_unsigned<T: Unsigned>() {}
    fn is_float<T: num_traits::Float + FloatCore + FloatConst>() -> (f64, f64, f64) {
        let number = |x: T| x.to_f64().unwrap();
        (
            number(<T as FloatCore>::epsilon()),
            number(T::PI()),
            number(num_traits::Float::neg_zero()),
        )
    }
    fn is_ordered<T: Ord + std::hash::Hash>() {}

    let numbers = [1.0, -2.0, 3.0].map(E4M3::from_f32);
    assert_eq!(sum_of_squares(&numbers).to_f32(), 14.0);
    assert_eq!(numbers.iter().sum::<E4M3>().to_f32(), 2.0);
    assert_eq!(numbers.into_iter().product::<E4M3>().to_f32(), -6.0);
    assert_eq!([E5M2::MAX; 0].iter().sum::<E5M2>().to_bits(), 0);
    assert!(E5M2::zero().is_zero() && E5M2::one().is_one());
    is_signed::<Int8>();
    is_unsigned::<Ue4m3>();
    is_ordered::<E2M1>();
    is_ordered::<Int8>();
    assert_eq!(is_float::<F16>(), (power(-10), 3.140625, 0.0));
    assert_eq!(is_float::<E5M2>(), (0.25, 3.0, 0.0));
    assert!(<F16 as FloatCore>::neg_zero().is_sign_negative());
    assert_eq!(<F16 as FloatCore>::min_positive_value().to_f64(), power(-14));
    assert_eq!(FloatCore::integer_decode(F16::from_f32(-1.5)), (1536, -10, -1));
    assert_eq!(FloatCore::to_degrees(F16::from_f32(1.0)).to_f32(), 57.28125);
    let as_i8: i8 = E5M2::from_f32(-3e4).as_();
    let from_u64: Bf16 = u64::MAX.as_();
    let narrower: E2M1 = F16::from_f32(2.6).as_();
    assert_eq!((as_i8, from_u64.to_f64(), narrower.to_f32()), (-128, power(64), 3.0));
    let truncated: i32 = Bf16::from_f32(-1.5).as_();
    assert_eq!(truncated, -1);
    let cast: Option<Bf16> = NumCast::from(16_842_753_i64);
    assert_eq!(cast.map(Bf16::to_bits), Some(0x4B81));
    let beyond: Option<Bf16> = NumCast::from((1_u64 << 60) + (1 << 52) + 1);
    assert_eq!(beyond.map(Bf16::to_f64), Some(power(60) + power(53)));
    assert_eq!(<E4M3 as Num>::from_str_radix("2.9", 10).map(E4M3::to_f32), Ok(3.0));
    // Zero of either sign hashes alike.
    let set: std::collections::HashSet<E2M1> = (0..16).map(E2M1::from_bits).collect();
    assert_eq!(set.len(), 15);
    assert!(E2M1::MIN < E2M1::MAX && E2M1::from_bits(8).cmp(&E2M1::from_bits(0)).is_eq());
}

#[test]
fn constants_and_widening() {
    const THIRD: E4M3 = E4M3::from_f32_const(1.0 / 3.0);
    const VALUE: f32 = THIRD.to_f32_const();
    const SAME: E4M3 = exmy::number!(E4M3: 1.0 / 3.0);
    const CUSTOM: Minifloat<Custom> = exmy::number!(Minifloat<Custom>: 0.1);
    assert_eq!((VALUE, SAME.to_bits()), (0.34375, E4M3::from_f64(1.0 / 3.0).to_bits()));
    assert_eq!(CUSTOM.to_bits(), Minifloat::<Custom>::from_f64(0.1).to_bits());
    assert_eq!(Ue4m3::from_bits_const(0xFE).to_bits(), 0x7E);
    assert_eq!(E5M2::from_f64_const(1e9).to_f64_const(), f64::INFINITY);
    assert_eq!(
        (F16::from(E4M3::MAX).to_f32(), Bf16::from(E8M0::MAX).to_f64()),
        (448.0, power(127))
    );
    assert_eq!((Bf16::from(200_u8).to_f32(), F16::from(-5_i8).to_f32()), (200.0, -5.0));
    for code in 0..=255 {
        let x = E4M3::from_bits(code);
        assert!(F16::from(x).to_f32() == x.to_f32() || x.is_nan() && F16::from(x).is_nan());
    }
}

/// Against what `f32` says, where the numbers are common to both.
#[test]
fn choice_and_integers_are_those_of_f32() {
    let numbers = || (0..=u8::MAX).map(E4M3::from_bits);
    let same = |ours: E4M3, theirs: f32| {
        ours.is_nan() && theirs.is_nan() || ours.to_f32().to_bits() == theirs.to_bits()
    };
    for x in numbers() {
        let y = x.to_f32();
        assert!(same(x.floor(), y.floor()) && same(x.ceil(), y.ceil()), "{x:?}");
        assert!(same(x.trunc(), y.trunc()) && same(x.fract(), y.fract()), "{x:?}");
        assert!(same(x.round(), y.round()), "{x:?}");
        assert!(same(x.round_ties_even(), y.round_ties_even()), "{x:?}");
        assert!(same(x.signum(), y.signum()) && same(x.abs(), y.abs()), "{x:?}");
        assert!(same(x.cbrt(), E4M3::from_f64(libm::cbrt(y.into())).to_f32()), "{x:?}");
        assert!(same(x.log10(), E4M3::from_f64(libm::log10(y.into())).to_f32()), "{x:?}");
        for other in numbers() {
            let z = other.to_f32();
            assert!(same(x.copysign(other), y.copysign(z)), "{x:?} {other:?}");
            assert_eq!(x.min(other).to_f32() == y.min(z), !(x.is_nan() && other.is_nan()));
            assert_eq!(x.max(other).to_f32() == y.max(z), !(x.is_nan() && other.is_nan()));
            let nan = x.is_nan() || other.is_nan();
            assert_eq!(x.minimum(other).is_nan() && x.maximum(other).is_nan(), nan);
            if !nan && y != 0.0 && z != 0.0 {
                let euclid = E4M3::from_f32(y.rem_euclid(z));
                assert_eq!(x.rem_euclid(other).to_bits(), euclid.to_bits(), "{x:?} {other:?}");
                let quotient = (x / other).trunc().to_f32();
                if !quotient.is_nan() {
                    let less = y % z < 0.0;
                    let expected = quotient - if less { z.signum() } else { 0.0 };
                    let found = x.div_euclid(other);
                    assert!(same(found, E4M3::from_f32(expected).to_f32()), "{x:?} {other:?}");
                }
            }
        }
        if x.is_finite() && x != E4M3::MAX {
            assert!(x.next_up() > x && x.next_up().next_down() == x, "{x:?}");
        }
    }
    let bound = E4M3::from_f32;
    assert!(std::panic::catch_unwind(|| bound(0.0).clamp(bound(1.0), bound(-1.0))).is_err());
    assert_eq!(bound(5.0).clamp(bound(-1.0), bound(1.0)), bound(1.0));
    assert_eq!(F16::from_f32(1.5).to_be_bytes(), [0x3E, 0x00]);
    let bytes = num_traits::ToBytes::to_le_bytes(&F16::from_f32(1.5));
    assert_eq!(bytes, [0x00, 0x3E]);
    assert_eq!(<F16 as num_traits::FromBytes>::from_le_bytes(&bytes).to_f32(), 1.5);
    assert_eq!(<E2M1 as num_traits::FromBytes>::from_be_bytes(&[0xF7]), E2M1::MAX);
    assert_eq!(F16::from_ne_bytes(F16::from_f32(1.5).to_ne_bytes()).to_f32(), 1.5);
    let (product, flags) =
        E4M3::with_rules(E4M3::RULES, |c| c.mul(bound(448.0).into(), bound(2.0).into()));
    assert!(product.is_nan() && flags.contains(exmy::round::Flags::OVERFLOW));
}

/// Powers against binary64's, whose own error is below an ulp; exact ones and ties included.
#[test]
fn powers_of_all_pairs() {
    for (a, b) in (0..=u8::MAX).flat_map(|a| (0..=u8::MAX).map(move |b| (a, b))) {
        let (x, y) = (E4M3::from_bits(a), E4M3::from_bits(b));
        let expected = E4M3::from_f64(libm::pow(x.to_f64(), y.to_f64()));
        let found = x.powf(y);
        let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
        assert!(same, "{x:?} to {y:?}: {found:?}, not {expected:?}");
        if y.fract().is_zero() {
            assert_eq!(x.powi(y.to_f32() as i32).to_bits(), found.to_bits(), "{x:?} to {y:?}");
        }
    }
    assert_eq!(F16::from_f32(2.25).powf(F16::from_f32(1.5)).to_f32(), 3.375);
    assert_eq!(F16::from_f32(-3.0).powi(5).to_f32(), -243.0);
    assert_eq!(F16::from_f32(9.0).log(F16::from_f32(3.0)).to_f32(), 2.0);
}

#[cfg(feature = "half")]
#[test]
fn half_has_the_same_codes() {
    assert_eq!(F16::from(f16::from_f32(1.5)).to_f32(), 1.5);
    assert_eq!(bf16::from(Bf16::from_f32(1.5)).to_f32(), 1.5);
}

#[cfg(feature = "approx")]
#[test]
fn near_values_are_near() {
    use approx::AbsDiffEq;
    let x = E4M3::from_f32;
    assert!(x(1.0).abs_diff_eq(&x(1.125), 0.125) && !x(1.0).abs_diff_eq(&x(1.125), 0.1));
    assert!(!x(1.0).abs_diff_eq(&x(1.125), E4M3::default_epsilon()));
}

#[cfg(all(feature = "safetensors", feature = "serde"))]
#[test]
fn numbers_serialize_as_codes() {
    assert_eq!(serde_json::to_string(&[E2M1::MAX, E2M1::from_f32(-0.0)]).unwrap(), "[7,8]");
    assert_eq!(serde_json::from_str::<E2M1>("7").unwrap(), E2M1::MAX);
    assert!(serde_json::from_str::<E2M1>("16").unwrap_err().to_string().contains("e2m1"));
}

fn formats() -> impl Strategy<Value = Format> {
    let unsigned = (0_u32..=11, 1_u32..=20).prop_map(|(e, m)| format!("ue{e}m{m}fn"));
    prop_oneof![4 => signed_formats(), 1 => unsigned.prop_filter_map("a format", |s| s.parse().ok())]
}

fn signed_formats() -> impl Strategy<Value = Format> {
    let p3109 = (3_u32..=16).prop_flat_map(|k| (Just(k), 1..k, "[ef]"));
    let name = prop_oneof![
        (1_u32..=11, 1_u32..=20).prop_map(|(e, m)| format!("e{e}m{m}")),
        (0_u32..=11, 0_u32..=20).prop_map(|(e, m)| format!("e{e}m{m}finite")),
        p3109.prop_map(|(k, p, domain)| format!("binary{k}p{p}s{domain}")),
        (1_u32..=11, 1_u32..=20).prop_map(|(e, m)| format!("e{e}m{m}fnuz-nosub")),
    ];
    name.prop_filter_map("a format", |name| name.parse().ok())
}

fn modes() -> impl Strategy<Value = Rounding> {
    let variant = prop_oneof![
        Just(StochasticVariant::A),
        Just(StochasticVariant::B),
        Just(StochasticVariant::C)
    ];
    prop_oneof![
        prop::sample::select(&Rounding::DETERMINISTIC[..]),
        (variant, 1..=32_u8).prop_map(|(variant, bits)| Rounding::Stochastic { variant, bits }),
    ]
}

/// Numbers near the ones that most formats have, and any others.
fn numbers() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits).prop_filter("a number", |x| !x.is_nan()),
        (any::<i32>(), -40..40_i32).prop_map(|(n, e)| f64::from(n) * power(e - 20)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..Default::default() })]

    /// For one random word, rounding is monotone; what it gives is representable and stays.
    #[test]
    fn rounding_keeps_order_and_is_idempotent(
        format in formats(), mode in modes(), random: u32, a in numbers(), b in numbers(),
    ) {
        let round = |x| format.encode_f64(x, mode, Overflow::Finite, random);
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        let (low, high) = (format.decode(round(a).code), format.decode(round(b).code));
        prop_assert!(low.is_finite() && high.is_finite());
        prop_assert!(low <= high, "{format} {mode}: {a:e} -> {low:?}, {b:e} -> {high:?}");
        let again = format.encode(low, mode, Overflow::Finite, !random);
        prop_assert_eq!(format.decode(again.code), low);
    }

    /// Modes without a direction treat both signs alike, and RUP and RDN mirror each other.
    #[test]
    fn signs_are_symmetric(
        format in signed_formats(), mode in modes(), random: u32, x in numbers(),
    ) {
        let mirrored = match mode {
            Rounding::TowardPositive => Rounding::TowardNegative,
            Rounding::TowardNegative => Rounding::TowardPositive,
            mode => mode,
        };
        let a = format.encode_f64(x, mode, Overflow::None, random);
        let b = format.encode_f64(-x, mirrored, Overflow::None, random);
        prop_assert_eq!(a.flags, b.flags);
        let negated = match format.decode(a.code) {
            Value::Finite { negative, significand, exponent } => {
                Value::Finite { negative: !negative, significand, exponent }
            }
            Value::Infinite { negative } => Value::Infinite { negative: !negative },
            nan @ Value::Nan { .. } => nan,
        };
        let other = format.decode(b.code);
        prop_assert!(negated == other || negated.is_nan() && other.is_nan());
    }

    /// The nearest modes err by at most half a step, and RDN and RUP enclose the number.
    #[test]
    fn directed_modes_enclose(format in formats(), x in numbers()) {
        let value = |mode| format.decode(format.encode_f64(x, mode, Overflow::Finite, 0).code);
        let (down, up) = (value(Rounding::TowardNegative), value(Rounding::TowardPositive));
        let exact = Value::from_f64(x);
        if exact <= format.max() && exact >= format.decode(format.min_code()) {
            prop_assert!(down <= exact && exact <= up, "{format} {x:e}: {down:?} {up:?}");
        }
        let nearest = value(Rounding::TiesToEven);
        prop_assert!(nearest == down || nearest == up);
    }
}
