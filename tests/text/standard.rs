//! binary32 and binary64 are written and read as the standard library does it.

use crate::{noise, read};
use exmy::format::Format;

/// Numbers where digit generation goes wrong first: ends of the range, powers of two (whose lower
/// neighbour is nearer), powers of ten, ties of shortest candidates.
fn edges() -> Vec<f64> {
    let mut numbers = vec![
        0.0,
        -0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::MIN_POSITIVE.next_down(),
        f64::from_bits(1),
        9_007_199_254_740_993.0,
        5e-324,
        1e23,
        8.5e22,
        1.7e-307,
        2.225_073_858_507_201e-308,
        0.3,
        123_456.789,
        9.5,
        0.5,
        1.5,
        2.5,
        0.05,
        0.95,
        99.5,
        999_999.5,
    ];
    for exponent in -1074_i64..=1023 {
        let bits = if exponent < -1022 { 1 << (exponent + 1074) } else { (exponent + 1023) << 52 };
        let power = f64::from_bits(bits as u64);
        numbers.extend([power.next_down(), power, power.next_up()]);
    }
    for exponent in -310..310 {
        let power: f64 = format!("1e{exponent}").parse().unwrap();
        numbers.extend([power.next_down(), power, -power.next_up()]);
    }
    numbers
}

fn check_f64(x: f64) {
    let ours = Format::F64.display(x.to_bits());
    assert_eq!(format!("{ours:e} {ours:?}"), format!("{x:e} {x:?}"));
    assert_eq!(read(Format::F64, &format!("{x:?}")), canonical_f64(x), "{x:?}");
}

fn check_f32(x: f32) {
    let ours = Format::F32.display(x.to_bits().into());
    assert_eq!(format!("{ours:E} {ours:?} {ours}"), format!("{x:E} {x:?} {x}"));
    let nan = if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
    assert_eq!(read(Format::F32, &format!("{x:?}")), u64::from(nan), "{x:?}");
}

fn canonical_f64(x: f64) -> u64 {
    if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }
}

#[test]
fn shortest_digits_are_the_standard_librarys() {
    for x in edges() {
        check_f64(x);
        check_f32(x as f32);
    }
    for bits in noise(1).take(15_000) {
        check_f64(f64::from_bits(bits));
        check_f32(f32::from_bits(bits as u32));
        // Few significant bits: exact ends and long rows of zeros and nines.
        check_f64(f64::from_bits(bits & 0xFFFF_0000_0000_0000));
        check_f64((bits >> 40) as f64 / 1000.0);
    }
}

#[test]
fn widths_places_and_signs_are_the_standard_librarys() {
    macro_rules! same {
        ($x:expr, $($spec:literal)*) => {{
            let x: f64 = $x;
            let ours = Format::F64.display(x.to_bits());
            $(assert_eq!(format!($spec, ours), format!($spec, x), "{} of {x:?}", $spec);)*
        }};
    }
    let numbers = edges().into_iter().chain(noise(2).take(500).map(f64::from_bits));
    for x in numbers.chain(noise(3).take(500).map(|bits| (bits >> 44) as f64 / 1024.0)) {
        same!(x, "{}" "{:.0}" "{:.1}" "{:.3}" "{:.20}" "{:.0e}" "{:.1e}" "{:.5e}" "{:.25E}" "{:.2?}");
    }
    for x in [0.0, -0.0, 1.5, -2.75, 1e10, 0.001, f64::NAN, f64::INFINITY, -f64::INFINITY] {
        same!(x, "{:12}" "{:<12}|" "{:^13}" "{:*^13}" "{:>4}" "{:+}" "{:+.2}" "{:012}" "{:+012.3}" "{:e}"
            "{:14e}" "{:<14e}|" "{:014.2e}" "{:#<9}" "{:1}" "{:8?}" "{:08?}");
    }
}

/// Middles between two numbers, written out in full, and the same with a last digit more or less:
/// 767 digits decide.
#[test]
fn long_texts_are_rounded_once() {
    let numbers = [
        f64::from_bits(1),
        f64::MIN_POSITIVE.next_down(),
        f64::MIN_POSITIVE,
        1.0,
        1.0_f64.next_up(),
        f64::MAX.next_down(),
        1e300,
        1e-300,
    ];
    for x in numbers {
        let (exact, bits) = (digits_of_middle(x), x.to_bits());
        let even = bits + (bits & 1);
        assert_eq!(exact.parse::<f64>().unwrap().to_bits(), even, "the oracle");
        assert_eq!(read(Format::F64, &exact), even);
        let above = format!("{exact}{}1", "0".repeat(3000));
        let above =
            if exact.contains('.') { above } else { format!("{exact}.{}1", "0".repeat(900)) };
        assert_eq!(read(Format::F64, &above), bits + 1);
        let below = one_less(&exact);
        assert_eq!(read(Format::F64, &below), bits, "{below}");
    }
}

/// The text of `x` plus half a unit in its last place.
fn digits_of_middle(x: f64) -> String {
    let (bits, mut integer) = (x.to_bits(), num_bigint::BigUint::from(0_u32));
    let field = (bits >> 52) as i64;
    let fraction = bits & ((1 << 52) - 1);
    let significand = if field == 0 { fraction } else { fraction | 1 << 52 };
    integer += 2 * significand + 1;
    let exponent = field.max(1) - 1075 - 1;
    if exponent >= 0 {
        return (integer << exponent as u32).to_string();
    }
    let places = -exponent as usize;
    let scaled = integer * num_bigint::BigUint::from(5_u32).pow(places as u32);
    let digits = format!("{:0>width$}", scaled.to_string(), width = places + 1);
    let (whole, behind) = digits.split_at(digits.len() - places);
    format!("{whole}.{behind}")
}

/// A decimal text less one in its last digit, which is a 5.
fn one_less(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let last = bytes.len() - 1;
    assert!(bytes[last] > b'0');
    bytes[last] -= 1;
    String::from_utf8(bytes).unwrap() + if text.contains('.') { "99999" } else { ".99999" }
}

#[test]
fn short_texts_are_read_as_by_the_standard_library() {
    for (i, bits) in noise(4).take(15_000).enumerate() {
        let (mantissa, exponent) = (bits >> (bits % 60), (bits % 700) as i64 - 350);
        let text = match i % 3 {
            0 => format!("{mantissa}e{exponent}"),
            1 => format!("{}.{mantissa}E{}", bits % 10, exponent / 8),
            _ => format!("-.{mantissa}e+{}", exponent.unsigned_abs()),
        };
        let expected: f64 = text.parse().unwrap();
        assert_eq!(read(Format::F64, &text), expected.to_bits(), "{text}");
        let expected: f32 = text.parse().unwrap();
        assert_eq!(read(Format::F32, &text), u64::from(expected.to_bits()), "{text}");
    }
    for text in ["0", "-0", "0e99999999999999999999", "+.0", "5.", "1e-99999999999999999999"] {
        let expected: f64 = text.parse().unwrap();
        assert_eq!(read(Format::F64, text), expected.to_bits(), "{text}");
    }
}
