//! Scalar conversions: binary32, binary64 and values of other formats to codes and back.
//!
//! A binary64 number never passes through binary32 on its way to a code. Rounding twice is the
//! field's classic error: 1.0625 + 2^-40 is 0x39 in E4M3FN and becomes 0x38 by way of binary32.

use super::{Overflow, Rounded, Rounding, Rules};
use crate::format::{Format, Value};

impl Format {
    /// The code of any value, by way of [`round`](Self::round) if it is finite. `random` is as
    /// there.
    ///
    /// NaN becomes the canonical NaN, with its sign where the format has NaNs of both signs. A
    /// format without NaN gives its largest value (as the PTX conversions to FP6 and FP4) and
    /// sets [`Flags::INVALID`](super::Flags::INVALID).
    ///
    /// ```
    /// use exmy::format::{Format, Value};
    /// use exmy::round::{Flags, Overflow, Rounding};
    ///
    /// let nan = Format::E2M1.encode(Value::from_f32(f32::NAN), Rounding::TiesToEven, Overflow::None, 0);
    /// assert_eq!((nan.code, nan.flags), (0x7, Flags::INVALID)); // FP4 has no NaN: its largest number
    /// let minus = Format::UE4M3.encode(Value::from_f32(-1.0), Rounding::TiesToEven, Overflow::Finite, 0);
    /// assert_eq!(minus.code, 0); // nothing below zero
    /// ```
    ///
    /// # Panics
    /// If `mode` is stochastic with a bit count outside 1..=32.
    #[inline]
    pub const fn encode(
        self,
        value: Value,
        mode: Rounding,
        overflow: Overflow,
        random: u32,
    ) -> Rounded {
        self.encode_by(value, &Rules { rounding: mode, overflow, ..Rules::DEFAULT }, random)
    }

    /// The code of any value by all rules that concern results; see
    /// [`round_by`](Self::round_by). A NaN has no payload here.
    ///
    /// ```
    /// use exmy::format::{Format, Value};
    /// use exmy::round::{AbsentNan, NanRules, Rules};
    ///
    /// // As ml_dtypes: NaN becomes a zero of the other sign in formats without NaN.
    /// let nan = NanRules::CANONICAL.with_absent(AbsentNan::OppositeZero);
    /// let rules = Rules::DEFAULT.with_nan(nan);
    /// assert_eq!(Format::E2M1.encode_by(Value::from_f32(f32::NAN), &rules, 0).code, 0x8);
    /// ```
    ///
    /// # Panics
    /// If the mode is stochastic with a bit count outside 1..=32.
    #[inline]
    pub const fn encode_by(self, value: Value, rules: &Rules, random: u32) -> Rounded {
        match value {
            Value::Nan { negative } => self.round_nan(negative, 0, rules),
            Value::Infinite { negative } => self.round_infinity(negative, rules),
            Value::Finite { .. } => match value.exact() {
                Some(exact) => self.round_by(exact, rules, random),
                None => unreachable!(),
            },
        }
    }

    /// The code of a binary32 number; see [`encode`](Self::encode).
    ///
    /// # Panics
    /// If `mode` is stochastic with a bit count outside 1..=32.
    ///
    /// ```
    /// use exmy::{format::Format, round::{Flags, Overflow, Rounding}};
    ///
    /// let rounded = Format::E4M3FN.encode_f32(500.0, Rounding::TiesToEven, Overflow::Finite, 0);
    /// assert_eq!(Format::E4M3FN.to_f32(rounded.code), 448.0);
    /// assert!(rounded.flags.contains(Flags::OVERFLOW | Flags::SATURATED));
    /// ```
    #[inline]
    pub const fn encode_f32(
        self,
        x: f32,
        mode: Rounding,
        overflow: Overflow,
        random: u32,
    ) -> Rounded {
        self.encode(Value::from_f32(x), mode, overflow, random)
    }

    /// The code of a binary64 number, rounded once; see [`encode`](Self::encode).
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::round::{Overflow, Rounding};
    ///
    /// let x = 1.0625 + 2.0_f64.powi(-40); // just above a tie
    /// let once = Format::E4M3FN.encode_f64(x, Rounding::TiesToEven, Overflow::None, 0);
    /// let twice = Format::E4M3FN.encode_f32(x as f32, Rounding::TiesToEven, Overflow::None, 0);
    /// assert_eq!((once.code, twice.code), (0x39, 0x38));
    /// ```
    ///
    /// # Panics
    /// If `mode` is stochastic with a bit count outside 1..=32.
    #[inline]
    pub const fn encode_f64(
        self,
        x: f64,
        mode: Rounding,
        overflow: Overflow,
        random: u32,
    ) -> Rounded {
        self.encode(Value::from_f64(x), mode, overflow, random)
    }

    /// The value of a code as binary32, exactly where
    /// [`is_exact_in_f32`](Self::is_exact_in_f32), else to nearest even. NaN is quiet and without
    /// payload.
    ///
    /// ```
    /// use exmy::format::{Format, Value};
    ///
    /// assert_eq!(Format::E4M3FN.to_f32(0x01), 2.0_f32.powi(-9));
    /// let wide = Format::ieee(9, 1)?;
    /// assert_eq!(wide.to_f32(wide.max_code()), f32::INFINITY); // 1.5 x 2^255
    /// assert_eq!(wide.to_f64(wide.max_code()), 1.5 * 2.0_f64.powi(255));
    /// assert_eq!(Value::from_f64(1.0 + 2.0_f64.powi(-24)).to_f32(), 1.0); // a tie
    /// # Ok::<(), exmy::format::FormatError>(())
    /// ```
    #[inline]
    pub const fn to_f32(self, code: u64) -> f32 {
        self.decode(code).to_f32()
    }

    /// The value of a code as binary64, exactly where
    /// [`is_exact_in_f64`](Self::is_exact_in_f64), else to nearest even. NaN is quiet and without
    /// payload.
    #[inline]
    pub const fn to_f64(self, code: u64) -> f64 {
        self.decode(code).to_f64()
    }
}

impl Value {
    /// The nearest binary32 number, ties to even; beyond the largest, infinity.
    pub const fn to_f32(self) -> f32 {
        let rounded = Format::F32.encode(self, Rounding::TiesToEven, Overflow::None, 0);
        f32::from_bits(rounded.code as u32)
    }

    /// The nearest binary64 number, ties to even; beyond the largest, infinity.
    pub const fn to_f64(self) -> f64 {
        let rounded = Format::F64.encode(self, Rounding::TiesToEven, Overflow::None, 0);
        f64::from_bits(rounded.code)
    }
}
