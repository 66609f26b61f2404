//! Elements as microxcaling's PyTorch code rounds them: in binary32, by `floor(y / u + 1/2)`, `u` from
//! a binary32 logarithm. The definition is [`Elements::Binary32`](crate::block::scale::Elements).
//!
//! Multiplying by powers of two changes no rounding here (nothing is subnormal), so that the sum is
//! `m + u/2`, rounded once, and cut to a multiple of `u`. The logarithm is one too high for a few
//! numbers below a power of two, for which `u` is then twice as large; those round up to that power
//! under either `u`, so only cutting without 1/2 has to ask.

use super::places::{Mode, Places, Zero};
use crate::block::scale::near_power;

/// To nearest, ties away from zero: microxcaling's `nearest`.
pub(crate) struct HalfAway;
/// To nearest, ties to even: microxcaling's `even`.
pub(crate) struct HalfEven;
/// Toward zero: microxcaling's `floor`.
pub(crate) struct LogZero;

/// `m + u/2` cut to a multiple of `u`.
#[inline(always)]
fn half_up(m: f32, u: f32) -> f32 {
    let t = m + 0.5 * u;
    let c = u * 8_388_608.0;
    let nearest = (t + c) - c;
    nearest - if nearest > t { u } else { 0.0 }
}

impl Mode for HalfAway {
    #[inline(always)]
    fn correct(_: &Places, _: f32, m: f32, u: f32, _: u32) -> f32 {
        half_up(m, u)
    }
}

impl Mode for HalfEven {
    #[inline(always)]
    fn correct(_: &Places, nearest: f32, m: f32, u: f32, _: u32) -> f32 {
        if (m - nearest).abs() == 0.5 * u { nearest } else { half_up(m, u) }
    }
}

impl Mode for LogZero {
    /// Just below `2^(emax + 1)` the larger `u` can cut to less than the largest value.
    #[inline(always)]
    fn limited(places: &Places, magnitude: f32) -> f32 {
        if magnitude >= places.top { places.largest } else { magnitude }
    }

    #[inline(always)]
    fn correct(places: &Places, nearest: f32, m: f32, u: f32, word: u32) -> f32 {
        let below = Zero::correct(places, nearest, m, u, word);
        let below =
            below - if (m.to_bits() >= places.low) & near_power(m.to_bits()) { u } else { 0.0 };
        if below > places.largest { places.largest } else { below }
    }
}
