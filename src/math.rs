//! Arithmetic on codes: every operation takes operands of any formats and rounds its exact result
//! once, into the format and by the rules of a [`Context`].
//!
//! ```
//! use exmy::format::Format;
//! use exmy::math::{Context, Operand};
//! use exmy::round::Rules;
//!
//! let narrow = Context::new(Format::E4M3FN, Rules::DEFAULT);
//! let x = Operand::f64(1.0625 + 2.0_f64.powi(-40));
//! assert_eq!(narrow.convert(x).code, 0x39); // by way of binary32 it would be 0x38
//! ```

#![forbid(unsafe_code)]

mod add;
mod align;
mod class;
mod compare;
mod convert;
pub mod differences;
mod div;
pub mod elementary;
mod fma;
mod integer;
mod minmax;
mod mul;
mod neighbours;
mod rem;
mod scale;
mod sign;
pub mod special_cases;
mod sqrt;
mod wide;

pub use class::Class;
pub use integer::IntInvalid;

use crate::format::{Format, Value};
use crate::round::Rules;

/// An operand: a code and the format it is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Operand {
    /// The format.
    pub format: Format,
    /// The code; bits above the format's width are ignored.
    pub code: u64,
}

impl Operand {
    /// A code of a format.
    ///
    /// ```
    /// use exmy::format::{Format, Value};
    /// use exmy::math::Operand;
    ///
    /// assert_eq!(Operand::new(Format::UE4M3, 0xB8).value(), Value::from_f32(1.0)); // 7 bits count
    /// assert_eq!(Operand::f32(0.5).value(), Operand::f64(0.5).value());
    /// assert_ne!(Operand::f32(0.5), Operand::f64(0.5)); // codes of two formats
    /// assert!(Operand::new(Format::F32, 0x7F80_0001).is_signaling());
    /// ```
    #[inline]
    pub const fn new(format: Format, code: u64) -> Self {
        Self { format, code }
    }

    /// A binary32 number.
    #[inline]
    pub const fn f32(x: f32) -> Self {
        Self::new(Format::F32, x.to_bits() as u64)
    }

    /// A binary64 number.
    #[inline]
    pub const fn f64(x: f64) -> Self {
        Self::new(Format::F64, x.to_bits())
    }

    /// The exact value.
    #[inline]
    pub const fn value(self) -> Value {
        self.format.decode(self.code)
    }

    /// Whether this is a signaling NaN.
    #[inline]
    pub const fn is_signaling(self) -> bool {
        self.format.is_signaling(self.code)
    }
}

/// What a result becomes: its format, the rules, and the random bits of stochastic modes.
///
/// Every operation is a method, and returns the code with its flags
/// ([`Rounded`](crate::round::Rounded)). None allocates or panics, except that a stochastic mode
/// needs a bit count in 1..=32 and a random word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[must_use]
#[non_exhaustive]
pub struct Context {
    /// The format of results.
    pub to: Format,
    /// How an exact result becomes a code of it.
    pub rules: Rules,
    /// The word whose top bits stochastic modes use; the others need none.
    pub random: Option<u32>,
}

impl Context {
    /// Results in the format `to` by `rules`. Stochastic ones need a random word besides:
    /// [`with_random`](Self::with_random).
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Rounding, Rules};
    ///
    /// let context = Context::new(Format::E2M1, Rules::DEFAULT.with_rounding(Rounding::stochastic(4)));
    /// let x = Operand::f32(0.25); // halfway between 0 and 0.5
    /// assert_eq!(context.with_random(0).convert(x).code, 0); // a random word of 0 never rounds up
    /// assert_eq!(context.with_random(0x8000_0000).convert(x).code, 1);
    /// ```
    #[inline]
    pub const fn new(to: Format, rules: Rules) -> Self {
        Self { to, rules, random: None }
    }

    /// The same with a random word.
    #[inline]
    pub const fn with_random(self, random: u32) -> Self {
        Self { random: Some(random), ..self }
    }

    /// The random word, which deterministic modes do not need.
    #[inline]
    pub(crate) const fn word(&self) -> u32 {
        match self.random {
            Some(word) => word,
            None => {
                let given = !self.rules.rounding.is_stochastic();
                assert!(given, "stochastic rounding needs random bits: Context::with_random");
                0
            }
        }
    }
}
