//! The element types of safetensors files.
//!
//! The names, their widths and what they hold are those of the reference implementation
//! (<https://github.com/huggingface/safetensors>, 0.8). `F8_E4M3` is OCP's E4M3, without infinities;
//! `F4` is E2M1. A tensor's bits are a whole number of bytes, whatever the width of its elements.

use core::fmt;
use core::str::FromStr;

use crate::format::Format;
use crate::text::UnknownName;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the type of the same name in the file format")]
#[non_exhaustive]
pub enum Dtype {
    Bool,
    F4,
    F6E2M3,
    F6E3M2,
    U8,
    I8,
    F8E5M2,
    F8E4M3,
    F8E8M0,
    F8E4M3Fnuz,
    F8E5M2Fnuz,
    I16,
    U16,
    F16,
    BF16,
    I32,
    U32,
    F32,
    C64,
    F64,
    I64,
    U64,
}

impl Dtype {
    /// All types: name in files, bits an element, and the format whose codes the elements are.
    const TABLE: [(Self, &'static str, u32, Option<Format>); 22] = [
        (Self::Bool, "BOOL", 8, None),
        (Self::F4, "F4", 4, Some(Format::E2M1)),
        (Self::F6E2M3, "F6_E2M3", 6, Some(Format::E2M3)),
        (Self::F6E3M2, "F6_E3M2", 6, Some(Format::E3M2)),
        (Self::U8, "U8", 8, None),
        (Self::I8, "I8", 8, None),
        (Self::F8E5M2, "F8_E5M2", 8, Some(Format::E5M2)),
        (Self::F8E4M3, "F8_E4M3", 8, Some(Format::E4M3FN)),
        (Self::F8E8M0, "F8_E8M0", 8, Some(Format::E8M0)),
        (Self::F8E4M3Fnuz, "F8_E4M3FNUZ", 8, Some(Format::E4M3FNUZ)),
        (Self::F8E5M2Fnuz, "F8_E5M2FNUZ", 8, Some(Format::E5M2FNUZ)),
        (Self::I16, "I16", 16, None),
        (Self::U16, "U16", 16, None),
        (Self::F16, "F16", 16, Some(Format::F16)),
        (Self::BF16, "BF16", 16, Some(Format::BF16)),
        (Self::I32, "I32", 32, None),
        (Self::U32, "U32", 32, None),
        (Self::F32, "F32", 32, Some(Format::F32)),
        (Self::C64, "C64", 64, None),
        (Self::F64, "F64", 64, Some(Format::F64)),
        (Self::I64, "I64", 64, None),
        (Self::U64, "U64", 64, None),
    ];

    /// All types, in the order of the reference implementation.
    pub const ALL: [Self; 22] = {
        let mut all = [Self::Bool; 22];
        let mut i = 0;
        while i < all.len() {
            all[i] = Self::TABLE[i].0;
            i += 1;
        }
        all
    };

    const fn row(self) -> (Self, &'static str, u32, Option<Format>) {
        Self::TABLE[self as usize]
    }

    /// The name in files.
    ///
    /// ```
    /// use exmy::safetensors::Dtype;
    ///
    /// assert_eq!(Dtype::F8E4M3.name(), "F8_E4M3"); // OCP's, without infinities
    /// assert_eq!("F8_E4M3FNUZ".parse(), Ok(Dtype::F8E4M3Fnuz));
    /// assert!("f32".parse::<Dtype>().is_err()); // the file format's names are upper case
    /// ```
    pub const fn name(self) -> &'static str {
        self.row().1
    }

    /// Bits of an element.
    ///
    /// ```
    /// use exmy::safetensors::Dtype;
    ///
    /// assert_eq!([Dtype::Bool, Dtype::F6E2M3, Dtype::C64].map(Dtype::bits), [8, 6, 64]);
    /// ```
    pub const fn bits(self) -> u32 {
        self.row().2
    }

    /// The format whose codes the elements are; `None` of integers, booleans and complex numbers.
    ///
    /// ```
    /// use exmy::safetensors::Dtype;
    /// use exmy::format::Format;
    ///
    /// assert_eq!(Dtype::F8E4M3.format(), Some(Format::E4M3FN));
    /// assert_eq!(Dtype::U8.format(), None); // even where a file's bytes are codes: it does not say of what
    /// ```
    pub const fn format(self) -> Option<Format> {
        self.row().3
    }

    /// Whether the elements are floating-point numbers of at least 16 bits: what models are trained
    /// and shared in before they are quantized.
    ///
    /// ```
    /// use exmy::safetensors::Dtype;
    ///
    /// assert!(Dtype::BF16.is_wide_float());
    /// assert!(!Dtype::F8E5M2.is_wide_float() && !Dtype::C64.is_wide_float());
    /// ```
    pub const fn is_wide_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    /// The type that holds codes of `format`: its own, `F8_E4M3` for E4M3 without sign, `I8` for
    /// MX's INT8, else an unsigned integer of exactly its width; `None` where there is none.
    ///
    /// ```
    /// use exmy::safetensors::Dtype;
    /// use exmy::format::Format;
    ///
    /// assert_eq!(Dtype::holding(Format::E2M1), Some(Dtype::F4));
    /// assert_eq!(Dtype::holding(Format::UE4M3), Some(Dtype::F8E4M3)); // the same codes, sign bit 0
    /// assert_eq!(Dtype::holding(Format::E3M4), Some(Dtype::U8)); // 8 bits without a name of its own
    /// assert_eq!(Dtype::holding(Format::E3M0), None); // F4 is E2M1
    /// ```
    pub fn holding(format: Format) -> Option<Self> {
        let own = Self::TABLE.iter().find(|row| row.3 == Some(format));
        match (own, format.bits()) {
            (Some(row), _) => Some(row.0),
            (None, _) if format == Format::UE4M3 => Some(Self::F8E4M3),
            (None, _) if format == Format::INT8 => Some(Self::I8),
            (None, 8) => Some(Self::U8),
            (None, 16) => Some(Self::U16),
            _ => None,
        }
    }

    /// Bytes that `count` elements take; `None` if that is no whole number of bytes, or more than
    /// a `u64` counts.
    ///
    /// ```
    /// use exmy::safetensors::Dtype;
    ///
    /// assert_eq!(Dtype::F6E3M2.bytes(4), Some(3));
    /// assert_eq!(Dtype::F4.bytes(3), None); // 12 bits
    /// ```
    pub const fn bytes(self, count: u64) -> Option<u64> {
        match count.checked_mul(self.bits() as u64) {
            Some(bits) if bits.is_multiple_of(8) => Some(bits / 8),
            _ => None,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Dtype {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::TABLE.iter().find(|row| row.1 == text);
        found.map(|row| row.0).ok_or_else(|| {
            let names = Self::TABLE.iter().map(|row| row.1);
            UnknownName::new(
                "safetensors dtype",
                text,
                names,
                "BOOL F4 F6_E2M3 F6_E3M2 U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ \
                 I16 U16 F16 BF16 I32 U32 F32 C64 F64 I64 U64",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_variants() {
        for (i, dtype) in Dtype::ALL.into_iter().enumerate() {
            assert_eq!(dtype as usize, i);
            assert_eq!(dtype.name().parse(), Ok(dtype));
            assert!(dtype.format().is_none_or(|format| format.bits() == dtype.bits()));
        }
        let error = "F8_E4M2".parse::<Dtype>().unwrap_err();
        assert!(error.nearest().contains(&"F8_E4M3"), "{error}");
        for dtype in Dtype::ALL {
            assert!(error.to_string().contains(dtype.name()));
        }
    }
}
