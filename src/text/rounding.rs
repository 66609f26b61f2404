//! Names of rounding modes, overflow policies, profiles and the other rules.
//!
//! Modes: `rne rna rnz rtz rup rdn raz odd`, and `srN`, `srNb`, `srNc` for stochastic rounding with
//! N bits (`srNa` reads as `srN`). Policies: `sat-none sat-finite sat-propagate to-nan to-inf onnx`.
//! Profiles: [`Profile::ALL`] by their names; `flush-none flush-input flush-candidates
//! flush-output`; tininess `after before`; subnormal operands `exact zero positive-zero away`.

use core::fmt;
use core::str::FromStr;

use super::{Short, UnknownName};
use crate::round::{Flush, Operands, Overflow, Profile, Rounding, StochasticVariant, Tininess};

const MODES: [(&str, Rounding); 8] = [
    ("rne", Rounding::TiesToEven),
    ("rna", Rounding::TiesToAway),
    ("rnz", Rounding::TiesToZero),
    ("rtz", Rounding::TowardZero),
    ("rup", Rounding::TowardPositive),
    ("rdn", Rounding::TowardNegative),
    ("raz", Rounding::AwayFromZero),
    ("odd", Rounding::ToOdd),
];

const POLICIES: [(&str, Overflow); 6] = [
    ("sat-none", Overflow::None),
    ("sat-finite", Overflow::Finite),
    ("sat-propagate", Overflow::Propagate),
    ("to-nan", Overflow::Nan),
    ("to-inf", Overflow::Infinity),
    ("onnx", Overflow::Onnx),
];

const PROFILES: [(&str, Profile); 16] = [
    ("ieee", Profile::Ieee),
    ("p3109", Profile::P3109),
    ("ocp-sat", Profile::OcpSat),
    ("ocp-nonsat", Profile::OcpNonsat),
    ("ml-dtypes", Profile::MlDtypes),
    ("cuda-nosat", Profile::CudaNosat),
    ("cuda-satfinite", Profile::CudaSatfinite),
    ("cuda-satfinite-relu", Profile::CudaSatfiniteRelu),
    ("cuda-tf32-rna", Profile::CudaTf32Rna),
    ("torch", Profile::Torch),
    ("torch-nosat", Profile::TorchNosat),
    ("onnx", Profile::Onnx),
    ("onnx-nosat", Profile::OnnxNosat),
    ("microxcaling", Profile::Microxcaling),
    ("x86", Profile::X86),
    ("riscv", Profile::Riscv),
];

const FLUSHES: [(&str, Flush); 4] = [
    ("flush-none", Flush::None),
    ("flush-input", Flush::Input),
    ("flush-candidates", Flush::Candidates),
    ("flush-output", Flush::Output),
];

const TININESS: [(&str, Tininess); 2] = [("after", Tininess::After), ("before", Tininess::Before)];

const OPERANDS: [(&str, Operands); 4] = [
    ("exact", Operands::Exact),
    ("zero", Operands::Zero),
    ("positive-zero", Operands::PositiveZero),
    ("away", Operands::Away),
];

/// `Display` and `FromStr` from a table of names.
macro_rules! names {
    ($type:ident, $table:ident, $what:literal, $forms:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let name = $table.iter().find(|(_, value)| value == self);
                f.pad(name.map_or("", |(name, _)| name))
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = $table.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
                found.map(|(_, value)| *value).ok_or_else(|| {
                    let names = $table.iter().map(|(name, _)| *name);
                    UnknownName::new($what, text, names, $forms)
                })
            }
        }
    };
}

names!(
    Overflow,
    POLICIES,
    "overflow policy",
    "sat-none, sat-finite, sat-propagate, to-nan, to-inf, onnx"
);
names!(
    Profile,
    PROFILES,
    "profile",
    "ieee, p3109, ocp-sat, ocp-nonsat, ml-dtypes, cuda-nosat, cuda-satfinite, cuda-satfinite-relu, \
     cuda-tf32-rna, torch, torch-nosat, onnx, onnx-nosat, microxcaling, x86, riscv"
);
names!(Flush, FLUSHES, "flush policy", "flush-none, flush-input, flush-candidates, flush-output");
names!(Operands, OPERANDS, "reading of subnormal operands", "exact, zero, positive-zero, away");
names!(Tininess, TININESS, "notion of tininess", "after, before");

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
        let error = "cuda".parse::<Profile>().unwrap_err().to_string();
        for profile in Profile::ALL {
            let name = profile.to_string();
            assert_eq!(name.parse(), Ok(profile));
            assert!(error.contains(&name), "{error}");
        }
        for (name, flush) in FLUSHES {
            assert_eq!((flush.to_string().as_str(), name.parse()), (name, Ok(flush)));
        }
        for (name, operands) in OPERANDS {
            assert_eq!((operands.to_string().as_str(), name.parse()), (name, Ok(operands)));
        }
        for (name, tininess) in TININESS {
            assert_eq!((tininess.to_string().as_str(), name.parse()), (name, Ok(tininess)));
        }
    }
}
