//! What a code stands for: a sign, an integer and a power of two, or one of the special values.
//!
//! Not an `f64`: some P3109 formats of 12 to 16 exponent bits exceed it.

use core::cmp::Ordering;

/// A value of any format.
///
/// Compared as numbers: `1 * 2^1 == 2 * 2^0`, `-0 == +0`, and NaN equals nothing.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// Not a number; the sign is that of the code where codes of both signs are NaN.
    Nan {
        /// Whether the sign bit is set.
        negative: bool,
    },
    /// Infinity.
    Infinite {
        /// Whether it is negative infinity.
        negative: bool,
    },
    /// `(-1)^negative * significand * 2^exponent`.
    Finite {
        /// Whether the sign is minus; zero may have it.
        negative: bool,
        /// The integer factor, not necessarily odd or normalized; 0 is zero.
        significand: u64,
        /// The power of two.
        exponent: i32,
    },
}

impl Value {
    /// Positive zero.
    pub const ZERO: Self = Self::Finite { negative: false, significand: 0, exponent: 0 };

    /// The value of a binary32 number, exactly.
    #[inline]
    pub const fn from_f32(x: f32) -> Self {
        let bits = x.to_bits();
        let negative = bits >> 31 != 0;
        let field = (bits >> 23 & 0xFF) as i32;
        let fraction = (bits & 0x007F_FFFF) as u64;
        Self::from_fields(negative, field, 0xFF, fraction, 23, 127)
    }

    /// The value of a binary64 number, exactly.
    ///
    /// ```
    /// use exmy::format::Value;
    ///
    /// assert_eq!(Value::from_f32(0.1).to_f64(), f64::from(0.1_f32));
    /// assert_ne!(Value::from_f32(0.1), Value::from_f64(0.1)); // each is exact
    /// assert_eq!(Value::from_f64(f64::MIN_POSITIVE / 4.0).to_f64(), f64::MIN_POSITIVE / 4.0);
    /// ```
    #[inline]
    pub const fn from_f64(x: f64) -> Self {
        let bits = x.to_bits();
        let negative = bits >> 63 != 0;
        let field = (bits >> 52 & 0x7FF) as i32;
        let fraction = bits & 0x000F_FFFF_FFFF_FFFF;
        Self::from_fields(negative, field, 0x7FF, fraction, 52, 1023)
    }

    #[inline]
    const fn from_fields(
        negative: bool,
        field: i32,
        top: i32,
        fraction: u64,
        man_bits: i32,
        bias: i32,
    ) -> Self {
        if field == top {
            return if fraction == 0 {
                Self::Infinite { negative }
            } else {
                Self::Nan { negative }
            };
        }
        let hidden = (field != 0) as u64;
        Self::Finite {
            negative,
            significand: fraction | hidden << man_bits,
            exponent: field + (field == 0) as i32 - bias - man_bits,
        }
    }

    /// Whether this is NaN.
    #[inline]
    pub const fn is_nan(self) -> bool {
        matches!(self, Self::Nan { .. })
    }

    /// Whether this is an infinity.
    #[inline]
    pub const fn is_infinite(self) -> bool {
        matches!(self, Self::Infinite { .. })
    }

    /// Whether this is a number.
    #[inline]
    pub const fn is_finite(self) -> bool {
        matches!(self, Self::Finite { .. })
    }

    /// Whether this is zero of either sign.
    #[inline]
    pub const fn is_zero(self) -> bool {
        matches!(self, Self::Finite { significand: 0, .. })
    }

    /// Whether the sign is minus, also of zero and NaN.
    #[inline]
    pub const fn is_sign_negative(self) -> bool {
        match self {
            Self::Nan { negative }
            | Self::Infinite { negative }
            | Self::Finite { negative, .. } => negative,
        }
    }

    /// The order of numbers; `None` if either is NaN.
    ///
    /// ```
    /// use core::cmp::Ordering;
    /// use exmy::format::Value;
    ///
    /// let [nan, minus_zero, inf] = [f32::NAN, -0.0, f32::INFINITY].map(Value::from_f32);
    /// assert_eq!(Value::ZERO.compare(minus_zero), Some(Ordering::Equal));
    /// assert!(minus_zero.is_zero() && minus_zero.is_sign_negative() && minus_zero.is_finite());
    /// assert_eq!(nan.compare(nan), None);
    /// assert!(nan.is_nan() && !nan.is_finite() && !nan.is_infinite() && inf.is_infinite());
    /// ```
    pub const fn compare(self, other: Self) -> Option<Ordering> {
        let (a, b) = (self.rank(), other.rank());
        if self.is_nan() || other.is_nan() {
            return None;
        }
        // Ranks order by sign and class; equal nonzero finite ranks leave the magnitudes.
        if a != b {
            return Some(if a < b { Ordering::Less } else { Ordering::Greater });
        }
        let order = self.compare_magnitude(other);
        Some(if a < 0 { order.reverse() } else { order })
    }

    /// -2 negative infinity, -1 negative, 0 zero, 1 positive, 2 positive infinity.
    const fn rank(self) -> i32 {
        let size = match self {
            Self::Infinite { .. } => 2,
            Self::Finite { significand: 0, .. } | Self::Nan { .. } => 0,
            Self::Finite { .. } => 1,
        };
        if self.is_sign_negative() { -size } else { size }
    }

    const fn compare_magnitude(self, other: Self) -> Ordering {
        let (
            Self::Finite { significand: a, exponent: i, .. },
            Self::Finite { significand: b, exponent: j, .. },
        ) = (self, other)
        else {
            return Ordering::Equal;
        };
        if a == 0 {
            return Ordering::Equal; // of equal rank, so both are zero
        }
        // Normalized, the exponent decides first and the significand then.
        let (top_a, top_b) = (a.leading_zeros(), b.leading_zeros());
        let (i, j) = (i as i64 - top_a as i64, j as i64 - top_b as i64);
        let (a, b) = (a << top_a, b << top_b);
        if i < j || (i == j && a < b) {
            Ordering::Less
        } else if i == j && a == b {
            Ordering::Equal
        } else {
            Ordering::Greater
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.compare(*other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.compare(*other)
    }
}

impl From<f32> for Value {
    fn from(x: f32) -> Self {
        Self::from_f32(x)
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Self {
        Self::from_f64(x)
    }
}
