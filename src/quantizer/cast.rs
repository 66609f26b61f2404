//! A format with the two choices that a name can write behind it.

use core::fmt;

use super::Target;
use crate::format::{Format, Sign};
use crate::round::{Overflow, Rounding, Rules};
use crate::slice::Converter;

/// A format by a rounding mode and an overflow policy, as `e8m3@rtz` names it: what a
/// [`Quantizer`](super::Quantizer) rounds to first, and what products are added in and end in.
///
/// A conversion of slices takes all [`Rules`]: [`Converter::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cast {
    /// The format.
    pub format: Format,
    /// Which neighbour a number goes to.
    pub rounding: Rounding,
    /// What becomes of numbers larger than the largest.
    pub overflow: Overflow,
}

impl Cast {
    /// What the format's name alone means: to nearest even; overflow is natural ([`Overflow::None`]) in
    /// formats with infinities and saturates ([`Overflow::Finite`]) in those without, where the
    /// alternative would be NaN. Of two's complement only fractions without a bias, as OCP MX's `int8`,
    /// clamp symmetrically, as in microxcaling; integers keep their lowest number.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::quantizer::Cast;
    /// use exmy::round::{Overflow, Rounding};
    ///
    /// assert_eq!(Cast::new(Format::E5M2).overflow, Overflow::None); // to infinity
    /// let cast = Cast::new(Format::E4M3FN);
    /// assert_eq!(cast.overflow, Overflow::Finite); // to 448, not NaN
    /// assert_eq!(Cast::new(Format::INT8).overflow, Overflow::Finite); // -127/64 to 127/64
    /// assert_eq!(Cast::new("int8b-6".parse()?).overflow, Overflow::None); // -128 to 127
    /// let cut = cast.with_rounding(Rounding::TowardZero).with_overflow(Overflow::None);
    /// assert_eq!(cut.to_string(), "e4m3@rtz@sat-none");
    /// # Ok::<(), exmy::text::ParseFormatError>(())
    /// ```
    pub const fn new(format: Format) -> Self {
        let fraction = format.bias() == 0 && format.lsb() < 0;
        let keeps = matches!(format.sign(), Sign::TwosComplement) && !fraction;
        let natural = format.has_infinity() || keeps;
        let overflow = if natural { Overflow::None } else { Overflow::Finite };
        Self { format, rounding: Rounding::TiesToEven, overflow }
    }

    /// The same with another rounding mode.
    #[must_use]
    pub const fn with_rounding(self, rounding: Rounding) -> Self {
        Self { rounding, ..self }
    }

    /// The same with another overflow policy.
    #[must_use]
    pub const fn with_overflow(self, overflow: Overflow) -> Self {
        Self { overflow, ..self }
    }

    /// The rules of this cast; all others are the defaults.
    pub const fn rules(self) -> Rules {
        Rules::DEFAULT.with_rounding(self.rounding).with_overflow(self.overflow)
    }
}

impl From<Format> for Cast {
    fn from(format: Format) -> Self {
        Self::new(format)
    }
}

impl From<Cast> for Converter<'_> {
    fn from(cast: Cast) -> Self {
        Self::new(cast.format, cast.rules())
    }
}

impl fmt::Display for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.format)?;
        suffixes(f, self.format.into(), self.rounding, self.overflow)
    }
}

/// The suffixes that differ from what would be meant without them.
pub(super) fn suffixes(
    f: &mut fmt::Formatter<'_>,
    target: Target,
    rounding: Rounding,
    overflow: Overflow,
) -> fmt::Result {
    if rounding != target.default_rounding() {
        write!(f, "@{rounding}")?;
    }
    if overflow != target.default_overflow() {
        write!(f, "@{overflow}")?;
    }
    Ok(())
}
