//! Names of functions: TestFloat's, and those for any format.

use crate::evaluator;
use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::round::{Flags, Flush, Operands, Profile, Rounding};
use exmy::vectors::evaluate::{Evaluator, Settings};
use exmy::vectors::function::{Kind, Operation, TestFunction};

fn parse(name: &str) -> TestFunction {
    name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn testfloats_names_round_trip() {
    let mut names = Vec::new();
    for format in ["f16", "f32", "f64"] {
        let operations = "roundToInt add sub mul mulAdd div rem sqrt eq le lt eq_signaling le_quiet \
            lt_quiet roundToInt_x roundToInt_r_near_even roundToInt_r_minMag";
        names.extend(operations.split_whitespace().map(|name| format!("{format}_{name}")));
        for integer in ["ui32", "ui64", "i32", "i64"] {
            names.push(format!("{integer}_to_{format}"));
            names.push(format!("{format}_to_{integer}"));
            for mode in ["near_even", "minMag", "min", "max", "near_maxMag", "odd"] {
                names.push(format!("{format}_to_{integer}_r_{mode}"));
                names.push(format!("{format}_to_{integer}_rx_{mode}"));
            }
        }
        names.push(format!("bf16_to_{format}"));
    }
    assert!(names.len() > 200);
    for name in &names {
        assert_eq!(parse(name).to_string(), name.replace("bf16_to_bf16", ""), "{name}");
    }
    let cut = parse("f16_to_i32_rx_minMag");
    assert_eq!((cut.rounding(), cut.exact()), (Some(Rounding::TowardZero), Some(true)));
    let cut = parse("f16_to_i32_r_near_maxMag");
    assert_eq!((cut.rounding(), cut.exact()), (Some(Rounding::TiesToAway), Some(false)));
    assert_eq!(parse("f16_roundToInt_x").exact(), Some(true));
}

#[test]
fn names_for_any_format() {
    let same = [
        ("float8_e4m3fn_add", "e4m3_add"),
        ("float4_e2m1fn_x2_to_bfloat16", "e2m1_to_bf16"),
        ("F8_E5M2_to_float8_e4m3fn", "e5m2_to_e4m3"),
        ("f4_e2m1_mul_to_f8_e5m2", "e2m1_mul_to_e5m2"),
        ("e4m3_fma", "e4m3_mulAdd"),
        ("e4m3_muladd_to_e4m3fn", "e4m3_mulAdd"),
        ("float8_e4m3_mul_to_e4m3", "e4m3-ieee_mul_to_e4m3"),
        ("e4m3,e4m3_add", "e4m3_add"),
        ("e4m3,e5m2,f32_mulAdd_to_f32", "e4m3,e5m2,f32_mulAdd_to_f32"),
        ("e4m3,e5m2_lt_quiet", "e4m3,e5m2_lt_quiet"),
        ("f16_minimum_number", "f16_minimumNumber"),
        ("f16_scaleb", "f16_scaleB"),
        ("f16_sinPi", "f16_sin_pi"),
        ("f16,e4m3_atan2_to_f16", "f16,e4m3_atan2_to_f16"),
        ("f16_round_to_integral_to_f32", "f16_roundToInt_to_f32"),
        ("u8_to_int8", "ui8_to_int8"),
        ("binary8p3se_to_i128", "binary8p3se_to_i128"),
        ("f16_to_i7_r_raz", "f16_to_i7_r_raz"),
    ];
    for (given, canonical) in same {
        let function = parse(given);
        assert_eq!(function.to_string(), canonical);
        assert_eq!(parse(canonical), function);
    }
    let mixed = parse("e4m3,e5m2,f32_mulAdd_to_bf16");
    let kinds = [Format::E4M3FN, Format::E5M2, Format::F32].map(Kind::Format);
    assert_eq!((mixed.operands(), mixed.result()), (&kinds[..], Kind::Format(Format::BF16)));
    assert_eq!(mixed.operation(), Operation::MulAdd);
}

#[test]
fn wrong_names_are_answered() {
    let cases: &[(&str, &[&str])] = &[
        ("f128_add", &["f128 is not a format", "f16, bf16, f32 and f64"]),
        ("f16_to_extF80", &["extf80 is not a format"]),
        ("extF80_mulAdd", &["extf80 is not a format"]),
        ("f61_add", &["no number format is called", "f16"]),
        ("f16_ad", &["no operation is called \"ad\"", "did you mean add"]),
        ("f16_frobnicate", &["no operation", "mulAdd"]),
        ("f16_to_e4m3nf", &["e4m3"]),
        ("f16", &["f16", "is no function"]),
        ("add", &["no number format"]),
        ("", &["no number format"]),
        ("i32_to_i64", &["converts no format"]),
        ("i32_add", &["arithmetic on integers"]),
        ("f16,f32_add", &["names no result", "_to_f32"]),
        ("f16,f32_mulAdd", &["2 operand formats", "takes 3"]),
        ("f16,f16,f16,f16_mulAdd", &["4 operand formats"]),
        ("f16_lt_to_f32", &["names a result format"]),
        ("f16_to_i129", &["i129"]),
        ("f16_to_i0", &["i0"]),
        ("f16_add_r_minMag", &["fixes a mode", "--round"]),
        ("f16_add_to_e9m99", &["e9m99"]),
        ("f16__add", &["no operation"]),
        ("e4m3_\u{e9}\n", &["no operation"]),
    ];
    for (name, parts) in cases {
        let error = name.parse::<TestFunction>().unwrap_err().to_string();
        for part in *parts {
            assert!(error.contains(part), "{name:?}: no {part:?} in\n{error}");
        }
    }
    let rup = Settings { rounding: Some(Rounding::TowardPositive), ..Settings::default() };
    let error = parse("f16_to_i32_r_minMag").evaluator(&rup).unwrap_err().to_string();
    assert!(error.contains("fixes the mode rtz") && error.contains("rup"), "{error}");
    assert!(parse("f16_to_i32_r_max").evaluator(&rup).is_ok());
    let error = parse("binary16p1ue_sin").evaluator(&Settings::default()).unwrap_err().to_string();
    assert!(error.contains("sin of binary16p1ue"), "{error}");
}

/// One result of every operation, worked out by hand.
#[test]
fn every_name_computes_what_it_says() {
    // E4M3FN: 38 is 1, 40 is 2, 44 is 3, 30 is 0.5, 48 is 4, B8 is -1, 7F NaN; 4C is 6, 50 is 8.
    let cases: &[(&str, &[u128], u128, u8)] = &[
        ("e4m3_to_f32", &[0x44], 0x4040_0000, 0),
        ("e4m3_to_i8", &[0xC4], 0xFD, 0),
        ("e4m3_to_ui8", &[0xC4], 0xFF, 16),
        ("i8_to_e4m3fn", &[0xFD], 0xC4, 0),
        ("ui8_to_e4m3fn", &[0xFF], 0x78, 1),
        ("e4m3_roundToInt", &[0x3C], 0x40, 0),
        ("e4m3_roundToInt_x", &[0x3C], 0x40, 1),
        ("e4m3_roundToInt_rx_minMag", &[0x3C], 0x38, 1),
        ("e4m3_add", &[0x38, 0x40], 0x44, 0),
        ("e4m3_sub", &[0x38, 0x44], 0xC0, 0),
        ("e4m3_mul", &[0x40, 0x44], 0x4C, 0),
        ("e4m3_mulAdd", &[0x40, 0x44, 0x40], 0x50, 0),
        ("e4m3_div", &[0x4C, 0x44], 0x40, 0),
        // An infinity that has to become NaN is invalid as well.
        ("e4m3_div", &[0x38, 0x00], 0x7F, 24),
        ("e5m2_div", &[0x3C, 0x80], 0xFC, 8),
        ("e4m3_rem", &[0x44, 0x40], 0xB8, 0),
        ("e4m3_fmod", &[0x44, 0x40], 0x38, 0),
        ("e4m3_sqrt", &[0x48], 0x40, 0),
        ("e4m3_faa", &[0x38, 0x38, 0x40], 0x48, 0),
        ("e4m3_recip", &[0x40], 0x30, 0),
        ("e4m3_rsqrt", &[0x48], 0x30, 0),
        ("e4m3_hypot", &[0x44, 0x48], 0x4A, 0),
        ("e4m3_negate", &[0x38], 0xB8, 0),
        ("e4m3_abs", &[0xB8], 0x38, 0),
        ("e4m3_copySign", &[0x38, 0x80], 0xB8, 0),
        ("e4m3_minimum", &[0x38, 0xB8], 0xB8, 0),
        ("e4m3_maximum", &[0x38, 0xB8], 0x38, 0),
        ("e4m3_maximum", &[0x38, 0x7F], 0x7F, 0),
        ("e4m3_minimumNumber", &[0x38, 0x7F], 0x38, 0),
        ("e4m3_maximumNumber", &[0x7F, 0xB8], 0xB8, 0),
        ("e4m3_minimumMagnitude", &[0x40, 0xB8], 0xB8, 0),
        ("e4m3_maximumMagnitude", &[0x38, 0xC0], 0xC0, 0),
        ("e4m3_minimumMagnitudeNumber", &[0xC0, 0x7F], 0xC0, 0),
        ("e4m3_maximumMagnitudeNumber", &[0x7F, 0xC0], 0xC0, 0),
        ("e5m2_minimumFinite", &[0xFC, 0x3C], 0x3C, 0),
        ("e5m2_maximumFinite", &[0x7C, 0x3C], 0x3C, 0),
        ("e4m3_clamp", &[0x48, 0x38, 0x40], 0x40, 0),
        ("e4m3_nextUp", &[0x38], 0x39, 0),
        ("e4m3_nextDown", &[0x38], 0x37, 0),
        ("e4m3_scaleB", &[0x38, 0xFFFF_FFFF], 0x30, 0),
        ("e4m3_logB", &[0x4C], 0x40, 0),
        ("e4m3_exp", &[0x38], 0x43, 1),
        ("e4m3_log2", &[0x50], 0x44, 0),
        ("e4m3_cosPi", &[0x38], 0xB8, 0),
        ("e5m2_log", &[0x00], 0xFC, 8),
        ("e4m3_atan2_to_f16", &[0x00, 0xB8], 0x4248, 1),
        ("e4m3_eq", &[0x00, 0x80], 1, 0),
        ("e4m3_le", &[0x7F, 0x38], 0, 16),
        ("e4m3_lt", &[0xB8, 0x38], 1, 0),
        ("e4m3_eq_signaling", &[0x7F, 0x7F], 0, 16),
        ("e4m3_le_quiet", &[0x7F, 0x38], 0, 0),
        ("e5m2_lt_quiet", &[0x7D, 0x38], 0, 16),
        ("e4m3_totalOrder", &[0x80, 0x00], 1, 0),
        ("e4m3_totalOrder", &[0x00, 0x80], 0, 0),
        ("e4m3,e5m2_mul_to_f16", &[0x44, 0x40], 0x4600, 0),
    ];
    for (name, operands, word, flags) in cases {
        let mut words = [0; 3];
        words[..operands.len()].copy_from_slice(operands);
        let outcome = evaluator(name, &Settings::default()).evaluate(words, 0).unwrap();
        let found = (outcome.word, outcome.flags.ieee().bits());
        assert_eq!(found, (*word, *flags), "{name} {operands:x?}: {:x}", outcome.word);
    }
}

#[test]
fn settings_reach_the_rules() {
    let evaluate =
        |settings, word| evaluator("f32_to_e4m3fn", &settings).evaluate([word, 0, 0], 0).unwrap();
    let ieee = evaluate(Settings::default(), 0x4400_0000); // 512
    // Overflow, inexact, and invalid: the number became NaN.
    assert_eq!((ieee.word, ieee.flags.ieee().bits()), (0x7F, 0x15));
    let satfinite = Settings { profile: Profile::CudaSatfinite, ..Settings::default() };
    assert_eq!(evaluate(satfinite, 0x4400_0000).word, 0x7E);
    // The profile's own mode holds unless another is asked for: E8M0 rounds up there.
    let scale = |settings| {
        evaluator("f32_to_e8m0", &settings).evaluate([0x3F80_0001, 0, 0], 0).unwrap().word
    };
    assert_eq!(scale(satfinite), 0x80);
    assert_eq!(scale(Settings { rounding: Some(Rounding::TowardZero), ..satfinite }), 0x7F);
    let before = Settings { tininess: Some("before".parse().unwrap()), ..Settings::default() };
    let just_below = 0x3C7F_FFFF; // just below 2^-6, the smallest normal number of E4M3FN
    assert_eq!(evaluate(Settings::default(), just_below).flags, Flags::INEXACT);
    assert_eq!(evaluate(before, just_below).flags, Flags::INEXACT | Flags::UNDERFLOW);
    // Stochastic: the top bits of the random word decide, for integers too.
    let sr = Settings { rounding: Some(Rounding::stochastic(1)), ..Settings::default() };
    let to_int = evaluator("f16_to_i8", &sr);
    assert_eq!(to_int.random_bits(), 1);
    let half = [0x3800, 0, 0];
    assert_eq!([0, u32::MAX].map(|random| to_int.evaluate(half, random).unwrap().word), [0, 1]);
}

/// `exmy verify F_to_G`, `exmy vectors F_to_G` and `exmy convert` are one conversion, also where a
/// profile's NaN depends on the source: f16 FE00 is 7F of E4M3FN in PyTorch on a GPU.
#[test]
fn conversions_follow_the_profile_from_their_source() {
    let torch = Settings { profile: Profile::TorchNosat, ..Settings::default() };
    let to_fp8 = evaluator("f16_to_e4m3fn", &torch);
    assert_eq!(to_fp8.evaluate([0xFE00, 0, 0], 0).unwrap().word, 0x7F);
    let names = ["f16", "bf16", "e5m2", "e4m3", "e4m3fnuz", "e8m0", "e2m1", "f32"];
    let formats = names.map(|name| name.parse::<Format>().unwrap());
    for profile in Profile::ALL {
        let settings = Settings { profile, ..Settings::default() };
        for from in &formats[..7] {
            for to in &formats {
                let named = evaluator(&format!("{from}_to_{to}"), &settings);
                let direct = Context::new(*to, profile.conversion(*from, *to));
                for code in from.codes() {
                    let outcome = named.evaluate([code.into(), 0, 0], 0).unwrap();
                    let rounded = direct.convert(Operand::new(*from, code));
                    let seen = (outcome.word as u64, outcome.flags);
                    assert_eq!(seen, (rounded.code, rounded.flags), "{profile} {from} {to}");
                }
            }
        }
    }
}

/// Every operation that computes reads subnormal operands as zeros of their sign if it is to, and makes zeros
/// of subnormal results. What moves codes about does neither: signs, neighbours, the order of all codes.
#[test]
fn every_operation_reads_zeros_and_flushes() {
    let format: Format = "e3m2ieee".parse().unwrap();
    let (sign, normal) = (0x20, format.min_normal_code().unwrap());
    let flushed = |code: u64| if code & (sign - 1) < normal { code & sign } else { code };
    let zero = Settings { operands: Some(Operands::Zero), ..Settings::default() };
    let output = Settings { flush: Some(Flush::Output), ..Settings::default() };
    let (mut exact, mut kept) = (Vec::new(), Vec::new());
    let names = Operation::all().map(|operation| operation.name());
    for name in names.chain(["to_i8", "to_e3m2ieee"]) {
        let evaluator = |settings| evaluator(&format!("e3m2ieee_{name}"), &settings);
        let [plain, daz, ftz] = [Settings::default(), zero, output].map(evaluator);
        let kinds = plain.function().operands();
        let [mut reads, mut flushes] = [true; 2];
        for words in 0..1_u64 << (6 * kinds.len()) {
            // Of three operands a part, which has each code in each place.
            if kinds.len() == 3 && words % 7 != 0 {
                continue;
            }
            let mut operands = [words & 63, words >> 6 & 63, words >> 12 & 63];
            let call =
                |of: &Evaluator, codes: [u64; 3]| of.evaluate(codes.map(u128::from), 0).unwrap();
            let result = call(&plain, operands).word as u64;
            flushes &= match plain.function().result() {
                Kind::Format(_) => call(&ftz, operands).word as u64 == flushed(result),
                _ => call(&ftz, operands).word as u64 == result,
            };
            let read = call(&daz, operands);
            for (code, kind) in operands.iter_mut().zip(kinds) {
                *code = if matches!(kind, Kind::Format(_)) { flushed(*code) } else { *code };
            }
            reads &= read == call(&plain, operands);
        }
        exact.extend((!reads).then_some(name));
        kept.extend((!flushes).then_some(name));
    }
    assert_eq!(exact, ["negate", "abs", "copySign", "nextUp", "nextDown", "totalOrder"]);
    assert_eq!(kept, ["negate", "abs", "copySign", "nextUp", "nextDown"]);
}
