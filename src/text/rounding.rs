//! Names of rounding modes and overflow policies.
//!
//! Modes: `rne rna rnz rtz rup rdn raz odd`, and `srN`, `srNb`, `srNc` for stochastic rounding with
//! N bits (`srNa` reads as `srN`). Policies: `sat-none sat-finite sat-propagate to-nan to-inf onnx`.

use core::fmt;
use core::str::FromStr;

use super::{Short, UnknownName};
use crate::round::{Overflow, Rounding, StochasticVariant};

const MODES: [(&str, Rounding); 8] = [
    ("rne", Rounding::Rne),
    ("rna", Rounding::Rna),
    ("rnz", Rounding::Rnz),
    ("rtz", Rounding::Rtz),
    ("rup", Rounding::Rup),
    ("rdn", Rounding::Rdn),
    ("raz", Rounding::Raz),
    ("odd", Rounding::Odd),
];

const POLICIES: [(&str, Overflow); 6] = [
    ("sat-none", Overflow::None),
    ("sat-finite", Overflow::Finite),
    ("sat-propagate", Overflow::Propagate),
    ("to-nan", Overflow::Nan),
    ("to-inf", Overflow::Infinity),
    ("onnx", Overflow::Onnx),
];

impl fmt::Display for Rounding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Stochastic { variant, bits } = self {
            let variant = match variant {
                StochasticVariant::A => "",
                StochasticVariant::B => "b",
                StochasticVariant::C => "c",
            };
            return f.pad(Short::of(format_args!("sr{bits}{variant}")).as_str());
        }
        let name = MODES.iter().find(|(_, mode)| mode == self);
        f.pad(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for Rounding {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((_, mode)) = MODES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            return Ok(*mode);
        }
        stochastic(text).ok_or_else(|| {
            let names = MODES.iter().map(|(name, _)| *name).chain(["sr8", "sr16", "sr32"]);
            let forms =
                "rne, rna, rnz, rtz, rup, rdn, raz, odd, or srN, srNb, srNc with N from 1 to 32";
            UnknownName::new("rounding mode", text, names, forms)
        })
    }
}

fn stochastic(text: &str) -> Option<Rounding> {
    let head = text.get(..2)?;
    let rest = head.eq_ignore_ascii_case("sr").then(|| &text[2..])?;
    let (digits, variant) = match *rest.as_bytes().last()? {
        b'a' | b'A' => (&rest[..rest.len() - 1], StochasticVariant::A),
        b'b' | b'B' => (&rest[..rest.len() - 1], StochasticVariant::B),
        b'c' | b'C' => (&rest[..rest.len() - 1], StochasticVariant::C),
        _ => (rest, StochasticVariant::A),
    };
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    let bits = digits.parse().ok().filter(|bits| plain && (1..=32).contains(bits))?;
    Some(Rounding::Stochastic { variant, bits })
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = POLICIES.iter().find(|(_, policy)| policy == self);
        f.pad(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for Overflow {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = POLICIES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, policy)| *policy).ok_or_else(|| {
            let names = POLICIES.iter().map(|(name, _)| *name);
            let forms = "sat-none, sat-finite, sat-propagate, to-nan, to-inf, onnx";
            UnknownName::new("overflow policy", text, names, forms)
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    #[test]
    fn modes_round_trip() {
        for (i, mode) in Rounding::DETERMINISTIC.into_iter().enumerate() {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            assert_eq!(mode.to_string(), MODES[i].0);
        }
        for variant in [StochasticVariant::A, StochasticVariant::B, StochasticVariant::C] {
            for bits in 1..=32 {
                let mode = Rounding::Stochastic { variant, bits };
                assert_eq!(mode.to_string().parse(), Ok(mode));
            }
        }
        assert_eq!("SR8A".parse(), Ok(Rounding::stochastic(8)));
        assert_eq!(Rounding::stochastic(8).to_string(), "sr8");
        for wrong in ["", "sr", "sr0", "sr33", "sr08", "sr+8", "sr8d", "sra", "s\u{e9}8", "rne "] {
            assert!(wrong.parse::<Rounding>().is_err(), "{wrong}");
        }
        assert!("rnee".parse::<Rounding>().unwrap_err().to_string().contains("did you mean rne"));
    }

    #[test]
    fn policies_round_trip() {
        for policy in Overflow::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let error = "sat-finit".parse::<Overflow>().unwrap_err();
        assert_eq!(error.nearest()[0], "sat-finite");
    }
}
