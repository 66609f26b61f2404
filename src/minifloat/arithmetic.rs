//! Operators and functions of algebra: `+ - * / %`, `mul_add`, `sqrt` and their relatives.
//!
//! Every one is the operation of [`Context`] by [`Minifloat::RULES`]: the exact result, rounded
//! once. Where the format is small enough the machine's `f32` or `f64` computes it, on grounds
//! that hold for every pair of operands (Figueroa 1995, "When is double rounding innocuous?"):
//! with `P` significant bits here and `p >= 2P + 2` there,
//!
//! * a product has `2P <= p` bits and is exact; so is a sum that is subnormal here, and other sums
//!   obey the theorem;
//! * a quotient `a / b` that is no midpoint of two numbers here differs from every midpoint, which
//!   has at most `P + 1` bits, by more than `2^-(2P + 1)` of itself, for `b` times the difference is
//!   an integer in fit units; its rounding to `p` bits errs by at most `2^-p` and leaves it on its
//!   side. That holds for the coarser midpoints between subnormals too. Square roots likewise;
//! * in `mul_add` the sum of the exact product is rounded to odd (Boldo and Melquiond 2008): the
//!   rounding error is found exactly (Knuth's TwoSum), and if there is one the last bit is made 1.
//!
//! The exponent range is part of the condition: nothing may underflow there that does not here.

use core::iter::{Product, Sum};
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Rem, RemAssign, Sub, SubAssign};

use super::{FloatFormat, Minifloat, Yes};
use crate::format::{Format, Specials};
use crate::math::{Context, Operand};
use crate::round::Rounded;

/// Whether binary arithmetic of `precision` bits, down to `2^lowest` and with normal numbers from
/// `2^smallest`, gives this format's results when rounded again.
const fn fits(format: Format, precision: u32, lowest: i32, smallest: i32) -> bool {
    let (lsb, emax) = (format.lsb(), format.emax());
    2 * format.precision() + 2 <= precision && 2 * lsb >= lowest && lsb - emax - 1 >= smallest
}

/// Bits between the lowest and the highest place of a product plus a number.
const fn span(format: Format) -> i32 {
    let (lsb, emax) = (format.lsb(), format.emax());
    let lowest = if lsb < 0 { 2 * lsb } else { lsb };
    let highest = if emax > 0 { 2 * emax + 2 } else { emax + 2 };
    highest + 1 - lowest
}

impl<F: FloatFormat> Minifloat<F> {
    const FITS_32: bool =
        Self::BY32.encodes && Self::BY32.decodes && fits(F::FORMAT, 24, -149, -126);
    const FITS_64: bool =
        Self::BY64.encodes && Self::BY64.decodes && fits(F::FORMAT, 53, -1074, -1022);
    const P3109: bool = matches!(F::FORMAT.specials(), Specials::P3109 { .. });
    /// The code of a NaN that an operation makes, or what stands for it.
    const MADE_NAN: u64 = F::FORMAT.made_nan(&Self::RULES).code;

    /// The result that is NaN: of the first NaN operand, with its sign, or of the operation.
    #[inline]
    fn nan_of<const N: usize>(operands: [Self; N]) -> Self {
        let sign = (F::FORMAT.nan_has_sign() as u64) << F::FORMAT.magnitude_bits();
        for x in operands {
            if x.is_nan() {
                let nan = F::FORMAT.nan_code().unwrap_or(Self::MADE_NAN);
                return Self::of(nan | x.code() & sign);
            }
        }
        Self::of(Self::MADE_NAN)
    }

    #[inline(always)]
    fn unary(
        self,
        narrow: impl Fn(f32) -> f32,
        wide: impl Fn(f64) -> f64,
        plain: impl Fn(&Context, Operand) -> Rounded,
    ) -> Self {
        if Self::FITS_32 {
            let result = narrow(self.to_f32());
            if result.is_nan() { Self::nan_of([self]) } else { Self::from_f32(result) }
        } else if Self::FITS_64 {
            let result = wide(self.to_f64());
            if result.is_nan() { Self::nan_of([self]) } else { Self::from_f64(result) }
        } else {
            Self::of(plain(&Self::CONTEXT, self.operand()).code)
        }
    }

    #[inline(always)]
    fn binary(
        self,
        other: Self,
        narrow: impl Fn(f32, f32) -> f32,
        wide: impl Fn(f64, f64) -> f64,
        plain: impl Fn(&Context, Operand, Operand) -> Rounded,
    ) -> Self {
        if Self::FITS_32 {
            let result = narrow(self.to_f32(), other.to_f32());
            if result.is_nan() { Self::nan_of([self, other]) } else { Self::from_f32(result) }
        } else if Self::FITS_64 {
            let result = wide(self.to_f64(), other.to_f64());
            if result.is_nan() { Self::nan_of([self, other]) } else { Self::from_f64(result) }
        } else {
            Self::of(plain(&Self::CONTEXT, self.operand(), other.operand()).code)
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
        let exact_in_32 = Self::FITS_32 && span(F::FORMAT) <= 24;
        if exact_in_32 {
            let result = self.to_f32() * factor.to_f32() + term.to_f32();
            if result.is_nan() {
                Self::nan_of([self, factor, term])
            } else {
                Self::from_f32(result)
            }
        } else if Self::FITS_64 && 2 * F::FORMAT.emax() < 1022 {
            let product = self.to_f64() * factor.to_f64();
            let term_64 = term.to_f64();
            let sum = product + term_64;
            if sum.is_nan() {
                Self::nan_of([self, factor, term])
            } else if span(F::FORMAT) <= 53 {
                Self::from_f64(sum)
            } else {
                Self::from_f64(to_odd(product, term_64, sum))
            }
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
        return self.unary(f32::sqrt, f64::sqrt, Context::sqrt);
        #[cfg(not(feature = "std"))]
        Self::of(Self::CONTEXT.sqrt(self.operand()).code)
    }

    /// `1 / self`, rounded once, also where the format has no one.
    #[inline]
    #[must_use]
    pub fn recip(self) -> Self {
        if Self::P3109 && self.is_zero() {
            return Self::nan_of([self]);
        }
        self.unary(|x| 1.0 / x, |x| 1.0 / x, Context::recip)
    }

    /// `1 / sqrt(self)`, rounded once.
    #[must_use]
    pub fn rsqrt(self) -> Self {
        Self::of(Self::CONTEXT.rsqrt(self.operand()).code)
    }

    /// The length of `(self, other)`, rounded once.
    #[must_use]
    pub fn hypot(self, other: Self) -> Self {
        Self::of(Self::CONTEXT.hypot(self.operand(), other.operand()).code)
    }

    /// The remainder of IEEE 754: `self - other * n`, exactly, with `n` the integer nearest to the
    /// quotient. (`%` is C's `fmod`, whose quotient is truncated.)
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

/// `x + y`, of which `sum` is the rounded value, to odd instead: the bits of an inexact sum end in
/// 1, in the neighbour that encloses the exact sum together with `sum`. Infinities stay.
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
    )*};
}

operators! {
    Add add, AddAssign add_assign: "The sum, rounded once.",
        |a, b| a.binary(b, |x, y| x + y, |x, y| x + y, Context::add);
    Sub sub, SubAssign sub_assign: "The difference, rounded once.",
        |a, b| a.binary(b, |x, y| x - y, |x, y| x - y, Context::sub);
    Mul mul, MulAssign mul_assign: "The product, rounded once.",
        |a, b| a.binary(b, |x, y| x * y, |x, y| x * y, Context::mul);
    Div div, DivAssign div_assign: "The quotient, rounded once. A number by zero is infinite, with \
        what the format makes of infinities; NaN in formats of IEEE P3109.",
        |a, b| if Self::P3109 && b.is_zero() {
            Self::nan_of([a, b])
        } else {
            a.binary(b, |x, y| x / y, |x, y| x / y, Context::div)
        };
    Rem rem, RemAssign rem_assign: "The remainder of the truncated quotient, exactly, with the sign \
        of the dividend: C's `fmod`, and `%` of Rust's floats.",
        |a, b| a.binary(b, |x, y| x % y, |x, y| x % y, Context::fmod);
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
