//! The elementary functions by name, and which formats' numbers they take.

use core::fmt;

use super::circular;
use crate::format::Format;

/// A correctly rounded elementary function: those of IEEE P3109's Basic and Full inventory
/// (Interim Report 4.0, Annex G) that are not algebraic, and powers. Their names are P3109's in snake case.
///
/// ```
/// use exmy::math::elementary::Function;
///
/// let function: Function = "asin_pi".parse()?;
/// assert_eq!(function, Function::AsinPi);
/// assert_eq!(function.to_string(), "asin_pi");
/// # Ok::<(), exmy::text::UnknownName>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Function {
    /// `e^x`.
    Exp,
    /// `2^x`.
    Exp2,
    /// `e^x - 1`.
    Expm1,
    /// The natural logarithm.
    Log,
    /// The logarithm to base 2.
    Log2,
    /// `log(1 + x)`.
    Log1p,
    /// `log(1 + e^x)`.
    Softplus,
    /// Sine of radians.
    Sin,
    /// Cosine of radians.
    Cos,
    /// Tangent of radians.
    Tan,
    /// Arc sine in radians.
    Asin,
    /// Arc cosine in radians.
    Acos,
    /// Arc tangent in radians.
    Atan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic cosine.
    Cosh,
    /// Hyperbolic tangent.
    Tanh,
    /// Inverse hyperbolic sine.
    Asinh,
    /// Inverse hyperbolic cosine.
    Acosh,
    /// Inverse hyperbolic tangent.
    Atanh,
    /// `sin(pi x)`.
    SinPi,
    /// `cos(pi x)`.
    CosPi,
    /// `tan(pi x)`.
    TanPi,
    /// `asin(x) / pi`.
    AsinPi,
    /// `acos(x) / pi`.
    AcosPi,
    /// `atan(x) / pi`.
    AtanPi,
    /// The angle of the point `(x, y)` in radians; operands `y`, `x`.
    Atan2,
    /// The angle of the point `(x, y)` in half turns; operands `y`, `x`.
    Atan2Pi,
    /// `x^y`; operands `x`, `y`. P3109 has none: it is IEEE 754's.
    Pow,
}

impl Function {
    /// All functions.
    pub const ALL: [Self; 28] = [
        Self::Exp,
        Self::Exp2,
        Self::Expm1,
        Self::Log,
        Self::Log2,
        Self::Log1p,
        Self::Softplus,
        Self::Sin,
        Self::Cos,
        Self::Tan,
        Self::Asin,
        Self::Acos,
        Self::Atan,
        Self::Sinh,
        Self::Cosh,
        Self::Tanh,
        Self::Asinh,
        Self::Acosh,
        Self::Atanh,
        Self::SinPi,
        Self::CosPi,
        Self::TanPi,
        Self::AsinPi,
        Self::AcosPi,
        Self::AtanPi,
        Self::Atan2,
        Self::Atan2Pi,
        Self::Pow,
    ];

    /// The number of operands, 1 or 2.
    ///
    /// ```
    /// use exmy::math::elementary::Function;
    ///
    /// assert_eq!([Function::Atan, Function::Atan2].map(Function::operands), [1, 2]);
    /// ```
    pub const fn operands(self) -> u32 {
        match self {
            Self::Atan2 | Self::Atan2Pi | Self::Pow => 2,
            _ => 1,
        }
    }

    /// Whether operands of a format are taken.
    ///
    /// Only `sin`, `cos` and `tan` set a limit: reducing the largest numbers of a format must need
    /// no more bits of `pi` than the crate holds. Every format of up to 11 exponent bits with the
    /// usual bias is within it, binary64 included.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::elementary::Function;
    ///
    /// assert!(Function::Sin.supports(Format::F64).is_ok());
    /// let wide = Format::ieee(15, 10)?; // numbers up to 2^16384
    /// assert!(Function::Sin.supports(wide).is_err());
    /// assert!(Function::SinPi.supports(wide).is_ok()); // half turns need no bits of pi to reduce
    /// # Ok::<(), exmy::format::FormatError>(())
    /// ```
    ///
    /// # Errors
    /// [`Unsupported::Range`] says how far the format reaches.
    pub const fn supports(self, from: Format) -> Result<(), Unsupported> {
        // The unit of the largest finite numbers, from above.
        let unit = from.lsb() as i64 + (1 << from.exp_bits());
        let limited = matches!(self, Self::Sin | Self::Cos | Self::Tan);
        if limited && unit > circular::LARGEST_UNIT as i64 {
            return Err(Unsupported::Range { function: self, format: from });
        }
        Ok(())
    }
}

/// Why a function has no result for an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsupported {
    /// The format's numbers are too large to be reduced modulo `pi/2`.
    Range {
        /// The function.
        function: Function,
        /// The operand's format.
        format: Format,
    },
    /// The function takes another number of operands.
    Operands {
        /// The function.
        function: Function,
        /// How many there were.
        given: u32,
    },
    /// The result lies so close to a number of the target format, or to the middle between two,
    /// that 512 bits do not show on which side. No such operand is known. None exists among the
    /// numbers of up to 16 significant bits between `2^-160` and `2^160`, nor, for `atan2`, among
    /// those of up to 12.
    Undecided {
        /// The function.
        function: Function,
        /// The operand's format.
        format: Format,
    },
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range { function, format } => write!(
                f,
                "{function} of {format}: its numbers reach 2^{}, and arguments up to 2^{} can be \
                 reduced modulo pi/2; formats of up to 11 exponent bits with the usual bias, or \
                 {function}_pi, would work",
                format.emax(),
                circular::LARGEST_UNIT,
            ),
            Self::Operands { function, given } => {
                let takes = function.operands();
                write!(
                    f,
                    "{function} takes {takes} operand{}, not {given}",
                    if takes == 1 { "" } else { "s" }
                )
            }
            Self::Undecided { function, format } => write!(
                f,
                "{function} of this {format} number: 512 bits do not decide how to round it"
            ),
        }
    }
}

impl core::error::Error for Unsupported {}
