//! Powers, and what follows from a power or a logarithm: `powf`, `powi`, `cbrt`, `log10`, `log`.
//!
//! These are not among the functions of IEEE P3109 and not in
//! [`math::elementary`](crate::math::elementary). They are computed from correctly rounded binary64
//! logarithms and exponentials. Powers that are numbers of the format or lie halfway between two
//! are found exactly. All others are rounded from a value whose error is below `2^-43` of it. Cube
//! roots are decided by integers.

use super::{FloatFormat, Minifloat, Yes};
use crate::format::{Format, Value};
use crate::math::{Context, Operand};
use crate::round::{Exact, Rounding, Rules};

/// A positive number, `significand * 2^exponent` with an odd significand.
#[derive(Clone, Copy)]
struct Odd {
    significand: u64,
    exponent: i32,
}

impl Odd {
    fn of(value: Value) -> Option<Self> {
        let Value::Finite { significand, exponent, .. } = value else { return None };
        if significand == 0 {
            return None;
        }
        let places = significand.trailing_zeros();
        Some(Self { significand: significand >> places, exponent: exponent + places as i32 })
    }

    /// The square root, if it is such a number.
    fn sqrt(self) -> Option<Self> {
        let root = self.significand.isqrt();
        let exact = root * root == self.significand && self.exponent % 2 == 0;
        exact.then_some(Self { significand: root, exponent: self.exponent / 2 })
    }

    /// The power, where its significand has at most 53 bits. A longer one is no tie of a format of
    /// up to 16 bits; nor is one over a significand other than 1.
    fn power(self, n: i64) -> Option<Self> {
        if n < 0 && self.significand != 1 {
            return None;
        }
        let exponent = i32::try_from(i64::from(self.exponent) * n).ok()?;
        let mut significand = 1_u64;
        if self.significand != 1 {
            for _ in 0..n.min(64) {
                significand = significand.checked_mul(self.significand).filter(|s| s >> 53 == 0)?;
            }
        }
        Some(Self { significand, exponent })
    }
}

impl<F: FloatFormat<Elementary = Yes>> Minifloat<F> {
    /// `self^n`; see [`powf`](Self::powf).
    #[must_use]
    pub fn powi(self, n: i32) -> Self {
        self.power(n.into())
    }

    /// `self^n`, with the special values of IEEE 754's `pow`.
    ///
    /// Exact results and ties are rounded exactly, others from a value that errs by less than
    /// `2^-43` of it.
    ///
    /// ```
    /// use exmy::minifloat::F16;
    ///
    /// let [x, half] = [2.25, 0.5].map(F16::from_f32);
    /// assert_eq!(x.powf(half).to_f32(), 1.5);
    /// assert_eq!(x.powi(3).to_f32(), 11.390625);
    /// ```
    #[must_use]
    pub fn powf(self, n: Self) -> Self {
        self.power(n.to_f64())
    }

    fn power(self, n: f64) -> Self {
        let one = Operand::f64(1.0);
        let x = self.to_f64();
        if n == 0.0 || x == 1.0 {
            return Self::from_operand(one);
        }
        if x.is_nan() || n.is_nan() {
            return Self::from_f64(f64::NAN);
        }
        let integer = n % 1.0 == 0.0;
        let negative = self.is_sign_negative() && integer && n % 2.0 != 0.0;
        let sign = if negative { -1.0 } else { 1.0 };
        let magnitude = if x < 0.0 { -x } else { x };
        if magnitude == 0.0 || magnitude == f64::INFINITY {
            let grows = (magnitude == 0.0) == (n < 0.0);
            return Self::from_f64(if grows { sign * f64::INFINITY } else { sign * 0.0 });
        }
        if n.is_infinite() {
            let grows = (magnitude > 1.0) == (n > 0.0);
            let power = if grows { f64::INFINITY } else { 0.0 };
            return Self::from_f64(if magnitude == 1.0 { 1.0 } else { power });
        }
        if x < 0.0 && !integer {
            return Self::from_f64(f64::NAN);
        }
        if let Some(Odd { significand, exponent }) = self.exact_power(n) {
            let significand = significand.into();
            let exact = Exact { negative, significand, exponent, sticky: false };
            return Self::of(Self::FORMAT.round_by(exact, &Self::RULES, 0).code);
        }
        let exponent = Self::wide_log2(magnitude) * n;
        // Far beyond every format of the kind, and inside of binary64.
        let exponent = exponent.clamp(-1000.0, 1000.0);
        // To odd, so that the second rounding, which sees the sign, gives what one would (Boldo and
        // Melquiond 2008): the two ends of two's complement differ.
        let odd = Context::new(Format::F64, Rules::DEFAULT.with_rounding(Rounding::ToOdd));
        match odd.exp2(Operand::f64(exponent)) {
            Ok(rounded) => {
                let power = f64::from_bits(rounded.code);
                let power = Value::from_f64(if negative { -power } else { power });
                Self::of(Self::FORMAT.encode_by(power, &Self::RULES, 0).code)
            }
            Err(error) => unreachable!("{error}"),
        }
    }

    /// The power of the magnitude where it is a number that could be a result or a tie. The
    /// exponent is then an integer, or a fraction whose denominator is the degree of an exact root.
    fn exact_power(self, mut n: f64) -> Option<Odd> {
        let mut x = Odd::of(self.value())?;
        while n % 1.0 != 0.0 {
            (x, n) = (x.sqrt()?, n * 2.0);
        }
        // A significand of 3 and an exponent of 34 exceed 53 bits; 1 only scales.
        (-1e6..=1e6).contains(&n).then(|| x.power(n as i64)).flatten()
    }

    /// The logarithm to base 2 in binary64, correctly rounded, with IEEE 754's special values.
    fn wide_log2(x: f64) -> f64 {
        let context = Context::new(Format::F64, Rules::DEFAULT);
        match context.log2(Operand::f64(x)) {
            Ok(rounded) => f64::from_bits(rounded.code),
            Err(error) => unreachable!("{error}"),
        }
    }

    /// The cube root, rounded once: by the integer cube root of at least 41 bits, and whether there
    /// is a rest.
    ///
    /// ```
    /// use exmy::minifloat::F16;
    ///
    /// assert_eq!(F16::from_f32(-3.375).cbrt().to_f32(), -1.5);
    /// ```
    #[must_use]
    pub fn cbrt(self) -> Self {
        let (negative, significand, exponent) = match self.value() {
            Value::Nan { .. } => return Self::from_f64(f64::NAN),
            Value::Infinite { .. } | Value::Finite { significand: 0, .. } => return self,
            Value::Finite { negative, significand, exponent } => (negative, significand, exponent),
        };
        // 124 to 126 bits, above a power of two whose exponent is divisible by 3.
        let places = 126 - (u64::BITS - significand.leading_zeros()) as i32;
        let places = places - (places - exponent).rem_euclid(3);
        let cube = u128::from(significand) << places;
        let (mut root, mut bit) = (0_u128, 1 << 41);
        while bit != 0 {
            let next = root | bit;
            if next * next * next <= cube {
                root = next;
            }
            bit >>= 1;
        }
        let sticky = root * root * root != cube;
        let exponent = (exponent - places) / 3;
        let exact = Exact { negative, significand: root, exponent, sticky };
        Self::of(Self::FORMAT.round_by(exact, &Self::RULES, 0).code)
    }

    /// The logarithm to base 10, from binary64 (with an error below `2^-50`).
    ///
    /// ```
    /// use exmy::minifloat::{E4M3, F16};
    ///
    /// assert_eq!(F16::from_f32(1000.0).log10().to_f32(), 3.0);
    /// assert_eq!(F16::from_f32(0.0).log10(), F16::NEG_INFINITY.unwrap());
    /// assert!(E4M3::from_f32(0.0).log10().is_nan()); // which has no infinity
    /// ```
    #[must_use]
    pub fn log10(self) -> Self {
        let x = self.to_f64();
        if x > 0.0 && x.is_finite() {
            Self::from_f64(Self::wide_log2(x) * core::f64::consts::LOG10_2)
        } else {
            // NaN, infinities and poles are those of every logarithm.
            self.ln()
        }
    }

    /// The logarithm to any base, `log2(self) / log2(base)` in binary64. So special values are
    /// those of [`f32::log`], in all formats: to a base below 1 the logarithm falls, to bases 0 and
    /// infinity it is zero, to base 1 infinite.
    ///
    /// ```
    /// use exmy::minifloat::F16;
    ///
    /// let [nine, three, half, zero] = [9.0, 3.0, 0.5, 0.0].map(F16::from_f32);
    /// assert_eq!(nine.log(three).to_f32(), 2.0);
    /// assert_eq!(zero.log(half).to_f32(), f32::INFINITY);
    /// ```
    #[must_use]
    pub fn log(self, base: Self) -> Self {
        let quotient = Self::wide_log2(self.to_f64()) / Self::wide_log2(base.to_f64());
        // Which NaN 0 / 0 gives depends on the machine.
        Self::from_f64(if quotient.is_nan() { f64::NAN } else { quotient })
    }
}
