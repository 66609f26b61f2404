//! Formats whose exponents exceed binary64: exact decimal text of the widest against integers
//! without end.

use crate::{noise, read};
use exmy::format::{Format, Value};
use exmy::round::{Flags, Rules};
use num_bigint::BigUint;

fn formats() -> [Format; 6] {
    ["binary16p1ue", "binary16p1uf", "binary16p5sf", "binary13p1se", "e16m47", "ue16m0finite"]
        .map(|name| name.parse().unwrap())
}

/// Codes at the ends of the range, around one, and between.
fn codes(format: Format, between: usize) -> Vec<u64> {
    let mut codes = vec![format.min_positive_code(), format.max_code(), format.one_code().unwrap()];
    codes.extend([codes[0] + 1, codes[1] - 1, codes[2] - 1]);
    codes.extend(
        noise(5).map(|bits| bits % format.max_code()).filter(|code| *code > 0).take(between),
    );
    codes
}

/// `10^places` times a number, if that is an integer.
fn scaled(value: Value, places: u32) -> BigUint {
    let Value::Finite { significand, exponent, .. } = value else { panic!("not a number") };
    let ten = BigUint::from(significand) * BigUint::from(10_u32).pow(places);
    if exponent >= 0 {
        ten << exponent as u32
    } else {
        let (quotient, power) = (&ten >> exponent.unsigned_abs(), exponent.unsigned_abs());
        assert_eq!(&quotient << power, ten, "not enough places");
        quotient
    }
}

#[test]
fn all_digits_are_right() {
    for format in formats() {
        for code in codes(format, 4) {
            let value = format.decode(code);
            let text = format!("{:#}", format.display(code));
            let (whole, behind) = text.split_once('.').unwrap_or((&text, ""));
            let digits: BigUint = format!("{whole}{behind}").parse().unwrap();
            assert_eq!(digits, scaled(value, behind.len() as u32), "{format} {code:#x}");
            let rounded = format.parse(&text, &Rules::DEFAULT, 0).unwrap();
            assert_eq!((rounded.code, rounded.flags), (code, Flags::NONE), "{format} {code:#x}");
        }
    }
}

#[test]
fn short_and_hexadecimal_texts_read_back() {
    for format in formats() {
        for code in codes(format, 12) {
            let shown = format.display(code);
            let texts = [format!("{shown:e}"), format!("{shown:?}"), format.hex(code).to_string()];
            for text in texts {
                assert_eq!(read(format, &text), code, "{format} {text}");
                assert!(text.len() < 32, "{text}");
            }
        }
    }
    let widest: Format = "binary16p1ue".parse().unwrap();
    assert_eq!(widest.hex(1).to_string(), "0x1p-32767");
    // 2^-32767 is 1.41e-9864, and its neighbours are 0 and 2.83e-9864.
    assert_eq!(format!("{:e}", widest.display(1)), "1e-9864");
    assert_eq!(format!("{:.3e}", widest.display(1)), "1.413e-9864");
}

/// The middle of two neighbours, all its digits, and the same a little above and below.
#[test]
fn middles_with_twenty_thousand_digits() {
    let format: Format = "e16m47".parse().unwrap();
    for code in [2, (1 << 47) - 1, 0x1234_5678_9ABC] {
        let Value::Finite { significand, exponent, .. } = format.decode(code) else { panic!() };
        let middle = Value::Finite {
            negative: false,
            significand: 2 * significand + 1,
            exponent: exponent - 1,
        };
        let places = (1 - exponent) as u32;
        let digits = scaled(middle, places).to_string();
        let text = format!("{digits}e-{places}");
        let even = code + (code & 1);
        assert_eq!(read(format, &text), even, "{code:#x}");
        assert_eq!(
            read(format, &format!("{digits}{}1e-{}", "0".repeat(9000), places + 9001)),
            code + 1
        );
        let (before, last) = digits.split_at(digits.len() - 1);
        assert_eq!(last, "5");
        assert_eq!(read(format, &format!("{before}4{}e-{}", "9".repeat(200), places + 200)), code);
    }
}
