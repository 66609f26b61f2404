//! Products: [`mul`](Context::mul) and [`fma`](Context::fma) (IEEE 754-2019, 5.4.1).
//!
//! The product of two significands of up to 53 bits is exact in 106.

use super::align::{exact, sum};
use super::{Context, Operand};
use crate::format::Value;
use crate::round::{Exact, Flags, Rounded};

impl Context {
    /// `a * b`, rounded once. Zero times infinity gives NaN ([`Flags::INVALID`]).
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Rules};
    ///
    /// let context = Context::new(Format::E4M3FN, Rules::DEFAULT);
    /// let mul = |a, b| context.mul(Operand::f32(a), Operand::f32(b));
    /// assert_eq!(mul(-2.0_f32.powi(-9), 0.5).code, 0x80); // half of the smallest number: a tie, to -0
    /// assert_eq!(mul(0.0, f32::INFINITY).flags, Flags::INVALID);
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    #[inline]
    pub const fn mul(&self, a: Operand, b: Operand) -> Rounded {
        let (x, y) = (self.read(a), self.read(b));
        if x.is_nan() || y.is_nan() {
            return self.pass_first_nan(&[a, b]);
        }
        match product(x, y) {
            Product::Finite(exact) => self.finish(exact),
            Product::Infinite(negative) => self.to.round_infinity(negative, &self.rules),
            Product::Invalid => self.to.made_nan(&self.rules),
        }
    }

    /// `a * b + c`, rounded once.
    ///
    /// A NaN among `a` and `b` goes before that of `c`. Zero times infinity is invalid whatever
    /// `c` is, as on x86 and in SoftFloat; if `c` is NaN, the result is `c`'s all the same. Zero
    /// sums follow [`add`](Self::add).
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Rules};
    ///
    /// let fp8 = |x: f32| Operand::f32(x);
    /// let context = Context::new(Format::E5M2, Rules::DEFAULT);
    /// let rounded = context.fma(fp8(1.25), fp8(1.25), fp8(-1.5)); // 0.0625
    /// assert_eq!(Format::E5M2.to_f32(rounded.code), 0.0625);
    /// assert_eq!(rounded.flags, Flags::NONE);
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    #[inline]
    #[doc(alias = "mul_add")]
    pub const fn fma(&self, a: Operand, b: Operand, c: Operand) -> Rounded {
        let (x, y, z) = (self.read(a), self.read(b), self.read(c));
        if x.is_nan() || y.is_nan() {
            return self.pass_first_nan(&[a, b, c]);
        }
        match (product(x, y), z) {
            (Product::Finite(product), Value::Finite { negative, significand, exponent }) => {
                let addend = exact(negative, significand, exponent);
                self.finish(sum(product, addend, self.zero_sum_is_negative()))
            }
            (product, Value::Nan { .. }) => {
                let Rounded { code, flags } = self.pass_first_nan(&[c]);
                let invalid = matches!(product, Product::Invalid);
                let flags = if invalid { flags.union(Flags::INVALID) } else { flags };
                Rounded { code, flags }
            }
            (Product::Invalid, _) => self.to.made_nan(&self.rules),
            (Product::Infinite(negative), Value::Infinite { negative: minus })
                if negative != minus =>
            {
                self.to.made_nan(&self.rules)
            }
            (Product::Infinite(negative), _) | (_, Value::Infinite { negative }) => {
                self.to.round_infinity(negative, &self.rules)
            }
        }
    }
}

/// An exact product of two values that are not NaN.
enum Product {
    Finite(Exact),
    Infinite(bool),
    Invalid,
}

#[inline]
const fn product(a: Value, b: Value) -> Product {
    let negative = a.is_sign_negative() != b.is_sign_negative();
    match (a, b) {
        (
            Value::Finite { significand: x, exponent: i, .. },
            Value::Finite { significand: y, exponent: j, .. },
        ) => Product::Finite(Exact {
            negative,
            significand: x as u128 * y as u128,
            exponent: i + j,
            sticky: false,
        }),
        _ if a.is_zero() || b.is_zero() => Product::Invalid,
        _ => Product::Infinite(negative),
    }
}
