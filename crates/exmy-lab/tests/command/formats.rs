//! `exmy formats`: the table, a page, every code for other programs, and the documentation.

use crate::{exmy, printed, succeed};
use exmy::format::{Format, NAMED, Value};
use std::collections::BTreeMap;
use std::path::Path;

fn stdout(arguments: &[&str]) -> String {
    let mut whole = vec!["formats"];
    whole.extend(arguments);
    String::from_utf8(succeed(&mut exmy(&whole)).stdout).unwrap()
}

fn fails(arguments: &[&str]) -> String {
    let mut whole = vec!["formats"];
    whole.extend(arguments);
    let output = exmy(&whole).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

/// The line of a text that begins with a word.
fn line<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let found = text.lines().find(|line| line.split_whitespace().next() == Some(word));
    found.unwrap_or_else(|| panic!("no {word} in\n{text}")).split_whitespace().collect()
}

#[test]
fn the_table_fits_a_terminal_and_says_the_constants() {
    let table = stdout(&[]);
    for (name, _) in NAMED {
        assert_eq!(line(&table, name)[0], name);
    }
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
    let e4m3 = ["e4m3", "8", "1/4/3", "7", "448", "2^-6", "2^-9", "2", "0", "fn"];
    assert_eq!(line(&table, "e4m3"), e4m3);
    let f64 =
        ["f64", "64", "1/11/52", "1023", "1.798e308", "2^-1022", "2^-1074", "2^53-2", "2", "ieee"];
    assert_eq!(line(&table, "f64"), f64);
    let int8 = ["int8", "8", "int8", "-", "1.984375", "-", "2^-6", "0", "0", "integer"];
    assert_eq!(line(&table, "int8"), int8);
    let two = stdout(&["binary16p1ue", "float8_e4m3fn"]);
    assert_eq!(two.lines().count(), 3);
    assert_eq!(line(&two, "binary16p1ue")[4..7], ["2^32765", "2^-32767", "2^-32767"]);
    assert_eq!(line(&two, "e4m3"), e4m3);
}

#[test]
fn a_page_shows_layout_constants_names_and_codes() {
    let page = stdout(&["F8_E4M3"]);
    assert!(page.starts_with("e4m3: 8 bits"), "{page}");
    assert!(page.lines().all(|line| line.len() <= 80), "{page}");
    assert!(page.contains("| s | exponent | significand |") && page.contains(" 6..3 "), "{page}");
    assert_eq!(line(&page, "largest"), ["largest", "448", "0x1.cp+8", "0x7e"]);
    assert_eq!(line(&page, "F8_E4M3"), ["F8_E4M3", "safetensors"]);
    assert!(line(&stdout(&["float8_e4m3"]), "e4m3").ends_with(&["here", "it", "is", "e4m3"]));
    assert!(line(&page, "e4m3fnuz").contains(&"240,"));
    assert_eq!(
        line(&page, "0x78"),
        ["0x78", "256", "288", "320", "352", "384", "416", "448", "NaN"]
    );
    let e2m1 = stdout(&["e2m1"]);
    assert_eq!(line(&e2m1, "0x0"), ["0x0", "0", "0.5", "1", "1.5", "2", "3", "4", "6"]);
    let unsigned = stdout(&["ue4m3"]);
    assert_eq!(line(&unsigned, "0x78"), line(&page, "0x78"));
    for name in [
        "f64",
        "binary16p1ue",
        "e0m4",
        "int8",
        "e8m0",
        "dlfloat16",
        "e1m3-ieee",
        "ue1m0finite",
        "e4m3b1000000",
    ] {
        assert!(stdout(&[name]).lines().all(|line| line.len() <= 80), "{}", stdout(&[name]));
    }
}

/// The value of C's hexadecimal floating-point text, read here.
fn hexadecimal(text: &str) -> Value {
    let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (digits, exponent) = rest.strip_prefix("0x").unwrap().split_once('p').unwrap();
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let significand = u64::from_str_radix(&format!("{whole}{fraction}"), 16).unwrap();
    let exponent = exponent.parse::<i32>().unwrap() - 4 * fraction.len() as i32;
    Value::Finite { negative, significand, exponent }
}

#[test]
fn every_code_as_csv() {
    for name in [
        "e4m3",
        "e2m1",
        "int8",
        "e8m0",
        "ue4m3",
        "binary16p1ue",
        "bf16",
        "e8m3",
        "e5m2",
        "dlfloat16",
    ] {
        let format: Format = name.parse().unwrap();
        let csv = stdout(&["--csv", name]);
        let mut lines = csv.lines();
        assert_eq!(lines.next(), Some("code,value,class"));
        let mut classes = BTreeMap::<String, u32>::new();
        for code in format.codes() {
            let cells: Vec<&str> = lines.next().unwrap().split(',').collect();
            let digits = format.bits().div_ceil(4) as usize;
            assert_eq!(cells[0], format!("0x{code:0digits$x}"));
            let value = format.decode(code);
            match value {
                Value::Nan { .. } => assert_eq!(cells[1], "NaN"),
                Value::Infinite { negative } => {
                    assert_eq!(cells[1], if negative { "-Inf" } else { "Inf" })
                }
                _ => {
                    assert_eq!(hexadecimal(cells[1]), value, "{name} {}", cells[1]);
                    assert_eq!(cells[1].starts_with('-'), value.is_sign_negative());
                }
            }
            *classes.entry(cells[2].to_owned()).or_default() += 1;
        }
        assert_eq!(lines.next(), None);
        let count = |class: &str| classes.get(class).copied().unwrap_or(0);
        let counts = ["nan", "inf", "zero", "subnormal", "normal"].map(count);
        let expected = match name {
            "e4m3" => [2, 0, 2, 14, 238],
            "e2m1" => [0, 0, 2, 2, 12],
            "int8" => [0, 0, 1, 0, 255],
            "e8m0" => [1, 0, 0, 0, 255],
            "ue4m3" => [1, 0, 1, 7, 119],
            "binary16p1ue" => [1, 1, 1, 0, 65533],
            "bf16" => [254, 2, 2, 254, 65024],
            "e8m3" => [14, 2, 2, 14, 4064],
            "dlfloat16" => [2, 0, 2, 0, 65532],
            _ => [6, 2, 2, 6, 240],
        };
        assert_eq!(counts, expected, "{name}");
    }
    assert!(stdout(&["e4m3", "--csv"]).contains("\n0x2a,0x1.4p-2,normal\n"));
    assert!(stdout(&["e4m3", "--csv"]).contains("\n0x80,-0x0p+0,zero\n"));
    assert!(stdout(&["binary16p1ue", "--csv"]).contains("\n0x0001,0x1p-32767,normal\n"));
}

#[test]
fn mistakes_are_answered() {
    assert!(fails(&["f32", "--csv"]).contains("f32 has 32"));
    assert!(fails(&["--csv"]).contains("--csv takes one format"));
    assert!(fails(&["e4m3", "bf16", "--csv"]).contains("not 2"));
    assert!(fails(&["e4m3fm"]).contains("did you mean e4m3"));
    assert!(fails(&["fp8"]).contains("e4m3fnuz (AMD gfx942)"));
    assert!(fails(&["e17m2"]).contains("at most 16"));
    assert!(fails(&["--csv", "--markdown"]).contains("cannot be used"));
}

/// These pages are the program's own text. With `EXMY_WRITE_DOCS=1` the test writes them.
#[test]
fn the_documentation_is_current() {
    is_current("formats.md", &stdout(&["--markdown"]));
    is_current("p3109.md", &printed(Path::new("."), "conformance", &["p3109"]));
}

/// κ is told, and what is not provided.
#[test]
fn specializations_are_asked_for() {
    let ask = |text: &str| exmy(&["conformance", "p3109", text]).output().unwrap();
    let known =
        ask("FMA<Binary8p3se, Binary8p3se, binary32, binary32, (NearestTiesToEven, SatNone)>");
    assert_eq!((known.status.code(), &known.stdout[..]), (Some(0), &b"kappa 0\n"[..]));
    let unknown = ask("Power<Binary8p3se, (ToOdd, SatNone)>");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("P3109 has no operation \"Power\""));
}

fn is_current(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("EXMY_WRITE_DOCS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(
        page == text,
        "docs/{name} is stale: EXMY_WRITE_DOCS=1 cargo test -p exmy-lab --test command formats"
    );
}
