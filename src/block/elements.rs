//! How the elements of blocks are rounded.

use crate::random::{Philox, Stream};
use crate::round::{Overflow, Rounding};

/// How the elements of blocks are rounded; their scales follow the format's rule.
///
/// A rounding mode alone saturates, as OCP MX 1.0 (6.3) asks. A tuple says everything at once.
///
/// ```
/// use exmy::block::{Axis, BlockFormat, BlockTensor, Elements};
/// use exmy::random::{Philox, Stream};
/// use exmy::round::Rounding;
/// use exmy::slice::View;
///
/// let x = View::new(&[0.7_f32, 1.25, -4.0], 1, 3);
/// let quantize = |by: Elements| BlockTensor::quantize(x, Axis::Cols, BlockFormat::MXFP4, by).dequantize();
/// assert_eq!(quantize(Rounding::TiesToEven.into()), [0.5, 1.0, -4.0]);
/// assert_eq!(quantize(Rounding::TiesToAway.into()), [0.5, 1.5, -4.0]);
/// let random = Philox::new(1, Stream::new("doc"));
/// let by = Elements::from(Rounding::stochastic(8)).with_random(random);
/// assert!([1.0, 1.5].contains(&quantize(by)[1]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Elements {
    /// Which neighbour an element goes to.
    pub rounding: Rounding,
    /// What becomes of elements beyond the largest value.
    pub overflow: Overflow,
    /// Random words, which stochastic modes need.
    pub random: Option<Philox>,
}

impl Elements {
    /// The same with another overflow policy.
    #[must_use]
    pub const fn with_overflow(self, overflow: Overflow) -> Self {
        Self { overflow, ..self }
    }

    /// The same with random words.
    #[must_use]
    pub const fn with_random(self, random: Philox) -> Self {
        Self { random: Some(random), ..self }
    }

    /// The random words, which nobody reads unless the mode is stochastic.
    ///
    /// # Panics
    /// If it is, and there are none.
    #[track_caller]
    pub(super) fn words(&self) -> Philox {
        let mode = self.rounding;
        match self.random {
            None if mode.is_stochastic() => {
                panic!("{mode} rounding needs random words: Elements::with_random takes them")
            }
            random => random.unwrap_or(UNUSED),
        }
    }
}

/// What modes that are not stochastic are given, which do not look at it.
pub(crate) const UNUSED: Philox = Philox::new(0, Stream::new("unused"));

impl From<Rounding> for Elements {
    fn from(rounding: Rounding) -> Self {
        Self { rounding, overflow: Overflow::Finite, random: None }
    }
}

impl From<(Rounding, Overflow, Philox)> for Elements {
    fn from((rounding, overflow, random): (Rounding, Overflow, Philox)) -> Self {
        Self { rounding, overflow, random: Some(random) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_asked_for_where_they_are_read() {
        assert_eq!(Elements::from(Rounding::TiesToEven).words(), UNUSED);
        let random = Philox::new(3, Stream::new("test"));
        assert_eq!(Elements::from(Rounding::stochastic(8)).with_random(random).words(), random);
        let by = Elements::from((Rounding::TowardZero, Overflow::Nan, random));
        assert_eq!((by.words(), by.overflow), (random, Overflow::Nan));
    }

    #[test]
    #[should_panic(expected = "sr8 rounding needs random words: Elements::with_random")]
    fn a_stochastic_mode_without_words_is_refused() {
        Elements::from(Rounding::stochastic(8)).words();
    }
}
