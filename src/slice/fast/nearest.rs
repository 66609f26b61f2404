//! To nearest even under the usual policies, and toward zero where that is a bit mask.
//!
//! A number in the target's normal range is rounded by adding, below the last kept place, half a
//! unit less one, or half a unit where that place is odd. The carry runs into the exponent as it
//! should. Below the smallest normal value the target's values are the multiples of its last place
//! `u`, and `(|x| + c) - c` with `c = 2^23 u` rounds to these. The sum's last place is `u`, and its
//! one rounding is the machine's own, to nearest even. The bits of the sum less those of `c` are
//! the code.
//!
//! Operands beyond the value that overflow is replaced by are clamped to it first
//! ([`Edges::clamp`]). The clamp leaves NaN alone, whose place then is taken by a comparison.

use core::marker::PhantomData;

use super::edges::{Clamp, Edges, NanCode};
use super::{Body, INFINITY, Lattice, NORMAL, Out, SIGN};
use crate::format::Format;
use crate::round::Rounding;

/// The constants of [`Nearest`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Params {
    lattice: Lattice,
    clamp: Clamp,
    /// `2^23` units.
    magic: f32,
}

impl Params {
    /// `None` if the mode is another, the policy not a usual one, or a constant too large.
    pub(super) fn new(lattice: &Lattice, rounding: Rounding, clamp: Option<Clamp>) -> Option<Self> {
        let clamp = clamp?;
        let exponent = (lattice.normal >> 23) + lattice.places;
        let possible = rounding == Rounding::TiesToEven && lattice.places > 0 && exponent <= 254;
        possible.then(|| Self { lattice: *lattice, clamp, magic: f32::from_bits(exponent << 23) })
    }

    pub(super) const fn one_zero(&self) -> bool {
        self.clamp.one_zero
    }

    /// Whether every binary32 number is in the normal range or rounded as if it were: with the
    /// exponents of binary32, its subnormal numbers are.
    pub(super) const fn all_normal(&self) -> bool {
        self.lattice.normal == NORMAL
    }
}

/// The smaller of a limit and a magnitude; NaN if that is NaN.
#[inline(always)]
pub(super) fn at_most(limit: f32, magnitude: u32) -> u32 {
    let magnitude = f32::from_bits(magnitude);
    let smaller = if limit < magnitude { limit } else { magnitude };
    smaller.to_bits()
}

/// To nearest even. `SMALL`: there are numbers below the normal range. `ONE_ZERO`: zero has no sign.
#[derive(Clone, Copy)]
pub(super) struct Nearest<O, const SMALL: bool, const ONE_ZERO: bool> {
    params: Params,
    /// What is added where the last kept place is 0, and where it is 1.
    add: [u32; 2],
    _out: PhantomData<O>,
}

impl<O: Out, const SMALL: bool, const ONE_ZERO: bool> Nearest<O, SMALL, ONE_ZERO> {
    pub(super) fn new(params: Params) -> Self {
        let Lattice { places, rebias, man_bits, .. } = params.lattice;
        let half = 1_u32 << (places - 1);
        // Parity is the code's. Without a significand field the last place is the exponent's, and
        // rebiasing may change it.
        let odd_is_one = man_bits > 0 || rebias >> 23 & 1 == 0;
        let add = if odd_is_one { [half - 1, half] } else { [half, half - 1] };
        let shifted = if O::VALUE { 0 } else { rebias };
        let add = add.map(|add| add.wrapping_sub(shifted));
        Self { params, add, _out: PhantomData }
    }
}

impl<O: Out, const SMALL: bool, const ONE_ZERO: bool> Body for Nearest<O, SMALL, ONE_ZERO> {
    type Out = O;

    #[inline(always)]
    fn apply(self, x: u32, _: u32) -> O {
        let Params { lattice, clamp, magic } = self.params;
        let magnitude = x & !SIGN;
        let y = at_most(clamp.at[0], magnitude);
        let odd = y & (1 << lattice.places) != 0;
        let rounded = y.wrapping_add(if odd { self.add[1] } else { self.add[0] });
        if O::VALUE {
            let mut value = rounded & (u32::MAX << lattice.places);
            if SMALL {
                let sum = f32::from_bits(y) + magic;
                let small = (sum - magic).to_bits();
                value = if y < lattice.normal { small } else { value };
            }
            value = if value > clamp.largest { clamp.over } else { value };
            value |= if ONE_ZERO && value == 0 { 0 } else { x & SIGN };
            O::new(if magnitude > INFINITY { clamp.nan_value.of(x) } else { value })
        } else {
            let code = rounded >> lattice.places;
            let sum = f32::from_bits(y) + magic;
            let small = sum.to_bits().wrapping_sub(magic.to_bits());
            let code = if y < lattice.normal { small } else { code };
            let sign = ((x as i32) >> 31) as u32 & clamp.sign;
            let code = code | if ONE_ZERO && code == 0 { 0 } else { sign };
            O::new(if magnitude > INFINITY { clamp.nan.of(x) } else { code })
        }
    }
}

/// The constants of [`Mask`].
#[derive(Clone, Copy, Debug)]
pub(super) struct MaskParams {
    /// The bits that are kept.
    keep: u32,
    nan: NanCode,
}

impl MaskParams {
    /// `None` if the mode is not toward zero, or the format has other exponents than binary32.
    pub(super) fn new(
        to: Format,
        lattice: &Lattice,
        rounding: Rounding,
        edges: &Edges,
    ) -> Option<Self> {
        let keep = u32::MAX << lattice.places;
        let largest = to.max().to_f32().to_bits();
        let fits = rounding == Rounding::TowardZero
            && lattice.normal == NORMAL
            && largest == 0x7F7F_FFFF & keep
            && edges.values[0].infinity == INFINITY
            && edges.values[1].infinity == INFINITY | SIGN
            && edges.values[1].zero == SIGN;
        fits.then_some(Self { keep, nan: edges.nan_value() })
    }
}

/// Toward zero to a format with the exponents of binary32.
#[derive(Clone, Copy)]
pub(super) struct Mask(pub(super) MaskParams);

impl Body for Mask {
    type Out = f32;

    #[inline(always)]
    fn apply(self, x: u32, _: u32) -> f32 {
        let is_nan = f32::from_bits(x).is_nan();
        f32::from_bits(if is_nan { self.0.nan.of(x) } else { x & self.0.keep })
    }
}
