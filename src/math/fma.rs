//! Fused multiply-add: [`fma`](Context::fma) (IEEE 754-2019, 5.4.1).
//!
//! The exact product and the addend are summed exactly, or to their first bits and a sticky one, and rounded
//! once.

use super::align::{exact, sum};
use super::mul::{Product, product};
use super::{Context, Operand};
use crate::format::Value;
use crate::round::{Flags, Rounded};

impl Context {
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
