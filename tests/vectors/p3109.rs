//! The statement of conformance with P3109: what it names exists, and what the report asks for is provided.

use std::path::Path;

use exmy::vectors::p3109::{OPERATIONS, Signature, kappa, operation};

fn source(folder: &str) -> String {
    let mut text = String::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                text += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    text
}

#[test]
fn calls_and_tests_exist() {
    let (math, mut format) = (source("src/math"), source("src/format") + &source("src/block"));
    format +=
        &std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/format.rs")).unwrap();
    for row in OPERATIONS {
        for file in row.tests.split(", ") {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{file}.rs"));
            assert!(path.exists(), "{} of {}", exmy::shown::printable_path(&path), row.name);
        }
        let call = row.call.split([',', ';']).next().unwrap();
        let name = call.rsplit("::").next().unwrap();
        // A function, or a line of a macro that makes some.
        let forms = [
            format!("fn {name}("),
            format!("fn {name}<"),
            format!("    {name}: "),
            format!("    {name} "),
        ];
        let there = |text: &str| forms.iter().any(|form| text.contains(form));
        assert!(there(&math) || there(&format), "{call} of {}", row.name);
    }
    let mut names: Vec<&str> = OPERATIONS.iter().map(|row| row.name).collect();
    // Annex G: 32 of group A, 3 that are blocks' own, 12, 16, 21, 3.
    assert_eq!(names.len(), 32 + 3 + 12 + 16 + 21 + 3);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 87);
}

/// Clause 4.5: what a conforming implementation provides, for every combination of formats.
#[test]
fn what_is_asked_of_everybody_is_provided() {
    let f8 = ["Binary8p4se", "Binary8p3se"];
    let own = ["Binary8p4se", "Binary8p3se", "Binary4p2sf"];
    let external = ["binary32", "binary16", "BFloat16"];
    let results: Vec<&str> = f8.iter().chain(&external).copied().collect();
    let all: Vec<&str> = own.iter().chain(&external).copied().collect();
    let mut asked = Vec::new();
    let rule = "(NearestTiesToEven, SatNone)";
    for f in all.iter() {
        for r in &all {
            asked.extend(["Convert", "Recip"].map(|name| format!("{name}<{f}, {r}, {rule}>")));
        }
        for row in OPERATIONS.iter().filter(|row| row.group == "M") {
            asked.push(format!("{}<{f}>", row.name));
        }
    }
    for f in own {
        asked.extend(["Negate", "Abs"].map(|name| format!("{name}<{f}, {f}, {rule}>")));
        for row in OPERATIONS.iter().filter(|row| row.group == "A") {
            match row.signature {
                Signature::Format => asked.push(format!("{}<{f}>", row.name)),
                Signature::Truth => asked.push(format!("{}<{f}, {f}>", row.name)),
                _ if row.name.starts_with("M") && row.name.contains("imum") => {
                    asked.push(format!("{}<{f}, {f}, {f}, {rule}>", row.name));
                }
                _ => {}
            }
        }
        asked.extend(["NextGreaterThan", "NextLessThan"].map(|name| format!("{name}<{f}>")));
        for g in own {
            for r in &results {
                for name in ["Add", "Subtract", "Multiply"] {
                    asked.push(format!("{name}<{f}, {g}, {r}, {rule}>"));
                    let scaled = format!("(Binary8p1uf, {f}), (Binary8p1uf, {g})");
                    asked.push(format!("Scaled{name}<{scaled}, {r}, {rule}>"));
                }
            }
            for r in external {
                asked.extend(
                    ["FMA", "FAA"].map(|name| format!("{name}<{f}, {g}, {r}, {r}, {rule}>")),
                );
            }
        }
    }
    assert!(asked.len() > 500, "{}", asked.len());
    for asked in asked {
        assert_eq!(kappa(&asked).ok(), Some(0), "{asked}: {:?}", kappa(&asked).err());
    }
}

#[test]
fn what_is_not_provided_is_said() {
    // The report's own examples, of 4.6 and D.2.
    for text in [
        "Exp<Binary8p3se, Binary8p4se, (NearestTiesToEven, SatFinite)>",
        "BlockDotProduct<8, Binary8p1uf, Binary8p4se, Binary8p1uf, Binary8p4se, binary32, \
         (NearestTiesToEven, SatNone)>",
        "BlockFMA<32, Binary8p1uf, Binary4p2sf, Binary8p1uf, Binary4p2sf, binary32, BFloat16, Binary8p1uf, \
         Binary8p4se, (StochasticB(8), SatPropagate)>",
        "ConvertToBlockMaxAbsFinite<16, binary32, Binary8p4uf, Binary4p2sf, (TowardPositive, SatFinite), \
         (ToOdd, SatFinite)>",
    ] {
        assert_eq!(kappa(text).unwrap(), 0, "{text}");
    }
    for (text, part) in [
        ("Add", "is no specialization"),
        ("Power<Binary8p3se, Binary8p3se, (ToOdd, SatNone)>", "no operation \"Power\""),
        ("Exp<Binary8p3se, (ToOdd, SatNone)>", "is of 2 formats, not 1"),
        ("Exp<Binary8p3se, Binary8p9xx, (ToOdd, SatNone)>", "\"binary8p9xx\" is no format"),
        ("Exp<Binary8p3se, Binary8p3se, (Nearest, SatNone)>", "is no projection"),
        ("Exp<Binary8p3se, Binary8p3se, (StochasticA(40), SatNone)>", "is no projection"),
        ("BlockAdd<0, f32, f32, f32, f32, f32, f32, (ToOdd, SatNone)>", "B, ..."),
        ("BlockTotalOrder<4, f32, f32>", "no operation"),
        ("BlockExp<4, binary64, binary32, binary32, binary32, (ToOdd, SatNone)>", "not provided"),
        ("Sin<Binary16p1ue, binary32, (ToOdd, SatNone)>", "not provided"),
    ] {
        let error = kappa(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    assert_eq!(operation("ScaledHypot").map(|row| row.signature), Some(Signature::Scaled(2)));
}
