//! Streams of operands.

use crate::{evaluator, judge};
use exmy::random::Philox;
use exmy::vectors::compute::{ComputeOptions, RandomSource, STREAM, compute};
use exmy::vectors::evaluate::Settings;
use exmy::vectors::testfloat::Strictness;

const COLUMN: ComputeOptions =
    ComputeOptions { flags: true, strict: false, random: RandomSource::Column };

/// What is printed for operands of a function, and the complaints.
fn stream(
    name: &str,
    settings: &Settings,
    options: &ComputeOptions,
    text: &str,
) -> (String, Vec<String>) {
    let (mut out, mut complaints) = (Vec::new(), Vec::new());
    let of = evaluator(name, settings);
    let summary = compute(text.as_bytes(), &mut out, &of, options, |malformed| {
        complaints.push(malformed.to_string());
    });
    assert_eq!(summary.unwrap().malformed, complaints.len() as u64);
    (String::from_utf8(out).unwrap(), complaints)
}

#[test]
fn known_results() {
    let answer = |name: &str, text| stream(name, &Settings::default(), &COLUMN, text).0;
    // 1.5 * 1.5 = 2.25; 448 * 2, NaN; again, from what is known.
    let products = "3c 3C\n0x7e\t40\r\n\n7e 40\n3c 3c";
    assert_eq!(answer("e4m3_mul", products), "41 00\n7f 15\n\n7f 15\n41 00\n");
    // The order of operands counts: 2 - 1, 1 - 2, then a quotient by 0.
    assert_eq!(answer("e4m3_sub", "40 38\n38 40\n"), "38 00\nb8 00\n");
    assert_eq!(answer("f16_div", "3c00 0\n"), "7c00 08\n");
    // 1 * 2 + 1 in three formats; 1 < 2; -2 as an integer of 128 bits; 1 * 2^-1.
    assert_eq!(answer("e4m3,e5m2,f32_mulAdd_to_f16", "38 40 3f800000"), "4200 00\n");
    assert_eq!(answer("bf16_lt_quiet", "3f80 4000"), "1 00\n");
    assert_eq!(answer("f32_to_i128", "c0000000"), format!("{}e 00\n", "f".repeat(31)));
    assert_eq!(answer("e4m3_scaleB", "38 ffffffff"), "30 00\n");
    let plain = ComputeOptions { flags: false, ..COLUMN };
    assert_eq!(stream("e4m3_mul", &Settings::default(), &plain, "3c 3c\n").0, "41\n");
}

#[test]
fn random_bits_stand_behind_the_operands_or_are_drawn() {
    let settings = Settings { rounding: Some("sr1".parse().unwrap()), ..Settings::default() };
    // 1 + 1/16 is halfway between 1 and 1 + 1/8.
    let column = |text| stream("e4m3_add", &settings, &COLUMN, text);
    assert_eq!(column("38 18 0\n38 18 1\n").0, "38 01\n39 01\n");
    assert!(column("38 18\n").1[0].contains("2 words instead of 3"));
    let drawn = ComputeOptions { random: RandomSource::Seed(7), ..COLUMN };
    let (out, _) = stream("e4m3_add", &settings, &drawn, &"38 18\n".repeat(64));
    for (i, line) in out.lines().enumerate() {
        let up = Philox::new(7, STREAM).bits(i as u64, 1) == 1;
        assert_eq!(line, if up { "39 01" } else { "38 01" }, "{i}");
    }
}

#[test]
fn malformed_lines_keep_the_step() {
    let of =
        |options: &ComputeOptions, text| stream("e4m3_add", &Settings::default(), options, text);
    let (out, complaints) = of(&COLUMN, "38 38\n38\n \n38 138\n38 38 00\nx 38\n38 40");
    assert_eq!(out, "40 00\n\n\n\n\n\n44 00\n");
    assert_eq!(complaints.len(), 4);
    assert!(complaints[0].starts_with("line 2: 1 word instead of 2"), "{complaints:?}");
    assert!(complaints[1].starts_with("line 4: \"138\" has bits"), "{complaints:?}");
    assert!(complaints[2].starts_with("line 5: 3 words instead of 2"), "{complaints:?}");
    let strict = ComputeOptions { strict: true, ..COLUMN };
    assert_eq!(of(&strict, "38 38\n38\n38 38\n").0, "40 00\n");
}

/// What is computed passes `verify` under the same settings.
#[test]
fn results_are_those_that_verify_accepts() {
    let random = Philox::new(3, STREAM);
    let settings = |text: &str| {
        let mut settings = Settings::default();
        for word in text.split(' ') {
            match word {
                "daz" => settings.operands = Some("zero".parse().unwrap()),
                "ftz" => settings.flush = Some("flush-output".parse().unwrap()),
                mode => settings.rounding = Some(mode.parse().unwrap()),
            }
        }
        settings
    };
    for (name, set) in [
        ("e4m3_mul", "rtz"),
        ("e4m3_mul", "rne daz ftz"),
        ("f16_add", "odd daz"),
        ("e4m3,e5m2,f32_mulAdd_to_f32", "rup ftz"),
        ("bf16_mulAdd", "sr5b"),
        ("f32_to_e4m3", "sr12 daz"),
        ("e5m2_tanh", "rdn"),
        ("f16_lt", "rne daz"),
        ("f32_to_ui8", "raz daz"),
        ("i16_to_e4m3", "rnz"),
    ] {
        let of = evaluator(name, &settings(set));
        let words = |line: u64| {
            let kinds = of.function().operands().iter().map(|kind| kind.bits());
            let bits = kinds.chain((of.random_bits() > 0).then_some(of.random_bits()));
            let word = |(i, bits)| format!("{:x}", random.bits(4 * line + i as u64, bits));
            bits.enumerate().map(word).collect::<Vec<_>>().join(" ")
        };
        let operands: Vec<String> = (0..2000).map(words).collect();
        let (out, complaints) = stream(name, &settings(set), &COLUMN, &operands.join("\n"));
        assert!(complaints.is_empty());
        let case = |(operands, answer): (&String, &str)| {
            let (result, flags) = answer.split_once(' ').unwrap();
            // Without "saturated", which TestFloat does not have.
            let flags = u8::from_str_radix(flags, 16).unwrap() & 31;
            format!("{operands} {result} {flags:02x}\n")
        };
        let cases: String = operands.iter().zip(out.lines()).map(case).collect();
        let strictness = Strictness { nan_codes: true, ..Strictness::default() };
        let (verdict, reports) = judge(&of, strictness, cases.as_bytes());
        assert_eq!((verdict.passed, reports.len()), (2000, 0), "{name} {set}: {reports:?}");
    }
}
