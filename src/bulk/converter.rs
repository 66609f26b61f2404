//! A conversion made ready for slices.

use alloc::vec;
use alloc::vec::Vec;

use super::grid::{self, Grid};
use super::{Real, SPAN, words_into};
use crate::format::Format;
use crate::minifloat::Bits;
use crate::random::Philox;
use crate::round::{Overflow, Rounding, Rules};

/// A conversion to a format: which values there are and which of them is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cast {
    /// The format.
    pub format: Format,
    /// Which neighbour a number goes to.
    pub rounding: Rounding,
    /// What becomes of larger ones than the largest.
    pub overflow: Overflow,
}

impl Cast {
    /// To nearest even; overflow is natural ([`Overflow::None`]) in formats with infinities and
    /// saturates ([`Overflow::Finite`]) in those without, where the alternative would be NaN.
    pub const fn new(format: Format) -> Self {
        let overflow = if format.has_infinity() { Overflow::None } else { Overflow::Finite };
        Self { format, rounding: Rounding::Rne, overflow }
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

/// A format and its rules, made ready for slices.
///
/// ```
/// use exmy::bulk::{Cast, Converter};
/// use exmy::format::Format;
///
/// let converter = Converter::from(Cast::new(Format::E4M3FN));
/// let mut codes = [0_u8; 4];
/// converter.encode_into(&[1.0_f32, 464.0, 465.0, f32::NAN], &mut codes);
/// assert_eq!(codes, [0x38, 0x7E, 0x7E, 0x7F]); // a cast to E4M3FN saturates unless told otherwise
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Converter {
    pub(super) to: Format,
    pub(super) rules: Rules,
    random: Option<Philox>,
    first: u64,
    grid: Option<Grid>,
}

impl From<Cast> for Converter {
    fn from(cast: Cast) -> Self {
        Self::new(cast.format, cast.rules())
    }
}

impl Converter {
    /// Conversion to the format `to` by `rules`.
    ///
    /// # Panics
    /// If the rounding mode is stochastic with a bit count outside 1..=32.
    pub fn new(to: Format, rules: Rules) -> Self {
        if let Rounding::Stochastic { bits, .. } = rules.rounding {
            assert!((1..=32).contains(&bits), "stochastic rounding takes 1 to 32 random bits");
        }
        let plain =
            rules == Rules::DEFAULT.with_rounding(rules.rounding).with_overflow(rules.overflow);
        let grid = plain.then(|| Grid::new(to, rules.rounding, rules.overflow)).flatten();
        Self { to, rules, random: None, first: 0, grid }
    }

    /// The same with random words: element `i` of a slice uses word `i`.
    #[must_use]
    pub const fn with_random(self, random: Philox) -> Self {
        Self { random: Some(random), ..self }
    }

    /// The same for a slice that is a part of something larger: element `i` uses random word
    /// `first + i`.
    #[must_use]
    pub const fn starting_at(self, first: u64) -> Self {
        Self { first, ..self }
    }

    /// The random word of a slice's first element.
    pub const fn start(&self) -> u64 {
        self.first
    }

    /// The target format.
    pub const fn format(&self) -> Format {
        self.to
    }

    /// The rules.
    pub const fn rules(&self) -> Rules {
        self.rules
    }

    /// Writes to `codes` the codes to which the elements of `x` round.
    ///
    /// # Panics
    /// If the lengths differ, the codes are wider than their integer, or the mode is stochastic and
    /// no random words were given.
    pub fn encode_into<S: Real, C: Bits>(&self, x: &[S], codes: &mut [C]) {
        self.encode_plain(x, codes);
    }

    /// The codes to which the elements of `x` round.
    ///
    /// # Panics
    /// As [`encode_into`](Self::encode_into), but for the lengths.
    pub fn encode<S: Real, C: Bits>(&self, x: &[S]) -> Vec<C> {
        let mut codes = vec![C::from_u64(0); x.len()];
        self.encode_into(x, &mut codes);
        codes
    }

    /// Writes to `out` the codes to which the values of `codes`, codes of the format `from`, round.
    ///
    /// # Panics
    /// As [`encode_into`](Self::encode_into).
    pub fn recode_into<C: Bits, D: Bits>(&self, from: Format, codes: &[C], out: &mut [D]) {
        self.recode_plain(from, codes, out);
    }

    /// Writes to `out` the values to which the elements of `x` round; values that the type cannot
    /// hold (of formats wider than it) are rounded once more, to nearest even.
    ///
    /// # Panics
    /// If the lengths differ, or the mode is stochastic and no random words were given.
    pub fn fake_quantize_into<S: Real>(&self, x: &[S], out: &mut [S]) {
        self.check::<u64>(x.len(), out.len());
        out.copy_from_slice(x);
        self.fake_quantize(out);
    }

    /// Rounds every element in place; see [`fake_quantize_into`](Self::fake_quantize_into).
    ///
    /// # Panics
    /// If the mode is stochastic and no random words were given.
    pub fn fake_quantize<S: Real>(&self, data: &mut [S]) {
        if let Some(data) = S::f32s(data) {
            return self.round(data);
        }
        let x = data.to_vec();
        self.fake_quantize_plain(&x, data);
    }

    /// As [`fake_quantize`](Self::fake_quantize).
    pub(crate) fn round(&self, data: &mut [f32]) {
        match &self.grid {
            Some(grid) if self.rules.rounding.is_stochastic() => {
                let mut words = [0; SPAN];
                for (i, data) in data.chunks_mut(SPAN).enumerate() {
                    let words = &mut words[..data.len()];
                    words_into(self.generator(), self.first + (i * SPAN) as u64, words);
                    grid::cast_stochastic(grid, words, data);
                }
            }
            Some(grid) => grid::cast(grid, data),
            None => {
                let x = data.to_vec();
                self.fake_quantize_plain(&x, data);
            }
        }
    }

    #[track_caller]
    fn generator(&self) -> Philox {
        let Some(random) = self.random else {
            panic!("{} rounding needs random words: Converter::with_random", self.rules.rounding)
        };
        random
    }

    /// The random word of element `i` of a slice, which deterministic modes do not need.
    #[track_caller]
    pub(super) fn word(&self, i: usize) -> u32 {
        if !self.rules.rounding.is_stochastic() {
            return 0;
        }
        self.generator().word(self.first + i as u64)
    }

    #[track_caller]
    pub(super) fn check<C: Bits>(&self, from: usize, to: usize) {
        assert_eq!(from, to, "input and output of a conversion have different lengths");
        let (width, bits) = (self.to.bits(), C::WIDTH);
        assert!(width <= bits, "codes of {} have {width} bits and do not fit {bits}", self.to);
    }
}
