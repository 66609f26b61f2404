//! How an element becomes the nearest value of its format: additions that round in binary32, and a
//! correction for each mode. Definitions are in [`plain`](super::super::plain); a test compares the
//! two.

use super::{EXPONENT, MAGNITUDE};
use crate::block::scale::near_power;
use crate::format::{Format, Sign};
use crate::round::{Overflow, Rounding, StochasticVariant};

const SIGN: u32 = 0x8000_0000;

/// `2^k` for `k` in -126..=127.
const fn power(k: i32) -> f32 {
    f32::from_bits(((k + 127) as u32) << 23)
}

/// How the elements of a format are rounded, for the modes of [`Mode`]: a format prepared.
///
/// Near a magnitude `m` the format's values are multiples of `u = 2^(e - M)`, where `2^e` is the
/// binade of `m` or the format's lowest one. With `c = 2^(e + 23 - M)` the binary32 sum `m + c` has
/// exactly that spacing, so `(m + c) - c` is `m` to the nearest multiple, ties to even: the sum's
/// last bit is the multiple's. The other modes correct that by one `u` after a comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    largest: f32,
    /// `2^(emax + 1)`.
    top: f32,
    /// The lowest binade, `2^emin`, as bits.
    low: u32,
    /// What is added to the bits of a binade for `c`, and taken from them for `u`.
    up: u32,
    down: u32,
    /// `-0` or `0`, added before rounding: `0` makes negative zero positive and nothing else.
    pub(super) before: f32,
    /// The same, added after rounding.
    after: f32,
    /// Places of a random word to shift out, `2^N` and `2^-N`.
    random_shift: u32,
    random_count: u32,
    random_unit: f32,
    /// The code of a negative number is `(code ^ flip) + one | sign`, cut to `mask`.
    flip: u32,
    one: u32,
    sign: u32,
    mask: u32,
    /// `23 - M`.
    code_shift: u32,
    /// Whether a negative number that rounds to zero has the sign.
    pub(super) negative_zero: bool,
}

impl Places {
    /// `None` unless all of this holds, which it does for every format named in MX and NVFP4:
    ///
    /// * the grid is regular: it has a zero, subnormals and at least one bit of significand, so
    ///   that the parity of a code is that of the multiple. It is signed, and all its values are
    ///   `f32` values;
    /// * `c` does not overflow: `emax + 23 - M <= 127`, and `2^emin` is a normal number;
    /// * what a product with a factor can lose to underflow is far less than half a unit: `emin - M`
    ///   is at least -100, which the random bits of a stochastic mode do not undercut either;
    /// * the overflow policy keeps the largest magnitude of either sign, or `clamps`: elements are
    ///   clamped before they are rounded;
    /// * the mode is to nearest (ties to even or away), toward zero, or stochastic (variant A) of up
    ///   to 24 bits.
    ///
    /// `zeros`: whether negative zero counts as zero before rounding, and whether every zero is
    /// positive.
    pub(crate) fn new(
        format: Format,
        rounding: Rounding,
        overflow: Overflow,
        clamps: bool,
        zeros: (bool, bool),
    ) -> Option<Self> {
        let (man_bits, emin) = (format.man_bits() as i32, format.emin());
        let random_bits = match rounding {
            Rounding::TiesToEven | Rounding::TiesToAway | Rounding::TowardZero => 0,
            Rounding::Stochastic { bits: bits @ 1..=24, variant: StochasticVariant::A } => {
                u32::from(bits)
            }
            _ => return None,
        };
        let regular = format.has_zero()
            && format.has_subnormals()
            && (1..=22).contains(&man_bits)
            && format.bits() <= 16
            && format.is_exact_in_f32()
            && !matches!(format.sign(), Sign::Unsigned)
            && format.emax() + 23 - man_bits <= 127
            && emin <= 104
            && emin - man_bits >= -100;
        let largest = format.max().to_f32();
        let kept = |x: f32| {
            let code = format.encode_f32(x, rounding, overflow, 0).code;
            format.to_f32(code) == largest.copysign(x)
        };
        if !regular || !(clamps || (kept(f32::MAX) && kept(-f32::MAX))) {
            return None;
        }
        let complement = matches!(format.sign(), Sign::TwosComplement);
        let zero = |positive| if positive { 0.0 } else { -0.0 };
        let mask = u32::MAX >> (32 - format.bits());
        Some(Self {
            largest,
            top: power(format.emax() + 1),
            low: power(emin).to_bits(),
            up: ((23 - man_bits) as u32) << 23,
            down: (man_bits as u32) << 23,
            before: zero(zeros.0),
            after: zero(zeros.1 || !format.has_negative_zero()),
            random_shift: (32 - random_bits) & 31,
            random_count: 1 << random_bits,
            random_unit: power(-(random_bits as i32)),
            flip: if complement { mask } else { 0 },
            one: u32::from(complement),
            sign: if complement { 0 } else { 1 << (format.bits() - 1) },
            mask,
            code_shift: (23 - man_bits) as u32,
            negative_zero: format.has_negative_zero() && !zeros.1,
        })
    }

    /// The same for formats in which a negative number that rounds to zero has the sign, or has not.
    #[inline(always)]
    pub(super) fn with_negative_zero(self, negative_zero: bool) -> Self {
        Self { negative_zero, ..self }
    }

    /// The element's magnitude, rounded, and its sign as the sign of a number of unspecified
    /// magnitude.
    #[inline(always)]
    pub(super) fn place<M: Mode>(&self, x: f32, factor: f32, word: u32) -> (f32, u32) {
        let y = x * factor + self.before;
        let m = M::limited(self, f32::from_bits(y.to_bits() & MAGNITUDE));
        let e = m.to_bits() & EXPONENT;
        let e = if e > self.low { e } else { self.low };
        let c = f32::from_bits(e + self.up);
        let nearest = (m + c) - c;
        (M::correct(self, nearest, m, f32::from_bits(e - self.down), word), y.to_bits())
    }

    /// An element's value before it is multiplied by the scale.
    #[inline(always)]
    pub(super) fn value<M: Mode>(&self, x: f32, factor: f32, word: u32) -> f32 {
        let (t, y) = self.place::<M>(x, factor, word);
        f32::from_bits(t.to_bits() | (y & SIGN)) + self.after
    }

    /// An element's code.
    #[inline(always)]
    pub(super) fn code<M: Mode>(&self, x: f32, factor: f32, word: u32) -> u32 {
        let (t, y) = self.place::<M>(x, factor, word);
        self.code_of(t, y)
    }

    /// The code of what [`place`](Self::place) found.
    #[inline(always)]
    pub(super) fn code_of(&self, t: f32, y: u32) -> u32 {
        // Below the lowest binade the code is the number of units, elsewhere exponent and
        // significand lie side by side in the bits of binary32 already.
        let subnormal = t.to_bits() < self.low;
        let low = f32::from_bits(self.low);
        let w = t + if subnormal { low } else { 0.0 };
        let first = if subnormal { self.low } else { self.low - 0x0080_0000 };
        let code = (w.to_bits() - first) >> self.code_shift;
        let negative = ((y as i32) >> 31) as u32;
        let signed = if code != 0 || self.negative_zero { negative } else { 0 };
        (((code ^ (signed & self.flip)) + (signed & self.one)) | (signed & self.sign)) & self.mask
    }
}

/// A rounding mode: what becomes of the nearest multiple.
pub(crate) trait Mode {
    /// Whether it uses random words.
    const RANDOM: bool = false;

    /// A magnitude, brought to where rounding it overflows nothing.
    #[inline(always)]
    fn limited(places: &Places, magnitude: f32) -> f32 {
        if magnitude > places.largest { places.largest } else { magnitude }
    }

    /// From `nearest` to the multiple of `u` that the mode takes; `m` is the unrounded magnitude.
    fn correct(places: &Places, nearest: f32, m: f32, u: f32, word: u32) -> f32;
}

/// To nearest, ties to even.
pub(crate) struct Even;
/// To nearest, ties away from zero.
pub(crate) struct Away;
/// Toward zero.
pub(crate) struct Zero;
/// Up if the fraction's first N bits and N random bits carry.
pub(crate) struct Random;

impl Mode for Even {
    #[inline(always)]
    fn correct(_: &Places, nearest: f32, _: f32, _: f32, _: u32) -> f32 {
        nearest
    }
}

impl Mode for Away {
    #[inline(always)]
    fn correct(_: &Places, nearest: f32, m: f32, u: f32, _: u32) -> f32 {
        nearest + if m - nearest == 0.5 * u { u } else { 0.0 }
    }
}

impl Mode for Zero {
    #[inline(always)]
    fn correct(_: &Places, nearest: f32, m: f32, u: f32, _: u32) -> f32 {
        nearest - if nearest > m { u } else { 0.0 }
    }
}

impl Mode for Random {
    const RANDOM: bool = true;

    #[inline(always)]
    fn correct(places: &Places, nearest: f32, m: f32, u: f32, word: u32) -> f32 {
        let below = Zero::correct(places, nearest, m, u, word);
        // The fraction is (m - below) / u. Its first N bits and the random integer R carry if
        // fraction * 2^N >= 2^N - R; every number here is exact.
        let random = word >> places.random_shift;
        let missing = (places.random_count - random) as i32 as f32;
        below + if m - below >= missing * (places.random_unit * u) { u } else { 0.0 }
    }
}

// Elements as microxcaling's PyTorch code rounds them: in binary32, by `floor(y / u + 1/2)`, `u` from
// a binary32 logarithm. The definition is `Elements::Binary32` of `block::scale`.
//
// Multiplying by powers of two changes no rounding here (nothing is subnormal), so that the sum is
// `m + u/2`, rounded once, and cut to a multiple of `u`. The logarithm is one too high for a few
// numbers below a power of two, for which `u` is then twice as large. Those round up to that power
// under either `u`, so only cutting without 1/2 has to check.

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
