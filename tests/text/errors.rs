//! What is no number is answered with what was found where.

use exmy::format::Format;
use exmy::round::Rules;

#[test]
fn the_position_is_named() {
    let rows = [
        ("", 0, "it ends where a sign, a digit, inf or nan is expected"),
        ("-", 1, "it ends where a digit, inf or nan"),
        ("1.2.3", 3, "'.' where a digit, e or the end"),
        ("1_000", 1, "'_' where a digit, e or the end"),
        ("1e", 2, "it ends where a digit of the exponent"),
        ("1e+x", 3, "'x' where a digit of the exponent"),
        ("1e5.0", 3, "'.' where a digit or the end"),
        (" 1", 0, "' ' where"),
        ("1 ", 1, "' ' where"),
        ("0x", 2, "it ends where a hexadecimal digit"),
        ("0x1.g", 4, "'g' where a hexadecimal digit, p or the end"),
        ("0x1p", 4, "a digit of the exponent"),
        ("--1", 1, "'-' where"),
        (".", 1, "it ends where"),
        ("infinit", 0, "'i' where"),
        ("1\u{e9}", 1, "'\u{e9}' where"),
        ("nan(1)", 0, "'n' where"),
    ];
    for (text, position, message) in rows {
        let error = Format::E4M3FN.parse(text, &Rules::DEFAULT, 0).unwrap_err();
        assert_eq!(error.position, position, "{text:?}: {error}");
        assert!(error.to_string().contains(message), "{text:?}: {error}");
        assert!(error.to_string().contains("is no number: at position"), "{error}");
    }
}

#[test]
fn decimals_beyond_the_widest_exponents_need_hexadecimal() {
    let far = Format::builder(exmy::format::Sign::Magnitude, 4, 3).bias(1 << 20).build().unwrap();
    let error = far.parse("1e-300000", &Rules::DEFAULT, 0).unwrap_err();
    assert!(error.to_string().contains("hexadecimal"), "{error}");
    assert_eq!(
        far.parse("1.5", &Rules::DEFAULT, 0).unwrap().code,
        far.infinity_code(false).unwrap()
    );
}
