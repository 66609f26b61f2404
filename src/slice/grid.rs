//! The fast rounding of binary32 bits to the values of a format, in integers and without branches.
//!
//! A format is a *regular grid* if its values below its lowest full binade continue that binade's
//! spacing down to zero. Near `x` its values are the multiples of `2^Q`, with
//! `Q = max(floor(log2 |x|), emin) - M`. So the significand of `x`, an integer of 24 bits, is
//! shifted right by `23 - M + max(0, emin - floor(log2 |x|))` places. A carry decided by the
//! rounding mode is added, and the integer left is multiplied by `2^Q`, exactly. What remains is
//! selection: beyond the largest value, infinity, NaN, sign. All that depends on the format, the
//! mode and the overflow policy is precomputed in a [`Grid`] by asking the rounding core, so that
//! policies are defined in one place.
//!
//! A block scale `X = 2^s` moves the grid instead of the value: `emin + s` takes the place of
//! `emin`. Nothing is divided, so nothing underflows and nothing is rounded twice.
//!
//! Casts of slices come here only for formats that [`fast`](super::fast) does not serve.

use crate::format::{Format, Sign, Value};
use crate::round::{Exact, Overflow, Rounding, StochasticVariant};
use crate::simd::kernel;

// The kernels copy what they share into locals: behind a reference it could, for all the compiler
// knows, change with the data written, and the loop would not be vectorized.

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7F80_0000;
const NAN: u32 = 0x7FC0_0000;

/// What becomes of the special cases of one sign; images as bits of `f32`.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// The largest magnitude that is kept.
    largest: f32,
    /// In place of larger ones.
    over: u32,
    /// In place of infinity.
    infinity: u32,
    /// In place of NaN.
    nan: u32,
    /// In place of what rounds to zero.
    zero: u32,
}

/// How the deterministic modes make the carry: masks over `2^shift - 1`, one for each part.
#[derive(Clone, Copy, Debug)]
struct Carry {
    /// Half a unit less one, and half a unit.
    below_half: u32,
    half: u32,
    /// One more where the lower neighbour is odd (ties to even).
    odd: u32,
    /// Signs and parities under which there is a carry at all.
    positive: u32,
    negative: u32,
    even_only: u32,
}

/// A format, mode and policy prepared for the kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// `23 - M`: places to shift out of a binary32 significand at full precision.
    places: i32,
    man_bits: i32,
    emin: i32,
    /// All ones where M is 0: the parity of a code is then that of its exponent field.
    no_man: u32,
    carry: Carry,
    /// The top N bits of a random word.
    random: u32,
    edges: [Edge; 2],
}

impl Grid {
    /// `None` if the format is no regular grid of `f32` values: it has no zero, or no subnormals
    /// though a significand field, or exceeds the range of `f32`. Also `None` for stochastic modes
    /// of variant B or C, which decide on a rounded fraction.
    pub(crate) fn new(format: Format, rounding: Rounding, overflow: Overflow) -> Option<Self> {
        let man_bits = format.man_bits();
        let regular = format.has_zero()
            && (format.has_subnormals() || man_bits == 0)
            && format.is_exact_in_f32()
            && man_bits <= 23
            && (-149..=127).contains(&format.emin());
        if !regular {
            return None;
        }
        let all = u32::MAX;
        let up = Carry {
            below_half: all,
            half: all,
            odd: 0,
            positive: all,
            negative: all,
            even_only: 0,
        };
        let (carry, random) = match rounding {
            Rounding::TiesToEven => (Carry { half: 0, odd: 1, ..up }, 0),
            Rounding::TiesToAway => (Carry { below_half: 0, ..up }, 0),
            Rounding::TiesToZero => (Carry { half: 0, ..up }, 0),
            Rounding::TowardZero => (Carry { half: 0, below_half: 0, ..up }, 0),
            Rounding::TowardPositive => (Carry { negative: 0, ..up }, 0),
            Rounding::TowardNegative => (Carry { positive: 0, ..up }, 0),
            Rounding::AwayFromZero => (up, 0),
            Rounding::ToOdd => (Carry { even_only: 1, ..up }, 0),
            Rounding::Stochastic { variant: StochasticVariant::A, bits } => {
                assert!((1..=32).contains(&bits), "stochastic rounding takes 1 to 32 random bits");
                (up, all << (32 - bits))
            }
            Rounding::Stochastic { .. } => return None,
        };
        Some(Self {
            places: 23 - man_bits as i32,
            man_bits: man_bits as i32,
            emin: format.emin(),
            no_man: if man_bits == 0 { all } else { 0 },
            carry,
            random,
            edges: [false, true].map(|negative| Edge::new(format, rounding, overflow, negative)),
        })
    }
}

impl Edge {
    fn new(format: Format, rounding: Rounding, overflow: Overflow, negative: bool) -> Self {
        let image = |code| format.to_f32(code).to_bits();
        let beyond = Exact { negative, significand: 1, exponent: 1 << 24, sticky: false };
        let zero = Exact { significand: 0, ..beyond };
        let over = image(format.round(beyond, rounding, 0, overflow).code);
        let special = |value| image(format.encode(value, rounding, overflow, 0).code);
        let largest = match format.sign() {
            Sign::Unsigned if negative => 0.0,
            // The negative end is where a policy says it is, one unit further than the positive.
            Sign::TwosComplement => f32::from_bits(over & !SIGN),
            _ => format.max().to_f32(),
        };
        Self {
            largest,
            over,
            infinity: special(Value::Infinite { negative }),
            nan: special(Value::Nan { negative }),
            zero: image(format.round(zero, rounding, 0, overflow).code),
        }
    }
}

/// `2^k` for `k` in -126..=127; infinity at 128.
#[inline(always)]
fn power(k: i32) -> f32 {
    f32::from_bits(((k + 127) as u32) << 23)
}

/// Where on the (scaled) grid a number lies.
#[derive(Clone, Copy)]
struct Place {
    significand: u32,
    /// Places to shift out, not bounded above.
    shift: u32,
    /// Binades above the lowest one.
    binades: u32,
    /// The exponent of the grid's unit at the unscaled value.
    unit: i32,
}

impl Grid {
    /// `scale` is the exponent of the block's scale.
    #[inline(always)]
    fn place(&self, magnitude: u32, scale: i32) -> Place {
        // A subnormal is normalized by a multiplication that is exact.
        let scaled = (f32::from_bits(magnitude) * 16_777_216.0).to_bits();
        let subnormal = magnitude < 0x0080_0000;
        let bits = if subnormal { scaled } else { magnitude };
        let field = bits >> 23;
        let exponent = field as i32 - if subnormal { 127 + 24 } else { 127 } - scale;
        let hidden = if field == 0 { 0 } else { 0x0080_0000 };
        Place {
            significand: (bits & 0x007F_FFFF) | hidden,
            shift: (self.places + (self.emin - exponent).max(0)) as u32,
            binades: (exponent - self.emin).max(0) as u32,
            unit: exponent.max(self.emin) - self.man_bits,
        }
    }

    /// The significand in units of the grid, rounded by a deterministic mode.
    #[inline(always)]
    fn nearest(&self, place: Place, sign: u32) -> u32 {
        // From 26 places on the result is the same: the number is less than a quarter unit.
        let shift = place.shift.min(26);
        let below = (1_u32 << shift) - 1;
        let half = below >> 1;
        let odd = ((place.significand >> shift) + (place.binades & self.no_man)) & 1;
        let c = &self.carry;
        let carry = (half & c.below_half) + ((below - half) & c.half) + (odd & below & c.odd);
        let signed = if sign == 0 { c.positive } else { c.negative };
        // All ones unless the carry is for even neighbours only and this one is odd.
        let parity = (odd & c.even_only).wrapping_sub(1);
        (place.significand + (carry & signed & parity)) >> shift
    }

    /// The significand in units of the grid, rounded stochastically: up iff the fraction's top N
    /// bits and N random bits carry.
    #[inline(always)]
    fn stochastic(&self, place: Place, word: u32) -> u32 {
        let Place { significand, shift, .. } = place;
        let left = if shift == 0 || shift > 32 { 0 } else { significand << ((32 - shift) & 31) };
        let right = if shift > 32 { significand >> (shift - 32).min(31) } else { 0 };
        let fraction = (left | right) & self.random;
        let carry = fraction.wrapping_add(word & self.random) < fraction;
        (significand >> shift.min(31)) + u32::from(carry)
    }

    /// A number of grid units to the image of the unscaled value, as bits.
    #[inline(always)]
    fn finish(&self, magnitude: u32, sign: u32, units: u32, unit: i32) -> u32 {
        let [plus, minus] = &self.edges;
        // By masks: of choices within choices the compiler makes a tangle of conditions.
        let negative = ((sign as i32) >> 31) as u32;
        let pick = |plus: u32, minus: u32| plus ^ ((plus ^ minus) & negative);
        let largest = f32::from_bits(pick(plus.largest.to_bits(), minus.largest.to_bits()));
        // 2^unit may be no binary32 number; its two halves are, and each product is exact.
        let value = units as f32 * power(unit >> 1) * power(unit - (unit >> 1));
        let mut bits = value.to_bits() | sign;
        bits = if units == 0 { pick(plus.zero, minus.zero) } else { bits };
        bits = if value > largest { pick(plus.over, minus.over) } else { bits };
        bits = if magnitude == INFINITY { pick(plus.infinity, minus.infinity) } else { bits };
        if magnitude > INFINITY { pick(plus.nan, minus.nan) } else { bits }
    }

    #[inline(always)]
    fn image(&self, x: f32, scale: i32) -> f32 {
        let (magnitude, sign) = (x.to_bits() & !SIGN, x.to_bits() & SIGN);
        let place = self.place(magnitude, scale);
        f32::from_bits(self.finish(magnitude, sign, self.nearest(place, sign), place.unit))
    }

    #[inline(always)]
    fn image_stochastic(&self, x: f32, scale: i32, word: u32) -> f32 {
        let (magnitude, sign) = (x.to_bits() & !SIGN, x.to_bits() & SIGN);
        let place = self.place(magnitude, scale);
        f32::from_bits(self.finish(magnitude, sign, self.stochastic(place, word), place.unit))
    }
}

/// The exponent of a scale that is a power of two from `2^-127` to `2^127`.
#[inline(always)]
fn exponent_of(scale: f32) -> i32 {
    (scale.to_bits() >> 23) as i32 - 127
}

/// NaN of a given image if the scale is NaN; products with NaN have no fixed bits otherwise.
#[inline(always)]
fn scaled(image: f32, scale: f32) -> f32 {
    if scale.is_nan() { f32::from_bits(NAN) } else { image * scale }
}

/// An element times its block's encode factor, clamped to the element format's range.
#[inline(always)]
fn encoded(x: f32, factor: f32, largest: f32) -> f32 {
    let y = x * factor;
    let y = if y > largest { largest } else { y };
    let y = if y < -largest { -largest } else { y };
    // Negative zero becomes zero, as in the reference; nothing else changes.
    y + 0.0
}

kernel! {
    /// Rounds to the grid.
    pub(crate) fn cast<'a>(grid: &'a Grid, data: &'a mut [f32]) {
        let grid = *grid;
        for x in data {
            *x = grid.image(*x, 0);
        }
    }
}

kernel! {
    /// As [`cast`], with a random word an element.
    pub(crate) fn cast_stochastic<'a>(grid: &'a Grid, words: &'a [u32], data: &'a mut [f32]) {
        let grid = *grid;
        for (x, word) in data.iter_mut().zip(words) {
            *x = grid.image_stochastic(*x, 0, *word);
        }
    }
}

kernel! {
    /// Rounds to the grid times a power of two, one an element. A scale that is NaN gives NaN.
    pub(crate) fn shifted<'a>(grid: &'a Grid, scales: &'a [f32], data: &'a mut [f32]) {
        let grid = *grid;
        for (x, scale) in data.iter_mut().zip(scales) {
            *x = scaled(grid.image(*x, exponent_of(*scale)), *scale);
        }
    }
}

kernel! {
    /// As [`shifted`], with a random word an element.
    pub(crate) fn shifted_stochastic<'a>(
        grid: &'a Grid,
        words: &'a [u32],
        scales: &'a [f32],
        data: &'a mut [f32],
    ) {
        let grid = *grid;
        for ((x, scale), word) in data.iter_mut().zip(scales).zip(words) {
            *x = scaled(grid.image_stochastic(*x, exponent_of(*scale), *word), *scale);
        }
    }
}

/// What all blocks of a tensor have in common under [`divided`].
#[derive(Clone, Copy)]
pub(crate) struct Common {
    /// The largest value of the element format.
    pub(crate) largest: f32,
    /// The last factor of an image.
    pub(crate) decode: f32,
}

impl Common {
    /// `(value * scale) * decode`, NaN of one image if a factor is NaN.
    #[inline(always)]
    fn image(&self, value: f32, scale: f32) -> f32 {
        let nan = scale.is_nan() | self.decode.is_nan();
        if nan { f32::from_bits(NAN) } else { value * scale * self.decode }
    }
}

kernel! {
    /// Multiplies by `factors`, clamps, rounds to the grid and multiplies by `scales` and the
    /// tensor's factor, each product rounded to binary32.
    pub(crate) fn divided<'a>(
        grid: &'a Grid,
        common: Common,
        factors: &'a [f32],
        scales: &'a [f32],
        data: &'a mut [f32],
    ) {
        let grid = *grid;
        for ((x, factor), scale) in data.iter_mut().zip(factors).zip(scales) {
            let y = encoded(*x, *factor, common.largest);
            *x = common.image(grid.image(y, 0), *scale);
        }
    }
}

kernel! {
    /// As [`divided`], with a random word an element.
    pub(crate) fn divided_stochastic<'a>(
        grid: &'a Grid,
        common: Common,
        words: &'a [u32],
        factors: &'a [f32],
        scales: &'a [f32],
        data: &'a mut [f32],
    ) {
        let grid = *grid;
        for (((x, factor), scale), word) in data.iter_mut().zip(factors).zip(scales).zip(words) {
            let y = encoded(*x, *factor, common.largest);
            *x = common.image(grid.image_stochastic(y, 0, *word), *scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Of the 256 random integers of sr8, `floor(v * 256)` send a number up. So the mean is below
    /// the number by less than 1/256 of the gap, and exact where `v * 256` is an integer.
    #[test]
    fn mean_over_all_random_integers() {
        let words: Vec<u32> = (0..256).map(|r| r << 24 | 0x00AB_CDEF).collect();
        let mean = |text: &str, x: f32| {
            let format = text.parse().unwrap();
            let grid = Grid::new(format, Rounding::stochastic(8), Overflow::Finite).unwrap();
            let mut data = [x; 256];
            cast_stochastic(&grid, &words, &mut data);
            data.iter().map(|x| f64::from(*x)).sum::<f64>() / 256.0
        };
        // 0.26 = 0.52 gaps of 0.5, 133/256; 4.4 = 4 + 0.2 gaps of 2, 51/256.
        assert_eq!(mean("e2m1", 0.26), 0.5 * 133.0 / 256.0);
        assert_eq!(mean("e2m1", 4.4), 4.0 + 2.0 * 51.0 / 256.0);
        for x in [0.0, 0.5, 1.25, -1.75, 2.5, -3.5, 5.0, 5.9921875, 6.0, 0.001953125] {
            assert_eq!(mean("e2m1", x), f64::from(x), "{x}");
        }
        assert_eq!(mean("e2m1", 7.0), 6.0);
        // Below 1/256 of the smallest gap nothing goes up, however small the number.
        for x in [0.0019, 1e-6, 1e-30, 1e-42] {
            assert_eq!(mean("e2m1", x), 0.0, "{x}");
        }
        for x in [1.0 + 77.0 / 2048.0, -1.0 - 1.0 / 2048.0, 0.015625 - 1.0 / 131_072.0] {
            assert_eq!(mean("e4m3", x), f64::from(x), "{x}");
        }
    }
}
