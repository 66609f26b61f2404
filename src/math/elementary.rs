//! Elementary functions, correctly rounded: exponentials, logarithms, circular and hyperbolic
//! functions and their inverses, from any format into any other by any [`Rules`](crate::round).
//!
//! ```
//! use exmy::format::Format;
//! use exmy::math::elementary::Function;
//! use exmy::math::{Context, Operand};
//! use exmy::round::Rules;
//!
//! let ctx = Context::new(Format::E4M3FN, Rules::DEFAULT);
//! let e = ctx.exp(Operand::new(Format::E4M3FN, 0x38))?; // e = 2.71828...
//! assert_eq!(e.code, 0x43); // 2.75
//! let pi = ctx.apply2(Function::Atan2, Operand::f32(0.0), Operand::f32(-1.0))?;
//! assert_eq!(pi.code, 0x45); // 3.25
//! # Ok::<(), exmy::math::elementary::Unsupported>(())
//! ```
//!
//! # How
//!
//! 1. `special`: NaN, infinities, zeros, ends of domains, and all arguments with a rational result,
//!    by theorem.
//! 2. `near`: results that differ from a known number by less than the target can see.
//! 3. Otherwise the result is irrational, and an enclosure of 64 bits is computed. If its bounds do
//!    not agree in all bits that the target decides by, one of 128, 256 and 512 bits follows (Ziv,
//!    ACM TOMS 17, 1991). Those bits and a sticky one are an exact result to
//!    [`Format::round_by`](crate::format::Format::round_by), for every mode at once.
//!
//! Every enclosure is made of operations on balls (`ball`), which count their own errors, and of
//! power series with one proof in `series`; `exponential`, `logarithm`, `circular` and `inverse`
//! reduce the functions to them.
//!
//! # What is certain
//!
//! A result is never guessed: an undecided one is [`Unsupported::Undecided`]. Every number of up to
//! 16 significant bits between `2^-160` and `2^160` has been tried with every function of one
//! operand and every target: none is undecided. So a function never fails for operands of a format
//! of up to 16 bits whose values lie there. With the usual bias, formats of up to 8 exponent bits
//! are such. Pairs of the angles have been tried up to 12 significant bits, those of powers in part.
//! The repository's `docs/hardest-cases.md` has the runs and the hardest operands.

mod ball;
mod circular;
mod constants;
#[cfg(test)]
mod containment;
mod exponential;
mod function;
#[cfg(test)]
mod hardest;
mod inverse;
mod logarithm;
mod methods;
mod near;
mod number;
mod power;
mod series;
mod special;

pub use function::{Function, Unsupported};

use super::{Context, Operand};
use crate::format::Value;
use crate::round::{Exact, Flags, Rounded, Rounding};
use ball::Ball;
use number::Number;
use special::Case;

/// Up to so many bits the smallest enclosure, of 64 bits, is tried first. It loses up to 12 to
/// errors and more to cancellation in its argument, and an attempt in vain costs time.
const NARROW: u32 = 40;

impl Context {
    /// A function of one operand.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::elementary::Function;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Rounding, Rules};
    ///
    /// let up = Context::new(Format::E4M3FN, Rules::DEFAULT.with_rounding(Rounding::TowardPositive));
    /// let tiny = Operand::f32(f32::MIN_POSITIVE);
    /// assert_eq!(up.apply(Function::Exp, tiny)?.code, 0x39); // above 1, if by 2^-126: the next is 1.125
    /// assert_eq!(up.apply(Function::Log, Operand::f32(-1.0))?.flags, Flags::INVALID);
    /// assert!(up.apply(Function::Atan2, tiny).is_err()); // a function of two
    /// # Ok::<(), exmy::math::elementary::Unsupported>(())
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`], for binary functions, for formats that [`Function::supports`] rejects, and
    /// where 512 bits decide nothing, which is known of no number; see there.
    pub fn apply(&self, function: Function, x: Operand) -> Result<Rounded, Unsupported> {
        if function.operands() != 1 {
            return Err(Unsupported::Operands { function, given: 1 });
        }
        function.supports(x.format)?;
        let value = self.read(x);
        if let Value::Nan { negative } = value {
            return Ok(self.pass_nan(x, negative));
        }
        let case = special::unary(function, value, self.rules.standard);
        self.conclude(function, case, x, || {
            let x = Number::of(value);
            let bits = self.bits();
            near::unary(function, x, bits).or_else(|| settle(bits, function, x, x))
        })
    }

    /// A function of two operands: [`Function::Atan2`] and [`Function::Atan2Pi`] of `y` and `x`, and
    /// [`Function::Pow`], whose base is the first one.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::elementary::Function;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::Rules;
    ///
    /// let context = Context::new(Format::F16, Rules::DEFAULT);
    /// let [zero, minus_zero] = [0.0, -0.0].map(Operand::f32);
    /// assert_eq!(context.apply2(Function::Atan2Pi, zero, minus_zero)?.code, 0x3C00); // half a turn: 1
    /// assert_eq!(context.atan2_pi(minus_zero, zero)?.code, 0x8000);
    /// assert_eq!(context.atan2(zero, minus_zero)?.code, 0x4248); // pi
    /// # Ok::<(), exmy::math::elementary::Unsupported>(())
    /// ```
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply2(
        &self,
        function: Function,
        y: Operand,
        x: Operand,
    ) -> Result<Rounded, Unsupported> {
        if function == Function::Pow {
            return self.pow(y, x);
        }
        if function.operands() != 2 {
            return Err(Unsupported::Operands { function, given: 2 });
        }
        let (a, b) = (self.read(y), self.read(x));
        if a.is_nan() || b.is_nan() {
            let nan = if a.is_nan() { (y, a) } else { (x, b) };
            let Rounded { code, mut flags } = self.pass_nan(nan.0, nan.1.is_sign_negative());
            if y.is_signaling() || x.is_signaling() {
                flags |= Flags::INVALID;
            }
            return Ok(Rounded { code, flags });
        }
        let case = special::binary(a, b, self.rules.standard);
        self.conclude(function, case, y, || {
            let (y, x) = (Number::of(a), Number::of(b));
            let bits = self.bits();
            near::binary(function, y, x, bits).or_else(|| settle(bits, function, y, x))
        })
    }

    /// The result of a case; `open` gives the first bits of an irrational one.
    #[inline]
    fn conclude(
        &self,
        function: Function,
        case: Case,
        x: Operand,
        open: impl FnOnce() -> Option<Exact>,
    ) -> Result<Rounded, Unsupported> {
        let exact = match case {
            Case::Nan => return Ok(self.to.made_nan(&self.rules)),
            Case::Infinite { negative, pole } => {
                let Rounded { code, flags } = self.to.round_infinity(negative, &self.rules);
                let pole = if pole { Flags::DIVIDE_BY_ZERO } else { Flags::NONE };
                return Ok(Rounded { code, flags: flags | pole });
            }
            Case::Exact(exact) => Some(exact),
            Case::Angle { negative, quarters } if function.counts_half_turns() => {
                let significand = quarters.into();
                Some(Exact { negative, significand, exponent: -2, sticky: false })
            }
            Case::Angle { negative, quarters } => {
                let angle = Ball::<4>::new(quarters, -2) * Ball::constant(&constants::PI);
                angle.negate_if(negative).decide(self.bits())
            }
            Case::Open => open(),
        };
        let undecided = Unsupported::Undecided { function, format: x.format };
        let exact = exact.ok_or(undecided)?;
        Ok(self.to.round_by(exact, &self.rules, self.word()))
    }

    /// Bits that decide a result: two more than the target's precision, and those that stochastic
    /// rounding compares with random ones.
    const fn bits(&self) -> u32 {
        let random = match self.rules.rounding {
            Rounding::Stochastic { bits, .. } => bits as u32,
            _ => 0,
        };
        self.to.precision() + 2 + random
    }
}

impl Function {
    const fn counts_half_turns(self) -> bool {
        matches!(self, Self::AsinPi | Self::AcosPi | Self::AtanPi | Self::Atan2Pi)
    }
}

/// The first `bits` bits of an irrational result, from the narrowest enclosure that decides them.
fn settle(bits: u32, function: Function, a: Number, b: Number) -> Option<Exact> {
    let narrow = if bits <= NARROW { enclose::<1>(function, a, b).decide(bits) } else { None };
    narrow
        .or_else(|| enclose::<2>(function, a, b).decide(bits))
        .or_else(|| enclose::<4>(function, a, b).decide(bits))
        .or_else(|| enclose::<8>(function, a, b).decide(bits))
}

/// The enclosure of a result of `64 N` bits; `b` matters to binary functions only.
fn enclose<const N: usize>(function: Function, a: Number, b: Number) -> Ball<N> {
    use Function as F;
    let x = Ball::from(a);
    match function {
        F::Exp => exponential::exp(x),
        F::Exp2 => exponential::exp2(a),
        F::Expm1 => exponential::expm1(x),
        F::Log => logarithm::log(x),
        F::Log2 => logarithm::log2(x),
        F::Log1p => logarithm::log1p(x),
        F::Softplus => exponential::softplus(x),
        F::Sin => circular::reduce(a).sin().negate_if(a.negative),
        F::Cos => circular::reduce(a).cos(),
        F::Tan => circular::reduce(a).tan().negate_if(a.negative),
        F::Asin => inverse::asin(a),
        F::Acos => inverse::acos(a),
        F::Atan => inverse::atan(a),
        F::Sinh => exponential::sinh(x),
        F::Cosh => exponential::cosh(x),
        F::Tanh => exponential::tanh(x),
        F::Asinh => logarithm::asinh(a),
        F::Acosh => logarithm::acosh(a),
        F::Atanh => logarithm::atanh(a),
        F::SinPi => circular::reduce_pi(a).sin().negate_if(a.negative),
        F::CosPi => circular::reduce_pi(a).cos(),
        F::TanPi => circular::reduce_pi(a).tan().negate_if(a.negative),
        F::AsinPi => inverse::half_turns(inverse::asin(a)),
        F::AcosPi => inverse::half_turns(inverse::acos(a)),
        F::AtanPi => inverse::half_turns(inverse::atan(a)),
        F::Atan2 => inverse::angle(x, b.into()),
        F::Atan2Pi => inverse::half_turns(inverse::angle(x, b.into())),
        F::Pow => power::enclose(a, b),
    }
}
