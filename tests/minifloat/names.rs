//! The constants that the documentation of each named type gives, from the code.

use exmy::format::{Format, Value};
use exmy::minifloat::*;

fn number(value: Value) -> String {
    let Value::Finite { negative, significand, exponent } = value else { return value.to_string() };
    if significand == 0 {
        return "0".to_owned();
    }
    let sign = if negative { "-" } else { "" };
    let places = significand.trailing_zeros();
    match (significand >> places, exponent + places as i32) {
        (1, power @ ..=-1 | power @ 20..) => format!("{sign}2^{power}"),
        (odd, power @ 20..) => format!("{sign}{odd} * 2^{power}"),
        _ => format!("{value:#}"),
    }
}

/// Two lines of a type's documentation.
fn line(format: Format) -> String {
    let one = |name: &str, code: Option<u64>| match code {
        Some(code) => format!("`{name}` {}", number(format.decode(code))),
        None => format!("no `{name}`"),
    };
    let list = [
        one("MAX", Some(format.max_code())),
        one("MIN", Some(format.min_code())),
        one("MIN_NORMAL", format.min_normal_code()),
        one("MIN_POSITIVE", Some(format.min_positive_code())),
        one("EPSILON", format.epsilon_code()),
    ];
    let has = |name, code: Option<u64>| match code {
        Some(code) => format!("{name} {code:#x}"),
        None => format!("no {name}"),
    };
    let special = [
        has("NaN", format.nan_code()),
        has("infinity", format.infinity_code(false)),
        has("one", format.one_code()),
    ];
    format!("/// {};\n/// {}.", list.join(", "), special.join(", "))
}

macro_rules! names {
    ($($name:ident)*) => { [$((stringify!($name), <$name>::FORMAT)),*] };
}

#[test]
fn documentation_tells_the_constants() {
    let source = include_str!("../../src/minifloat/names.rs");
    let names = names! {
        E4M3 E5M2 E4M3Ieee E3M4 E4M3Fnuz E5M2Fnuz E4M3B11Fnuz E3M2 E2M3 E2M1 E3M0 Int8 E8M0 Ue4m3
        Ue5m3 F16 Bf16 Tf32 E8M3 E8M4 E8M5 E8M6 E8M13 Binary8p3se Binary8p4se Binary8p5se Binary8p1uf
        Binary4p2sf
    };
    assert_eq!(source.matches("\npub type ").count(), names.len());
    for (name, format) in names {
        let line = line(format);
        let (before, _) = source.split_once(&format!("\npub type {name} ")).expect(name);
        let documentation = before.rsplit("\npub type ").next().unwrap_or_default();
        assert!(documentation.contains(&line), "{name}: {line}");
    }
}
