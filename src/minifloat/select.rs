//! Choosing among numbers, their neighbours, and rounding them to integers: `min`, `clamp`,
//! `next_up`, `floor` and their relatives, by the operations of [`Context`].

use super::{FloatFormat, Minifloat, Yes};
use crate::math::{Context, Operand};
use crate::round::{Rounded, Rounding};

macro_rules! two {
    ($($(#[$meta:meta])* $name:ident: $operation:ident;)*) => {
        impl<F: FloatFormat> Minifloat<F> {
            $(
                $(#[$meta])*
                #[must_use]
                pub fn $name(self, other: Self) -> Self {
                    let Rounded { code, .. } =
                        Self::CONTEXT.$operation(self.operand(), other.operand());
                    Self::of(code)
                }
            )*
        }
    };
}

two! {
    /// The smaller number; of a number and NaN the number, as [`f32::min`]. -0 is below +0.
    ///
    /// ```
    /// use exmy::minifloat::E4M3;
    ///
    /// let (two, nan) = (E4M3::from_f32(2.0), E4M3::NAN.unwrap());
    /// assert_eq!(two.min(nan), two);
    /// assert!(two.minimum(nan).is_nan());
    /// ```
    min: minimum_number;
    /// The larger number; of a number and NaN the number, as [`f32::max`]. -0 is below +0.
    max: maximum_number;
    /// The smaller number; NaN if either is NaN. -0 is below +0.
    minimum: minimum;
    /// The larger number; NaN if either is NaN. -0 is below +0.
    maximum: maximum;
    /// The number of smaller magnitude, of equal ones the smaller; NaN if either is NaN.
    minimum_magnitude: minimum_magnitude;
    /// The number of larger magnitude, of equal ones the larger; NaN if either is NaN.
    maximum_magnitude: maximum_magnitude;
    /// The magnitude of one with the sign of the other. NaN has a sign where its codes have; in
    /// formats of IEEE P3109 a NaN on either side gives NaN.
    copysign: copysign;
}

impl<F: FloatFormat> Minifloat<F> {
    /// The number, or the bound that it lies beyond; NaN stays NaN.
    ///
    /// # Panics
    /// If `low > high` or either is NaN, as [`f32::clamp`].
    ///
    /// ```
    /// use exmy::minifloat::E4M3;
    ///
    /// let [low, high, x] = [-1.0, 1.0, 3.5].map(E4M3::from_f32);
    /// assert_eq!(x.clamp(low, high), high);
    /// ```
    #[must_use]
    pub fn clamp(self, low: Self, high: Self) -> Self {
        assert!(low <= high, "clamp takes bounds that are numbers in order: {low:?}, {high:?}");
        if self < low {
            low
        } else if self > high {
            high
        } else {
            self
        }
    }

    /// The least number greater than this one.
    ///
    /// After the largest comes infinity, or what infinity becomes in the format: NaN in FN, FNUZ
    /// and finite P3109 formats, the largest where every code is a number. After infinity comes
    /// infinity, in formats of IEEE P3109 NaN.
    ///
    /// ```
    /// use exmy::minifloat::{E2M1, E4M3};
    ///
    /// assert_eq!(E4M3::from_f32(1.0).next_up().to_f32(), 1.125);
    /// assert_eq!(E4M3::from_f32(0.0).next_down(), -E4M3::MIN_POSITIVE);
    /// assert_eq!(E2M1::MAX.next_up(), E2M1::MAX);
    /// ```
    #[must_use]
    pub fn next_up(self) -> Self {
        Self::of(Self::CONTEXT.next_up(self.operand()).code)
    }

    /// The greatest number less than this one; as [`next_up`](Self::next_up).
    #[must_use]
    pub fn next_down(self) -> Self {
        Self::of(Self::CONTEXT.next_down(self.operand()).code)
    }

    /// The integer that a mode chooses, as a number of this format.
    ///
    /// An integer that the format does not have (1 where all numbers are below it, say) is rounded
    /// to one that it has, by the same mode.
    ///
    /// ```
    /// use exmy::minifloat::{E4M3, ExMy, Finite, Minifloat};
    /// use exmy::round::Rounding;
    ///
    /// assert_eq!(E4M3::from_f32(2.5).round_to_integral(Rounding::ToOdd).to_f32(), 3.0);
    /// assert!(E4M3::from_f32(-0.25).round_to_integral(Rounding::TiesToEven).is_sign_negative()); // -0
    /// let most = Minifloat::<ExMy<0, 2, Finite>>::MAX; // 1.5, in steps of 0.5
    /// assert_eq!(most.round_to_integral(Rounding::TowardPositive).to_f32(), 1.5); // 2 is beyond the largest
    /// ```
    ///
    /// # Panics
    /// If `mode` is stochastic: [`with_rules`](Self::with_rules) can give it random bits.
    #[must_use]
    pub fn round_to_integral(self, mode: Rounding) -> Self {
        let context = Context::new(Self::FORMAT, Self::RULES.with_rounding(mode));
        Self::of(context.round_to_integral(self.operand(), false).code)
    }

    /// The largest integer not above.
    ///
    /// ```
    /// use exmy::minifloat::E4M3;
    ///
    /// let x = E4M3::from_f32(-2.5);
    /// assert_eq!([x.floor(), x.ceil(), x.trunc()].map(E4M3::to_f32), [-3.0, -2.0, -2.0]);
    /// assert_eq!([x.round(), x.round_ties_even()].map(E4M3::to_f32), [-3.0, -2.0]);
    /// assert_eq!(x.fract().to_f32(), -0.5);
    /// ```
    #[must_use]
    pub fn floor(self) -> Self {
        self.round_to_integral(Rounding::TowardNegative)
    }

    /// The smallest integer not below.
    #[must_use]
    pub fn ceil(self) -> Self {
        self.round_to_integral(Rounding::TowardPositive)
    }

    /// The nearest integer, halves away from zero.
    #[must_use]
    pub fn round(self) -> Self {
        self.round_to_integral(Rounding::TiesToAway)
    }

    /// The nearest integer, halves to the even one.
    #[must_use]
    pub fn round_ties_even(self) -> Self {
        self.round_to_integral(Rounding::TiesToEven)
    }

    /// The integer part: toward zero.
    #[must_use]
    pub fn trunc(self) -> Self {
        self.round_to_integral(Rounding::TowardZero)
    }

    /// The fraction, `self - self.trunc()`, exactly; NaN of an infinity.
    #[must_use]
    pub fn fract(self) -> Self {
        self - self.trunc()
    }

    /// `self * 2^n`, rounded once.
    ///
    /// ```
    /// use exmy::minifloat::E4M3;
    ///
    /// assert_eq!(E4M3::from_f32(1.5).scalb(-9), E4M3::from_f32(1.5 / 512.0));
    /// assert_eq!(E4M3::from_f32(0.4375).logb().to_f32(), -2.0);
    /// ```
    #[must_use]
    pub fn scalb(self, n: i32) -> Self {
        Self::of(Self::CONTEXT.scalb(self.operand(), n).code)
    }

    /// The exponent as a number: `floor(log2 |self|)`; of zero negative infinity, or what the
    /// format makes of it.
    #[must_use]
    pub fn logb(self) -> Self {
        Self::of(Self::CONTEXT.logb(self.operand()).code)
    }

    /// An integer, rounded once to nearest even.
    ///
    /// ```
    /// use exmy::minifloat::{Bf16, E4M3};
    ///
    /// assert_eq!(E4M3::from_int(-300).to_f32(), -288.0);
    /// assert_eq!(Bf16::from_int(16_842_753).to_bits(), 0x4B81); // by way of f32 it would be 0x4B80
    /// ```
    #[must_use]
    pub fn from_int(n: i128) -> Self {
        Self::of(Self::CONTEXT.from_int(n < 0, n.unsigned_abs()).code)
    }

    pub(super) fn from_operand(x: Operand) -> Self {
        Self::of(Self::CONTEXT.convert(x).code)
    }
}

impl<F: FloatFormat<One = Yes>> Minifloat<F> {
    /// One with the sign of the number, of zeros too, as [`f32::signum`]; NaN of NaN.
    ///
    /// ```
    /// use exmy::minifloat::E4M3;
    ///
    /// assert_eq!(E4M3::from_f32(-0.0).signum().to_f32(), -1.0); // zeros have a sign
    /// assert!(E4M3::from_f32(f32::NAN).signum().is_nan());
    /// ```
    #[must_use]
    pub fn signum(self) -> Self {
        match Self::ONE {
            Some(one) if !self.is_nan() => one.copysign(self),
            _ => self,
        }
    }
}
