//! Rounding to an integer that stays a floating-point number (IEEE 754-2019, 5.9).

use super::convert::zero;
use super::{Context, Operand};
use crate::format::Value;
use crate::round::{Exact, Flags, Rounded};

impl Context {
    /// The integer that the mode chooses for `x`, in this context's format.
    ///
    /// Zeros and numbers that become zero keep the sign of `x`.
    /// [`ToOdd`](crate::round::Rounding::ToOdd) takes the odd
    /// integer next to a number that is none, as Berkeley SoftFloat does. With `exact`, a changed
    /// number sets [`Flags::INEXACT`] (`roundToIntegralExact`). An integer that the format does not have is rounded to it, with
    /// the flags of that rounding.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Rules};
    ///
    /// let context = Context::new(Format::E4M3FN, Rules::DEFAULT);
    /// let round = |x, exact| context.round_to_integral(Operand::f32(x), exact);
    /// assert_eq!((round(-0.5, true).code, round(-0.5, true).flags), (0x80, Flags::INEXACT)); // -0
    /// assert_eq!(round(-0.5, false).flags, Flags::NONE);
    /// assert_eq!(round(17.0, false).flags, Flags::INEXACT); // an integer that E4M3FN lacks
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub const fn round_to_integral(&self, x: Operand, exact: bool) -> Rounded {
        let value = self.read(x);
        let (Some(number), Value::Finite { negative, .. }) = (value.exact(), value) else {
            return match value {
                Value::Infinite { negative } => self.to.round_infinity(negative, &self.rules),
                _ => self.pass_first_nan(&[x]),
            };
        };
        if number.exponent >= 0 {
            return self.finish(number);
        }
        let Some((significand, inexact)) = number.to_integer(self.rules.rounding, self.word())
        else {
            unreachable!()
        };
        let Rounded { code, flags } = if significand == 0 {
            self.to.encode_by(zero(negative), &self.rules, self.word())
        } else {
            self.finish(Exact { negative, significand, exponent: 0, sticky: false })
        };
        let flags = if exact && inexact { flags.union(Flags::INEXACT) } else { flags };
        Rounded { code, flags }
    }
}
