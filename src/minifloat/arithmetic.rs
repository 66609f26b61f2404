//! Operators and functions of algebra: `+ - * / %`, `mul_add`, `sqrt` and their relatives.
//!
//! Every one is the operation of [`Context`] by [`Minifloat::RULES`]: the exact result, rounded
//! once. Where the format is small enough the machine's `f32` or `f64` computes it, and rounding
//! that again is harmless (Figueroa 1995, "When is double rounding innocuous?"). With `P`
//! significant bits and the lowest place `2^L` here, `p >= 2P + 2` bits and the lowest place
//! `2^l <= 2^L` there:
//!
//! * Sums that are subnormal here are exact there, and others obey the theorem.
//! * A product of `2P` bits is exact there unless it reaches below `2^l`. With `l <= L - 2P` that
//!   only happens below `2^(L-1)`, where the result is zero: rounding is monotone, and `2^(L-1)`
//!   itself is the tie that goes to zero.
//! * A quotient `a / b` that is not a midpoint of two numbers here differs from every midpoint, of
//!   at most `P + 1` bits, by more than `2^-(2P + 1)` of itself. For `b` times the difference is an
//!   integer in suitable units. Rounding to `p` bits errs by at most `2^-p` of it and leaves it on
//!   its side. Between subnormals the difference is more than `2^(L-1-P)`, and the error at most
//!   `2^(l-1)`: hence `l <= L - P`. Square roots are never subnormal.
//! * In `mul_add` the sum of the exact product is rounded to odd (Boldo and Melquiond 2008). The
//!   rounding error is found exactly (Knuth's TwoSum), and if there is one the last bit is set
//!   to 1.

use core::hint::select_unpredictable;
use core::iter::{Product, Sum};
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Rem, RemAssign, Sub, SubAssign};

use super::fast::{By32, By64};
use super::{FloatFormat, Minifloat, Yes};
use crate::format::{Format, Specials};
use crate::math::{Context, Operand};
use crate::round::Rounded;

/// The machine's formats: significant bits and the exponent of the lowest place.
const SINGLE: (u32, i32) = (24, -149);
const DOUBLE: (u32, i32) = (53, -1074);

/// Whether the conditions above hold; `places` is 0 for sums and roots, `P` for quotients, `2P` for
/// products.
const fn fits(format: Format, (precision, lowest): (u32, i32), places: u32) -> bool {
    2 * format.precision() + 2 <= precision && format.lsb() - places as i32 >= lowest
}

/// What computes an operation.
#[derive(Clone, Copy)]
enum Carrier {
    Single,
    Double,
    Plain,
}

/// Bits between the lowest and the highest place of a product plus a number.
const fn span(format: Format) -> i32 {
    let (lsb, emax) = (format.lsb(), format.emax());
    let lowest = if lsb < 0 { 2 * lsb } else { lsb };
    let highest = if emax > 0 { 2 * emax + 2 } else { emax + 2 };
    highest + 1 - lowest
}

impl<F: FloatFormat> Minifloat<F> {
    const NARROW: bool = Self::BY32.encodes && Self::BY32.decodes;
    const WIDE: bool = Self::BY64.encodes && Self::BY64.decodes;
    /// Of sums, and of roots, which are never subnormal.
    const SUM: Carrier = Self::way(0);
    const QUOTIENT: Carrier = Self::way(F::FORMAT.precision());
    const PRODUCT: Carrier = Self::way(2 * F::FORMAT.precision());
    /// Whether `x * y + z` of binary32 has no rounding, and that of binary64 one that is known.
    const FMA_32: bool = Self::NARROW && span(F::FORMAT) <= 24;
    const FMA_64: bool = Self::WIDE
        && 2 * F::FORMAT.precision() <= 53
        && 2 * F::FORMAT.lsb() >= -1074
        && 2 * F::FORMAT.emax() < 1022;
    const FMA_64_IS_EXACT: bool = span(F::FORMAT) <= 53;
    const P3109: bool = matches!(F::FORMAT.specials(), Specials::P3109 { .. });
    /// The result that is NaN, of a NaN operand or by the operation; without NaN, what stands for
    /// it.
    const NAN_RESULT: u64 = F::FORMAT.made_nan(&Self::RULES).code;

    const fn way(places: u32) -> Carrier {
        if Self::NARROW && fits(F::FORMAT, SINGLE, places) {
            Carrier::Single
        } else if Self::WIDE && fits(F::FORMAT, DOUBLE, places) {
            Carrier::Double
        } else {
            Carrier::Plain
        }
    }

    /// The value in binary32; which NaN it is does not matter here.
    #[inline(always)]
    fn narrow(self) -> f32 {
        if F::FORMAT.bits() <= 8 {
            self.to_f32()
        } else {
            Self::BY32.decode_number(self.code() as u32, F::FORMAT)
        }
    }

    /// The value in binary64; which NaN it is does not matter here.
    #[inline(always)]
    pub(super) fn wide(self) -> f64 {
        if Self::NARROW {
            self.narrow().into()
        } else {
            Self::BY64.decode_number(self.code(), F::FORMAT)
        }
    }

    /// As [`from_f32`](Self::from_f32), of what is not NaN or will not be used.
    #[inline(always)]
    fn from_number_32(x: f32) -> Self {
        if Self::BY32.takes(x) {
            Self::of(Self::BY32.encode_number(x).into())
        } else {
            Self::from_f32(x)
        }
    }

    /// As [`from_f64`](Self::from_f64), of what is not NaN or will not be used.
    #[inline(always)]
    fn from_number_64(x: f64) -> Self {
        if Self::BY64.takes(x) { Self::of(Self::BY64.encode_number(x)) } else { Self::from_f64(x) }
    }

    #[inline(always)]
    fn unary(
        self,
        way: Carrier,
        narrow: impl Fn(f32) -> f32,
        wide: impl Fn(f64) -> f64,
        plain: impl Fn(&Context, Operand) -> Rounded,
    ) -> Self {
        // Half of the numbers have no square root: no branches.
        match way {
            Carrier::Single => {
                let result = narrow(self.narrow());
                let nan = Self::of(Self::NAN_RESULT);
                select_unpredictable(By32::is_nan(result), nan, Self::from_number_32(result))
            }
            Carrier::Double => {
                let result = wide(self.wide());
                let nan = Self::of(Self::NAN_RESULT);
                select_unpredictable(By64::is_nan(result), nan, Self::from_number_64(result))
            }
            Carrier::Plain => Self::of(plain(&Self::CONTEXT, self.operand()).code),
        }
    }

    #[inline(always)]
    fn binary(
        self,
        other: Self,
        way: Carrier,
        narrow: impl Fn(f32, f32) -> f32,
        wide: impl Fn(f64, f64) -> f64,
        plain: impl Fn(&Context, Operand, Operand) -> Rounded,
    ) -> Self {
        match way {
            Carrier::Single => {
                let result = narrow(self.narrow(), other.narrow());
                let nan = Self::of(Self::NAN_RESULT);
                select_unpredictable(By32::is_nan(result), nan, Self::from_number_32(result))
            }
            Carrier::Double => {
                let result = wide(self.wide(), other.wide());
                let nan = Self::of(Self::NAN_RESULT);
                select_unpredictable(By64::is_nan(result), nan, Self::from_number_64(result))
            }
            Carrier::Plain => Self::of(plain(&Self::CONTEXT, self.operand(), other.operand()).code),
        }
    }

    /// `self * factor + term`, rounded once.
    ///
    /// ```
    /// use exmy::minifloat::E5M2;
    ///
    /// let [x, y, z] = [1.25, 1.25, -1.5].map(E5M2::from_f32);
    /// assert_eq!(x.mul_add(y, z).to_f32(), 0.0625); // 1.5625 - 1.5
    /// assert_eq!((x * y + z).to_f32(), 0.0); // the product alone is 1.5
    /// ```
    #[inline]
    #[must_use]
    pub fn mul_add(self, factor: Self, term: Self) -> Self {
        if Self::FMA_32 {
            let result = self.narrow() * factor.narrow() + term.narrow();
            let nan = Self::of(Self::NAN_RESULT);
            select_unpredictable(By32::is_nan(result), nan, Self::from_number_32(result))
        } else if Self::FMA_64 {
            let (product, term_64) = (self.wide() * factor.wide(), term.wide());
            let sum = product + term_64;
            let exact = Self::FMA_64_IS_EXACT;
            let result = if exact { sum } else { to_odd(product, term_64, sum) };
            let nan = Self::of(Self::NAN_RESULT);
            select_unpredictable(By64::is_nan(sum), nan, Self::from_number_64(result))
        } else {
            let (x, y, z) = (self.operand(), factor.operand(), term.operand());
            Self::of(Self::CONTEXT.fma(x, y, z).code)
        }
    }

    /// The square root, rounded once; NaN of a negative number, -0 of -0.
    ///
    /// ```
    /// use exmy::minifloat::E4M3;
    ///
    /// assert_eq!(E4M3::from_f32(3.0).sqrt().to_f32(), 1.75);
    /// assert!(E4M3::from_f32(-3.0).sqrt().is_nan());
    /// ```
    #[inline]
    #[must_use]
    pub fn sqrt(self) -> Self {
        // `core` has no square root; without `std` the integers compute it.
        #[cfg(feature = "std")]
        return self.unary(Self::SUM, f32::sqrt, f64::sqrt, Context::sqrt);
        #[cfg(not(feature = "std"))]
        Self::of(Self::CONTEXT.sqrt(self.operand()).code)
    }

    /// `1 / self`, rounded once, also where the format has no one.
    ///
    /// ```
    /// use exmy::minifloat::{E2M1, E4M3, F16};
    ///
    /// assert_eq!(E4M3::from_f32(3.0).recip().to_f32(), 0.34375);
    /// assert_eq!(F16::from_f32(-0.0).recip(), F16::NEG_INFINITY.unwrap());
    /// assert_eq!(E2M1::from_f32(0.0).recip(), E2M1::MAX); // no infinity, and no NaN
    /// assert_eq!(F16::from_f32(4.0).rsqrt().to_f32(), 0.5);
    /// ```
    #[inline]
    #[must_use]
    pub fn recip(self) -> Self {
        if Self::P3109 && self.is_zero() {
            return Self::of(Self::NAN_RESULT);
        }
        self.unary(Self::QUOTIENT, |x| 1.0 / x, |x| 1.0 / x, Context::recip)
    }

    /// `1 / sqrt(self)`, rounded once.
    #[must_use]
    pub fn rsqrt(self) -> Self {
        Self::of(Self::CONTEXT.rsqrt(self.operand()).code)
    }

    /// The length of `(self, other)`, rounded once.
    ///
    /// ```
    /// use exmy::minifloat::F16;
    ///
    /// let x = F16::from_f32(300.0); // whose square overflows
    /// assert_eq!(x.hypot(F16::from_f32(400.0)).to_f32(), 500.0);
    /// assert!(F16::INFINITY.unwrap().hypot(F16::NAN.unwrap()).is_infinite()); // whatever the other is
    /// ```
    #[must_use]
    pub fn hypot(self, other: Self) -> Self {
        Self::of(Self::CONTEXT.hypot(self.operand(), other.operand()).code)
    }

    /// The remainder of IEEE 754: `self - other * n`, exactly, with `n` the integer nearest to the
    /// quotient. (`%` is C's `fmod`, whose quotient is truncated.)
    ///
    /// ```
    /// use exmy::minifloat::F16;
    ///
    /// let [x, y, minus] = [5.0, 3.0, -5.0].map(F16::from_f32);
    /// assert_eq!((x.ieee_rem(y).to_f32(), (x % y).to_f32()), (-1.0, 2.0));
    /// assert_eq!((minus.rem_euclid(y).to_f32(), minus.div_euclid(y).to_f32()), (1.0, -2.0));
    /// assert!(x.rem_euclid(F16::from_f32(0.0)).is_nan());
    /// ```
    #[must_use]
    pub fn ieee_rem(self, other: Self) -> Self {
        Self::of(Self::CONTEXT.rem(self.operand(), other.operand()).code)
    }

    /// The quotient of Euclid's division, as [`f32::div_euclid`]: `self / divisor` rounded, then
    /// cut to an integer, less one if the remainder is negative (more one for a negative divisor).
    #[must_use]
    pub fn div_euclid(self, divisor: Self) -> Self {
        let quotient = (self / divisor).trunc();
        let one = Operand::f32(1.0);
        let remainder = self % divisor;
        if remainder.is_zero() || !remainder.is_sign_negative() {
            quotient
        } else if divisor.is_sign_negative() {
            Self::of(Self::CONTEXT.add(quotient.operand(), one).code)
        } else {
            Self::of(Self::CONTEXT.sub(quotient.operand(), one).code)
        }
    }

    /// The remainder of Euclid's division, not negative, as [`f32::rem_euclid`]: the magnitude of
    /// the divisor is added to a negative `%`, and the sum rounded.
    #[must_use]
    pub fn rem_euclid(self, divisor: Self) -> Self {
        let remainder = self % divisor;
        let negative = remainder.is_sign_negative() && !remainder.is_zero();
        if negative && !remainder.is_nan() { remainder + divisor.abs() } else { remainder }
    }
}

/// `x + y`, of which `sum` is the rounded value, to odd instead. An inexact sum becomes whichever
/// ends in 1 of `sum` and the neighbour on the other side of the exact sum. Infinities stay.
#[inline(always)]
fn to_odd(x: f64, y: f64, sum: f64) -> f64 {
    // Knuth's TwoSum: `error` is exact, as there is no overflow.
    let back = sum - x;
    let error = (x - (sum - back)) + (y - back);
    let bits = sum.to_bits();
    let inexact = error != 0.0 && bits & 1 == 0 && sum.is_finite();
    let outward = (error > 0.0) == (sum > 0.0);
    let odd = if outward { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f64::from_bits(if inexact { odd } else { bits })
}

macro_rules! operators {
    ($($trait:ident $name:ident, $assign_trait:ident $assign:ident: $doc:literal,
        |$a:ident, $b:ident| $result:expr;)*) => {$(
        #[doc = $doc]
        impl<F: FloatFormat> $trait for Minifloat<F> {
            type Output = Self;
            #[inline]
            fn $name(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $result
            }
        }

        #[doc = $doc]
        impl<F: FloatFormat> $assign_trait for Minifloat<F> {
            #[inline]
            fn $assign(&mut self, other: Self) {
                *self = $trait::$name(*self, other);
            }
        }

        // By reference, as of f32.
        impl<F: FloatFormat> $trait<&Self> for Minifloat<F> {
            type Output = Self;
            #[inline]
            fn $name(self, other: &Self) -> Self {
                $trait::$name(self, *other)
            }
        }

        impl<F: FloatFormat> $trait<Minifloat<F>> for &Minifloat<F> {
            type Output = Minifloat<F>;
            #[inline]
            fn $name(self, other: Minifloat<F>) -> Minifloat<F> {
                $trait::$name(*self, other)
            }
        }

        impl<F: FloatFormat> $trait for &Minifloat<F> {
            type Output = Minifloat<F>;
            #[inline]
            fn $name(self, other: Self) -> Minifloat<F> {
                $trait::$name(*self, *other)
            }
        }

        impl<F: FloatFormat> $assign_trait<&Self> for Minifloat<F> {
            #[inline]
            fn $assign(&mut self, other: &Self) {
                *self = $trait::$name(*self, *other);
            }
        }
    )*};
}

operators! {
    Add add, AddAssign add_assign: "The sum, rounded once.",
        |a, b| a.binary(b, Self::SUM, |x, y| x + y, |x, y| x + y, Context::add);
    Sub sub, SubAssign sub_assign: "The difference, rounded once.",
        |a, b| a.binary(b, Self::SUM, |x, y| x - y, |x, y| x - y, Context::sub);
    Mul mul, MulAssign mul_assign: "The product, rounded once.",
        |a, b| a.binary(b, Self::PRODUCT, |x, y| x * y, |x, y| x * y, Context::mul);
    Div div, DivAssign div_assign: "The quotient, rounded once. A number by zero is infinite, with \
        what the format makes of infinities; NaN in formats of IEEE P3109.",
        |a, b| if Self::P3109 && b.is_zero() {
            Self::of(Self::NAN_RESULT)
        } else {
            a.binary(b, Self::QUOTIENT, |x, y| x / y, |x, y| x / y, Context::div)
        };
    Rem rem, RemAssign rem_assign: "The remainder of the truncated quotient, exactly, with the sign \
        of the dividend: C's `fmod`, and `%` of Rust's floats.",
        |a, b| a.binary(b, Self::SUM, |x, y| x % y, |x, y| x % y, Context::fmod);
}

/// One by one, each sum rounded; zero of nothing.
impl<F: FloatFormat<Zero = Yes>> Sum for Minifloat<F> {
    fn sum<I: Iterator<Item = Self>>(numbers: I) -> Self {
        numbers.reduce(Add::add).unwrap_or_default()
    }
}

/// One by one, each sum rounded; zero of nothing.
impl<'a, F: FloatFormat<Zero = Yes>> Sum<&'a Self> for Minifloat<F> {
    fn sum<I: Iterator<Item = &'a Self>>(numbers: I) -> Self {
        numbers.copied().sum()
    }
}

/// One by one, each product rounded; one of nothing.
impl<F: FloatFormat<One = Yes>> Product for Minifloat<F> {
    fn product<I: Iterator<Item = Self>>(numbers: I) -> Self {
        numbers.reduce(Mul::mul).or(Self::ONE).unwrap_or_default()
    }
}

/// One by one, each product rounded; one of nothing.
impl<'a, F: FloatFormat<One = Yes>> Product<&'a Self> for Minifloat<F> {
    fn product<I: Iterator<Item = &'a Self>>(numbers: I) -> Self {
        numbers.copied().product()
    }
}
