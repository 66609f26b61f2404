//! The master table of formats, as literals, and the documentation against the code.

use crate::common::power;
use exmy::format::{Format, NAMED, Value};

/// The master table of formats, as literals: name, bits, bias, largest value and its code, smallest normal
/// value, smallest value, numbers of NaN and infinity codes, negative zero.
#[test]
fn the_table_of_formats() {
    let p = power;
    #[rustfmt::skip]
    #[allow(clippy::type_complexity)]
    let rows: [(&str, u32, i32, f64, u64, Option<f64>, f64, usize, usize, bool); 42] = [
        ("e5m2",        8, 15, 57344.0,  0x7B, Some(p(-14)), p(-16), 6, 2, true),
        ("e4m3",      8,  7, 448.0,    0x7E, Some(p(-6)),  p(-9),  2, 0, true),
        ("e3m2",        6,  3, 28.0,     0x1F, Some(p(-2)),  p(-4),  0, 0, true),
        ("e2m3",        6,  1, 7.5,      0x1F, Some(1.0),    p(-3),  0, 0, true),
        ("e2m1",        4,  1, 6.0,      0x7,  Some(1.0),    0.5,    0, 0, true),
        ("e3m0",        4,  3, 16.0,     0x7,  Some(p(-2)),  p(-2),  0, 0, true),
        ("int8",        8,  0, 1.984375, 0x7F, None,         p(-6),  0, 0, false),
        ("e8m0",        8, 127, p(127),  0xFE, Some(p(-127)), p(-127), 1, 0, false),
        ("e4m3fnuz",    8,  8, 240.0,    0x7F, Some(p(-7)),  p(-10), 1, 0, false),
        ("e5m2fnuz",    8, 16, 57344.0,  0x7F, Some(p(-15)), p(-17), 1, 0, false),
        ("e4m3b11fnuz", 8, 11, 30.0,     0x7F, Some(p(-10)), p(-13), 1, 0, false),
        ("e4m3-ieee",   8,  7, 240.0,    0x77, Some(p(-6)),  p(-9), 14, 2, true),
        ("e3m4",        8,  3, 15.5,     0x6F, Some(p(-2)),  p(-6), 30, 2, true),
        ("ue4m3",       7,  7, 448.0,    0x7E, Some(p(-6)),  p(-9),  1, 0, false),
        ("ue5m3",       8, 15, 114688.0, 0xFE, Some(p(-14)), p(-17), 1, 0, false),
        ("f16",        16, 15, 65504.0, 0x7BFF, Some(p(-14)), p(-24), 2046, 2, true),
        ("bf16",       16, 127, p(127) * (2.0 - p(-7)), 0x7F7F, Some(p(-126)), p(-133), 254, 2, true),
        ("tf32",       19, 127, p(127) * (2.0 - p(-10)), 0x3_FBFF, Some(p(-126)), p(-136), 2046, 2, true),
        ("e8m3",       12, 127, p(127) * (2.0 - p(-3)), 0x7F7, Some(p(-126)), p(-129), 14, 2, true),
        ("e8m6",       15, 127, p(127) * (2.0 - p(-6)), 0x3FBF, Some(p(-126)), p(-132), 126, 2, true),
        ("e8m4",       13, 127, p(127) * (2.0 - p(-4)), 0xFEF, Some(p(-126)), p(-130), 30, 2, true),
        ("e8m5",       14, 127, p(127) * (2.0 - p(-5)), 0x1FDF, Some(p(-126)), p(-131), 62, 2, true),
        ("e8m13",      22, 127, p(127) * (2.0 - p(-13)), 0x1F_DFFF, Some(p(-126)), p(-139), 16382, 2, true),
        ("dlfloat16",  16, 31, 8_573_157_376.0, 0x7FFE,
            Some(p(-31) * (1.0 + p(-9))), p(-31) * (1.0 + p(-9)), 2, 0, false),
        ("binary8p5se", 8,  4, 15.0,    0x7E, Some(p(-3)),  p(-7),  1, 2, false),
        ("binary8p4sf", 8,  8, 240.0,   0x7F, Some(p(-7)),  p(-10), 1, 0, false),
        ("binary4p1sf", 4,  4, 8.0,     0x7,  Some(p(-3)),  p(-3),  1, 0, false),
        ("binary4p2sf", 4,  2, 3.0,     0x7,  Some(p(-1)),  p(-2),  1, 0, false),
        ("binary8p1sf", 8, 64, p(63),   0x7F, Some(p(-63)), p(-63), 1, 0, false),
        ("binary8p3se", 8, 16, 49152.0, 0x7E, Some(p(-15)), p(-17), 1, 2, false),
        ("binary8p3sf", 8, 16, 57344.0, 0x7F, Some(p(-15)), p(-17), 1, 0, false),
        ("binary8p4se", 8,  8, 224.0,   0x7E, Some(p(-7)),  p(-10), 1, 2, false),
        ("binary8p5sf", 8,  4, 15.5,    0x7F, Some(p(-3)),  p(-7),  1, 0, false),
        ("binary8p1uf", 8, 128, p(126), 0xFE, Some(p(-127)), p(-127), 1, 0, false),
        ("binary8p1ue", 8, 128, p(125), 0xFD, Some(p(-127)), p(-127), 1, 1, false),
        ("binary8p1se", 8, 64, p(62),   0x7E, Some(p(-63)), p(-63), 1, 2, false),
        ("binary8p4uf", 8, 16, 57344.0, 0xFE, Some(p(-15)), p(-18), 1, 0, false),
        ("binary6p3sf", 6,  4, 14.0,    0x1F, Some(p(-3)),  p(-5),  1, 0, false),
        ("binary6p4sf", 6,  2, 3.75,    0x1F, Some(p(-1)),  p(-4),  1, 0, false),
        ("binary4p2se", 4,  2, 2.0,     0x6,  Some(p(-1)),  p(-2),  1, 2, false),
        ("binary4p3sf", 4,  1, 1.75,    0x7,  Some(1.0),    p(-2),  1, 0, false),
        ("binary8p8uf", 8,  1, 1.984375, 0xFE, Some(1.0),   p(-7),  1, 0, false),
    ];
    for (name, bits, bias, max, max_code, min_normal, min_positive, nans, infinities, zero) in rows
    {
        let format: Format = name.parse().unwrap();
        assert_eq!((format.bits(), format.bias()), (bits, bias), "{name}");
        assert_eq!((format.max().to_f64(), format.max_code()), (max, max_code), "{name}");
        assert_eq!(format.min_normal().map(Value::to_f64), min_normal, "{name}");
        assert_eq!(format.min_positive().to_f64(), min_positive, "{name}");
        let least = if name == "int8" {
            -2.0
        } else if format.is_signed() {
            -max
        } else {
            format.to_f64(0)
        };
        assert_eq!(format.min().to_f64(), least, "{name}");
        let below = (min_positive < min_normal.unwrap_or(0.0))
            .then(|| min_normal.unwrap_or(0.0) - min_positive);
        assert_eq!(format.max_subnormal().map(Value::to_f64), below, "{name}");
        let values: Vec<Value> = format.codes().map(|code| format.decode(code)).collect();
        assert_eq!(values.iter().filter(|value| value.is_nan()).count(), nans, "{name}");
        assert_eq!(values.iter().filter(|value| value.is_infinite()).count(), infinities, "{name}");
        assert_eq!((format.nan_count(), format.infinity_count()), (nans as u64, infinities as u64));
        let negative_zero = values.iter().any(|value| value.is_zero() && value.is_sign_negative());
        assert_eq!((negative_zero, format.has_negative_zero()), (zero, zero), "{name}");
    }
    // Counted by formula where there are too many codes to walk.
    for (format, nans, max, min_normal, min_positive) in [
        (Format::F32, 2 * ((1 << 23) - 1), f64::from(f32::MAX), p(-126), p(-149)),
        (Format::F64, 2 * ((1 << 52) - 1), f64::MAX, p(-1022), p(-1074)),
    ] {
        assert_eq!((format.nan_count(), format.infinity_count()), (nans, 2));
        assert_eq!(format.max().to_f64(), max);
        assert_eq!(format.min_normal(), Some(Value::from_f64(min_normal)));
        assert_eq!(format.min_positive().to_f64(), min_positive);
        assert_eq!(format.max_subnormal(), Some(Value::from_f64(min_normal - min_positive)));
    }
    assert_eq!(Format::E2M1.to_f32(0b0101), 3.0);
    assert_eq!(Format::INT8.to_f32(0x80), -2.0);
    assert_eq!((Format::E4M3FN.emax(), Format::E5M2.emax(), Format::E2M1.emax()), (8, 15, 2));
    assert_eq!((Format::E3M2.emax(), Format::E2M3.emax(), Format::INT8.emax()), (4, 2, 0));
    for (k, p, signed, infinite) in
        [(2, 1, true, true), (8, 8, true, true), (8, 9, false, true), (8, 0, true, true)]
    {
        assert!(Format::p3109(k, p, signed, infinite).is_err());
    }
}

/// The rustdoc of every constant ends in a line of its numbers. `cargo test --test formats` prints
/// the right line where one is missing.
#[test]
fn the_documentation_of_the_constants_is_right() {
    let source =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/format/catalog.rs"))
            .unwrap();
    let mut missing = String::new();
    for (name, format) in NAMED {
        // The constant `E4M3` is another name of `E4M3FN`, which has the numbers.
        let constant = match name {
            "e4m3" => "E4M3FN".to_owned(),
            _ => name.to_uppercase().replace('-', "_"),
        };
        let line = format!("    /// {}\n    pub const {constant}: Self", numbers(format));
        if !source.contains(&line) {
            missing += &line;
            missing += "\n";
        }
    }
    assert!(missing.is_empty(), "\n{missing}");
}

fn numbers(format: Format) -> String {
    let text = |value: Value| {
        let Value::Finite { significand, exponent, .. } = value else { panic!() };
        let power = exponent + significand.trailing_zeros() as i32;
        let odd = significand >> significand.trailing_zeros();
        match (odd, power) {
            (1, ..=-3 | 24..) => format!("2^{power}"),
            (_, -16..=23) if odd < 1 << 16 => value.to_f64().to_string(),
            _ => format!("{odd} * 2^{power}"),
        }
    };
    let digits = format.bits().div_ceil(4) as usize;
    let mut line =
        format!("Largest {} (0x{:0digits$X}), smallest ", text(format.max()), format.max_code());
    if let Some(normal) = format.min_normal().filter(|normal| *normal != format.min_positive()) {
        line += &format!("normal {}, subnormal ", text(normal));
    }
    line + &text(format.min_positive()) + "."
}
