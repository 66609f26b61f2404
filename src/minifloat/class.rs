//! Classification, sign and order.

use core::cmp::Ordering;
use core::hash::{Hash, Hasher};
use core::num::FpCategory;

use super::{FloatFormat, Minifloat, No};
use crate::format::{Sign, Specials, Value};
use crate::math::Class;
use crate::round::{Overflow, Rounding};

impl<F: FloatFormat> Minifloat<F> {
    /// Whether this is NaN.
    ///
    /// ```
    /// use exmy::minifloat::{E2M1, E4M3, E4M3Fnuz, E5M2};
    ///
    /// assert!(E4M3::from_f32(f32::INFINITY).is_nan()); // E4M3 has no infinity
    /// assert!(E5M2::from_f32(1e9).is_infinite() && !E5M2::from_f32(1e9).is_finite());
    /// assert!(E4M3Fnuz::from_bits(0x80).is_nan()); // where -0 would be
    /// assert!(!E2M1::from_f32(f32::NAN).is_nan()); // FP4 has none
    /// let minus_zero = E4M3::from_f32(-0.0);
    /// assert!(minus_zero.is_zero() && minus_zero.is_sign_negative() && !minus_zero.is_sign_positive());
    /// assert!(E2M1::from_f32(0.5).is_subnormal() && !minus_zero.is_subnormal() && E2M1::MAX.is_normal());
    /// ```
    #[inline]
    pub fn is_nan(self) -> bool {
        let Some(nan) = F::FORMAT.nan_code() else { return false };
        match F::FORMAT.specials() {
            Specials::Fnuz | Specials::P3109 { .. } => self.code() == nan,
            // Of each sign one, or all that lie above infinity.
            _ => {
                let magnitude = self.code() & F::FORMAT.magnitude_mask();
                magnitude > F::FORMAT.max_code()
                    && Some(magnitude) != F::FORMAT.infinity_code(false)
            }
        }
    }

    /// Whether this is an infinity.
    #[inline]
    pub fn is_infinite(self) -> bool {
        let code = Some(self.code());
        code == F::FORMAT.infinity_code(false) || code == F::FORMAT.infinity_code(true)
    }

    /// Whether this is neither NaN nor infinite.
    #[inline]
    pub fn is_finite(self) -> bool {
        // Reserved codes lie above the finite ones or in the place of negative zero.
        let magnitude = self.code() & F::FORMAT.magnitude_mask();
        let integer = matches!(F::FORMAT.sign(), Sign::TwosComplement);
        integer || magnitude <= F::FORMAT.max_code() && !self.is_nan()
    }

    /// Whether this is zero of either sign.
    #[inline]
    pub fn is_zero(self) -> bool {
        let sign = (F::FORMAT.has_negative_zero() as u64) << F::FORMAT.magnitude_bits();
        F::FORMAT.has_zero() && self.code() & !sign == 0
    }

    /// Whether this is finite, not zero, and has full precision.
    #[inline]
    pub fn is_normal(self) -> bool {
        self.classify() == FpCategory::Normal
    }

    /// Whether this is below the smallest normal number but not zero.
    #[inline]
    pub fn is_subnormal(self) -> bool {
        self.classify() == FpCategory::Subnormal
    }

    /// Whether the value's sign is minus, of zero and NaN too where their codes carry one.
    #[inline]
    pub fn is_sign_negative(self) -> bool {
        self.value().is_sign_negative()
    }

    /// The class of the number: [`Operand::class`](crate::math::Operand::class) without the sign.
    /// Without an exponent field all numbers but zero are subnormal; integers of two's complement,
    /// which have no exponent to be below, are normal.
    ///
    /// ```
    /// use core::num::FpCategory;
    /// use exmy::minifloat::{E4M3, Int8};
    ///
    /// assert_eq!(E4M3::MIN_POSITIVE.classify(), FpCategory::Subnormal);
    /// assert_eq!(Int8::MIN_POSITIVE.classify(), FpCategory::Normal);
    /// ```
    pub fn classify(self) -> FpCategory {
        match self.operand().class() {
            Class::SignalingNan | Class::QuietNan => FpCategory::Nan,
            Class::NegativeInfinity | Class::PositiveInfinity => FpCategory::Infinite,
            Class::NegativeZero | Class::PositiveZero => FpCategory::Zero,
            Class::NegativeSubnormal | Class::PositiveSubnormal => FpCategory::Subnormal,
            Class::NegativeNormal | Class::PositiveNormal => FpCategory::Normal,
        }
    }

    /// Whether the value's sign is plus, of zero and NaN too where their codes carry one.
    #[inline]
    pub fn is_sign_positive(self) -> bool {
        !self.is_sign_negative()
    }

    /// The magnitude, NaN's sign removed too. The one number without one, -2 of INT8, gives the
    /// largest.
    ///
    /// ```
    /// use exmy::minifloat::{E4M3, Int8};
    ///
    /// assert_eq!(E4M3::from_f32(-0.0).abs().to_bits(), 0x00);
    /// assert_eq!(Int8::MIN.abs(), Int8::MAX); // there is no 2
    /// ```
    #[must_use]
    pub fn abs(self) -> Self {
        if self.is_sign_negative() { self.negated() } else { self }
    }

    /// The number of opposite sign: itself where that is the only one of its size (zero without a
    /// negative zero, an unsigned NaN).
    #[inline]
    pub(super) fn negated(self) -> Self {
        let format = Self::FORMAT;
        let sign = 1_u64 << format.magnitude_bits();
        let signs_flip = matches!(format.sign(), Sign::Magnitude)
            && (format.has_negative_zero() || !format.has_zero());
        if signs_flip {
            return Self::of(self.code() ^ sign);
        }
        if matches!(format.sign(), Sign::Magnitude) {
            // One zero, and a NaN in the place of the other: neither has an opposite.
            let alone = self.code() & !sign == 0;
            return if alone { self } else { Self::of(self.code() ^ sign) };
        }
        let flipped = match self.value() {
            Value::Nan { negative } => Value::Nan { negative: !negative },
            Value::Infinite { negative } => Value::Infinite { negative: !negative },
            Value::Finite { negative, significand, exponent } => {
                Value::Finite { negative: !negative, significand, exponent }
            }
        };
        Self::of(format.encode(flipped, Rounding::TiesToEven, Overflow::None, 0).code)
    }

    /// A total order: negative NaN, numbers ascending with -0 below +0, positive NaN, as
    /// [`f32::total_cmp`]; where NaN has no sign it counts as positive. In formats of IEEE P3109
    /// NaN is below everything.
    ///
    /// ```
    /// use exmy::minifloat::E4M3;
    ///
    /// let mut numbers = [1.0, -0.0, f32::NAN, 0.0, -3.0].map(E4M3::from_f32);
    /// numbers.sort_by(E4M3::total_cmp);
    /// assert_eq!(numbers.map(E4M3::to_bits), [0xC4, 0x80, 0x00, 0x38, 0x7F]);
    /// ```
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        self.operand().total_cmp(other.operand(), Self::RULES.standard)
    }
}

impl<F: FloatFormat> PartialEq for Minifloat<F> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        if F::FORMAT.is_exact_in_f32() {
            self.to_f32() == other.to_f32()
        } else {
            self.value() == other.value()
        }
    }
}

impl<F: FloatFormat> PartialOrd for Minifloat<F> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if F::FORMAT.is_exact_in_f32() {
            self.to_f32().partial_cmp(&other.to_f32())
        } else {
            self.value().compare(other.value())
        }
    }
}

/// Without NaN equality is total.
impl<F: FloatFormat<Nan = No>> Eq for Minifloat<F> {}

/// Without NaN numbers are ordered; `-0` and `+0` are equal.
impl<F: FloatFormat<Nan = No>> Ord for Minifloat<F> {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.value().compare(other.value()) {
            Some(order) => order,
            None => unreachable!("a format without NaN"),
        }
    }
}

/// Of the value: `-0` and `+0` have one hash, as they are equal.
impl<F: FloatFormat<Nan = No>> Hash for Minifloat<F> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let code = if self.is_zero() { 0 } else { self.code() };
        code.hash(state);
    }
}
