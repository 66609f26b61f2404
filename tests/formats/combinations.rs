//! All combinations of the orthogonal parameters of small shapes: either there is such a format,
//! and it keeps every promise, or the message names the parameter that is in the way.

use exmy::format::{Format, FormatBuilder, Sign, Specials, Value};
use exmy::round::{Flags, Overflow, Rounding};
use std::collections::BTreeMap;

fn combinations() -> Vec<FormatBuilder> {
    let mut all = Vec::new();
    for sign in [Sign::Magnitude, Sign::Unsigned, Sign::TwosComplement] {
        for exp_bits in 0..=4 {
            for man_bits in 0..=4 {
                for specials in Specials::ALL {
                    for bias in [None, Some(-70), Some(-1), Some(0), Some(2), Some(300)] {
                        for option in 0..12 {
                            let mut builder = Format::builder(sign, exp_bits, man_bits)
                                .specials(specials)
                                .zero(option & 1 == 0)
                                .subnormals(option & 2 == 0);
                            if option >= 4 {
                                builder = builder.negative_zero(option >= 8);
                            }
                            if let Some(bias) = bias {
                                builder = builder.bias(bias);
                            }
                            all.push(builder);
                        }
                    }
                }
            }
        }
    }
    all
}

/// What every format promises.
fn check(format: Format) {
    let magnitude_bits = format.exp_bits() + format.man_bits();
    let positive = |code| format.decode(code);
    // Magnitude codes ascend to the largest value, from zero if there is one.
    for code in 0..format.max_code() {
        assert!(positive(code) < positive(code + 1), "{format} {code:#x}");
    }
    assert_eq!(positive(0).is_zero(), format.has_zero(), "{format}");
    assert_eq!(format.max(), positive(format.max_code()));
    let (mut nans, mut infinities, mut negative_zeros) = (0, 0, 0);
    for code in format.codes() {
        let value = format.decode(code);
        nans += u64::from(value.is_nan());
        infinities += u64::from(value.is_infinite());
        negative_zeros += u64::from(value.is_zero() && value.is_sign_negative());
        let back = format.encode(value, Rounding::TiesToEven, Overflow::None, 0);
        if value.is_nan() {
            assert!(format.decode(back.code).is_nan());
            continue;
        }
        assert!(format.min() <= value || value.is_infinite(), "{format} {code:#x}");
        assert!(value <= format.max() || value.is_infinite(), "{format} {code:#x}");
        // A declined negative zero is read as zero.
        let canonical = if value.is_zero() && !value.is_sign_negative() { 0 } else { code };
        assert_eq!((back.code, back.flags), (canonical, Flags::NONE), "{format} {code:#x}");
        if format.sign() == Sign::Magnitude && code < 1 << magnitude_bits && code != 0 {
            assert_eq!(
                format.decode(code | 1 << magnitude_bits).compare(value),
                Some(if value.is_zero() {
                    std::cmp::Ordering::Equal
                } else {
                    std::cmp::Ordering::Less
                })
            );
        }
    }
    assert_eq!((nans, infinities), (format.nan_count(), format.infinity_count()), "{format}");
    assert_eq!(negative_zeros, u64::from(format.has_negative_zero()), "{format}");
    assert_eq!(nans > 0, format.has_nan());
    assert_eq!(format.nan_code().is_some(), format.has_nan());
    assert_eq!(infinities > 0, format.has_infinity());
    assert_eq!(
        format.max_subnormal().is_some(),
        format.has_subnormals() && format.sign() != Sign::TwosComplement
    );
    if let (Some(subnormal), Some(normal)) = (format.max_subnormal_code(), format.min_normal_code())
    {
        assert_eq!(subnormal + 1, normal, "{format}");
    }
    if let Some(one) = format.one_code() {
        assert_eq!(format.decode(one), Value::from_f64(1.0), "{format}");
    } else {
        assert!(format.codes().all(|code| format.decode(code) != Value::from_f64(1.0)), "{format}");
    }
    if let (Some(one), Some(epsilon)) = (format.one_code(), format.epsilon_code()) {
        let step = format.to_f64(one + 1) - 1.0;
        assert_eq!(format.to_f64(epsilon), step, "{format}");
    }
    let name = format.to_string();
    assert!(name.len() < 56 && name.parse() == Ok(format), "{name}");
    // Bits above the width are ignored, and never produced.
    let pad = u64::MAX.checked_shl(format.bits()).unwrap_or(0);
    for code in format.codes() {
        let (padded, plain) = (format.decode(code | pad), format.decode(code));
        assert!(padded == plain || (padded.is_nan() && plain.is_nan()), "{format} {code:#x}");
    }
}

#[test]
fn each_is_a_format_or_refused_with_the_reason() {
    let (mut formats, mut refused) = (0, BTreeMap::<String, u32>::new());
    for builder in combinations() {
        match builder.build() {
            Ok(format) => {
                formats += 1;
                check(format);
            }
            Err(error) => {
                let message = error.to_string();
                let words =
                    ["significand", "fnuz", "zero", "two's complement", "bias", "subnormals"];
                assert!(words.iter().any(|word| message.contains(word)), "{message}");
                *refused
                    .entry(format!("{error:?}").split([' ', '{']).next().unwrap().into())
                    .or_default() += 1;
            }
        }
    }
    assert!(formats > 4000, "{formats}");
    let reasons: Vec<&str> = refused.keys().map(String::as_str).collect();
    assert_eq!(
        reasons,
        [
            "FnuzNeedsSign",
            "NanNeedsZero",
            "NoRoomForNan",
            "NoRoomForNegativeZero",
            "NothingButZero",
            "SubnormalsNeedZero",
            "TwosComplementIsFixedPoint",
        ]
    );
}

#[test]
fn the_ends_of_the_parameters() {
    let build =
        |e, m| Format::builder(Sign::Magnitude, e, m).build().map_err(|error| error.to_string());
    assert!(
        build(17, 3).unwrap_err().contains("17 exponent and 3 significand bits: at most 16 and 52")
    );
    assert!(build(3, 53).unwrap_err().contains("at most 16 and 52"));
    assert!(build(16, 48).unwrap_err().contains("65 bits: at most 64"));
    // By their names: every shape that is one, and the messages for the others.
    for (e, m) in (0..=20).flat_map(|e| (0..=60).map(move |m| (e, m))).skip(1) {
        for (mark, sign) in [("", 1), ("u", 0)] {
            let name = format!("{mark}e{e}m{m}finite");
            let (wide, long) = (e > 16 || m > 52, sign + e + m > 64);
            match name.parse::<Format>() {
                Ok(format) => {
                    assert!(!wide && !long, "{name}");
                    assert_eq!(format.bits(), sign + e + m, "{name}");
                }
                Err(error) => {
                    let said = error.to_string();
                    assert!(wide || long, "{said}");
                    assert!(said.contains("at most 64 are possible, of sign") || wide, "{said}");
                    assert!(said.contains("at most 16 and 52 are possible") || !wide, "{said}");
                    assert!(said.contains("64"), "{said}");
                }
            }
        }
    }
    let widest = build(16, 47).unwrap();
    assert_eq!((widest.bits(), widest.storage_bits()), (64, 64));
    assert_eq!((widest.emax(), widest.lsb()), (32767, -32766 - 47));
    for (bias, possible) in [
        (1 << 20, true),
        (-(1 << 20), true),
        ((1 << 20) + 1, false),
        (i32::MIN, false),
        (i32::MAX, false),
    ] {
        let built = Format::builder(Sign::Magnitude, 5, 2).bias(bias).build();
        assert_eq!(built.is_ok(), possible, "{bias}");
        if let Err(error) = built {
            assert!(error.to_string().starts_with(&format!("bias {bias}:")), "{error}");
        }
    }
    for (bits, storage) in [(7, 8), (8, 8), (9, 16), (16, 16), (17, 32), (33, 64)] {
        let format = Format::builder(Sign::Unsigned, 3, bits - 3).build().unwrap();
        assert_eq!((format.bits(), format.storage_bits()), (bits, storage));
    }
}
