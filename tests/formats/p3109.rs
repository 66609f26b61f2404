//! The P3109 family, every K from 3 to 16, every precision, signedness and domain, against the
//! formulas of the Interim Report 4.0 (section 3 and Annex A.5), written out here.

use crate::common::{Num, power};
use exmy::format::{Format, Value};

/// A member of the family: width, precision, signed, extended.
#[derive(Clone, Copy, Debug)]
struct Member {
    k: u32,
    p: u32,
    signed: bool,
    extended: bool,
}

/// What the report says a code is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Decoded {
    Nan,
    Infinity(bool),
    /// Sign, and `integer * 2^exponent`.
    Number(bool, u64, i64),
}

impl Member {
    fn all() -> impl Iterator<Item = Self> {
        (3..=16_u32).flat_map(|k| {
            [true, false].into_iter().flat_map(move |signed| {
                let most = if signed { k - 1 } else { k };
                (1..=most).flat_map(move |p| {
                    [true, false].map(|extended| Self { k, p, signed, extended })
                })
            })
        })
    }

    fn name(self) -> String {
        let (sign, domain) =
            (if self.signed { 's' } else { 'u' }, if self.extended { 'e' } else { 'f' });
        format!("Binary{}p{}{sign}{domain}", self.k, self.p)
    }

    fn format(self) -> Format {
        self.name().parse().unwrap()
    }

    fn bias(self) -> i64 {
        if self.signed { 1 << (self.k - self.p - 1) } else { 1 << (self.k - self.p) }
    }

    fn nan(self) -> u64 {
        if self.signed { 1 << (self.k - 1) } else { (1 << self.k) - 1 }
    }

    fn infinity(self) -> u64 {
        if self.signed { (1 << (self.k - 1)) - 1 } else { (1 << self.k) - 2 }
    }

    fn decode(self, code: u64) -> Decoded {
        if code == self.nan() {
            return Decoded::Nan;
        }
        if self.extended && code == self.infinity() {
            return Decoded::Infinity(false);
        }
        if self.extended && self.signed && code == (1 << self.k) - 1 {
            return Decoded::Infinity(true);
        }
        let negative = self.signed && code > self.nan();
        let x = if negative { code - self.nan() } else { code };
        let (trailing, field) = (x % (1 << (self.p - 1)), (x / (1 << (self.p - 1))) as i64);
        let places = 1 - i64::from(self.p);
        if field == 0 {
            Decoded::Number(negative, trailing, places + 1 - self.bias())
        } else {
            Decoded::Number(negative, trailing + (1 << (self.p - 1)), places + field - self.bias())
        }
    }

    /// Annex A.5: the exponent of the largest value.
    fn emax(self) -> i64 {
        let k = self.k;
        match (self.p, self.signed, self.extended) {
            (1, false, true) => (1 << (k - 1)) - 3,
            (1, false, false) => (1 << (k - 1)) - 2,
            (1, true, true) => (1 << (k - 2)) - 2,
            (2, false, true) => (1 << (k - 2)) - 2,
            _ => self.bias() - 1,
        }
    }
}

#[test]
fn there_are_504_members_and_each_has_its_name() {
    let members: Vec<Member> = Member::all().collect();
    // Signed: 2 + ... + 15 precisions, unsigned 3 + ... + 16, two domains each.
    assert_eq!(members.len(), 2 * (119 + 133));
    for member in members {
        let format = Format::p3109(member.k, member.p, member.signed, member.extended).unwrap();
        assert_eq!(format, member.format(), "{}", member.name());
        assert!(format.to_string().eq_ignore_ascii_case(&member.name()));
    }
}

#[test]
fn constants_are_those_of_the_report() {
    for member in Member::all() {
        let (format, name, k) = (member.format(), member.name(), member.k);
        let width = if member.signed { k - member.p } else { k - member.p + 1 };
        assert_eq!(
            (format.bits(), format.precision(), format.exp_bits()),
            (k, member.p, width),
            "{name}"
        );
        assert_eq!(i64::from(format.bias()), member.bias(), "{name}");
        assert_eq!((format.man_bits(), format.is_signed()), (member.p - 1, member.signed));
        assert_eq!(format.has_infinity(), member.extended);
        assert!(!format.has_negative_zero() && format.decode(0).is_zero());
        assert_eq!(format.nan_code(), Some(member.nan()), "{name}");
        assert_eq!(
            format.infinity_code(false),
            member.extended.then(|| member.infinity()),
            "{name}"
        );
        let minus = (member.extended && member.signed).then_some((1 << k) - 1);
        assert_eq!(format.infinity_code(true), minus, "{name}");
        let one = if member.signed { 1 << (k - 2) } else { 1 << (k - 1) };
        let max = match (member.signed, member.extended) {
            (true, true) => (1 << (k - 1)) - 2,
            (true, false) => (1 << (k - 1)) - 1,
            (false, true) => (1 << k) - 3,
            (false, false) => (1 << k) - 2,
        };
        assert_eq!(format.max_code(), max, "{name}");
        // One is beyond the largest value of the narrowest extended formats.
        assert_eq!(format.one_code(), (one <= max).then_some(one), "{name}");
        assert_eq!(i64::from(format.emax()), member.emax(), "{name}");
        assert_eq!(
            (format.nan_count(), format.infinity_count()),
            (
                1,
                match (member.extended, member.signed) {
                    (true, true) => 2,
                    (true, false) => 1,
                    _ => 0,
                }
            )
        );
        let min = if member.signed { format.decode(max | 1 << (k - 1)) } else { Value::ZERO };
        assert_eq!(format.min(), min, "{name}");
        assert_eq!(
            format.max_subnormal_code(),
            (member.p > 1).then(|| ((1 << (member.p - 1)) - 1).min(max))
        );
        assert_eq!(format.min_positive_code(), 1);
        let normal = 1_u64 << (member.p - 1);
        assert_eq!(format.min_normal_code(), (normal <= max).then_some(normal), "{name}");
    }
}

#[test]
fn every_code_decodes_by_the_formulas() {
    let mut beyond_binary64 = 0;
    for member in Member::all() {
        let format = member.format();
        for code in format.codes() {
            let expected = match member.decode(code) {
                Decoded::Nan => {
                    assert!(format.decode(code).is_nan(), "{} {code:#x}", member.name());
                    continue;
                }
                Decoded::Infinity(negative) => Value::Infinite { negative },
                Decoded::Number(negative, significand, exponent) => {
                    Value::Finite { negative, significand, exponent: exponent as i32 }
                }
            };
            let decoded = format.decode(code);
            assert_eq!(decoded, expected, "{} {code:#x}", member.name());
            assert!(!decoded.is_zero() || (code == 0 && !decoded.is_sign_negative()));
        }
        beyond_binary64 += u32::from(!format.is_exact_in_f64());
    }
    assert_eq!(beyond_binary64, 50);
}

#[test]
fn values_of_the_published_tables() {
    // Binary4p2se and Binary3p1ue in full, from the tables of the P3109 repository; Binary16p1ue's
    // ends.
    let value = |name: &str, code| name.parse::<Format>().unwrap().decode(code);
    let magnitudes = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, f64::INFINITY];
    for (code, magnitude) in magnitudes.into_iter().enumerate().map(|(i, x)| (i as u64, x)) {
        assert_eq!(value("Binary4p2se", code), Value::from_f64(magnitude));
        if code > 0 {
            assert_eq!(value("Binary4p2se", code + 8), Value::from_f64(-magnitude));
        }
    }
    assert!(value("Binary4p2se", 8).is_nan());
    let unsigned = [0.0, 0.125, 0.25, 0.5, 1.0, 2.0, f64::INFINITY];
    for (code, x) in unsigned.into_iter().enumerate() {
        assert_eq!(value("Binary3p1ue", code as u64), Value::from_f64(x));
    }
    assert!(value("Binary3p1ue", 7).is_nan());
    let two_to = |exponent| Value::Finite { negative: false, significand: 1, exponent };
    assert_eq!(value("Binary16p1ue", 1), two_to(-32767));
    assert_eq!(value("Binary16p1uf", 0xFFFE), two_to(32766));
    assert_eq!(Num::new(1, -32767), Num::new(2, -32768));
    assert_eq!(value("Binary8p1uf", 0x80), Value::from_f64(power(0)));
    assert_ne!(Format::E8M0.decode(0x80), value("Binary8p1uf", 0x80));
}

#[test]
fn what_is_outside_of_the_family_is_refused() {
    for (k, p, signed) in
        [(2, 1, true), (2, 1, false), (8, 8, true), (8, 9, false), (8, 0, true), (65, 40, true)]
    {
        let error = Format::p3109(k, p, signed, true).unwrap_err().to_string();
        assert!(error.contains("P3109") && error.contains(&format!("{k} bits")), "{error}");
    }
    // In the family and too wide for this crate.
    let error = Format::p3109(20, 2, true, true).unwrap_err().to_string();
    assert!(error.contains("18 exponent") && error.contains("16"), "{error}");
}
