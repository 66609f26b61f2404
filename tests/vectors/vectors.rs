//! Vectors: fed back, against the independent model, and complete where the edge list says so.

use crate::common::{Meaning, Model, Num};
use crate::{evaluator, judge};
use exmy::format::{Format, Specials};
use exmy::round::{Overflow, Profile, Rounding};
use exmy::vectors::cases::{Cases, Coverage, Request, Style, TestLevel, write};
use exmy::vectors::evaluate::Settings;
use exmy::vectors::function::TestFunction;
use exmy::vectors::testfloat::Strictness;
use std::collections::HashSet;

fn print(name: &str, settings: &Settings, request: &Request, style: Style) -> Vec<u8> {
    let evaluator = evaluator(name, settings);
    let cases = Cases::new(evaluator.function(), request).unwrap();
    let mut out = Vec::new();
    write(&evaluator, &cases, style, &mut out).unwrap();
    out
}

#[test]
fn vectors_are_their_own_verdict() {
    let some = Request { count: Some(3000), ..Request::default() };
    let names = "f16_add f32_mulAdd e4m3_mul e2m1_div e4m3,e5m2,f32_mulAdd_to_f16 f64_to_i128 \
        ui128_to_e5m2 e8m0_recip int8_add f16_to_i5_rx_min binary8p3se_faa bf16_minimumNumber \
        e3m2_scaleB tf32_nextUp f16_le_quiet e4m3fnuz_roundToInt f32_to_e8m0 e8m0_to_f32 \
        ue4m3_rsqrt binary16p1ue_sqrt f64_hypot e5m2_totalOrder f32_rem f16_logB e2m3_clamp \
        f16_exp bf16_log e4m3_tanh e5m2_atan2 f32_sin_pi";
    for name in names.split_whitespace() {
        for (round, profile) in
            [("rne", "ieee"), ("odd", "ocp-sat"), ("rup", "p3109"), ("sr5b", "ml-dtypes")]
        {
            if name.contains("_rx_") && round != "rne" {
                continue;
            }
            let settings = Settings {
                rounding: (!name.contains("_rx_")).then(|| round.parse().unwrap()),
                profile: profile.parse().unwrap(),
                exact: true,
                ..Settings::default()
            };
            for level in [TestLevel::One, TestLevel::Two] {
                let lines = print(name, &settings, &Request { level, ..some }, Style::Testfloat);
                let (verdict, reports) =
                    judge(&evaluator(name, &settings), Strictness::default(), &lines);
                assert!(reports.is_empty(), "{name} {round} {profile}: {}", reports[0]);
                assert_eq!(verdict.passed, 3000, "{name} {round} {profile}");
                if round == "rne" {
                    // Same request, same bytes; another mode would be seen.
                    let again =
                        print(name, &settings, &Request { level, ..some }, Style::Testfloat);
                    assert!(lines == again, "{name}");
                }
            }
        }
    }
}

fn words(line: &str) -> Vec<u64> {
    line.split(' ').map(|word| u64::from_str_radix(word, 16).unwrap()).collect()
}

/// Results of printed conversions, by the model that knows nothing of the crate's rounding.
#[test]
fn results_are_those_of_the_model() {
    for to in [Format::E4M3FN, Format::E5M2, Format::E2M1, Format::E4M3FNUZ, Format::E3M4] {
        let model = Model::of(to);
        for mode in Rounding::DETERMINISTIC {
            let settings =
                Settings { rounding: Some(mode), profile: Profile::OcpSat, ..Settings::default() };
            let lines =
                print(&format!("f64_to_{to}"), &settings, &Request::default(), Style::Testfloat);
            let text = String::from_utf8(lines).unwrap();
            assert!(text.lines().count() > 100);
            for line in text.lines() {
                let [x, result, _] = words(line)[..] else { panic!("{line}") };
                let x = Meaning::of_f64(f64::from_bits(x));
                assert_eq!(
                    result,
                    model.encode(x, mode, Overflow::Finite, 0),
                    "{to} {mode} {line}"
                );
            }
        }
    }
}

/// The edge list for conversions, made from the model's list of values: every value, every
/// midpoint, both neighbours of each in the source, up to the overflow midpoint, the next value
/// of the grid, twice the largest, the half of the smallest, infinities and NaNs; both signs.
#[test]
fn conversions_have_every_edge() {
    for to in [Format::E4M3FN, Format::E5M2, Format::E2M1, Format::E3M2, Format::F16, Format::BF16]
    {
        let lines = print(
            &format!("f32_to_{to}"),
            &Settings::default(),
            &Request::default(),
            Style::Testfloat,
        );
        let text = String::from_utf8(lines).unwrap();
        let have: HashSet<u32> = text.lines().map(|line| words(line)[0] as u32).collect();
        let model = Model::of(to);
        let magnitudes = model.magnitudes();
        let mut points: Vec<f64> = magnitudes.iter().map(|value| value.to_f64()).collect();
        let halves = magnitudes.windows(2).map(|pair| (pair[0].to_f64() + pair[1].to_f64()) / 2.0);
        points.extend(halves.collect::<Vec<_>>());
        points.push(2.0 * magnitudes[magnitudes.len() - 2].to_f64());
        let mut missing = Vec::new();
        for point in points {
            let x = point as f32;
            if f64::from(x) != point || x.is_infinite() {
                continue; // beyond binary32
            }
            for x in [x, x.next_up(), x.next_down()] {
                for x in [x, -x] {
                    if !have.contains(&x.to_bits()) && x.is_finite() && (x != 0.0 || point == 0.0) {
                        missing.push(x);
                    }
                }
            }
        }
        assert!(missing.is_empty(), "{to}: {} missing, first {:e}", missing.len(), missing[0]);
        let specials = [
            f32::INFINITY.to_bits(),
            f32::NEG_INFINITY.to_bits(),
            f32::MAX.to_bits(),
            f32::MIN.to_bits(),
            0x7FC0_0000, // quiet
            0xFFC0_0000,
            0x7F80_0001, // signaling, with the smallest payload
            0xFF80_0001,
            0x7FFF_FFFF, // with the largest
            0xFFFF_FFFF,
            0x0000_0001,
            0x8000_0001,
        ];
        assert!(specials.iter().all(|word| have.contains(word)), "{to}");
    }
}

#[test]
fn exhaustive_has_every_pair() {
    let request = Request { exhaustive: true, ..Request::default() };
    let lines = print("e3m2_mul", &Settings::default(), &request, Style::Testfloat);
    let text = String::from_utf8(lines).unwrap();
    let pairs: HashSet<_> = text.lines().map(|line| words(line)[..2].to_vec()).collect();
    assert_eq!((text.lines().count(), pairs.len()), (1 << 12, 1 << 12));
    let e3m2 = Model::new(true, 3, 2, 3, Specials::Finite, true, true);
    for line in text.lines() {
        let [a, b, product, flags] = words(line)[..] else { panic!("{line}") };
        let (Meaning::Finite(s, x), Meaning::Finite(t, y)) = (e3m2.decode(a), e3m2.decode(b))
        else {
            panic!("{line}")
        };
        let exact = Num::new(x.integer * y.integer, x.exponent + y.exponent);
        let right =
            e3m2.encode(Meaning::Finite(s != t, exact), Rounding::TiesToEven, Overflow::None, 0);
        assert_eq!(product, right, "{line}");
        let Meaning::Finite(_, rounded) = e3m2.decode(product) else { panic!("{line}") };
        assert_eq!(flags & 1 == 1, rounded != exact, "{line}");
    }
}

#[test]
fn other_styles_hold_the_same_words() {
    let settings = Settings::default();
    let request = Request { count: Some(50), ..Request::default() };
    for name in ["e4m3_mulAdd_to_f16", "f64_to_i128", "f16_lt"] {
        let plain = String::from_utf8(print(name, &settings, &request, Style::Testfloat)).unwrap();
        let lower = plain.to_lowercase();
        let styled = |style| String::from_utf8(print(name, &settings, &request, style)).unwrap();

        let verilog = styled(Style::Readmemh);
        let data: Vec<_> = verilog.lines().filter(|line| !line.starts_with("//")).collect();
        assert_eq!(data.join("\n").replace('_', " ") + "\n", lower, "{name}");
        assert!(verilog.starts_with(&format!("// exmy vectors {name}: 50 cases\n")));

        let c = styled(Style::C);
        let rows: Vec<String> = c
            .lines()
            .filter(|line| line.starts_with("    { "))
            .map(|line| line.trim_matches(&[' ', '{', '}', ','][..]).replace("0x", ""))
            .collect();
        assert_eq!(rows.len(), 50);
        if name != "f64_to_i128" {
            assert_eq!(rows.join("\n").replace([',', 'u'], "") + "\n", lower);
        }

        let package = styled(Style::Sv);
        let rows: Vec<&str> = package.lines().filter(|line| line.starts_with("    '{")).collect();
        assert!(rows[..49].iter().all(|row| row.ends_with("},")) && !rows[49].ends_with(','));
        let words = |row: &&str| {
            let words = row.trim_matches(&[' ', '\'', '{', '}', ','][..]).split(", ");
            words.map(|word| word.split_once("'h").unwrap().1).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(rows.iter().map(words).collect::<Vec<_>>().join("\n") + "\n", lower, "{name}");

        let json = styled(Style::Json);
        let cases = json.split("\"cases\":[\n").nth(1).unwrap();
        let cases = cases.replace(']', "").replace("}\n", "").replace(['[', '"'], "");
        let cases = cases.replace(",\n", "\n").replace(',', " ");
        assert_eq!(cases, lower, "{name}");
        assert!(json.contains(&format!("\"function\":\"{name}\"")) && json.ends_with("]}\n"));
    }
    let wide = String::from_utf8(print("f64_to_i128", &settings, &request, Style::C)).unwrap();
    assert!(wide.contains("uint64_t result[2]; /* i128 */"), "{wide}");
}

/// Rows of other styles are read by others' parsers, so their beginnings are fixed here.
#[test]
fn the_first_lines_of_each_style() {
    let settings = Settings::default();
    let request = Request::default();
    let first = |style, count: usize| {
        let text = String::from_utf8(print("e2m1_mul", &settings, &request, style)).unwrap();
        let lines: String = text.lines().take(count).map(|line| format!("{line}\n")).collect();
        lines.replace(concat!("exmy ", env!("CARGO_PKG_VERSION"), ":"), "exmy VERSION:")
    };
    assert_eq!(first(Style::Testfloat, 2), "0 0 0 00\n0 1 0 00\n");
    assert_eq!(
        first(Style::Readmemh, 8),
        "// exmy vectors e2m1_mul: 256 cases\n\
         // made by exmy VERSION: exmy vectors e2m1_mul --profile ieee --round rne --overflow sat-none \
         --tininess after --notexact --int-invalid x86 --level 1 --seed 1 --style readmemh\n\
         // words of 20 bits:\n\
         //   [19:16] a: e2m1\n\
         //   [15:12] b: e2m1\n\
         //   [11:8] result: e2m1\n\
         //   [7:0] flags: 01 inexact, 02 underflow, 04 overflow, 08 infinite, 10 invalid; \
         as TestFloat's, no saturated\n\
         0_0_0_00\n"
    );
    assert_eq!(
        first(Style::Sv, 15),
        "// exmy vectors e2m1_mul: 256 cases\n\
         // made by exmy VERSION: exmy vectors e2m1_mul --profile ieee --round rne --overflow sat-none \
         --tininess after --notexact --int-invalid x86 --level 1 --seed 1 --style sv\n\
         package cases_e2m1_mul;\n  \
         localparam int COUNT = 256;\n  \
         localparam int A_BITS = 4;\n  \
         localparam int B_BITS = 4;\n  \
         localparam int RESULT_BITS = 4;\n  \
         localparam int FLAGS_BITS = 8;\n  \
         typedef struct packed {\n    \
         logic [3:0] a; // e2m1\n    \
         logic [3:0] b; // e2m1\n    \
         logic [3:0] result; // e2m1\n    \
         logic [7:0] flags; // 01 inexact, 02 underflow, 04 overflow, 08 infinite, 10 invalid; \
         as TestFloat's, no saturated\n  \
         } case_t;\n  \
         localparam case_t CASES[COUNT] = '{\n"
    );
    assert_eq!(
        first(Style::C, 13),
        "/* exmy vectors e2m1_mul: 256 cases\n   \
         made by exmy VERSION: exmy vectors e2m1_mul --profile ieee --round rne --overflow sat-none \
         --tininess after --notexact --int-invalid x86 --level 1 --seed 1 --style c */\n\
         #include <stdint.h>\n\
         \n\
         struct case_e2m1_mul {\n    \
         uint8_t a; /* e2m1 */\n    \
         uint8_t b; /* e2m1 */\n    \
         uint8_t result; /* e2m1 */\n    \
         uint8_t flags; /* 01 inexact, 02 underflow, 04 overflow, 08 infinite, 10 invalid; \
         as TestFloat's, no saturated */\n\
         };\n\
         \n\
         static const struct case_e2m1_mul cases_e2m1_mul[] = {\n    \
         { 0x0, 0x0, 0x0, 0x00 },\n"
    );
}

/// Products beyond the largest number that are rounded back to it, by hand, whatever becomes of the others.
/// Significands are integers. E4M3 (448, then 480): 15 * 15 is 450, in 8 pairs of exponents and 4 of signs;
/// 9 * 13 is 468, above the midpoint, in 2 orders of 9 pairs. E2M3 (7.5, then 8): 11 * 11 is 7.5625, in 3.
#[test]
fn coverage_tells_results_rounded_back_from_saturated_ones() {
    let row = |function: &str, rounding: &str, overflow: &str, of: &str, what: &str| {
        let function: TestFunction = function.parse().unwrap();
        let settings = Settings {
            rounding: Some(rounding.parse().unwrap()),
            overflow: Some(overflow.parse().unwrap()),
            ..Settings::default()
        };
        let cases = Cases::new(&function, &Request { exhaustive: true, ..Request::default() });
        let found = Coverage::of(&function.evaluator(&settings).unwrap(), &cases.unwrap()).unwrap();
        let row = found.rows().iter().find(|row| (row.0, row.1) == (of, what));
        row.map_or(0, |row| row.2)
    };
    let back = |function, rounding, overflow| {
        row(function, rounding, overflow, "rounded", "back to the largest number")
    };
    for overflow in ["sat-none", "sat-finite", "sat-propagate", "to-nan", "to-inf", "onnx"] {
        assert_eq!(back("e4m3fn_mul", "rne", overflow), 4 * 8, "{overflow}");
        assert_eq!(back("e4m3fn_mul", "rtz", overflow), 4 * (8 + 2 * 9), "{overflow}");
        assert_eq!(back("e4m3fn_mul", "raz", overflow), 0, "{overflow}");
        assert_eq!(back("e2m3_mul", "rne", overflow), 4 * 3, "{overflow}");
    }
    let numbers: Vec<f64> = (0..256).map(|code| Format::E4M3FN.decode(code).to_f64()).collect();
    let beyond = |a: &f64| numbers.iter().filter(|b| (a * *b).abs() > 464.0).count() as u64;
    let beyond: u64 = numbers.iter().map(beyond).sum();
    assert_eq!(row("e4m3fn_mul", "rne", "sat-finite", "flag", "saturated"), beyond);
    assert_eq!(row("e4m3fn_mul", "rne", "sat-none", "flag", "saturated"), 0);
    assert_eq!(row("e4m3fn_mul", "rne", "sat-none", "flag", "overflow"), beyond);
}
