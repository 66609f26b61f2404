//! How cases are written down: as TestFloat's lines, for Verilog's `$readmemh`, as a package of
//! SystemVerilog, as a C array, or as JSON.

use std::fmt;
use std::str::FromStr;

use crate::text::UnknownName;

/// A notation for cases.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Style {
    /// Operands, result and flags in upper-case hexadecimal, separated by blanks.
    #[default]
    Testfloat,
    /// One word a case, its fields of whole hexadecimal digits joined by `_`; comments in front say
    /// which bits they are.
    Readmemh,
    /// A package of SystemVerilog: the number of cases, the widths, a packed struct and an array of it.
    Sv,
    /// A struct and an array of it.
    C,
    /// One object: the function, the rules, and the cases as arrays of hexadecimal strings.
    Json,
}

impl Style {
    const NAMES: [(&str, Self); 5] = [
        ("testfloat", Self::Testfloat),
        ("readmemh", Self::Readmemh),
        ("sv", Self::Sv),
        ("c", Self::C),
        ("json", Self::Json),
    ];
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, style)| style == self);
        f.pad(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for Style {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let found = Self::NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, style)| *style).ok_or_else(|| {
            let names = Self::NAMES.iter().map(|(name, _)| *name);
            UnknownName::new("style", text, names, "testfloat, readmemh, sv, c, json")
        })
    }
}

/// One column of a case.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) bits: u32,
    pub(super) what: String,
}

impl Field {
    pub(super) fn digits(&self) -> usize {
        self.bits.div_ceil(4) as usize
    }

    pub(super) fn c_type(&self) -> &'static str {
        match self.bits {
            0..=8 => "uint8_t",
            9..=16 => "uint16_t",
            17..=32 => "uint32_t",
            _ => "uint64_t",
        }
    }
}
