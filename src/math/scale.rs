//! Exponents as operands and results: [`scalb`](Context::scalb) and [`logb`](Context::logb)
//! (IEEE 754-2019, 5.3.3).

use super::align::exact;
use super::{Context, Operand};
use crate::format::Value;
use crate::round::Rounded;

/// Beyond the exponents of any two formats: a scale of more makes no difference.
const FAR: i32 = 1 << 24;

impl Context {
    /// `x * 2^n`, rounded once.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Rules};
    ///
    /// let context = Context::new(Format::E4M3FN, Rules::DEFAULT);
    /// assert_eq!(context.scalb(Operand::f32(1.5), -9).code, 0x02); // a tie of subnormals, to even
    /// assert_eq!(context.scalb(Operand::f32(1.0), i32::MAX).flags.contains(Flags::OVERFLOW), true);
    /// assert_eq!(context.logb(Operand::f32(0.4375)).code, 0xC0); // -2
    /// assert!(context.logb(Operand::f32(0.0)).flags.contains(Flags::DIVIDE_BY_ZERO));
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub const fn scalb(&self, x: Operand, n: i32) -> Rounded {
        let n = if n > FAR {
            FAR
        } else if n < -FAR {
            -FAR
        } else {
            n
        };
        match self.read(x) {
            Value::Nan { .. } => self.pass_first_nan(&[x]),
            Value::Infinite { negative } => self.to.round_infinity(negative, &self.rules),
            Value::Finite { negative, significand, exponent } => {
                self.finish(exact(negative, significand, exponent + n))
            }
        }
    }

    /// `floor(log2(|x|))`, the exponent of a number as if its significand had no bounds, in this
    /// context's format. Of zero it is negative infinity, with
    /// [`Flags::DIVIDE_BY_ZERO`](crate::round::Flags::DIVIDE_BY_ZERO); of infinity, infinity.
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub const fn logb(&self, x: Operand) -> Rounded {
        match self.read(x) {
            Value::Nan { .. } => self.pass_first_nan(&[x]),
            Value::Infinite { .. } => self.to.round_infinity(false, &self.rules),
            Value::Finite { significand: 0, .. } => self.pole(true),
            Value::Finite { significand, exponent, .. } => {
                self.from_i32(exponent + significand.ilog2() as i32)
            }
        }
    }
}
