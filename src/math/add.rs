//! Sums: [`add`](Context::add), [`sub`](Context::sub) and [`faa`](Context::faa) of three.
//!
//! IEEE 754-2019, 5.4.1 and 6.3 for the sign of zero sums; FAA is P3109's (Interim Report 4.0).

use super::align::{by_size, exact, is_exact, sum};
use super::{Context, Operand};
use crate::format::Value;
use crate::round::{Exact, Flags, Rounded, Rounding, Standard};

impl Context {
    /// `a + b`, rounded once.
    ///
    /// Infinities of different sign give NaN ([`Flags::INVALID`]). Numbers that cancel give +0,
    /// or -0 under [`Rounding::TowardNegative`].
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Rounding, Rules};
    ///
    /// let context = Context::new(Format::E4M3FN, Rules::DEFAULT);
    /// let [x, inf] = [448.0, f32::INFINITY].map(Operand::f32);
    /// assert_eq!(context.add(x, Operand::f32(16.0)).code, 0x7E); // a tie, and no overflow
    /// assert_eq!(context.add(x, Operand::f32(17.0)).code, 0x7F); // NaN: it has no infinity
    /// assert_eq!(context.sub(inf, inf).flags, Flags::INVALID);
    /// let down = Context::new(Format::E4M3FN, Rules::DEFAULT.with_rounding(Rounding::TowardNegative));
    /// assert_eq!((context.sub(x, x).code, down.sub(x, x).code), (0x00, 0x80)); // 0 and -0
    /// ```
    ///
    /// # Panics
    /// If the mode is stochastic with a bit count outside 1..=32 or without a random word
    /// ([`with_random`](Self::with_random)); so do all operations that round.
    #[inline]
    pub const fn add(&self, a: Operand, b: Operand) -> Rounded {
        self.sum_of_two(a, b, false)
    }

    /// `a - b`, rounded once; `a + (-b)` except that a NaN keeps its sign.
    ///
    /// # Panics
    /// As [`add`](Self::add).
    #[inline]
    pub const fn sub(&self, a: Operand, b: Operand) -> Rounded {
        self.sum_of_two(a, b, true)
    }

    #[inline]
    const fn sum_of_two(&self, a: Operand, b: Operand, flip: bool) -> Rounded {
        match (self.read(a), self.read(b)) {
            (
                Value::Finite { negative, significand, exponent },
                Value::Finite { negative: minus, significand: other, exponent: place },
            ) => {
                let a = exact(negative, significand, exponent);
                let b = exact(minus != flip, other, place);
                self.finish(sum(a, b, self.zero_sum_is_negative()))
            }
            (Value::Nan { .. }, _) | (_, Value::Nan { .. }) => self.pass_first_nan(&[a, b]),
            (Value::Infinite { negative }, Value::Infinite { negative: minus })
                if negative == (minus != flip) =>
            {
                self.to.round_infinity(negative, &self.rules)
            }
            (Value::Infinite { .. }, Value::Infinite { .. }) => self.to.made_nan(&self.rules),
            (Value::Infinite { negative }, _) => self.to.round_infinity(negative, &self.rules),
            (_, Value::Infinite { negative }) => {
                self.to.round_infinity(negative != flip, &self.rules)
            }
        }
    }

    /// `a + b + c`, the exact sum of three rounded once (P3109's FAA). Two infinities of different
    /// sign give NaN; zeros follow [`add`](Self::add): a zero sum is -0 only if all three are, or
    /// under [`Rounding::TowardNegative`].
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::Rules;
    ///
    /// let f32s = Context::new(Format::F32, Rules::DEFAULT);
    /// let [big, small] = [1e30, 1.0].map(Operand::f32);
    /// let sum = f32s.faa(big, small, Operand::f32(-1e30));
    /// assert_eq!(f32::from_bits(sum.code as u32), 1.0);
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub const fn faa(&self, a: Operand, b: Operand, c: Operand) -> Rounded {
        let values = [self.read(a), self.read(b), self.read(c)];
        let (mut plus, mut minus) = (false, false);
        let mut i = 0;
        while i < 3 {
            match values[i] {
                Value::Nan { .. } => return self.pass_first_nan(&[a, b, c]),
                Value::Infinite { negative: true } => minus = true,
                Value::Infinite { negative: false } => plus = true,
                Value::Finite { .. } => {}
            }
            i += 1;
        }
        if plus && minus {
            return self.to.made_nan(&self.rules);
        }
        if plus || minus {
            return self.to.round_infinity(minus, &self.rules);
        }
        let [Some(a), Some(b), Some(c)] = [values[0].exact(), values[1].exact(), values[2].exact()]
        else {
            unreachable!()
        };
        // The smallest last: if the two larger ones are close, their sum is exact and may cancel
        // down to the third; if not, the largest dwarfs both others.
        let (a, b) = by_size(a, b);
        let (b, c) = by_size(b, c);
        let (a, b) = by_size(a, b);
        let zero = self.zero_sum_is_negative();
        let total = if is_exact(a, b) {
            sum(sum(a, b, zero), c, zero)
        } else {
            sum(a, sum(b, c, zero), zero)
        };
        self.finish(total)
    }

    /// Whether numbers that cancel give -0 (IEEE 754-2019, 6.3); P3109 has one zero.
    #[inline]
    pub(super) const fn zero_sum_is_negative(&self) -> bool {
        matches!(self.rules.rounding, Rounding::TowardNegative)
            && matches!(self.rules.standard, Standard::Ieee754)
    }

    /// An exact result, rounded.
    #[inline]
    pub(super) const fn finish(&self, exact: Exact) -> Rounded {
        self.to.round_by(exact, &self.rules, self.word())
    }

    /// The result of operands of which one or more are NaN: the first NaN, and
    /// [`Flags::INVALID`] if any of them is signaling.
    #[cold]
    pub(super) const fn pass_first_nan(&self, operands: &[Operand]) -> Rounded {
        let mut first: Option<(Operand, bool)> = None;
        let mut signaling = false;
        let mut i = 0;
        while i < operands.len() {
            let x = operands[i];
            if let (Value::Nan { negative }, None) = (x.value(), first) {
                first = Some((x, negative));
            }
            signaling |= x.is_signaling();
            i += 1;
        }
        let Some((x, negative)) = first else { unreachable!() };
        let Rounded { code, flags } = self.pass_nan(x, negative);
        Rounded { code, flags: if signaling { flags.union(Flags::INVALID) } else { flags } }
    }
}
