//! Corners of the rules, as literals: tininess without a zero, P3109's one zero, NaN for overflow,
//! rounding to odd beyond the range.

use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::round::{Flags, Overflow, Profile, Rounding, Rules, Tininess};

#[test]
fn a_scale_just_below_its_smallest_value_is_tiny_before_rounding_alone() {
    let scale = |bits, rules: Rules| {
        let rounded = Context::new(Format::E8M0, rules).convert(Operand::f32(f32::from_bits(bits)));
        (rounded.code, rounded.flags)
    };
    let [before, after] =
        [Tininess::Before, Tininess::After].map(|t| Rules::DEFAULT.with_tininess(t));
    // 2^-127 (1 - 2^-22) rounds to 2^-127, the smallest normal number and the end of the range.
    let low = Flags::INEXACT | Flags::UNDERFLOW | Flags::SATURATED;
    assert_eq!(scale(0x003F_FFFF, before), (0, low));
    assert_eq!(scale(0x003F_FFFF, after), (0, Flags::INEXACT | Flags::SATURATED));
    // 2^-128 is not near it.
    assert_eq!(scale(0x0020_0000, after), (0, low));
    assert_eq!(scale(0x003F_FFFF, after.with_rounding(Rounding::TowardZero)), (0, low));
}

#[test]
fn numbers_that_cancel_are_one_zero_by_p3109() {
    let sum = |profile: Profile| {
        let rules = profile.rules(Format::E4M3FN).with_rounding(Rounding::TowardNegative);
        let [a, b] = [0x38, 0xB8].map(|code| Operand::new(Format::E4M3FN, code));
        let context = Context::new(Format::E4M3FN, rules);
        [context.add(a, b).code, context.faa(a, b, Operand::f32(0.0)).code]
    };
    assert_eq!(sum(Profile::Ieee), [0x80; 2]);
    assert_eq!(sum(Profile::P3109), [0x00; 2]);
}

#[test]
fn a_nan_for_overflow_is_invalid_however_the_policy_is_called() {
    let beyond = Flags::INEXACT | Flags::OVERFLOW | Flags::INVALID;
    for overflow in [Overflow::None, Overflow::Nan, Overflow::Infinity] {
        let rules = Rules::DEFAULT.with_overflow(overflow);
        let rounded = Context::new(Format::E4M3FN, rules).convert(Operand::f32(512.0));
        assert_eq!((rounded.code, rounded.flags), (0x7F, beyond), "{overflow}");
    }
}

#[test]
fn rounding_to_odd_stays_among_the_numbers() {
    let odd = Rules::DEFAULT.with_rounding(Rounding::ToOdd);
    let rounded = |format: Format| Context::new(format, odd).convert(Operand::f32(1e30)).code;
    assert_eq!(rounded(Format::E4M3FN), 0x7E); // 448, though its code is even
    assert_eq!(rounded(Format::E4M3FNUZ), 0x7F);
    assert_eq!(rounded(Format::F16), 0x7BFF);
    // P3109 4.7.5: infinity where the largest value is even, else that value.
    assert_eq!(rounded(Format::p3109(8, 3, true, true).unwrap()), 0x7F);
    assert_eq!(rounded(Format::p3109(8, 3, false, true).unwrap()), 0xFD);
    assert_eq!(rounded(Format::p3109(8, 3, true, false).unwrap()), 0x7F);
}

/// What stands for negative numbers where there is no sign, as `Overflow` says.
#[test]
fn negative_results_of_unsigned_formats() {
    let name = |name: &str| name.parse::<Format>().unwrap();
    // Zero and NaN; no NaN; infinity; no zero.
    for (format, zero, nan) in [
        (Format::UE4M3, Some(0), Some(0x7F)),
        (name("ue4m3finite"), Some(0), None),
        (name("binary8p3ue"), Some(0), Some(0xFF)),
        (Format::E8M0, None, Some(0xFF)),
    ] {
        for mode in Rounding::DETERMINISTIC {
            for overflow in Overflow::ALL {
                let rules = Rules::DEFAULT.with_rounding(mode).with_overflow(overflow);
                let of = |x| Context::new(format, rules).convert(Operand::f32(x)).code;
                let saturates = [Overflow::Finite, Overflow::Propagate, Overflow::Onnx];
                let saturates = saturates.contains(&overflow);
                let inward = overflow == Overflow::None
                    && [Rounding::TowardZero, Rounding::TowardPositive].contains(&mode)
                    && zero.is_some();
                // Without a zero its smallest value, whose code is 0 too.
                let nothing = zero.unwrap_or(0);
                let number = if saturates || inward { nothing } else { nan.unwrap_or(nothing) };
                let infinity = if saturates { nothing } else { nan.unwrap_or(nothing) };
                let what = format!("{format} {mode} {overflow}");
                assert_eq!((of(-1.0), of(f32::NEG_INFINITY)), (number, infinity), "{what}");
            }
        }
    }
}

#[test]
fn formats_without_normal_values_never_underflow() {
    for (name, normal) in [("e0m4", false), ("e1m3-ieee", false), ("int8", false), ("e1m3fn", true)]
    {
        let format: Format = name.parse().unwrap();
        let least = format.min_positive().to_f64();
        for mode in Rounding::DETERMINISTIC {
            for tininess in [Tininess::Before, Tininess::After] {
                let rules = Rules::DEFAULT.with_rounding(mode).with_tininess(tininess);
                let rounded = Context::new(format, rules).convert(Operand::f64(0.3 * least));
                assert!(rounded.flags.contains(Flags::INEXACT), "{name} {mode}");
                assert_eq!(rounded.flags.contains(Flags::UNDERFLOW), normal, "{name} {mode}");
            }
        }
    }
}
