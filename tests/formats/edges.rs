//! Shapes at the edge of what is a format, and formats wider than binary64.

use crate::common::power;
use exmy::format::{Format, FormatError, NAMED, Sign, Specials, Value};
use exmy::round::{Flags, Overflow, Rounding};

/// Every code of the 16-bit formats survives, and P3109's widest exponents exceed binary64.
#[test]
fn wide_formats() {
    let mut formats: Vec<Format> = NAMED.map(|(_, format)| format).into();
    for name in [
        "e8m3",
        "e8m4",
        "e8m5",
        "e8m6",
        "binary16p1ue",
        "binary16p5sf",
        "e6m9b31fn-nosub",
        "e6m9b31fn-nosub-onezero",
    ] {
        formats.push(name.parse().unwrap());
    }
    for format in formats.into_iter().filter(|format| format.bits() <= 16) {
        for code in format.codes() {
            let value = format.decode(code);
            if value.is_nan() {
                continue;
            }
            let code = if format == Format::DLFLOAT16 && code == 0x8000 { 0 } else { code };
            for mode in [Rounding::TiesToEven, Rounding::ToOdd, Rounding::stochastic(8)] {
                let rounded = format.encode(value, mode, Overflow::None, u32::MAX);
                assert_eq!(
                    (rounded.code, rounded.flags),
                    (code, Flags::NONE),
                    "{format} {code:#x}"
                );
            }
        }
    }
    let widest: Format = "binary16p1ue".parse().unwrap();
    let two_to = |exponent| Value::Finite { negative: false, significand: 1, exponent };
    assert_eq!((widest.min_positive(), widest.max()), (two_to(-32767), two_to(32765)));
    assert_eq!((widest.to_f64(1), widest.to_f64(0xFFFD)), (0.0, f64::INFINITY));
    // DLFloat16: no subnormals, so the smallest value is 2^-31 (1 + 2^-9).
    let dlfloat = Format::DLFLOAT16;
    assert_eq!(dlfloat.min_positive().to_f64(), power(-31) * (1.0 + power(-9)));
    assert_eq!((dlfloat.max().to_f64(), dlfloat.max_code()), (8_573_157_376.0, 0x7FFE));
}

fn format(name: &str) -> Format {
    name.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn values(name: &str) -> Vec<f64> {
    let format = format(name);
    (0..=format.max_code()).map(|code| format.to_f64(code)).collect()
}

/// DLFloat16: one code of either sign for NaN and infinity, one zero, no subnormals.
#[test]
fn dlfloat() {
    let f = Format::DLFLOAT16;
    assert!(f.decode(0x7FFF).is_nan() && f.decode(0xFFFF).is_nan() && !f.has_infinity());
    assert!(f.decode(0x8000).is_zero() && !f.decode(0x8000).is_sign_negative());
    let code = |x: f64| f.encode_f64(x, Rounding::TiesToEven, Overflow::None, 0).code;
    assert_eq!((code(-0.0), code(-1e-30), code(f64::INFINITY), code(1.0)), (0, 0, 0x7FFF, 31 << 9));
    assert_eq!(f.min_normal(), Some(f.min_positive()));
    assert_eq!(f.max_subnormal(), None);
}

/// M = 0: IEEE leaves no room for a NaN beside infinity; FN loses one binade; parity is that of
/// the exponent field.
#[test]
fn no_significand_field() {
    let refused = Format::builder(Sign::Magnitude, 5, 0).build();
    assert_eq!(refused, Err(FormatError::NoRoomForNan { exp_bits: 5, man_bits: 0 }));
    assert_eq!(values("e2m0fn"), [0.0, 1.0, 2.0]);
    assert_eq!(values("e2m0finite"), [0.0, 1.0, 2.0, 4.0]);
    assert_eq!(values("ue2m0fn-nozero"), [0.5, 1.0, 2.0]);
    assert_eq!(Format::E8M0.emax(), 127);
    let f = format("e3m0");
    // 0.25 0.5 1 2 4 8 16 have codes 1 to 7: of 3 (1.5 * 2) the even code is 5's neighbour 4.
    let code = |x: f64| f.encode_f64(x, Rounding::TiesToEven, Overflow::None, 0).code;
    assert_eq!([code(3.0), code(6.0), code(1.5), code(0.125), code(0.375)], [4, 6, 4, 0, 2]);
    assert_eq!((f.max_subnormal(), f.min_normal()), (None, Some(f.min_positive())));
}

/// E = 0: a fixed-point grid in sign and magnitude, every value T * 2^(1 - B - M).
#[test]
fn no_exponent_field() {
    let refused = Format::builder(Sign::Magnitude, 0, 5).build();
    assert_eq!(refused, Err(FormatError::NoRoomForNan { exp_bits: 0, man_bits: 5 }));
    assert_eq!(values("e0m2"), [0.0, 0.5, 1.0, 1.5]);
    assert_eq!(values("ue0m2fn"), [0.0, 0.5, 1.0]);
    assert_eq!(values("e0m2b3finite"), [0.0, 0.0625 * 1.0, 0.125, 0.1875]);
    let f = format("e0m2");
    assert_eq!((f.min_normal(), f.max_subnormal()), (None, Some(f.max())));
    assert_eq!((f.one_code(), f.epsilon_code()), (Some(2), Some(1)));
}

/// E = 1: exponent fields 0 and 1 share one spacing; under IEEE conventions only subnormals stay.
#[test]
fn one_exponent_bit() {
    assert_eq!((format("e1m2finite").bias(), format("binary4p3sf").bias()), (0, 1));
    assert_eq!(values("e1m2finite"), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]);
    let ieee = format("e1m2");
    assert_eq!(values("e1m2"), [0.0, 0.5, 1.0, 1.5]);
    assert_eq!((ieee.min_normal(), ieee.max_subnormal()), (None, Some(Value::from_f64(1.5))));
    assert_eq!((ieee.infinity_code(false), ieee.nan_code()), (Some(4), Some(6)));
}

/// A smallest normal value need not exist, nor a largest subnormal one.
#[test]
fn without_normal_values() {
    // One bit for 0 and a power of two: binary2p1 would be such a shape, had P3109 it.
    let f = Format::builder(Sign::Magnitude, 1, 0).specials(Specials::P3109 { infinite: false });
    let f = f.build().unwrap();
    assert_eq!((f.max().to_f64(), f.min_normal_code(), f.max_subnormal()), (1.0, Some(1), None));
    assert!(f.decode(2).is_nan() && f.decode(3) == Value::from_f64(-1.0));
    for name in ["e0m3", "e1m3-ieee", "ue0m4finite", "int8"] {
        assert_eq!(format(name).min_normal(), None, "{name}");
    }
}

/// 1.0 may be subnormal or absent; the step at one then too.
#[test]
fn one_is_subnormal_or_absent() {
    // Bias -2: the first binade begins at 2^3, subnormals are 1 to 7.
    let f = format("e3m3b-2finite");
    assert_eq!((f.one_code(), f.epsilon_code()), (Some(1), Some(1)));
    assert_eq!(f.min_normal().unwrap().to_f64(), 8.0);
    for name in ["e3m3b-4finite", "e3m3b20finite", "e2m1b-40fn"] {
        assert_eq!((format(name).one_code(), format(name).epsilon_code()), (None, None), "{name}");
    }
    // One is the largest value, so there is no step from it.
    assert_eq!(format("e0m1").one_code(), Some(1));
    assert_eq!(format("e0m1").epsilon_code(), None);
}

/// What becomes of NaN without a NaN and of zero without a zero.
#[test]
fn without_nan_or_zero() {
    let code = |f: Format, x: f64| f.encode_f64(x, Rounding::TiesToEven, Overflow::None, 0);
    let nan = code(Format::E2M1, f64::NAN);
    assert_eq!((nan.code, nan.flags), (Format::E2M1.max_code(), Flags::INVALID));
    assert_eq!(code(Format::E8M0, 0.0).code, 0xFF);
    let neither = format("ue3m2finite-nosub-nozero");
    let zero = code(neither, 0.0);
    assert_eq!((zero.code, zero.flags), (0, Flags::INEXACT | Flags::SATURATED));
}

/// INT8's two clamps are overflow policies: the full range, or the symmetric one of MX.
#[test]
fn two_clamps_of_int8() {
    let code = |overflow| Format::INT8.encode_f64(-5.0, Rounding::TiesToEven, overflow, 0).code;
    assert_eq!([Overflow::None, Overflow::Finite, Overflow::Onnx].map(code), [0x80, 0x81, 0x81]);
    assert_eq!((Format::INT8.min().to_f64(), Format::INT8.max_subnormal()), (-2.0, None));
}

/// UE4M3 has 7 bits in a byte: the eighth is ignored, and zero in every result.
#[test]
fn pad_bits() {
    assert_eq!((Format::UE4M3.bits(), Format::UE4M3.storage_bits()), (7, 8));
    for code in 0..=0xFF {
        let value = Format::UE4M3.decode(code);
        assert_eq!(value.is_nan(), code & 0x7F == 0x7F);
        assert!(value.is_nan() || value == Format::E4M3FN.decode(code & 0x7F));
    }
    for x in [-1.0, 0.0, 1.0, 448.0, 1e9, f64::NAN] {
        for overflow in Overflow::ALL {
            assert!(Format::UE4M3.encode_f64(x, Rounding::TiesToEven, overflow, 0).code < 0x80);
        }
    }
    for (format, bits) in
        [(Format::E2M1, 4), (Format::E3M2, 6), (Format::E2M3, 6), (Format::TF32, 19)]
    {
        assert!(
            format.encode_f64(-1e30, Rounding::TiesToEven, Overflow::Finite, 0).code < 1 << bits
        );
        assert_eq!(format.bits(), bits);
    }
}
