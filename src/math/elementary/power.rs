//! `x^y`: its special cases after IEEE 754-2019, 9.2.1 (C23, F.10.4.5, agrees), the exact results, and
//! `e^(y log |x|)` for all others.
//!
//! With `x = s 2^e` and `y = n 2^-k`, `s` and `n` odd, a result of finitely many digits is one of these: a
//! power of two where `s = 1` and `e y` is an integer; `(r 2^(e / 2^k))^n` where `n` is positive, `2^k`
//! divides `e`, and `s` is the `2^k`-th power of an integer `r`. The former are found by their exponents,
//! however far beyond every format, for no enclosure decides them. Of the latter those of more than 128 bits
//! are left to the enclosures, which see that they are no number of a format and no middle between two.

use core::cmp::Ordering;

use super::ball::Ball;
use super::exponential::HUGE;
use super::function::{Function, Unsupported};
use super::near::{beside, extreme};
use super::number::Number;
use super::special::Case;
use super::{NARROW, exponential, logarithm};
use crate::format::Value;
use crate::math::{Context, Operand};
use crate::round::{Exact, Flags, Rounded, Standard};

/// What a power does with signs: an integer exponent or none.
#[derive(Clone, Copy, PartialEq)]
enum Whole {
    Odd,
    Even,
    No,
}

impl Whole {
    fn of(y: Number) -> Self {
        let lowest = y.exponent + y.significand.trailing_zeros() as i32;
        match lowest.cmp(&0) {
            Ordering::Less => Self::No,
            Ordering::Equal => Self::Odd,
            Ordering::Greater => Self::Even,
        }
    }
}

impl Context {
    /// `x` to the power `y`. `pow(x, 0)` is 1 whatever `x` is, a quiet NaN too, and so is `pow(1, y)`;
    /// negative `x` have a power where `y` is an integer.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Rules};
    ///
    /// let context = Context::new(Format::F16, Rules::DEFAULT);
    /// let pow = |x: f32, y: f32| context.pow(Operand::f32(x), Operand::f32(y));
    /// assert_eq!(pow(2.0, 0.5)?.code, 0x3DA8); // 1.4140625 for 1.41421...
    /// assert_eq!(pow(-3.0, 3.0)?.code, 0xCEC0); // -27, exactly
    /// assert_eq!(pow(-3.0, 0.5)?.flags, Flags::INVALID);
    /// # Ok::<(), exmy::math::elementary::Unsupported>(())
    /// ```
    ///
    /// # Errors
    /// [`Unsupported::Undecided`] where 512 bits decide nothing, which is known of no pair.
    pub fn pow(&self, x: Operand, y: Operand) -> Result<Rounded, Unsupported> {
        let (a, b) = (self.read(x), self.read(y));
        let one = |value: Value| match value {
            Value::Finite { negative: false, significand, .. } if significand != 0 => {
                Number::of(value).compare_with_one().is_eq()
            }
            _ => false,
        };
        if a.is_nan() || b.is_nan() {
            let signaling = x.is_signaling() || y.is_signaling();
            if !signaling && (b.is_zero() || one(a)) {
                return self.conclude(Function::Pow, Case::ONE, x, || None);
            }
            let nan = if a.is_nan() { (x, a) } else { (y, b) };
            let Rounded { code, mut flags } = self.pass_nan(nan.0, nan.1.is_sign_negative());
            if signaling {
                flags |= Flags::INVALID;
            }
            return Ok(Rounded { code, flags });
        }
        let case = special(a, b, self.rules.standard);
        let bits = self.bits();
        self.conclude(Function::Pow, case, x, || open(Number::of(a), Number::of(b), bits))
    }
}

/// The case of two operands that are not NaN.
fn special(x: Value, y: Value, standard: Standard) -> Case {
    // Zero has no sign in P3109.
    let signed_zero = standard == Standard::Ieee754;
    let falling = y.is_sign_negative();
    if y.is_zero() {
        return Case::ONE;
    }
    let whole = if y.is_finite() { Whole::of(Number::of(y)) } else { Whole::Even };
    let odd = x.is_sign_negative() && whole == Whole::Odd;
    if x.is_zero() {
        return match falling {
            true => Case::Infinite { negative: odd && signed_zero, pole: y.is_finite() },
            false => Case::zero(odd && signed_zero),
        };
    }
    if x.is_infinite() {
        return if falling { Case::zero(odd && signed_zero) } else { Case::infinity(odd) };
    }
    let base = Number::of(x);
    let size = base.compare_with_one();
    if y.is_infinite() {
        return match size {
            Ordering::Equal => Case::ONE,
            Ordering::Greater if falling => Case::zero(false),
            Ordering::Less if !falling => Case::zero(false),
            _ => Case::infinity(false),
        };
    }
    if size.is_eq() && !base.negative {
        return Case::ONE;
    }
    if base.negative && whole == Whole::No {
        return Case::Nan;
    }
    match exact(base, Number::of(y)) {
        Some(exact) => Case::Exact(Exact { negative: odd, ..exact }),
        None => Case::Open,
    }
}

/// `|x|^y` where that has at most 128 digits. A power of two beyond every format stands for all of them.
fn exact(x: Number, y: Number) -> Option<Exact> {
    let zeros = |number: Number| number.significand.trailing_zeros();
    let (mut odd, mut exponent) = (x.significand >> zeros(x), x.exponent + zeros(x) as i32);
    let (n, power) = (y.significand >> zeros(y), y.exponent + zeros(y) as i32);
    for _ in power..0 {
        if exponent % 2 != 0 {
            return None;
        }
        exponent /= 2;
        if odd > 1 {
            let root = odd.isqrt();
            if root * root != odd {
                return None;
            }
            odd = root;
        } else if exponent == 0 {
            break; // one, however many roots are left
        }
    }
    // From 2^62 on a multiple is 0 or far beyond every format, how far does not matter.
    let n = i128::from(n) << power.clamp(0, 62);
    let significand = match odd {
        1 => 1,
        _ if y.negative => return None,
        _ => u128::from(odd).checked_pow(u32::try_from(n).ok()?)?,
    };
    let huge = i128::from(HUGE);
    let exponent = i128::from(exponent).saturating_mul(if y.negative { -n } else { n });
    let exponent = exponent.clamp(-huge, huge) as i32;
    Some(Exact { negative: false, significand, exponent, sticky: false })
}

/// `y log |x|` in `64 N` bits.
fn argument<const N: usize>(x: Number, y: Number) -> Ball<N> {
    logarithm::log(Ball::from(x.abs())) * Ball::from(y)
}

/// The first bits of any other result.
fn open(x: Number, y: Number, bits: u32) -> Option<Exact> {
    let negative = x.negative && Whole::of(y) == Whole::Odd;
    let t = argument::<2>(x, y);
    let rough = if !t.is_normal() {
        None
    } else if t.top() > 22 {
        // From 2^22 on results are beyond every format.
        Some(extreme(!t.negative))
    } else if t.top() + 1 < -(bits as i32) - 1 {
        // |e^t - 1| < 2 |t|.
        let one = Number { negative: false, significand: 1, exponent: 0 };
        Some(beside(one, !t.negative, bits + 1))
    } else {
        None
    };
    let narrow = || if bits <= NARROW { enclose::<1>(x, y).decide(bits) } else { None };
    let found = rough
        .or_else(narrow)
        .or_else(|| enclose::<2>(x, y).decide(bits))
        .or_else(|| enclose::<4>(x, y).decide(bits))
        .or_else(|| enclose::<8>(x, y).decide(bits));
    found.map(|exact| Exact { negative, ..exact })
}

pub(super) fn enclose<const N: usize>(x: Number, y: Number) -> Ball<N> {
    exponential::exp(argument(x, y))
}
