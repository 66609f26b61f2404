//! Every code of small formats: what is written reads back, and a search over all short decimals
//! finds nothing shorter and nothing nearer.

use crate::{noise, read, read_by};
use exmy::format::{Format, NAMED, Specials, Value};
use exmy::round::{Flags, Overflow, Rounding, Rules};

/// The catalog and what is unusual, up to 16 bits.
fn formats() -> Vec<Format> {
    let mut formats: Vec<Format> = NAMED.map(|(_, format)| format).into();
    for name in [
        "e8m3",
        "e5m0",
        "e0m5",
        "e1m4",
        "e1m3-ieee",
        "e4m3-ieee-nosub",
        "e3m3-nosub",
        "ue3m2finite-nosub-nozero",
        "ue7m0finite",
        "e4m3b-40-ieee",
        "e3m3b90fn",
        "binary8p1se",
        "binary8p1ue",
        "binary8p3se",
        "binary8p4uf",
        "binary6p4sf",
        "binary8p8uf",
        "binary5p2ue",
        "binary12p5se",
        "int4",
        "int12",
        "e6m9",
        "e2m13",
        "ue5m11finite",
    ] {
        formats.push(name.parse().unwrap_or_else(|error| panic!("{error}")));
    }
    formats.retain(|format| format.bits() <= 16);
    formats
}

fn is_number(format: Format, code: u64) -> bool {
    format.decode(code).is_finite()
}

#[test]
fn what_is_written_reads_back() {
    for format in formats() {
        for code in format.codes() {
            let value = format.decode(code);
            let expected = match value {
                Value::Nan { negative: true } => continue, // a sign is not written
                Value::Nan { negative: false } => format.nan_code().unwrap(),
                _ if value.is_zero() && !value.is_sign_negative() => 0,
                _ => code,
            };
            let shown = format.display(code);
            for text in [format!("{shown}"), format!("{shown:e}"), format!("{shown:?}")] {
                assert_eq!(read(format, &text), expected, "{format} {code:#x} {text}");
            }
            if format.bits() > 12 && code % 7 != 0 {
                continue;
            }
            let exact = [
                format!("{shown:#}"),
                format!("{shown:#e}"),
                format.hex(code).to_string(),
                value.to_string(),
            ];
            for text in exact {
                let rounded = format.parse(&text, &Rules::DEFAULT, 0).unwrap();
                assert_eq!(
                    (rounded.code, rounded.flags),
                    (expected, Flags::NONE),
                    "{format} {text}"
                );
            }
        }
    }
}

/// All decimals of up to three digits, times powers of ten, as read to nearest even: for each code
/// the fewest digits that give it, and of these the nearest.
#[test]
fn nothing_shorter_or_nearer_reads_back() {
    for format in formats().into_iter().filter(|format| format.bits() <= 8) {
        for code in format.codes().filter(|code| is_number(format, *code)) {
            let value = format.decode(code);
            if value.is_zero() || value.is_sign_negative() {
                continue;
            }
            let text = format!("{:e}", format.display(code));
            let (digits, _) = text.split_once('e').unwrap();
            let digits = digits.chars().filter(char::is_ascii_digit).count();
            // Distances as exact differences of binary64 numbers: these formats have at most seven
            // bits, and decimals of four digits are compared by their exact texts below.
            let distance = |text: &str| {
                let (x, y): (f64, f64) = (text.parse().unwrap(), value.to_f64());
                (x - y).abs()
            };
            let near = decimals_near(value.to_f64(), digits);
            for (candidate, length) in near {
                // The largest value stands for all beyond where nothing overflows; a text of it
                // is held to the grid as it would go on.
                if read(format, &candidate) != code || beyond(format, &candidate) {
                    continue;
                }
                assert!(length >= digits, "{format} {code:#x}: {candidate} instead of {text}");
                assert!(
                    length > digits || distance(&candidate) >= distance(&text),
                    "{format} {code:#x}: {candidate} is nearer than {text}"
                );
            }
        }
    }
}

/// Whether a text is above the largest value by half a step or more.
fn beyond(format: Format, text: &str) -> bool {
    format.parse(text, &Rules::DEFAULT, 0).unwrap().flags.contains(Flags::OVERFLOW)
}

/// Decimals of at most `most` digits around `x`, with their numbers of digits.
fn decimals_near(x: f64, most: usize) -> Vec<(String, usize)> {
    let exponent: i32 = format!("{x:e}").split_once('e').unwrap().1.parse().unwrap();
    let mut found = Vec::new();
    for digits in 1..=most {
        for exponent in exponent - 1..=exponent + 1 {
            let unit = exponent - (digits as i32 - 1);
            let lowest = 10_u32.pow(digits as u32 - 1);
            // Around x only: for three digits and more the others are far away.
            let scaled: f64 = format!("{x:.40e}").parse::<f64>().unwrap();
            let around = scaled / format!("1e{unit}").parse::<f64>().unwrap();
            let (from, to) = if digits < 3 {
                (lowest, lowest * 10 - 1)
            } else {
                let middle = around as u32;
                (middle.saturating_sub(3).max(lowest), (middle + 3).min(lowest * 10 - 1))
            };
            for integer in from..=to {
                if integer % 10 != 0 {
                    found.push((format!("{integer}e{unit}"), digits));
                }
            }
        }
    }
    found
}

#[test]
fn shortest_digits_worked_out_by_hand() {
    // format, code, text
    let rows = [
        (Format::E2M1, 0x1, "0.5", "0.5"),
        (Format::E2M1, 0x3, "1.5", "1.5"),
        (Format::E2M1, 0x7, "6", "6"),
        (Format::E2M1, 0x8, "-0", "-0"),
        // 448 lies between 416 and 480: 432 to 464 read as it, of two digits 450 is nearest.
        (Format::E4M3FN, 0x7E, "450", "448"),
        (Format::E4M3FN, 0x2A, "0.3", "0.3125"),
        // 57344 lies between 49152 and 65536.
        (Format::E5M2, 0x7B, "60000", "57344"),
        (Format::F16, 0x7BFF, "65500", "65504"),
        (Format::F16, 0x2E66, "0.1", "0.0999755859375"),
        (Format::BF16, 0x3DCD, "0.1", "0.10009765625"),
        (Format::E8M0, 0x82, "8", "8"),
        (Format::E8M0, 0x80, "2", "2"),
        // 16 lies between 12 and 24 of the powers of two's middles: 20 has one digit.
        (Format::E8M0, 0x83, "20", "16"),
        (Format::INT8, 0x80, "-2", "-2"),
        // 1.984375 is 127/64; between 126.5/64 and 127.5/64 lies 1.98.
        (Format::INT8, 0x7F, "1.98", "1.984375"),
    ];
    for (format, code, short, exact) in rows {
        assert_eq!(format.display(code).to_string(), short, "{format} {code:#x}");
        assert_eq!(format!("{:#}", format.display(code)), exact, "{format} {code:#x}");
        assert_eq!(format.decode(code).to_string(), exact, "{format} {code:#x}");
    }
    let e8m0 = Format::E8M0.display(0);
    assert_eq!(
        format!("{e8m0:?} {e8m0:.3e} {:?}", Format::E8M0.display(0xFF)),
        "6e-39 5.877e-39 NaN"
    );
    assert_eq!(Format::E8M0.decode(0).to_string(), "0x1p-127");
    assert_eq!(
        format!("{:x} {:>8x}", Format::E4M3FN.max(), Format::E2M1.decode(0xB)),
        "0x1.cp+8 -0x1.8p+0"
    );
    assert_eq!(format!("{} {}", Format::E5M2.hex(0xFC), Format::E5M2.hex(0x7E)), "-inf nan");
    assert_eq!(format!("{} {}", Format::E5M2.decode(0xFC), Format::E5M2.decode(0x80)), "-inf -0");
}

/// The exact text of every middle and of a number just above and below it, under all modes: the
/// code that the rounding core gives for the same number.
#[test]
fn texts_round_as_numbers_do() {
    for format in
        formats().into_iter().filter(|format| format.bits() <= 8 && format.is_exact_in_f64())
    {
        let mut points = Vec::new();
        let finite: Vec<f64> = format
            .codes()
            .filter(|code| is_number(format, *code))
            .map(|code| format.to_f64(code))
            .collect();
        for pair in finite.windows(2) {
            points.extend([pair[0], pair[0] / 2.0 + pair[1] / 2.0]);
        }
        points.extend([finite[finite.len() - 1] * 1.5, 1e30, 1e-30]);
        for x in points {
            let text = format!("{:#}", Format::F64.display(x.to_bits()));
            let longer = if text.contains('.') {
                format!("{text}000000000000000000000000000001")
            } else {
                format!("{text}.000000000000000000000000000001")
            };
            for mode in Rounding::DETERMINISTIC {
                for overflow in Overflow::ALL {
                    let rules = Rules::DEFAULT.with_rounding(mode).with_overflow(overflow);
                    let rounded = format.encode_by(Value::from_f64(x), &rules, 0);
                    assert_eq!(
                        format.parse(&text, &rules, 0),
                        Ok(rounded),
                        "{format} {text} {mode}"
                    );
                    let mut exact = Value::from_f64(x).exact().unwrap();
                    exact.significand <<= 64;
                    exact.exponent -= 64;
                    exact.sticky = true;
                    if x != 0.0 {
                        let rounded = format.round_by(exact, &rules, 0);
                        assert_eq!(
                            format.parse(&longer, &rules, 0),
                            Ok(rounded),
                            "{format} {longer} {mode}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn stochastic_modes_see_every_digit() {
    // 1 + 2^-3 (1 - 2^-32): of 2^32 random words only 0 keeps it at 1 in E4M3FN.
    let x = "1.1249999999708961695432662963867187500";
    let mode = Rounding::stochastic(32);
    let code = |text: &str, random| {
        Format::E4M3FN.parse(text, &Rules::DEFAULT.with_rounding(mode), random).unwrap().code
    };
    assert_eq!((code(x, 0), code(x, 1)), (0x38, 0x39));
    assert_eq!(code("1.1249999999708961695432662963867187499", 1), 0x38);
}

#[test]
fn directed_modes_look_at_the_last_of_many_digits() {
    let above = format!("448.{}1", "0".repeat(5000));
    assert_eq!(read_by(Format::E4M3FN, &above, Rounding::TowardZero), 0x7E);
    assert_eq!(read_by(Format::E4M3FN, &above, Rounding::TowardPositive), 0x7F);
    assert_eq!(
        read_by(Format::E5M2, "448.0000000000000000000000001", Rounding::TowardPositive),
        0x60
    );
    assert_eq!(
        read_by(Format::E5M2, "448.0000000000000000000000001", Rounding::TowardNegative),
        0x5F
    );
    assert_eq!(read_by(Format::E5M2, "-1e-99999999999", Rounding::TowardNegative), 0x81);
    assert_eq!(read_by(Format::E5M2, "-1e-99999999999", Rounding::TiesToEven), 0x80);
    assert_eq!(
        read_by(
            Format::E4M3FN,
            "0x1.20000000000000000000000000000000000000001p0",
            Rounding::TowardPositive
        ),
        0x3A
    );
    assert_eq!(read_by(Format::E4M3FN, "0X.9P+1", Rounding::TiesToEven), 0x39);
    assert_eq!(read_by(Format::E4M3FN, "0x1p-99999999999999", Rounding::AwayFromZero), 0x01);
    assert_eq!(read_by(Format::E5M2, "-Infinity", Rounding::TiesToEven), 0xFC);
    assert_eq!(read_by(Format::E5M2, "-nan", Rounding::TiesToEven), 0xFE);
    assert_eq!(read_by(Format::E4M3FNUZ, "+NaN", Rounding::TiesToEven), 0x80);
}

/// Exact hexadecimal text against a reading written here, for random binary64 numbers.
#[test]
fn hexadecimal_text_is_exact() {
    for bits in noise(9).take(20_000) {
        let x = f64::from_bits(bits);
        if !x.is_finite() || x == 0.0 {
            continue;
        }
        let text = Format::F64.hex(bits).to_string();
        let (digits, exponent) =
            text.trim_start_matches('-').strip_prefix("0x1").unwrap().split_once('p').unwrap();
        let exponent: i32 = exponent.parse().unwrap();
        let fraction = digits.trim_start_matches('.');
        let integer = u64::from_str_radix(&format!("1{fraction}"), 16).unwrap();
        let exact = Value::Finite {
            negative: text.starts_with('-'),
            significand: integer,
            exponent: exponent - 4 * fraction.len() as i32,
        };
        assert_eq!(exact, Value::from_f64(x), "{text}");
        assert!(!digits.ends_with('0') && digits != ".");
    }
    let one =
        Format::builder(exmy::format::Sign::Magnitude, 4, 3).specials(Specials::Fn).bias(1 << 20);
    let far = one.build().unwrap();
    assert_eq!(far.display(1).to_string(), "0x1p-1048578");
    assert_eq!(read(far, "0x1p-1048578"), 1);
}
