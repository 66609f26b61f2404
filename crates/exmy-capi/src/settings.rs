//! What a name leaves open, as text: `round=rtz,overflow=sat-finite`.
//!
//! A text holds settings with commas or blanks between them; it may be empty or null. The words are those
//! of the program's options: `--round rtz` is `round=rtz` here.

use std::fmt;
use std::str::FromStr;

use exmy::math::IntInvalid;
use exmy::vectors::evaluate::Settings;

use crate::status::Failure;

/// What each key may be, for those that ask for something else.
const KEYS: [(&str, &str); 8] = [
    ("round", "rne, rna, rnz, rtz, rup, rdn, raz, odd, or srN, srNb, srNc with N from 1 to 32"),
    ("overflow", "sat-none, sat-finite, sat-propagate, to-nan, to-inf or onnx"),
    ("profile", "ieee, p3109, ocp-sat, ocp-nonsat, cuda-satfinite, torch, x86, riscv or another"),
    ("tininess", "after or before"),
    ("flush", "flush-none, flush-input, flush-candidates or flush-output"),
    ("subnormals", "exact, zero or positive-zero"),
    ("exact", "yes or no"),
    ("int-invalid", "x86, riscv or arm"),
];

/// The pairs of a text, in which each key stands once: of two values one would be lost without a word.
pub(crate) fn pairs(text: &str) -> Result<Vec<(&str, &str)>, Failure> {
    let words = text.split([',', ' ', '\t', '\n']).filter(|word| !word.is_empty());
    let mut found: Vec<(&str, &str)> = Vec::new();
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        if let Some((_, first)) = found.iter().find(|(other, _)| *other == key) {
            return Err(Failure::name(format_args!(
                "{key} is set a second time, to {value:?} after {first:?}: each setting has one value"
            )));
        }
        found.push((key, value));
    }
    Ok(found)
}

/// A value that has a name.
pub(crate) fn named<T: FromStr<Err: fmt::Display>>(key: &str, value: &str) -> Result<T, Failure> {
    value.parse().map_err(|error| Failure::name(format_args!("{key}={value}: {error}")))
}

/// One of a few words.
pub(crate) fn word<T: Copy>(key: &str, value: &str, words: &[(&str, T)]) -> Result<T, Failure> {
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(value));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Failure::name(format_args!("{key}={value}: {key} is {}", words.join(" or ")))
    })
}

/// The complaint about a key that is none.
pub(crate) fn unknown(
    key: &str,
    keys: impl Iterator<Item = (&'static str, &'static str)>,
) -> Failure {
    let mut text = format!("no setting is called {key:?}");
    for (i, (key, values)) in keys.enumerate() {
        text += &format!("{} {key}={{{values}}}", if i == 0 { "; there are" } else { "," });
    }
    Failure::name(text)
}

/// The settings of a function or a conversion.
pub(crate) fn read(text: Option<&str>) -> Result<Settings, Failure> {
    let mut settings = Settings::default();
    for (key, value) in pairs(text.unwrap_or_default())? {
        match key {
            "round" => settings.rounding = Some(named(key, value)?),
            "overflow" => settings.overflow = Some(named(key, value)?),
            "profile" => settings.profile = named(key, value)?,
            "tininess" => settings.tininess = Some(named(key, value)?),
            "flush" => settings.flush = Some(named(key, value)?),
            "subnormals" => settings.operands = Some(named(key, value)?),
            "exact" => settings.exact = word(key, value, &[("yes", true), ("no", false)])?,
            "int-invalid" => {
                let words = [
                    ("x86", IntInvalid::X86),
                    ("riscv", IntInvalid::Riscv),
                    ("arm", IntInvalid::Arm),
                ];
                settings.int_invalid = word(key, value, &words)?;
            }
            _ => return Err(unknown(key, KEYS.into_iter())),
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use exmy::Rounding;
    use exmy::round::{Flush, Operands, Profile, Tininess};

    #[test]
    fn every_key_is_read() {
        let text = "round=sr4b, overflow=to-nan profile=riscv,tininess=before flush=flush-output \
                    subnormals=zero exact=yes,int-invalid=arm";
        let all = read(Some(text)).unwrap();
        assert_eq!(all.rounding.unwrap().to_string(), "sr4b");
        assert_eq!((all.profile, all.tininess), (Profile::Riscv, Some(Tininess::Before)));
        assert_eq!((all.flush, all.operands), (Some(Flush::Output), Some(Operands::Zero)));
        assert!(all.exact && all.int_invalid == IntInvalid::Arm && all.overflow.is_some());
        assert_eq!(read(None).unwrap(), Settings::default());
        let rtz = read(Some("round=rtz,")).unwrap();
        assert_eq!(rtz, Settings { rounding: Some(Rounding::TowardZero), ..Settings::default() });
        for (key, _) in KEYS {
            let error = read(Some(&format!("{key}=what"))).unwrap_err();
            assert!(format!("{error:?}").contains(&format!("{key}=what")), "{error:?}");
        }
        for (text, part) in [
            ("rounding=rne", "round={rne, rna"),
            (
                "round=rtz,exact=no round=rup",
                "round is set a second time, to \\\"rup\\\" after \\\"rtz",
            ),
            ("exact=no,exact=no", "exact is set a second time"),
        ] {
            let error = format!("{:?}", read(Some(text)).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
    }
}
