//! Operands whose results need no approximation: zeros, infinities, the ends of domains, poles, and
//! the arguments at which a function is rational.
//!
//! For IEEE formats the table is that of IEEE 754-2019, 9.2.1 (C23, Annex F.10, agrees and writes
//! out the signs). For P3109's formats it is that of Interim Report 4.0: `tan_pi` at a pole,
//! `atan2(0, 0)` and `atan2` of two infinities are NaN, and zero has no sign. Softplus is P3109's
//! alone, `log(1 + e^x)` with its limits.
//!
//! That the rational cases are all here makes the widening of enclosures end. At a dyadic argument
//! a result is rational nowhere else:
//!
//! * `e^x`, `log x` and what is made of them and of square roots, `sin x`, `atan x` ...: for
//!   algebraic arguments other than those below the results are transcendental (Lindemann and
//!   Weierstrass).
//! * `2^x` for `x` not an integer is an irrational root; `log2 x` for `x` not a power of two is
//!   irrational, for `2^p = x^q` would contradict unique factorization.
//! * `sin(pi x)`, `cos(pi x)`, `tan(pi x)` of rational `x` are rational only at multiples of 1/6
//!   (sine, cosine) and 1/4 (tangent) (Niven), of which the dyadic ones are multiples of 1/2 and
//!   1/4. Conversely `asin(x) / pi` and its like are rational only for `x` in 0, 1/2, 1 and 0, 1.
//!   The thirds and sixths at 1/2 are no dyadic numbers, so they count as irrational here.

use core::cmp::Ordering;

use super::Function;
use super::number::Number;
use crate::format::Value;
use crate::round::{Exact, Standard};

/// What is known of a result beforehand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Case {
    /// The operation is invalid.
    Nan,
    /// An infinity; `pole` if of a finite operand.
    Infinite { negative: bool, pole: bool },
    /// An exact number.
    Exact(Exact),
    /// An angle of `quarters / 4` half turns.
    Angle { negative: bool, quarters: u64 },
    /// Nothing: finite nonzero operands (zero for softplus) and an irrational result.
    Open,
}

impl Case {
    pub(super) const ONE: Self = Self::integer(false, 1);
    const POLE: Self = Self::Infinite { negative: true, pole: true };

    const fn integer(negative: bool, significand: u128) -> Self {
        Self::Exact(Exact { negative, significand, exponent: 0, sticky: false })
    }

    pub(super) const fn zero(negative: bool) -> Self {
        Self::integer(negative, 0)
    }

    pub(super) const fn infinity(negative: bool) -> Self {
        Self::Infinite { negative, pole: false }
    }

    const fn angle(negative: bool, quarters: u64) -> Self {
        Self::Angle { negative, quarters }
    }
}

/// The case of an operand that is not NaN.
pub(super) fn unary(function: Function, x: Value, standard: Standard) -> Case {
    match x {
        Value::Nan { .. } => Case::Nan,
        Value::Infinite { negative } => at_infinity(function, negative),
        Value::Finite { negative, significand: 0, .. } => {
            at_zero(function, negative && standard == Standard::Ieee754)
        }
        Value::Finite { negative, significand, exponent } => {
            at_number(function, Number { negative, significand, exponent }, standard)
        }
    }
}

fn at_infinity(function: Function, negative: bool) -> Case {
    use Function as F;
    match function {
        F::Exp | F::Exp2 | F::Softplus if negative => Case::zero(false),
        F::Expm1 if negative => Case::integer(true, 1),
        F::Log | F::Log2 | F::Log1p | F::Acosh if negative => Case::Nan,
        F::Exp | F::Exp2 | F::Expm1 | F::Softplus => Case::infinity(false),
        F::Log | F::Log2 | F::Log1p | F::Acosh | F::Cosh => Case::infinity(false),
        F::Sinh | F::Asinh => Case::infinity(negative),
        F::Tanh => Case::integer(negative, 1),
        F::Atan | F::AtanPi => Case::angle(negative, 2),
        F::Sin | F::Cos | F::Tan | F::SinPi | F::CosPi | F::TanPi => Case::Nan,
        F::Asin | F::Acos | F::AsinPi | F::AcosPi | F::Atanh => Case::Nan,
        F::Atan2 | F::Atan2Pi | F::Pow => Case::Nan,
    }
}

fn at_zero(function: Function, negative: bool) -> Case {
    use Function as F;
    match function {
        F::Exp | F::Exp2 | F::Cos | F::CosPi | F::Cosh => Case::ONE,
        F::Log | F::Log2 => Case::POLE,
        F::Acos | F::AcosPi => Case::angle(false, 2),
        F::Acosh => Case::Nan,
        F::Softplus => Case::Open,
        _ => Case::zero(negative),
    }
}

fn at_number(function: Function, x: Number, standard: Standard) -> Case {
    use Function as F;
    use Ordering::{Equal, Greater, Less};
    let Number { negative, .. } = x;
    let size = x.compare_with_one();
    match (function, size) {
        (F::Log | F::Log2, _) if negative => Case::Nan,
        (F::Log, Equal) => Case::zero(false),
        (F::Log2, _) if x.significand.is_power_of_two() => {
            let k = x.top() - 1;
            Case::integer(k < 0, k.unsigned_abs().into())
        }
        (F::Log1p, Greater) if negative => Case::Nan,
        (F::Log1p, Equal) if negative => Case::POLE,
        (F::Acosh, _) if negative => Case::Nan,
        (F::Acosh, Less) => Case::Nan,
        (F::Acosh, Equal) => Case::zero(false),
        (F::Exp2, _) => match x.split(0) {
            // Below 2^22, where powers of two end.
            (whole, 0, _) if x.top() <= 22 => {
                let exponent = if negative { -(whole as i32) } else { whole as i32 };
                Case::Exact(Exact { negative: false, significand: 1, exponent, sticky: false })
            }
            _ => Case::Open,
        },
        (F::Asin | F::AsinPi | F::Acos | F::AcosPi | F::Atanh, Greater) => Case::Nan,
        (F::Asin | F::AsinPi, Equal) => Case::angle(negative, 2),
        (F::Acos | F::AcosPi, Equal) if negative => Case::angle(false, 4),
        (F::Acos | F::AcosPi, Equal) => Case::zero(false),
        (F::Atan | F::AtanPi, Equal) => Case::angle(negative, 1),
        (F::Atanh, Equal) => Case::Infinite { negative, pole: true },
        (F::SinPi, _) => match x.split(1) {
            (quadrant, 0, _) => match quadrant & 3 {
                1 => Case::integer(negative, 1),
                3 => Case::integer(!negative, 1),
                _ => Case::zero(negative && standard == Standard::Ieee754),
            },
            _ => Case::Open,
        },
        (F::CosPi, _) => match x.split(1) {
            (quadrant, 0, _) => match quadrant & 3 {
                0 => Case::ONE,
                2 => Case::integer(true, 1),
                _ => Case::zero(false),
            },
            _ => Case::Open,
        },
        (F::TanPi, _) => match x.split(2) {
            (octant, 0, _) => {
                let odd_turn = negative != (octant & 4 != 0);
                match (octant & 3, standard) {
                    (0, Standard::Ieee754) => Case::zero(odd_turn),
                    (0, Standard::P3109) => Case::zero(false),
                    (1, _) => Case::integer(negative, 1),
                    (3, _) => Case::integer(!negative, 1),
                    (_, Standard::Ieee754) => Case::Infinite { negative: odd_turn, pole: true },
                    (_, Standard::P3109) => Case::Nan,
                }
            }
            _ => Case::Open,
        },
        _ => Case::Open,
    }
}

/// The case of the angle of `(x, y)`, neither NaN.
pub(super) fn binary(y: Value, x: Value, standard: Standard) -> Case {
    let ieee = standard == Standard::Ieee754;
    let sign = |value: Value| value.is_sign_negative() && (ieee || !value.is_zero());
    let (up, left) = (sign(y), sign(x));
    match (y, x) {
        (Value::Infinite { .. }, Value::Infinite { .. }) if ieee => {
            Case::angle(up, if left { 3 } else { 1 })
        }
        (Value::Infinite { .. }, Value::Infinite { .. }) => Case::Nan,
        (Value::Infinite { .. }, _) => Case::angle(up, 2),
        _ if y.is_zero() && x.is_zero() && !ieee => Case::Nan,
        _ if y.is_zero() || x.is_infinite() => {
            if left {
                Case::angle(up, 4)
            } else {
                Case::zero(up)
            }
        }
        _ if x.is_zero() => Case::angle(up, 2),
        (
            Value::Finite { significand: a, exponent: i, .. },
            Value::Finite { significand: b, exponent: j, .. },
        ) => {
            let value =
                |significand, exponent| Value::Finite { negative: false, significand, exponent };
            if value(a, i) == value(b, j) {
                Case::angle(up, if left { 3 } else { 1 })
            } else {
                Case::Open
            }
        }
        _ => Case::Nan,
    }
}
