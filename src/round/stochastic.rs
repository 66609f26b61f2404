//! Stochastic rounding with few random bits: IEEE P3109 (Interim Report 4.0), after Fitzgibbon and Felix
//! (ARITH 2025).

use super::Rounding;

impl Rounding {
    /// Stochastic rounding, variant A, with `bits` random bits.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::round::{Overflow, Rounding};
    ///
    /// let half = |random| Format::E2M1.encode_f32(0.25, Rounding::stochastic(1), Overflow::None, random);
    /// assert_eq!([half(0), half(1 << 31)].map(|rounded| rounded.code), [0, 1]); // the top bit decides
    /// let less = |random| Format::E2M1.encode_f32(0.2, Rounding::stochastic(1), Overflow::None, random);
    /// assert_eq!(less(u32::MAX).code, 0); // one bit stands for a half, and 0.4 of a gap is less
    /// assert!(Rounding::stochastic(1).is_stochastic());
    /// ```
    ///
    /// # Panics
    /// If `bits` is not in 1..=32.
    pub const fn stochastic(bits: u32) -> Self {
        assert!(bits >= 1 && bits <= 32, "stochastic rounding takes 1 to 32 random bits");
        Self::Stochastic { variant: StochasticVariant::A, bits: bits as u8 }
    }

    /// Whether the result depends on random bits.
    pub const fn is_stochastic(self) -> bool {
        matches!(self, Self::Stochastic { .. })
    }
}

/// How stochastic rounding compares `v` with an N-bit random integer `R` (P3109 4.0).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum StochasticVariant {
    /// Up iff `floor(v 2^N) + R >= 2^N`: add and truncate, as hardware does. Its mean error is
    /// toward zero, by less than `2^-N` gaps.
    #[default]
    A,
    /// Up iff `floor(v 2^(N+1)) + 2R + 1 >= 2^(N+1)`: `v` rounded to N bits, halves up.
    B,
    /// Up iff `rne(v 2^N) + R >= 2^N`: `v` rounded to N bits, halves to even.
    C,
}

/// Whether a fraction of 64 bits, with or without a rest below them, goes up under the top `n` bits of a
/// random word.
#[inline(always)]
pub(super) const fn is_up(
    variant: StochasticVariant,
    n: u8,
    bits: u64,
    sticky: bool,
    random: u32,
) -> bool {
    assert!(n >= 1 && n <= 32, "stochastic rounding takes 1 to 32 random bits");
    let n = n as u32;
    let random = (random >> (32 - n)) as u64;
    let top = bits >> (64 - n);
    let next = bits >> (63 - n) & 1;
    match variant {
        StochasticVariant::A => top + random >= 1 << n,
        StochasticVariant::B => (top << 1 | next) + 2 * random + 1 >= 2 << n,
        StochasticVariant::C => {
            let rest = bits << n << 1 != 0 || sticky;
            let up = next == 1 && (rest || top & 1 == 1);
            top + up as u64 + random >= 1 << n
        }
    }
}
