//! Formats that are binary32 cut short - TF32, E8M3 to E8M6, E8M13, bfloat16 - against the machine's
//! own binary32: a code is the first bits of the word, and its number is that word's.

use exmy::format::{Format, Value};
use exmy::round::{Overflow, Rounding};

/// Every code, with zeros behind it, is the binary32 number of the same value, and comes back.
#[test]
fn codes_are_the_first_bits_of_binary32() {
    for man_bits in [3, 4, 5, 6, 7, 10, 13] {
        let format = Format::ieee(8, man_bits).unwrap();
        let below = 23 - man_bits;
        let name = match man_bits {
            7 => "bf16".to_owned(),
            10 => "tf32".to_owned(),
            _ => format!("e8m{man_bits}"),
        };
        assert_eq!(format.to_string(), name);
        assert_eq!((format.bits(), format.bias()), (9 + man_bits, 127));
        for code in format.codes() {
            let x = f32::from_bits((code as u32) << below);
            let value = format.decode(code);
            if x.is_nan() {
                // Compared as text: as numbers, NaNs differ.
                let expected = format!("{:?}", Value::Nan { negative: x.is_sign_negative() });
                assert_eq!(format!("{value:?}"), expected, "{name} {code:#x}");
                continue;
            }
            assert_eq!(format.to_f32(code).to_bits(), x.to_bits(), "{name} {code:#x}");
            assert_eq!(format.to_f64(code).to_bits(), f64::from(x).to_bits(), "{name} {code:#x}");
            if let Value::Finite { negative, significand, exponent } = value {
                // Up to 14 bits times a power of two that binary64 has: exact.
                let number = significand as f64 * crate::common::power(exponent);
                assert_eq!((negative, number), (x.is_sign_negative(), f64::from(x).abs()));
            } else {
                assert_eq!(value, Value::Infinite { negative: x.is_sign_negative() });
            }
            let back = format.encode_f32(x, Rounding::TiesToEven, Overflow::None, 0);
            assert_eq!((back.code, back.flags.is_empty()), (code, true), "{name} {code:#x}");
        }
    }
}

/// Results held in binary32 words have nothing below the format's last place, and toward zero they
/// are the operand's first bits.
#[test]
fn results_in_binary32_end_in_zeros() {
    for man_bits in [3, 4, 5, 6, 10, 13] {
        let format = Format::ieee(8, man_bits).unwrap();
        let low = (1_u32 << (23 - man_bits)) - 1;
        for step in 0..1_u32 << 18 {
            // All exponents, and low bits that vary: an odd multiplier visits all residues.
            let bits = step.wrapping_mul(0x9E37_79B1) ^ step >> 3;
            let x = f32::from_bits(bits);
            if x.is_nan() {
                continue;
            }
            for mode in Rounding::DETERMINISTIC {
                let code = format.encode_f32(x, mode, Overflow::None, 0).code;
                let held = format.to_f32(code);
                assert_eq!(held.to_bits() & low, 0, "e8m{man_bits} {bits:#x} {mode}");
                if mode == Rounding::TowardZero {
                    assert_eq!(held.to_bits(), bits & !low, "e8m{man_bits} {bits:#x}");
                }
                let ulp = f64::from(f32::from_bits((bits & !low & 0x7FFF_FFFF) + low + 1));
                let ulp = ulp - f64::from(f32::from_bits(bits & !low & 0x7FFF_FFFF));
                if held.is_finite() {
                    let error = (f64::from(held) - f64::from(x)).abs();
                    assert!(error < ulp || error == 0.0, "e8m{man_bits} {bits:#x} {mode}");
                }
            }
        }
    }
}
